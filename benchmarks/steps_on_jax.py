"""The time of a task's training steps on Keras's JAX backend, and what its device could do."""

import collections
import functools
import statistics
import tempfile
import time
from pathlib import Path

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


def forward_seconds(encoder, inputs, *, steps, rounds):
    """Seconds of a compiled call of an encoder: the median of turns of `steps` calls."""
    state = [
        [v.value for v in vs]
        for vs in (encoder.trainable_variables, encoder.non_trainable_variables)
    ]
    inputs = jax.device_put(inputs)

    @jax.jit
    def forward(state, inputs):
        return encoder.stateless_call(*state, inputs, training=False)[0]["sequence_output"]

    seconds = []
    for _ in range(rounds + 1):
        begun = time.perf_counter()
        for _ in range(steps):
            hidden = forward(state, inputs)
        hidden.block_until_ready()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds[1:]) / steps  # the first compiles


def costliest_kernels(task, batch, *, steps, count=20):
    """The (seconds of a step, times in a step, name) of what the compiled task's steps run longest.

    On a GPU these are its kernels, and elsewhere what the profiler has of the processor.
    """
    options = {"epochs": 1, "shuffle": False, "verbose": 0}

    def fit(steps):
        task.fit((batch for _ in iter(int, 1)), steps_per_epoch=steps, **options)

    fit(2)  # compiles
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            fit(steps)
        (path,) = Path(folder).rglob("*.xplane.pb")
        planes = list(jax.profiler.ProfileData.from_file(str(path)).planes)
        planes = [p for p in planes if "/device:GPU" in p.name] or planes
        seconds, times = collections.Counter(), collections.Counter()
        for plane in planes:
            for line in plane.lines:
                if plane.name.startswith("/device:GPU") and not line.name.startswith("Stream"):
                    continue  # the same kernels again, by module and operation
                for event in line.events:
                    if event.name.startswith("$"):  # a function of Python
                        continue
                    seconds[event.name] += event.duration_ns / 1e9
                    times[event.name] += 1
    return [(s / steps, times[name] / steps, name) for name, s in seconds.most_common(count)]


class _Clock(keras.callbacks.Callback):
    """How long each epoch took. Its figures are fetched before it ends: the work is done then."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def on_epoch_begin(self, epoch, logs=None):
        self._begun = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.perf_counter() - self._begun)
