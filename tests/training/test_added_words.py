"""`pretrain --add-words`: the words, their tokens in examples, their vectors, and a run."""

from collections import Counter

import numpy as np
import pytest
import tokenizers
from safetensors.numpy import load_file

import keras_bert as kb
from data_gen.pretraining_data import pretraining_data
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load_task, save_folder
from keras_bert.records.added_words import OtherTokens, WordCounts
from keras_bert.training.added_words import _grown
from keras_bert.training.pretrain import pretrain
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied

WORDS = "the barnacle barnacles sat on a reef and barn owls saw reefs".split()
TEXT = "The barnacle sat on a reef. Barnacles and owls saw the reefs! A barn, a reef."


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(["the", "and", "barn", "##ac"])


@pytest.fixture(scope="module")
def model(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    save_folder(kb.FillMask(make_encoder(tokenizer), tokenizer), tokenizer, folder)
    return folder


@pytest.fixture(scope="module")
def data(model, tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    (root / "text.txt").write_text("\n\n".join([TEXT] * 40))
    made = {}
    for masking in ("dynamic", "static"):
        made[masking] = root / masking
        pretraining_data(
            input=str(root / "text.txt"), vocab=model, output=made[masking], objective="mlm",
            masking=masking, max_length=32, eval_fraction=0.2,
        )  # fmt: skip
    return made


def test_examples_have_the_tokens_of_the_longer_vocabulary(tokenizer):
    vocabulary, rng = tokenizer.vocabulary, make_rng(1)
    texts = [" ".join(rng.choice(WORDS, 9)) for _ in range(20)]
    texts[3] = ""
    counts = WordCounts(vocabulary)
    special = vocabulary.cls_id, vocabulary.sep_id

    def examples(tokenizer):
        ids_of_texts = tokenizer.tokenize(texts).to_list()
        rows = [[special[0], *ids, special[1]] for ids in ids_of_texts]
        return np.concatenate(rows), np.array([[1 + len(ids), 1] for ids in ids_of_texts])

    ids, segments = examples(tokenizer)
    counts.add(ids, segments.sum(axis=1))
    words = counts.most_worth(3)
    occurrences = Counter(" ".join(texts).split())
    saved = {word: n * (len(vocabulary.ids_of_word(word)) - 1) for word, n in occurrences.items()}
    assert [saved[word] for word in words] == sorted(saved.values(), reverse=True)[:3]
    assert counts.most_worth(1) == words[:1]
    longer = vocabulary.with_words(words)
    assert longer.tokens[: len(vocabulary)] == vocabulary.tokens
    replaced = OtherTokens(vocabulary, counts.other_tokens(longer))(ids, segments)
    expected = examples(tokenizer.with_vocabulary(longer))
    for found, wanted in zip(replaced, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_word_that_begins_with_a_new_one_has_its_token_too(tokenizer):
    longer = tokenizer.vocabulary.with_words(["barnacle"])
    names = [longer.token(id) for id in longer.ids_of_word("barnacles")]
    assert names == ["barnacle", "##s"]
    assert longer.ids_of_word("ü") == (longer.unk_id,)


def test_new_vectors_are_means_and_all_others_are_unchanged(model):
    task = load_task(model)
    vocabulary = task.tokenizer.vocabulary
    bias = make_rng(2).normal(size=len(vocabulary))
    task.lm_head.bias.assign(bias)
    parts = [vocabulary.ids_of_word(word) for word in ("reef", "sat")]
    grown = _grown(task, vocabulary.with_words(["reef", "sat"]), parts)
    table, longer = (np.array(t.encoder.token_embedding.embeddings) for t in (task, grown))
    np.testing.assert_array_equal(longer[: len(table)], table)
    for row, number, ids in zip(
        longer[len(table) :], np.array(grown.lm_head.bias)[len(table) :], parts, strict=True
    ):
        np.testing.assert_allclose(row, table[list(ids)].mean(axis=0), rtol=1e-5)
        assert number == pytest.approx(bias[list(ids)].mean(), rel=1e-5)
    assert len(grown.tokenizer) == grown.config.vocab_size == len(vocabulary) + 2
    for weight, copy in zip(task.weights, grown.weights, strict=True):
        if weight.shape == copy.shape:
            np.testing.assert_array_equal(weight, copy)


def test_a_run_with_added_words_is_a_folder_with_them_and_resumes(data, model, tmp_path):
    whole, part, said = tmp_path / "whole", tmp_path / "part", []
    given = {"data": data["dynamic"], "model": model, "add_words": 3, "seed": shifted(3)}
    given |= {"steps": 6, "batch_size": 4, "checkpoint_every": 3, "deterministic": True}
    with copied(whole, part, after_step=3):
        metrics = pretrain(output=whole, report=said.append, **given)
    pretrain(output=part, **given)
    assert_same_weights(whole, part)
    (line,) = [line for line in said if line.startswith("Added 3 words")]
    assert "reef" in line and "barnacle" in line
    assert metrics["steps"] == 6
    before = (model / "vocab.txt").read_text().splitlines()
    tokens = (whole / "model" / "vocab.txt").read_text().splitlines()
    assert tokens[: len(before)] == before and len(tokens) == len(before) + 3
    fast = tokenizers.Tokenizer.from_file(str(whole / "model" / "tokenizer.json"))
    _, tokenizer = kb.load(whole)
    encoded = fast.encode(TEXT, add_special_tokens=False).ids
    assert encoded == tokenizer.tokenize([TEXT]).to_list()[0]
    assert set(encoded) & set(range(len(before), len(tokens)))
    tensors = load_file(whole / "model" / "model.safetensors")
    assert tensors["bert.embeddings.word_embeddings.weight"].shape[0] == len(tokens)


def test_where_words_cannot_be_added_that_is_said(data, model, tmp_path):
    with pytest.raises(InputError, match="Make the data in .* again with"):
        pretrain(data=data["static"], model=model, add_words=3, steps=1, output=tmp_path / "static")
    with pytest.raises(InputError, match="`add_words` is for the vocabulary of a `model`"):
        pretrain(data=data["dynamic"], add_words=3, steps=1, output=tmp_path / "new")
