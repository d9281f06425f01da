"""One training step of every task on Keras's JAX backend, where no TensorFlow can be imported.

`test_jax.py` runs this file in its process; by itself:

    KERAS_BACKEND=jax python -m pytest -p tests.no_tensorflow tests/tasks_on_jax.py
"""

import inspect
import sys
import warnings

import keras
import numpy as np
import pytest

import keras_bert as kb
from keras_bert.train.optimizer import make_optimizer

TASKS = ("Pretrainer", "FillMask", "Classifier", "Tagger", "QuestionAnswerer")
LENGTHS = np.array([7, 4, 6])
IS_TOKEN = np.arange(7) < LENGTHS[:, None]


def make(name):
    keras.utils.set_random_seed(2)
    config = kb.BertConfig(
        vocab_size=30,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
    )
    kind = getattr(kb, name)
    labelled = "labels" in inspect.signature(kind).parameters
    return kind(kb.BertEncoder(config), **({"labels": ["a", "b", "c"]} if labelled else {}))


def batch(task):
    """-> inputs, and labels that are the first class of each output."""
    rng = np.random.default_rng(3)
    arrays = {
        "input_ids": rng.integers(0, 30, (3, 7)).astype("int32"),
        "input_mask": IS_TOKEN.astype("int32"),
        "segment_ids": np.zeros((3, 7), "int32"),
        "masked_lm_positions": np.array([[1, 2], [0, 3], [5, 1]], "int32"),
    }
    inputs = {name: arrays[name] for name in task.input}
    labels = {name: np.zeros(y.shape[:-1], "int32") for name, y in task(inputs).items()}
    return inputs, labels


@pytest.mark.parametrize("name", TASKS)
def test_a_step_trains_what_the_task_uses(name):
    task = make(name)
    inputs, labels = batch(task)
    names = [w.path for w in task.trainable_weights]
    before = [np.array(w.value) for w in task.trainable_weights]
    pooler = [np.array(w.value) for w in task.encoder.pooler.weights]
    optimizer = make_optimizer(task, learning_rate=0.1, warmup=0.0, weight_decay=0.1, steps=2)
    task.compile_defaults(optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = task.fit(inputs, labels, batch_size=3, verbose=0).history
    assert np.isfinite(history["loss"]).all() and history["loss"][0] > 0
    moved = {
        path
        for path, weight, old in zip(names, task.trainable_weights, before, strict=True)
        if not np.array_equal(np.asarray(weight.value), old)
    }
    used = {path for path in names if "pooler" not in path}
    # The softmax over keys is the same whatever is added to all of them.
    assert used - moved <= {"block_0/attention/key/bias"}
    after = [np.asarray(w.value) for w in task.encoder.pooler.weights]
    same = [np.array_equal(one, other) for one, other in zip(pooler, after, strict=True)]
    if name in ("Pretrainer", "Classifier"):
        assert not any(same)
    else:
        assert all(same), "a pooler that nothing reads was trained or decayed"


def test_no_tensorflow_was_there():
    """Neither imported nor to be had: `tests/no_tensorflow.py` hides it."""
    assert keras.backend.backend() == "jax"
    loaded = {name.split(".")[0] for name, module in sys.modules.items() if module is not None}
    assert not loaded & {"tensorflow", "tensorflow_text", "keras_nlp", "keras_hub"}
