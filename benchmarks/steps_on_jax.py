"""What a task's training steps take on Keras's JAX backend, and what its device could do."""

import functools
import statistics
import time

import jax
import jax.numpy as jnp
import keras

_SIZES = {"cpu": 1024, "gpu": 8192, "tpu": 8192}
_TURNS = 8


def device_name():
    return jax.devices()[0].device_kind


@functools.cache
def matrix_rate(dtype):
    """Floating-point operations a second in large products of two matrices, the best of some."""
    size = _SIZES[jax.default_backend()]
    matrix = jnp.ones((size, size), dtype)
    product = jax.jit(lambda a: a @ a)
    product(matrix).block_until_ready()  # compiles
    return 2 * size**3 / min(_seconds(product, matrix) for _ in range(_TURNS))


def _seconds(product, matrix):
    begun = time.perf_counter()
    product(matrix).block_until_ready()
    return time.perf_counter() - begun


def step_seconds(task, batch, *, steps, rounds):
    """Seconds of a step of the compiled task's `fit` on a batch: the median of turns of `steps`.

    Args:
        batch: (x, y, sample_weight), given again and again from the host's memory.
    """
    clock = _Clock()
    task.fit(
        (batch for _ in iter(int, 1)),  # without end
        steps_per_epoch=steps,
        epochs=rounds + 1,
        callbacks=[clock],
        shuffle=False,
        verbose=0,
    )
    return statistics.median(clock.seconds[1:]) / steps  # the first compiles


class _Clock(keras.callbacks.Callback):
    """How long each epoch took. Its figures are fetched before it ends: the work is done then."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def on_epoch_begin(self, epoch, logs=None):
        self._begun = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.perf_counter() - self._begun)
