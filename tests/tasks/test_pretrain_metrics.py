"""Metrics of pre-training tasks: by head, and by what the model saw in a token's place."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.tasks.pretraining.pretrainer import FillMask, SpanPretrainer
from keras_bert.text.tokenizer import Tokenizer
from tests.pretraining_folder import VOCABULARY
from tests.seeds import make_rng, shifted

ROWS, LENGTH, PREDICTIONS = 12, 9, 4
WEIGHT = 0.25
CONFIG = BertConfig(
    vocab_size=len(VOCABULARY),
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
    initializer_range=0.5,
)


@pytest.fixture(scope="module")
def task():
    keras.utils.set_random_seed(shifted(3))
    tokenizer = Tokenizer.from_vocab(VOCABULARY, lowercase=True)
    return SpanPretrainer(BertEncoder(CONFIG), tokenizer, span_boundary_weight=WEIGHT)


@pytest.fixture(scope="module")
def batch():
    rng = make_rng(4)
    words = len(VOCABULARY) - len(VOCABULARY.special_ids)
    ids = rng.integers(5, 5 + words, (ROWS, LENGTH)).astype("int32")
    positions = np.tile(np.arange(2, 2 + PREDICTIONS, dtype="int32"), (ROWS, 1))
    labels = ids[:, 2 : 2 + PREDICTIONS].copy()
    outcome = rng.choice(3, labels.shape, p=[0.5, 0.3, 0.2])
    shown = np.where(outcome == 1, 5 + (labels - 5 + 1) % words, labels)
    ids[:, 2 : 2 + PREDICTIONS] = np.where(outcome == 0, VOCABULARY.mask_id, shown)
    inputs = {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
        "masked_lm_positions": positions,
        "span_left": np.full_like(positions, 1),
        "span_right": np.full_like(positions, 2 + PREDICTIONS),
        "span_offset": positions - 1,
    }
    counts = np.arange(PREDICTIONS) < rng.integers(1, PREDICTIONS + 1, (ROWS, 1))
    near = counts & (positions < 4)
    outputs = {"masked_lm": counts.astype("float32"), "span_boundary": near.astype("float32")}
    return inputs, dict.fromkeys(outputs, labels), outputs, outcome


def by_hand(logits, labels, weights):
    """-> (mean cross-entropy in nats, mean accuracy) over what counts."""
    logits = logits.astype("float64")
    scores = logits - logits.max(axis=-1, keepdims=True)
    nats = np.log(np.exp(scores).sum(axis=-1))
    nats -= np.take_along_axis(scores, labels[..., None], axis=-1)[..., 0]
    is_right = logits.argmax(axis=-1) == labels
    return tuple((score * weights).sum() / weights.sum() for score in (nats, is_right))


def test_every_head_is_measured_overall_and_by_what_the_model_saw(task, batch):
    inputs, labels, weights, outcome = batch
    logits = {name: np.array(tensor) for name, tensor in task(inputs).items()}
    expected = {}
    for name in ("masked_lm", "span_boundary"):
        loss, accuracy = by_hand(logits[name], labels[name], weights[name])
        expected |= {f"{name}_cross_entropy": loss, f"{name}_accuracy": accuracy}
        for number, part in enumerate(("masked", "replaced", "kept")):
            part_weights = weights[name] * (outcome == number)
            loss, accuracy = by_hand(logits[name], labels[name], part_weights)
            expected |= {f"{name}_{part}_loss": loss, f"{name}_{part}_accuracy": accuracy}
    task.compile_defaults("sgd", run_eagerly=True)
    logs = task.evaluate(
        inputs, labels, sample_weight=weights, batch_size=4, return_dict=True, verbose=0
    )
    assert {name: logs[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    # What Keras itself says is the mean of the batches' means.
    assert set(logs) - set(expected) == {"loss", "masked_lm_loss", "span_boundary_loss"}
    boundary = WEIGHT * logs["span_boundary_loss"]
    assert logs["loss"] == pytest.approx(logs["masked_lm_loss"] + boundary, rel=1e-5)


def test_a_step_has_one_softmax_over_the_vocabulary_a_head(task, batch):
    task.compile_defaults("sgd", jit_compile=False)
    data = tuple(
        {name: tf.constant(value[:4]) for name, value in part.items()} for part in batch[:3]
    )
    step = tf.function(lambda *data: task.train_step(data)).get_concrete_function(*data)
    kinds = [operation.type for operation in step.graph.get_operations()]
    assert kinds.count("SparseSoftmaxCrossEntropyWithLogits") == len(task.output) == 2
    assert kinds.count("ArgMax") == 2


def test_metrics_are_in_no_checkpoint_and_gone_with_other_losses(batch):
    inputs, labels, weights, _ = batch
    task = FillMask(BertEncoder(CONFIG))  # without a tokenizer: what [MASK] is is not known
    inputs = {name: inputs[name] for name in task.input}
    labels, weights = labels["masked_lm"], weights["masked_lm"]
    variables = len(task.variables)
    task.compile_defaults("sgd", run_eagerly=True)
    options = {"batch_size": ROWS, "return_dict": True, "verbose": 0}
    logs = task.evaluate(
        inputs, {"masked_lm": labels}, sample_weight={"masked_lm": weights}, **options
    )
    assert set(logs) == {"loss", "masked_lm_cross_entropy", "masked_lm_accuracy"}
    assert len(task.variables) == variables
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )
    task.compile("sgd", {"masked_lm": loss}, run_eagerly=True)
    again = task.evaluate(
        inputs, {"masked_lm": labels}, sample_weight={"masked_lm": weights}, **options
    )
    assert again == {"loss": pytest.approx(logs["loss"], rel=1e-6)}
