"""One training step of every task on Keras's JAX backend, where no TensorFlow can be imported.

`test_jax.py` runs this file in its process; by itself:

    KERAS_BACKEND=jax python -m pytest -p tests.no_tensorflow tests/tasks_on_jax.py
"""

import contextlib
import sys
import threading
import warnings

import jax
import keras
import numpy as np
import pytest

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.bilm import BilmConfig
from keras_bert.encoders.bilm.encoder import BilmEncoder
from keras_bert.encoders.static import StaticConfig
from keras_bert.encoders.static.encoder import StaticEncoder
from keras_bert.layers.kernels.program import for_gpu
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.records import BIDIRECTIONAL_LM, STATIC_VECTORS
from keras_bert.tasks import TASKS, task_class
from keras_bert.tasks.fit_progress import FitProgress
from tests.seeds import make_rng, shifted

LENGTHS = np.array([7, 4, 6])
IS_TOKEN = np.arange(7) < LENGTHS[:, None]


def make(kind, labels="abc", **options):
    keras.utils.set_random_seed(shifted(2))
    if kind.TASK_TYPE in STATIC_VECTORS:
        return kind(StaticEncoder(StaticConfig(vocab_size=30, hidden_size=8)))
    if kind.TASK_TYPE == BIDIRECTIONAL_LM:
        sizes = {"character_filters": None, "lstm_size": 8, "num_hidden_layers": 1}
        return kind(BilmEncoder(BilmConfig(vocab_size=30, hidden_size=8, **sizes)))
    config = BertConfig(
        vocab_size=30,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
        is_decoder=kind.TASK_TYPE == "causal-lm",
    )
    if kind.MIN_LABELS:
        options["labels"] = list(labels)
    if kind.TASK_TYPE == "semantic-roles":
        options["labels"] = ["O", "B-A0", "I-A0"]
    if kind.TASK_TYPE == "masked-causal-lm":
        options["causal_fraction"] = 0.5
    if kind.TASK_TYPE == "replaced-token-pretrainer":
        options["generator_size"] = 0.5  # the norm of a quarter, two numbers, has no gradient
    return kind(BertEncoder(config), **options)


def batch(task):
    """-> inputs, and labels that are the first class of each output."""
    rng = make_rng(3)
    arrays = {
        "input_ids": rng.integers(0, 30, (3, 7)).astype("int32"),
        "input_mask": IS_TOKEN.astype("int32"),
        "segment_ids": np.zeros((3, 7), "int32"),
        "causal_input_ids": rng.integers(0, 30, (3, 7)).astype("int32"),
        "causal_input_mask": IS_TOKEN.astype("int32"),
        "masked_lm_positions": np.array([[1, 2], [0, 3], [5, 1]], "int32"),
        "span_left": np.array([[0, 0], [1, 2], [4, 0]], "int32"),
        "span_right": np.array([[3, 3], [2, 4], [6, 2]], "int32"),
        "span_offset": np.array([[1, 2], [1, 1], [20, 3]], "int32"),
        "word_starts": np.array([[1, 2, 4], [1, 2, 0], [1, 4, 0]], "int32"),
        "word_ends": np.array([[2, 4, 6], [2, 3, 0], [4, 5, 0]], "int32"),
        "marked_starts": np.array([[1], [2], [4]], "int32"),
        "marked_ends": np.array([[2], [3], [6]], "int32"),
        "word_segments": np.zeros((3, 3), "int32"),
        "span_firsts": np.array([[0, 2], [0, 1], [1, 0]], "int32"),
        "span_lasts": np.array([[1, 2], [0, 1], [1, 1]], "int32"),
        "masked_lm_index": np.array([[0, 1, 2, 0], [1, 0, 0, 2], [0, 2, 0, 0]], "int32"),
        "original_ids": rng.integers(0, 30, (3, 7)).astype("int32"),
        "sampling_draws": rng.integers(0, 2**24, (3, 2)).astype("int32"),
    }
    arrays["masked_lm_index"] = np.pad(arrays["masked_lm_index"], ((0, 0), (0, 3)))
    arrays["masked_lm_index"][2, 5] = 1
    if task.TASK_TYPE in STATIC_VECTORS:
        arrays = {n: rng.integers(1, 5, (3, x.shape[1])) for n, x in task.input.items()}
        arrays = {n: x.astype("int32") for n, x in arrays.items()}
    inputs = {name: arrays[name] for name in task.input}
    if len(task.input["input_ids"].shape) == 3:  # three choices, of which the last has one only
        several = task.encoder.input_names
        inputs |= {name: np.stack([inputs[name], inputs[name][::-1]], axis=1) for name in several}
        inputs["input_mask"][2, 1] = 0
    symbols = {name: keras.KerasTensor(x.shape, dtype="int32") for name, x in inputs.items()}
    outputs = task(symbols)
    if (
        task.TASK_TYPE == "coreference"
    ):  # one cluster has all spans of up to as many words as it may
        return inputs, {"antecedents": np.ones((3, 3, task.settings.max_span_length), "int32")}
    first = 1 if task.TASK_TYPE == "text-embedding" else 0  # there 1 is a text that is there
    labels = {name: np.full(y.shape[:-1], first, "int32") for name, y in outputs.items()}
    return inputs, labels


