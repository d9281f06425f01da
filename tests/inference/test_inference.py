"""Predictions are in the order of the examples, whatever their batches."""

import numpy as np
import pytest

from keras_bert import Tagger
from keras_bert.base.errors import InputError
from keras_bert.inference.predict import predict
from keras_bert.inference.settings import predict_settings
from keras_bert.inputs.tokenized_examples import TokenizedExamples
from keras_bert.readers import TextFileSettings
from keras_bert.tasks import TaskSettings
from keras_bert.tasks.outputs import Inference
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer


@pytest.mark.usefixtures("eager")
def test_outputs_per_token_are_lists_with_one_array_per_sequence():
    tokenizer = make_tokenizer()

    tagger = Tagger(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, labels=["x", "y", "z"])
    texts = ["a b c", "", "c c", "a a a a a a a a a", "b"]
    sequences = TokenizedExamples.from_texts(
        texts,
        [texts],
        labels={},
        tokenizer=tokenizer,
        input_names=tagger.encoder.input_names,
        max_length=16,
    )
    logits = Inference(tagger, batch_size=2).outputs(sequences)["logits"]
    assert len(logits) == len(texts)
    for number, token_logits in enumerate(logits):
        inputs, *_ = sequences.batch(np.array([number], np.int32))
        alone = tagger(inputs, training=False)["logits"][0]
        length = sequences.lengths[number]
        assert token_logits.shape[1:] == (3,) and token_logits.dtype == np.float32
        np.testing.assert_allclose(token_logits[:length], alone[:length], atol=1e-5)


@pytest.fixture(scope="module")
def tagger_and_predictions(tmp_path_factory):
    """(a tagger, a file of sentences in two documents, the predictions for all of them at once)."""
    tokenizer = make_tokenizer()
    tagger = Tagger(
        make_encoder(tokenizer, num_hidden_layers=1),
        tokenizer,
        labels=["x", "y", "z"],
        max_length=10,
        document_context=True,
    )
    path = tmp_path_factory.mktemp("words") / "words.conll"
    rng = make_rng(0)
    sentences = [rng.choice(["a", "b", "c"], rng.integers(1, 12)) for _ in range(30)]
    marked = ["\n".join(words) for words in sentences]
    marked[12] = f"-DOCSTART-\n\n{marked[12]}"
    path.write_text("\n\n".join(marked) + "\n")
    predictions = list(predict(model=tagger, data=path))
    assert [prediction["words"] for prediction in predictions] == [
        list(words) for words in sentences
    ]
    return tagger, path, predictions


@pytest.mark.parametrize("count", [1, 3, 7, 30])
def test_sentences_have_their_document_around_them_wherever_a_chunk_ends(
    count, tagger_and_predictions, monkeypatch
):
    """The predictions are those for all sentences at once."""
    tagger, path, expected = tagger_and_predictions
    monkeypatch.setattr("keras_bert.tasks.outputs._EXAMPLES_TOGETHER", count)
    predictions = list(predict(model=tagger, data=path, batch_size=1))
    assert [one["words"] for one in predictions] == [one["words"] for one in expected]
    for one, other in zip(predictions, expected, strict=True):
        assert one["tags"] == other["tags"]
        np.testing.assert_allclose(one["scores"], other["scores"], atol=1e-5)


class PairSettings(TextFileSettings, TaskSettings):
    EXAMPLE_FIELDS = ("question", "context")


def test_the_texts_of_examples_have_the_same_length():
    settings = predict_settings(PairSettings)
    given = settings.of({"model": "m", "question": "who?", "context": ["a", "b"][:1]})
    assert (given.question, given.context) == (["who?"], ["a"])
    with pytest.raises(InputError, match="must have the same length. Received: 1 and 0."):
        settings.of({"model": "m", "question": ["who?"]})
    with pytest.raises(InputError, match="or `question` and `context`, not both"):
        settings.of({"model": "m", "data": "f", "question": ["q"], "context": ["c"]})
    with pytest.raises(InputError, match="Pass `data`, a file of examples, or `question` and"):
        settings.of({"model": "m"})
