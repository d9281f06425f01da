"""Vectors against those of the encoder itself, text by text, without padding or batches."""

import functools

import numpy as np
import pytest

from keras_bert.base.errors import InputError
from keras_bert.heads import LAYERS
from keras_bert.inference.embed import Embedder, embed, windows_of
from keras_bert.inference.vector_settings import EmbedderSettings
from keras_bert.readers.texts import TextSource
from tests.small_model import make_encoder

given_texts = functools.partial(TextSource, need_labels=False)


@pytest.fixture(scope="module")
def states(encoder, tokenizer):
    """A function from a tuple of ids to the six hidden states (T + 2, D) of [CLS] ids [SEP]."""
    vocabulary = tokenizer.vocabulary

    @functools.cache
    def run(ids):
        row = np.array([[vocabulary.cls_id, *ids, vocabulary.sep_id]], np.int32)
        inputs = {
            "input_ids": row,
            "input_mask": np.ones_like(row),
            "segment_ids": np.zeros_like(row),
        }
        outputs = encoder(inputs, outputs=("hidden_states",))
        return [np.asarray(state)[0] for state in outputs["hidden_states"]]

    return run


DEFINITIONS = {
    "last": lambda h: h[5],
    "second-to-last": lambda h: h[4],
    "sum-last-4": lambda h: h[2] + h[3] + h[4] + h[5],
    "concat-last-4": lambda h: np.concatenate([h[5], h[4], h[3], h[2]], axis=-1),
    "sum-all": lambda h: h[1] + h[2] + h[3] + h[4] + h[5],
    "mean-last-4": lambda h: (h[2] + h[3] + h[4] + h[5]) / 4,
    "first": lambda h: h[0],
    "layer-2": lambda h: h[2],
}


@pytest.mark.parametrize("layers", [*LAYERS, "layer-2"])
@pytest.mark.usefixtures("eager")
def test_tokens_cls_and_mean_of_every_choice_of_layers(layers, embedder, tokenizer, states, texts):
    embed_texts = embedder(layers=layers, tokens="subwords", batch_size=3)
    embeddings = list(embed_texts(given_texts(texts)))
    assert [one.text for one in embeddings] == texts
    for one in embeddings:
        ids = tokenizer.tokenize([one.text])[0].numpy()
        if len(ids) > 38:
            continue  # several windows: below
        expected = DEFINITIONS[layers](states(tuple(ids)))
        assert one.vectors.shape == (len(ids), embed_texts.width)
        np.testing.assert_allclose(one.vectors, expected[1:-1], atol=2e-5)
        np.testing.assert_allclose(one.cls, expected[0], atol=2e-5)
        np.testing.assert_allclose(one.mean, expected.mean(axis=0), atol=2e-5)


@pytest.mark.usefixtures("eager")
def test_every_token_of_a_long_text_has_the_vector_of_its_window_with_most_context(
    embedder, tokenizer, states
):
    text = "words bank " * 30
    (embedding,) = embedder(layers="last", tokens="subwords", batch_size=3)(given_texts([text]))
    ids = tokenizer.tokenize([text])[0].numpy()
    assert len(embedding.vectors) == len(ids) == 180
    ends = []
    for _, first, size, keep_first, keep_last in zip(*windows_of([180], room=38), strict=True):
        last = first + size
        state = states(tuple(ids[first:last]))[-1]
        core = state[1:-1][keep_first - first : keep_last - first]
        np.testing.assert_allclose(embedding.vectors[keep_first:keep_last], core, atol=2e-5)
        ends.append(state[[0, -1]])
    cls, sep = np.mean(ends, axis=0)
    np.testing.assert_allclose(embedding.cls, cls, atol=2e-5)
    mean = (embedding.vectors.sum(axis=0) + cls + sep) / 182
    np.testing.assert_allclose(embedding.mean, mean, atol=2e-5)


@pytest.mark.usefixtures("eager")
def test_words_are_the_mean_or_the_first_of_their_tokens(embedder, tokenizer, texts):
    every = zip(
        embedder(layers="last", tokens="subwords", batch_size=3)(given_texts(texts)),
        embedder()(given_texts(texts)),
        embedder(tokens="words-first", batch_size=3)(given_texts(texts)),
        strict=True,
    )
    for tokens, mean, first in every:
        offsets = tokenizer.tokenize_with_offsets([tokens.text])
        begins = np.flatnonzero(offsets.word_starts[0].numpy())
        bounds = [*begins, len(tokens.vectors)]
        assert mean.tokens == first.tokens
        assert len(mean.vectors) == len(first.vectors) == len(begins)
        np.testing.assert_allclose(first.vectors, tokens.vectors[begins], atol=1e-6)
        for word, (start, end) in enumerate(zip(bounds, bounds[1:], strict=False)):
            np.testing.assert_allclose(
                mean.vectors[word], tokens.vectors[start:end].mean(axis=0), atol=1e-5
            )
            assert mean.starts[word] == tokens.starts[start]
            assert mean.ends[word] == tokens.ends[end - 1]


@pytest.mark.usefixtures("eager")
def test_words_are_where_their_offsets_say(embedder):
    text = "  Ünïcödé, naïve 好bank!"
    (embedding,) = embedder()(given_texts([text]))
    assert embedding.tokens == ["Ünïcödé", ",", "naïve", "好", "bank", "!"]
    assert embedding.starts.tolist() == [2, 9, 11, 17, 18, 22]