@pytest.mark.parametrize("name", TASKS)
def test_a_step_trains_what_the_task_uses(name):
    task = make(task_class(name))
    inputs, labels = batch(task)
    weights = task.weights
    before = [np.array(w.value) for w in weights]
    optimizer = make_optimizer(task, learning_rate=0.1, warmup=0.0, weight_decay=0.1, steps=2)
    task.compile_defaults(optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (loss,) = task.fit(inputs, labels, batch_size=3, verbose=0).history["loss"]
    assert np.isfinite(loss) and loss > 0
    same = {
        weight.path
        for weight, old in zip(weights, before, strict=True)
        if np.array_equal(np.asarray(weight.value), old)
    }
    if name == "multiple-choice":
        same.discard("classifier/bias")  # and so is that over choices
    unread = {"pooler/dense/kernel", "pooler/dense/bias"} & {weight.path for weight in weights}
    assert same == (unread if task.transform is None else set())


def test_lora_trains_its_factors_and_the_head_and_recomputing_only_rounds():
    runs = []
    for recomputes in (False, True):
        task = make(task_class("classifier"))
        task.encoder.enable_lora(2)
        task.encoder.recomputes = recomputes
        for number, state in enumerate(v for v in task.variables if "seed_gen" in v.path):
            state.assign(np.array([number, 0], "uint32"))
        inputs, labels = batch(task)
        before = {w.path: np.array(w.value) for w in task.weights}
        task.compile_defaults(keras.optimizers.Adam(0.01))
        losses = task.fit(inputs, labels, batch_size=3, epochs=2, verbose=0).history["loss"]
        runs.append((losses, {w.path: np.array(w.value) for w in task.weights}))
    (losses, weights), (recomputed_losses, recomputed) = runs
    moved = {path for path, old in before.items() if not np.array_equal(old, weights[path])}
    heads = {"classifier", "pooler/dense"}
    assert moved == {
        *(f"{head}/{name}" for head in heads for name in ("kernel", "bias")),
        *(f"block_0/attention/query_key_value/lora_kernel_{factor}" for factor in "ab"),
    }
    np.testing.assert_allclose(recomputed_losses, losses, rtol=1e-6)
    # Adam moves a weight by about its rate, whatever the gradient's size, and so does its rounding
    # as far as it is a part of the gradient.
    for path, weight in weights.items():
        np.testing.assert_allclose(recomputed[path], weight, atol=0.01 * 2e-3, err_msg=path)


@pytest.mark.parametrize("name", ["masked-causal-lm", "span-pretrainer", "bidirectional-lm"])
def test_the_loss_of_a_step_for_a_gpu_is_that_of_its_logits(name):
    """Each output's own head computes it there, from what it multiplies by the table."""
    losses = []
    for scope in (contextlib.nullcontext(), for_gpu()):
        with scope:
            task = make(task_class(name))
            inputs, labels = batch(task)
            task.compile_defaults(keras.optimizers.SGD(0.1))
            losses.append(
                task.fit(inputs, labels, batch_size=3, epochs=2, verbose=0).history["loss"]
            )
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_transitions_between_words_are_trained_over_an_lstm():
    task = make(task_class("tagger"), labels=["O", "B-X", "I-X"], crf=True, bilstm=4)
    inputs, labels = batch(task)
    labels = {"logits": np.tile([1, 2, 0, 1, 1, 2, 0], (3, 1))}
    weights = {"logits": IS_TOKEN * np.array([0, 1, 1, 0, 1, 0, 1], "float32")}
    before = [np.array(w.value) for w in task.crf.weights]
    task.compile_defaults(keras.optimizers.Adam(0.01))
    history = task.fit(inputs, labels, sample_weight=weights, epochs=3, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    for weight, old in zip(task.crf.weights, before, strict=True):
        assert not np.array_equal(np.asarray(weight.value), old), weight.path
    logits = task.predict_on_batch(inputs)["logits"]
    said, _ = jax.jit(task.crf.decode)(logits, weights["logits"] > 0)
    assert said.shape == (3, 7)


def test_no_step_waits_for_what_the_bar_shows():
    threads = []

    class Progress(FitProgress):
        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch, logs)
            threads.append((threading.current_thread(), "tokens/s" in logs))

    task = make(task_class("classifier"))
    inputs, labels = batch(task)
    task.compile_defaults("sgd")
    progress = Progress(task, tokens_per_step=6, dev_examples=None)
    options = {"batch_size": 1, "epochs": 4, "callbacks": [progress], "verbose": 0}
    history = task.fit(inputs, labels, **options).history
    assert min(history["tokens/s"]) > 0  # an epoch whose last step is told first has none
    assert len(threads) == 12 and any(has_speed for _, has_speed in threads)
    assert threading.main_thread() not in [thread for thread, _ in threads]


def test_no_tensorflow_was_there():
    """Neither imported nor to be had: `tests/no_tensorflow.py` hides it."""
    assert keras.backend.backend() == "jax"
    loaded = {name.split(".")[0] for name, module in sys.modules.items() if module is not None}
    assert not loaded & {"tensorflow", "tensorflow_text", "keras_nlp", "keras_hub"}


@pytest.mark.parametrize("size", [2, 3])
def test_a_batch_in_chunks_makes_the_step_of_the_whole_batch(size):
    runs = []
    for chunk_size in (None, size):
        task = make(task_class("text-embedding"), chunk_size=chunk_size, normalize=True)
        for number, state in enumerate(v for v in task.variables if "seed_gen" in v.path):
            state.assign(np.array([number, 0], "uint32"))
        for layer in task._flatten_layers():
            if size < 3 and hasattr(layer, "rate"):  # chunks have random numbers of their own
                layer.rate = 0.0
        inputs, labels = batch(task)
        # Gradients reach a few hundred, where a vector that is normalised is small.
        task.compile_defaults(keras.optimizers.SGD(0.001))
        losses = task.fit(inputs, labels, batch_size=3, epochs=2, verbose=0).history["loss"]
        runs.append((losses, [(v.path, np.array(v.value)) for v in task.variables]))
    (losses, variables), (chunked_losses, in_chunks) = runs
    np.testing.assert_allclose(chunked_losses, losses, rtol=1e-5)
    for (path, value), (_, chunked_value) in zip(variables, in_chunks, strict=True):
        np.testing.assert_allclose(chunked_value, value, atol=2e-6, err_msg=path)
