"""Training on several devices with Keras's JAX backend, under `keras.distribution`.

`test_jax.py` runs this file in a process that has four CPU devices; by itself:

    KERAS_BACKEND=jax XLA_FLAGS=--xla_force_host_platform_device_count=4 \
        python -m pytest -p tests.no_tensorflow tests/several_devices_on_jax.py
"""

import keras
import numpy as np
import pytest

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.tasks.pretraining.pretrainer import FillMask
from tests.seeds import make_rng, shifted

STEPS, BATCH, LENGTH, PREDICTIONS = 20, 8, 6, 2


def rows():
    """Inputs, labels and weights of all steps; the devices' parts have weights of other sums."""
    rng = make_rng(0)
    ids = rng.integers(0, 3, (STEPS * BATCH, LENGTH)).astype("int32")  # soon learned
    positions = np.tile(np.array([[1, 3]], "int32"), (len(ids), 1))
    labels = np.take_along_axis(ids, positions, axis=1)
    weights = np.arange(BATCH)[:, None] < np.array([[BATCH, 3]])  # (B, P)
    inputs = {
        "input_ids": np.where(np.isin(np.arange(LENGTH), [1, 3]), 4, ids).astype("int32"),
        "input_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
        "masked_lm_positions": positions,
    }
    weights = np.tile(weights.astype("float32"), (STEPS, 1))
    return inputs, {"masked_lm": labels}, {"masked_lm": weights}


def losses(devices):
    """-> (the loss of each step, the task), trained on the first so many devices."""
    names = keras.distribution.list_devices("cpu")[:devices]
    distribution = keras.distribution.DataParallel(devices=names)
    keras.distribution.set_distribution(distribution if devices > 1 else None)
    keras.utils.set_random_seed(shifted(1))
    config = BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    task = FillMask(BertEncoder(config))
    optimizer = make_optimizer(task, learning_rate=0.01, warmup=0.1, weight_decay=0.1, steps=STEPS)
    task.compile_defaults(optimizer)
    step_losses = []

    class Losses(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            self.model.reset_metrics()

        def on_train_batch_end(self, batch, logs=None):
            step_losses.append(float(logs["loss"]))

    inputs, labels, weights = rows()
    task.fit(
        inputs,
        labels,
        sample_weight=weights,
        batch_size=BATCH,
        shuffle=False,
        verbose=0,
        callbacks=[Losses()],
    )
    return step_losses, task


@pytest.fixture(scope="module")
def on_one():
    return losses(1)[0]


@pytest.mark.parametrize("devices", [2, 4])
def test_losses_on_several_devices_follow_those_on_one(on_one, devices):
    parallel_losses, task = losses(devices)
    kernel = task.encoder.weights[0].value
    assert len(kernel.sharding.device_set) == devices and kernel.is_fully_replicated
    assert len(on_one) == STEPS and on_one[0] - on_one[-1] > 0.1
    np.testing.assert_allclose(parallel_losses, on_one, atol=1e-5)