@pytest.mark.usefixtures("eager")
def test_none_leaves_the_text_itself(embedder, texts):
    whole = embedder()(given_texts(texts))
    bare = embedder(tokens="none")(given_texts(texts))
    for one, other in zip(whole, bare, strict=True):
        assert other.tokens == [] and other.vectors.shape == (0, 16)
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(one.cls, other.cls)


def test_how_texts_are_batched_changes_nothing(embedder, texts, monkeypatch):
    usual = list(embedder()(given_texts(texts)))
    monkeypatch.setattr("keras_bert.inference.embed._TEXTS_TOGETHER", 3)
    monkeypatch.setattr("keras_bert.inference.embed._TOKENS_IN_A_STEP", 80)
    few = list(embedder()(given_texts(texts)))
    monkeypatch.setattr("keras_bert.inference.embed._TOKENS_IN_A_STEP", 1)
    for one, other in zip([*usual, *few], [*embedder()(given_texts(texts))] * 2, strict=True):
        assert one.text == other.text
        np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-5)
        np.testing.assert_allclose(one.mean, other.mean, atol=1e-5)


@pytest.mark.usefixtures("eager")
def test_embed_takes_folders_pairs_texts_and_files(model_folder, encoder, tokenizer, tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("label\ttext\nx\tthe bank\ny\tof the river\n", encoding="utf-8")
    lines = []
    from_file = list(embed(model=model_folder, data=path, report=lines.append))
    given = list(embed(model=(encoder, tokenizer), text=["the bank", "of the river"]))
    assert [one.line for one in from_file] == [2, 3]
    assert len(lines) == 2 and "TSV with a header" in lines[0]
    for one, other in zip(from_file, given, strict=True):
        assert one.tokens == other.tokens
        np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-6)
    for text in ("a bank", ("a bank",), iter(["a bank"])):
        alone = embed(model=(encoder, tokenizer), text=text, layers="first", tokens="subwords")
        assert next(alone).tokens == ["a", "bank"]
    for texts in ({}, {"text": "a", "data": path}):
        with pytest.raises(InputError, match="Pass .*`data`, a file of texts, or `text`"):
            embed(model=(encoder, tokenizer), **texts)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"layers": "middle"}, "`layers` is 'middle'. It should be last, .* or layer-K"),
        ({"tokens": "letters"}, "`tokens` is 'letters'. It should be words-mean, "),
        ({"max_length": 41}, "`max_length` is 41, but the model has 40 positions"),
        ({"max_length": 2}, "`max_length` must be at least 3. Received: 2"),
        ({"batch_size": 0}, "`batch_size` must be at least 1. Received: 0"),
    ],
)
def test_rejects_invalid_settings(options, sentence, encoder, tokenizer):
    with pytest.raises(InputError, match=sentence):
        Embedder(encoder, tokenizer, EmbedderSettings(**options))


def test_rejects_more_layers_than_the_model_has(tokenizer):
    small = make_encoder(tokenizer, num_hidden_layers=3)
    with pytest.raises(InputError, match=r"at least 4 layers. Received: a model with 3\."):
        Embedder(small, tokenizer, EmbedderSettings(layers="concat-last-4"))


@pytest.mark.usefixtures("eager")
def test_rejects_a_text_whose_vectors_are_too_many(embedder, monkeypatch):
    monkeypatch.setattr("keras_bert.inference.embed._NUMBERS_TOGETHER", 16 * 20)
    assert len(list(embedder()(given_texts(["a " * 20] * 3)))) == 3
    with pytest.raises(InputError, match="Text 2 .*: the text has 21 tokens, more than the 20"):
        list(embedder()(given_texts(["a", "a " * 21])))


LENGTHS = [0, 1, 9, 10, 11, 12, 19, 20, 21, 37, 400, 3]


@pytest.mark.parametrize("room", [1, 2, 3, 10, 25])
def test_every_token_is_kept_once_and_in_order(room):
    windows = windows_of(LENGTHS, room=room)
    for text, length in enumerate(LENGTHS):
        text_windows = [window for window in zip(*windows, strict=True) if window[0] == text]
        tokens = [token for _, _, _, start, end in text_windows for token in range(start, end)]
        assert tokens == list(range(length))
        for _, first, size, keep_first, keep_last in text_windows:
            assert first <= keep_first <= keep_last <= first + size
            assert size <= room
    assert (np.diff(windows.sequence) >= 0).all()


def test_what_fits_is_one_window():
    windows = windows_of([0, 4, 10], room=10)
    assert windows.sequence.tolist() == [0, 1, 2]
    assert windows.sizes.tolist() == windows.core_ends.tolist() == [0, 4, 10]


@pytest.mark.parametrize("room", [16, 30, 510])
@pytest.mark.parametrize("length", [517, 1024, 5000])
def test_every_token_sees_an_eighth_of_a_window_on_either_side(room, length):
    windows = windows_of([length], room=room)
    for _, first, size, keep_first, keep_last in zip(*windows, strict=True):
        assert first == 0 or keep_first - first >= room // 8
        assert first + size == length or first + size - keep_last >= room // 8


def test_full_windows_and_not_many_more_than_needed():
    windows = windows_of([5000], room=100)
    assert (windows.sizes == 100).all()
    assert len(windows.sequence) <= 5000 / 75 + 1
