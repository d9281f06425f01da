"""Tokenizer folders of other programs: read as transformers reads them, or refused with why."""

import json

import pytest

from keras_bert.text import Tokenizer
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.messages import raises_input_error

TOKENS = [*SPECIAL_TOKENS, "the", "bank", "b", "##s", "<", ">"]
BERT = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
USER = {"id": len(TOKENS), "content": "<b>", "special": False}


def ids(tokens):
    return {token: id for id, token in enumerate(tokens)}


def tokenizer_json(**changes):
    """The file that transformers 5 saves of a BERT tokenizer, as far as it matters."""
    return {
        "added_tokens": [{"id": i, "content": token} for i, token in enumerate(SPECIAL_TOKENS)],
        "normalizer": {"type": "BertNormalizer", "lowercase": True, "strip_accents": None},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "continuing_subword_prefix": "##",
            "vocab": ids(TOKENS),
        },
        **changes,
    }


def write(folder, *, vocab=True, **contents):
    if vocab:
        (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))
    for name, content in contents.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}.json").write_text(text)
    return folder


def test_a_tokenizer_json_alone_is_read(tmp_path):
    tokenizer = Tokenizer.from_folder(write(tmp_path, vocab=False, tokenizer=tokenizer_json()))
    assert tokenizer.tokenize(["The banks"]).to_list() == [[5, 6, 8]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer", tokenizer_json(added_tokens=[*tokenizer_json()["added_tokens"], USER])),
        ("tokenizer_config", {**BERT, "added_tokens_decoder": {str(len(TOKENS)): USER}}),
        ("tokenizer_config", {**BERT, "additional_special_tokens": ["[CLS]", "<b>"]}),
        ("tokenizer_config", {**BERT, "extra_special_tokens": [USER]}),
        ("added_tokens", {"<b>": len(TOKENS)}),
    ],
)
def test_tokens_that_are_cut_out_of_a_text_are_rejected(tmp_path, name, content):
    """They were read as ordinary text, or as a piece that no text comes to."""
    with raises_input_error("adds '<b>' to its special tokens"):
        Tokenizer.from_folder(write(tmp_path, **{name: content}))


def test_the_special_tokens_may_be_told_again(tmp_path):
    decoder = {str(i): {"content": token} for i, token in enumerate(SPECIAL_TOKENS)}
    config = {**BERT, "added_tokens_decoder": decoder, "additional_special_tokens": None}
    folder = write(tmp_path, tokenizer_config=config, added_tokens={"[MASK]": 4})
    assert Tokenizer.from_folder(folder).lowercase


@pytest.mark.parametrize(
    "changes",
    [
        # As the tutorial of Hugging Face's tokenizers makes a BERT.
        {
            "normalizer": {
                "type": "Sequence",
                "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}],
            }
        },
        {"normalizer": None},
        {"pre_tokenizer": {"type": "Whitespace"}},
    ],
)
@pytest.mark.parametrize("vocab", [True, False])
def test_words_that_are_not_berts_are_rejected(tmp_path, vocab, changes):
    content = tokenizer_json(**changes)
    config = {"tokenizer_class": "PreTrainedTokenizerFast"}
    folder = write(tmp_path, vocab=vocab, tokenizer=content, tokenizer_config=config)
    with raises_input_error("as BERT does, by BertNormalizer, BertPreTokenizer"):
        Tokenizer.from_folder(folder)
    # A class of BERT's makes its steps itself, in transformers as here.
    write(folder, vocab=vocab, tokenizer_config=BERT)
    assert Tokenizer.from_folder(folder).tokenize(["The banks"]).to_list() == [[5, 6, 8]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": "WordPiece"}, "model should be an object"),
        ({"model": {**tokenizer_json()["model"], "vocab": TOKENS}}, "vocab should be an object"),
        ({"model": {**tokenizer_json()["model"], "vocab": {"a": "1"}}}, "every token an id"),
        ({"added_tokens": ["[CLS]"]}, "added_tokens should be objects"),
        ({"added_tokens": [{"content": "[CLS]"}]}, "every token an id"),
        ({"normalizer": []}, "normalizer should be an object"),
        ({"normalizer": {"normalizers": ["NFD"]}}, "normalizers should be a list of objects"),
        ({"pre_tokenizer": "Bert"}, "pre_tokenizer should be an object"),
    ],
)
def test_a_broken_tokenizer_json_is_one_sentence(tmp_path, changes, sentence):
    folder = write(tmp_path, vocab=False, tokenizer=tokenizer_json(**changes))
    with raises_input_error(sentence):
        Tokenizer.from_folder(folder)


@pytest.mark.parametrize(
    ("vocab", "said"),
    [
        ({**ids(TOKENS), "the": 6, "bank": 5}, "'the' has the id 5 in vocab.txt and the id 6 in"),
        (ids(TOKENS[:-1]), "'>' has the id 10 in vocab.txt and no id in tokenizer.json"),
        (ids([*TOKENS, "river"]), "'river' has no id in vocab.txt and the id 11 in tokenizer.json"),
    ],
)
def test_two_vocabularies_in_one_folder_are_rejected(tmp_path, vocab, said):
    """transformers read the one, and this library the other: ids differed without a word."""
    content = tokenizer_json(model={**tokenizer_json()["model"], "vocab": vocab})
    with raises_input_error(said):
        Tokenizer.from_folder(write(tmp_path, tokenizer=content))


def test_the_special_tokens_may_be_added_to_the_others(tmp_path):
    """And stand in no other place of tokenizer.json."""
    others = {token: id for token, id in ids(TOKENS).items() if token not in SPECIAL_TOKENS}
    content = tokenizer_json(model={**tokenizer_json()["model"], "vocab": others})
    for vocab in (False, True):
        tokenizer = Tokenizer.from_folder(write(tmp_path, vocab=vocab, tokenizer=content))
        assert tokenizer.vocabulary.tokens == tuple(TOKENS)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"cls_token": "<s>"}, "vocab.txt has no <s>. A vocabulary needs all of [PAD], [UNK], <s>"),
        ({"unk_token": {"content": "<unk>"}}, "vocab.txt has no <unk>"),
        ({"unk_token": "the"}, "has 'the' for unknown words. Expected [UNK]"),
        ({"mask_token": 5}, "mask_token should be a string"),
        ({"additional_special_tokens": 5}, "additional_special_tokens should be a list"),
        ({"extra_special_tokens": {"image_token": "<image>"}}, "adds '<image>' to its special"),
        ({"tokenizer_class": "BertJapaneseTokenizer"}, "a dictionary of Japanese"),
        # The text "false" was taken for true.
        ({"do_lower_case": "false"}, "do_lower_case is 'false'. It should be true or false"),
        ({"strip_accents": False}, "strip_accents=False"),
        ({"do_lower_case": False, "strip_accents": True}, "strip_accents=True"),
        ({"tokenize_chinese_chars": False}, "tokenize_chinese_chars"),
        ('{"do_lower_case": tr', "config.json, line 1: this is not JSON"),
    ],
)
def test_what_would_give_other_ids_is_rejected(tmp_path, config, sentence):
    with raises_input_error(sentence):
        Tokenizer.from_folder(write(tmp_path, tokenizer_config=config))


def test_the_special_tokens_names_may_be_objects_or_missing(tmp_path):
    named = {"cls_token": {"content": "[CLS]", "special": True}, "pad_token": None}
    Tokenizer.from_folder(write(tmp_path, tokenizer_config=named))
