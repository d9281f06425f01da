"""What a model says of rows, in their order, whatever batches they were in."""

import numpy as np
import pytest

from keras_bert import Tagger
from keras_bert.base.errors import InputError
from keras_bert.inference import answers
from keras_bert.inference.answers import Inference
from keras_bert.inference.predict import predict
from keras_bert.inference.settings import predict_settings
from keras_bert.inputs.tokenized_examples import TokenizedExamples
from keras_bert.readers.settings import TextFileSettings
from keras_bert.tasks.settings import TaskSettings
from tests.small_model import make_encoder, make_tokenizer


@pytest.mark.usefixtures("eager")
def test_an_output_for_every_token_comes_a_row_at_a_time():
    tokenizer = make_tokenizer()

    tagger = Tagger(make_encoder(tokenizer), tokenizer, labels=["x", "y", "z"])
    texts = ["a b c", "", "c c", "a a a a a a a a a", "b"]
    rows = TokenizedExamples.of_texts(
        texts,
        [texts],
        labels={},
        tokenizer=tokenizer,
        input_names=tagger.encoder.input_names,
        max_length=16,
    )
    logits = Inference(tagger, batch_size=2).outputs(rows)["logits"]
    assert len(logits) == len(texts)
    for number, found in enumerate(logits):
        alone = tagger(rows.batch(np.array([number], np.int32))[0], training=False)["logits"][0]
        length = rows.lengths[number]
        assert found.shape[1:] == (3,) and found.dtype == np.float32
        np.testing.assert_allclose(found[:length], alone[:length], atol=1e-5)


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """(a tagger, a file of sentences in two documents, the answers to all of them together)."""
    tokenizer = make_tokenizer()
    tagger = Tagger(
        make_encoder(tokenizer),
        tokenizer,
        labels=["x", "y", "z"],
        max_length=10,
        document_context=True,
    )
    path = tmp_path_factory.mktemp("words") / "words.conll"
    rng = np.random.default_rng(0)
    sentences = [rng.choice(["a", "b", "c"], rng.integers(1, 12)) for _ in range(30)]
    marked = ["\n".join(words) for words in sentences]
    marked[12] = f"-DOCSTART-\n\n{marked[12]}"
    path.write_text("\n\n".join(marked) + "\n")
    found = list(predict(model=tagger, data=path))
    assert [answer["words"] for answer in found] == [list(words) for words in sentences]
    return tagger, path, found


@pytest.mark.parametrize("count", [1, 3, 7, 30])
def test_sentences_have_their_document_around_them_wherever_a_chunk_ends(
    count, together, monkeypatch
):
    """The answers are those of all sentences together."""
    tagger, path, expected = together
    monkeypatch.setattr(answers, "_EXAMPLES_TOGETHER", count)
    found = list(predict(model=tagger, data=path, batch_size=1))
    assert [answer["words"] for answer in found] == [answer["words"] for answer in expected]
    for one, other in zip(found, expected, strict=True):
        assert one["tags"] == other["tags"]
        np.testing.assert_allclose(one["scores"], other["scores"], atol=1e-5)


class PairSettings(TextFileSettings, TaskSettings):
    EXAMPLE_FIELDS = ("question", "context")


def test_what_an_example_consists_of_is_given_together():
    settings = predict_settings(PairSettings)
    given = settings.of({"model": "m", "question": "who?", "context": ["a", "b"][:1]})
    assert (given.question, given.context) == (["who?"], ["a"])
    with pytest.raises(InputError, match="Give `question` and `context` equally often"):
        settings.of({"model": "m", "question": ["who?"]})
    for values in ({}, {"data": "f", "question": ["q"], "context": ["c"]}):
        with pytest.raises(InputError, match="or `question` and `context`, and not both"):
            settings.of({"model": "m", **values})
