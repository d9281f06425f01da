"""A dataset card comes back from its text, gives its spec and its masker, and says what differs."""

import dataclasses
import json

import numpy as np
import pytest

from keras_bert.records import DatasetCard, compact, padded
from keras_bert.records.masking import example_keys
from keras_bert.text.template import BERT_TEMPLATE, PLAIN_TEMPLATE
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import BERT_TOKENS, SPECIAL_TOKENS
from tests.messages import raises_input_error

VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS, *"abcdef"])
READING = {"bad_lines": "error", "min_characters": 0}
# Whole, and in the order in which the job writes it.
CARD = {
    "format_version": 1,
    "made_by": "keras-bert-toolkit 0.1.0",
    "input": ["books/*.txt", "ä.txt"],
    "objective": "mlm",
    "masking": "dynamic",
    "rows": "compact",
    "compression": None,
    "max_length": 16,
    "max_predictions": 8,
    "seed": 5,
    "lowercase": False,
    "vocabulary": {"sha256": VOCABULARY.sha256, "size": len(VOCABULARY)},
    "special_tokens": BERT_TOKENS.to_dict(),
    "template": BERT_TEMPLATE.to_dict(),
    "settings": {
        "mask_unit": "token",
        "replacement": "unigram",
        "replacement_counts": None,
        "masked_rate": 0.9,
        "short_rate": 0.1,
        "dupe_factor": 1,
        "eval_fraction": 0.02,
        "item_bytes": 2097152,
        "reading": READING,
    },
    "splits": {
        "train": {
            "shards": 2,
            "instances": 30,
            "tokens": 300,
            "shard_instances": [10, 20],
            "bytes": 1234,
            "documents": 3,
        },
        "eval": {"shards": 0, "instances": 0, "tokens": 0, "shard_instances": []},
    },
    "counters": {"bytes_of_text": 2000, "documents": 3},
    "length_histogram": [0, 0, 30],
    "unigram_entropy": 0.5,
    "unigram_counts": [0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0],
}
TEXT = json.dumps(CARD, ensure_ascii=False, indent=1) + "\n"


def parse(**changes):
    return DatasetCard.parse(json.dumps(CARD | changes), "card.json")


def test_its_text_comes_back_byte_by_byte():
    card = DatasetCard.parse(TEXT.encode(), "card.json")
    assert card.to_json() == TEXT and card.to_dict() == CARD
    assert card == DatasetCard.parse(card.to_json(), "card.json")
    train = card.splits["train"]
    assert (train.instances, train.shard_instances, train.counters["bytes"]) == (30, (10, 20), 1234)
    assert train.counters["predictions"] == 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        card.seed = 6


def test_cards_with_more_or_fewer_keys_are_read():
    settings = {"mask_unit": "span", "masked_rate": 0.15, "of_a_later_version": 1}
    card = parse(of_a_later_version=1, settings=settings)
    assert card.settings.mask_unit == "span" and card.settings.replacement == "uniform"
    silent = {name: value for name, value in CARD.items() if name not in ("counters", "input")}
    assert DatasetCard.parse(json.dumps(silent), "card.json").input == ()


def test_a_card_without_a_template_is_of_berts():
    newer = ("special_tokens", "template")
    older = {name: value for name, value in CARD.items() if name not in newer}
    card = DatasetCard.parse(json.dumps(older), "card.json")
    assert (card.template, card.special_tokens) == (BERT_TEMPLATE, BERT_TOKENS)
    assert parse(template=PLAIN_TEMPLATE.to_dict()).template == PLAIN_TEMPLATE


@pytest.mark.parametrize(
    "text, message",
    [
        (TEXT[:-40], "Could not read the dataset card card.json: "),
        (b"\xff\xfe", "Could not read the dataset card card.json: "),
        ("[" * 200_000, "Could not read the dataset card card.json: "),
        ('{"seed": ' + "1" * 5000 + "}", "Could not read the dataset card card.json: "),
        ("[1]", "not a dataset card"),
        (
            json.dumps(CARD | {"format_version": 2}),
            "format version 2, but this version of keras-bert reads",
        ),
        ('{"format_version": 1}', "it has no objective, masking"),
        (json.dumps(CARD | {"splits": {}}), "an incomplete dataset card: ...train"),
        (json.dumps(CARD | {"splits": 5}), "an incomplete dataset card"),
        (json.dumps(CARD | {"settings": {}}), "an incomplete dataset card: ...mask_unit"),
        (json.dumps(CARD | {"vocabulary": None}), "an incomplete dataset card"),
        (json.dumps(CARD | {"template": {"single": 5}}), "an incomplete dataset card: ...single"),
        (json.dumps(CARD | {"special_tokens": {"x": "y"}}), "an incomplete dataset card: ...x"),
    ],
)
def test_an_invalid_card_is_one_sentence(text, message):
    with raises_input_error(message):
        DatasetCard.parse(text, "card.json")


def test_the_spec_is_that_of_its_examples():
    assert parse().spec == compact(objective="mlm", masking="dynamic")
    expected = padded(objective="mlm-nsp", max_length=16, max_predictions=8)
    assert parse(rows="padded", objective="mlm-nsp", masking="static").spec == expected
    assert parse(objective="mlm-nsp").has_pairs and not parse().has_pairs


def test_its_masker_follows_its_settings():
    ids = np.full((500, 16), VOCABULARY.id("a"))
    lengths = np.full(500, 16)
    keys = example_keys(ids, lengths, seed=0, epoch=np.arange(500))

    def drawn(card):
        masked = card.masker(VOCABULARY).mask(ids, lengths, keys)
        assert (masked.positions[1] == 8).all()  # 90 % of 16 would be 14: at most 8
        return {VOCABULARY.token(token) for token in np.unique(masked.input_ids)}

    assert drawn(parse()) == {"a", "c", "[MASK]"}  # "c" is the only token with a count
    uniform = CARD["settings"] | {"replacement": "uniform"}
    assert drawn(parse(settings=uniform)) == {*"abcdef", "[MASK]"}
    assert parse(masking="static").masker(VOCABULARY) is None


@pytest.mark.parametrize(
    "changes, name",
    [
        ({"seed": 6}, "seed"),
        ({"settings": CARD["settings"] | {"dupe_factor": 5}}, "dupe_factor"),
        (
            {"settings": CARD["settings"] | {"reading": READING | {"min_characters": 9}}},
            "min_characters",
        ),
        ({"vocabulary": {"sha256": "ab", "size": 3}}, "vocabulary"),
        ({"made_by": "another version", "counters": {}, "unigram_entropy": 0.6}, None),
        ({"splits": {"train": {}, "eval": {}}, "unigram_counts": []}, None),
        ({"input": ["moved/a.txt"]}, None),
    ],
)
def test_settings_are_compared_and_counts_are_not(changes, name):
    assert parse().difference(parse(**changes)) == name == parse(**changes).difference(parse())
