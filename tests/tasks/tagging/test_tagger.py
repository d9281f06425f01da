"""Tagging: the loss by hand over what counts, and that it can be learned, saved and refused."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import Tagger
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load_task
from keras_bert.training.frozen import freeze
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

LABELS = ["O", "B", "I"]
LENGTHS = np.array([7, 3, 5, 1])
RNG = make_rng(6)
IDS = RNG.integers(5, 30, (4, 7)).astype("int32")
MASK = (np.arange(7) < LENGTHS[:, None]).astype("int32")
BATCH = {"input_ids": IDS, "input_mask": MASK, "segment_ids": np.zeros_like(IDS)}
# The label follows from the token; a third of the tokens has none, and padding never has.
TAGS = {"logits": IDS % 3}
WEIGHTS = {"logits": (MASK * (RNG.random(IDS.shape) < 0.67)).astype("float32")}


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


def make(tokenizer, **options):
    encoder = make_encoder(tokenizer, num_hidden_layers=1, classifier_dropout=0.25)
    return Tagger(encoder, tokenizer, labels=LABELS, **options)


@pytest.mark.usefixtures("eager")
def test_the_loss_is_the_mean_over_the_tokens_that_count(tokenizer):
    task = make(tokenizer)
    logits = np.asarray(task(BATCH)["logits"], "float64")
    assert logits.shape == (4, 7, 3)
    nats = (
        np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, IDS[..., None] % 3, -1)[..., 0]
    )
    weights = WEIGHTS["logits"]
    assert 0 < weights.sum() < MASK.sum()
    is_right = logits.argmax(-1) == IDS % 3
    task.compile_defaults("sgd", jit_compile=False)
    logs = task.evaluate(
        BATCH, TAGS, sample_weight=WEIGHTS, batch_size=4, return_dict=True, verbose=0
    )
    assert logs["loss"] == pytest.approx((nats * weights).sum() / weights.sum(), rel=1e-5)
    assert logs["accuracy"] == pytest.approx((is_right * weights).sum() / weights.sum(), rel=1e-5)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("crf", [False, True])
def test_a_word_counts_the_same_in_every_batch_of_an_epoch(crf, tokenizer):
    """Batches are of sentences of one length; a step of a rate of 0 says what its loss was."""
    sentences = [
        {"words": ["a", "b", "c"] * n, "tags": ["O", "B-X", "I-X"] * n} for n in (1, 1, 9, 9, 4, 5)
    ]
    encoder = make_encoder(tokenizer, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    task = Tagger(encoder, tokenizer, labels=["O", "B-X", "I-X"], crf=crf)
    task.compile_defaults(keras.optimizers.SGD(0.0), jit_compile=False)
    whole, in_batches, uneven = (task.dataset(sentences, batch_size=n) for n in (6, 2, 4))
    expected = task.evaluate(whole, verbose=0, return_dict=True)["loss"]
    x, y, weights = next(iter(whole))
    assert expected == pytest.approx(
        task.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True)["loss"], rel=1e-5
    )
    history = task.fit(in_batches, validation_data=uneven, verbose=0).history
    assert history["loss"] == [pytest.approx(expected, rel=1e-5)]
    assert history["val_loss"] == [pytest.approx(expected, rel=1e-5)]
    by_batch = [
        task.evaluate(x, y, sample_weight=w, batch_size=2, verbose=0, return_dict=True)["loss"]
        for x, y, w in in_batches
    ]
    assert np.mean(by_batch) != pytest.approx(expected, rel=1e-3)  # as it would be otherwise


@pytest.mark.parametrize("mixed", [False, True])
def test_learns_and_tokens_without_a_label_do_not_matter(mixed, tokenizer):
    task = make(tokenizer, dropout=0.0)
    if mixed:
        mix = {"layer_norm_eps": None, "l2": 0.0}
        task = Tagger(task.encoder, tokenizer, labels=LABELS, layer_mix=mix)
    # Under weight 0 every label is wrong.
    tags = {"logits": np.where(WEIGHTS["logits"] == 1, IDS % 3, (IDS + 1) % 3)}
    task.compile_defaults(keras.optimizers.Adam(0.01), jit_compile=False)
    batches = tf.data.Dataset.from_tensors((BATCH, tags, WEIGHTS)).repeat(40)
    task.fit(batches, shuffle=False, verbose=0)
    predicted = np.asarray(task(BATCH)["logits"]).argmax(-1)
    counts = WEIGHTS["logits"] == 1
    np.testing.assert_array_equal(predicted[counts], IDS[counts] % 3)


def test_dropout_is_the_configs_unless_it_is_given(tokenizer):
    assert make(tokenizer).dropout.rate == 0.25
    assert make(tokenizer, dropout=0.0).dropout.rate == 0.0
    encoder = make_encoder(tokenizer, hidden_dropout_prob=0.2)
    assert Tagger(encoder, labels=LABELS).dropout.rate == 0.2


def test_comes_back_from_keras_own_file(tokenizer, tmp_path):
    task = make(tokenizer, dropout=0.4)
    task.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert type(loaded) is Tagger and loaded.labels == tuple(LABELS)
    assert loaded.get_config() == task.get_config()
    np.testing.assert_allclose(loaded(BATCH)["logits"], task(BATCH)["logits"], atol=1e-6)


def test_needs_two_labels_that_differ(tokenizer):
    for labels in (["O"], ["O", "B", "O"]):
        with pytest.raises(ValueError, match="two or more different ones"):
            Tagger(make_encoder(tokenizer), labels=labels)
    with pytest.raises(ValueError, match="a list of names. Received: 'OB'"):
        Tagger(make_encoder(tokenizer), labels="OB")


def test_a_frozen_encoder_feeds_the_lstm_and_the_transitions(tokenizer):
    task = Tagger(
        make_encoder(tokenizer),
        tokenizer,
        labels=["O", "B-X", "I-X"],
        bilstm=3,
        crf=True,
        layer_mix={"layer_norm_eps": None, "l2": 0.0},
    )
    features, head = freeze(task)
    read = {**features(BATCH), "input_mask": keras.ops.convert_to_tensor(MASK)}
    logits = head(read)["logits"]
    np.testing.assert_allclose(logits, task(BATCH)["logits"], atol=1e-6)
    trained = {weight.path.split("/")[0] for weight in head.trainable_weights}
    assert trained == {"bilstm", "classifier", "crf", "scalar_mix"}
    # What follows a row is nothing to the tokens in it.
    padding = {**BATCH, "input_ids": np.where(MASK, IDS, 7)}
    again = np.asarray(task(padding)["logits"])
    np.testing.assert_allclose(again[MASK > 0], np.asarray(logits)[MASK > 0], atol=1e-6)


def test_comes_back_compiled_with_the_loss_of_its_own_transitions(tokenizer, tmp_path):
    task = Tagger(make_encoder(tokenizer), labels=["O", "B-X", "I-X"], crf=True)
    task.compile_defaults("sgd")
    task.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert loaded.get_config() == task.get_config()
    assert loaded.loss["logits"].loss.crf is loaded.crf


def test_transitions_are_between_first_tokens(tokenizer):
    for options, message in (
        ({"label_subwords": "all"}, "`label_subwords` must be first or last with `crf`"),
        ({"aggregation": "mean"}, "`aggregation` must be first or last with `crf`"),
        ({"label_subwords": "last", "aggregation": "first"}, "`crf` needs one token per word"),
    ):
        with pytest.raises(InputError, match=message):
            make(tokenizer, crf=True, **options)
    assert make(tokenizer, crf=True, label_subwords="last").settings.aggregation == "last"


def test_a_word_over_a_causal_encoder_is_tagged_by_its_last_token(tokenizer, tmp_path):
    """At its first token the encoder has not seen the others."""
    encoder = make_encoder(tokenizer, num_hidden_layers=1, is_decoder=True)
    task = Tagger(encoder, tokenizer, labels=["O", "B-X", "I-X"], crf=True)
    assert (task.settings.label_subwords, task.settings.aggregation) == ("last", "last")
    tags, serve = [], task.signatures()["serving_default"].function
    for words in (["abc", "de"], ["abd", "de"], ["abc", "df"]):
        rows = task.features(list(Tagger.read([words], labelled=False)))
        inputs = rows.inputs(*rows.take(tf.constant([0])))
        logits = task(inputs)["logits"]
        (answer,) = task.decode({"logits": np.asarray(logits)}, rows)
        tags.append(answer["scores"])
        served = serve(tf.constant([" ".join(words)]))
        np.testing.assert_allclose(served["scores"][0], answer["scores"], atol=1e-5)
    assert tags[0] != tags[1] and tags[0] != tags[2]  # each word is read whole
    every = Tagger(encoder, tokenizer, labels=LABELS, label_subwords="all")
    assert every.settings.aggregation == "last"
    # A folder that says otherwise is read as it was trained.
    first = Tagger(encoder, tokenizer, labels=LABELS, label_subwords="first")
    first.save(tmp_path / "model")
    again = load_task(tmp_path / "model")
    assert (again.settings.label_subwords, again.settings.aggregation) == ("first", "first")


def test_the_metric_is_that_of_the_labels(tokenizer):
    tagger = make(tokenizer)
    assert (tagger.scheme, tagger.METRIC) == ("bio", "f1")
    words = Tagger(make_encoder(tokenizer), labels=["NOUN", "VERB"])
    assert (words.scheme, words.METRIC) == (None, "accuracy")
