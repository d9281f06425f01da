"""Costs of a step: floating-point operations by the model's own formula, and time.

The formula counts a multiplication and an addition for each product of the matrix multiplications,
as Chowdhery et al. 2022 (PaLM), appendix B. It leaves out everything else (gelu, LayerNorm,
softmax, dropout, the optimizer) and padding: it is what the model needs, not what a program spends.
"""

import functools
import math
import time
from typing import NamedTuple

import keras
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.programs import has_accelerator
from keras_bert.records.masking import most_predictions

# The outputs whose heads are counted.
_PREDICTED = {"causal_lm", "masked_lm"}
_FORWARD_AND_BACKWARD = 3  # the backward pass has two products for each one of the forward pass


def flops_per_token(task, *, examples_by_length, masked_rate, max_predictions, causal_fraction):
    """Training FLOPs per token, the mean over examples.

    None if their lengths are not known, and for static vectors, which look up more than they
    multiply.

    Args:
        task: a pre-training task.
        examples_by_length: (S + 1,), the number of examples of each length in tokens.
        masked_rate, max_predictions: the tokens of an example that are predicted (see `Masker`).
        causal_fraction: the fraction of examples that are read from left to right, if the task
            has both kinds.
    """
    config, outputs = task.config, task.output
    counts = np.asarray(examples_by_length, np.float64)
    length = np.arange(len(counts))
    if not counts @ length or not (outputs.keys() & _PREDICTED):
        return None
    masked = most_predictions(length, rate=masked_rate, max_predictions=max_predictions)
    forward = config.forward_flops(length)
    if "causal_lm" in outputs:
        fraction = causal_fraction if "masked_lm" in outputs else 1.0
        forward = forward + fraction * task.lm_head.forward_flops(length - 1)
        masked = (1 - fraction) * masked
    if "forward_lm" in outputs:
        forward = forward + 2 * task.lm_head.forward_flops(length - 1)
    if "masked_lm" in outputs:
        forward = forward + task.lm_head.forward_flops(masked)
    if "replaced_tokens" in outputs:
        forward = forward + task.generator.config.forward_flops(length)
        forward = forward + task.discriminator.forward_flops(length)
    if "span_boundary" in outputs:
        forward = forward + task.span_boundary.forward_flops(masked)
    if "next_sentence" in outputs or "sentence_order" in outputs:
        transform = 0 if task.transform is None else 2 * config.hidden_size**2
        forward = forward + transform + 4 * config.hidden_size
    return float(_FORWARD_AND_BACKWARD * (counts @ forward) / (counts @ length))


_SIZE, _LARGE_SIZE = 1024, 8192  # larger matrices are no faster
_TRIALS = 5


@functools.cache
def matrix_rate(dtype):
    """FLOP/s of one device (a GPU or TPU if there is one) in matrix products, measured once.

    The best of some products of two large square matrices of a `dtype` ("float32", "bfloat16"), in
    less than a tenth of a second at 200 GFLOP/s.
    """
    size = _LARGE_SIZE if has_accelerator() else _SIZE
    matrix = np.random.default_rng(0).random((size, size), np.float32)
    matrix = keras.ops.cast(matrix, dtype)
    return 2 * size**3 / min(_seconds(matrix) for _ in range(_TRIALS))


def _seconds(matrix):
    begun = time.perf_counter()
    product = keras.ops.matmul(matrix, matrix)
    keras.ops.convert_to_numpy(product[0, 0])  # waits until it is computed
    return time.perf_counter() - begun


# The time for measuring: a fraction of the time of the run, within bounds in seconds.
_FRACTION_MEASURED = 0.02
_MEASURED = (2.0, 20.0)
_FEWEST_STEPS = 50
_RESERVE = 0.03  # the fraction of the time for checkpoints, and for what varies on a quiet machine


def steps_in(minutes, model, sources, *, spent, compile_model, evaluate_every, multiple_of=1):
    """The steps that there is time for, a list of ints, one per phase.

    The model is trained and evaluated on the first batches of each phase for a short time, and
    then restored to the last bit. The plan has room for tracing the step once more, for all
    evaluations with one before the first step, and for a reserve.

    Raises InputError if a phase has time for fewer than 50 steps, which train nothing.

    Args:
        minutes: of each phase; the time so far counts toward the first one.
        model: the task.
        sources: the `ExamplesOfFolder` of each phase.
        spent: a function that returns the seconds so far.
        compile_model: compiles the model with an optimizer like the run's.
        evaluate_every: steps between two evaluations of a phase.
        multiple_of: steps of an execution.
    """
    before = [keras.ops.convert_to_numpy(variable) for variable in model.variables]
    compile_model()
    costs = [
        _measure(
            model, source, seconds=np.clip(_FRACTION_MEASURED * 60 * phase_minutes, *_MEASURED)
        )
        for phase_minutes, source in zip(minutes, sources, strict=True)
    ]
    for variable, value in zip(model.variables, before, strict=True):
        variable.assign(value)
    plan, so_far = [], spent()
    for phase_minutes, cost in zip(minutes, costs, strict=True):
        # At the end of a phase, and at the start of the run.
        evaluations = cost.evaluation * (1 if plan else 2)
        overhead = so_far + cost.start + evaluations
        seconds_per_step = cost.step + cost.evaluation / evaluate_every
        steps = ((1 - _RESERVE) * 60 * phase_minutes - overhead) / seconds_per_step
        if steps < _FEWEST_STEPS:
            needed = (overhead + _FEWEST_STEPS * seconds_per_step) / (1 - _RESERVE)
            raise InputError.naming(
                "{minutes} is {:g}, and a step takes {:.3g} seconds on this machine, after {:.0f} "
                "seconds for the start and evaluations: there is time for {}. Expected at least "
                "{}, which take about {}. Use more minutes, a smaller model or a smaller batch.",
                phase_minutes,
                cost.step,
                overhead,
                counted(max(0, int(steps)), "step"),
                _FEWEST_STEPS,
                counted(math.ceil(needed / 60), "minute"),
            )
        plan.append(math.floor(steps / multiple_of) * multiple_of)
        so_far = 0.0
    return plan


class _Costs(NamedTuple):
    """Seconds: of a `step`, of an `evaluation`, and of the `start`, tracing both."""

    step: float
    evaluation: float
    start: float


def _measure(model, source, *, seconds):
    """The `_Costs` of a source's batches, from about so many seconds of training."""
    model.train_function = model.test_function = None
    training, watch = source.training(0), Stopwatch(seconds)
    model.fit(training, steps_per_epoch=watch.most, callbacks=[watch], verbose=0, shuffle=False)
    start, step = watch.first, watch.batch * source.batches_per_step
    evaluation = source.evaluation()
    if evaluation is None:
        return _Costs(step=step, evaluation=0.0, start=start)
    watch = Stopwatch(seconds / 4)
    model.evaluate(evaluation, callbacks=[watch], verbose=0)
    batches = int(evaluation.cardinality())
    return _Costs(step=step, evaluation=watch.batch * batches, start=start + watch.first)


class Stopwatch(keras.callbacks.Callback):
    """Ends training or an evaluation after so many seconds.

    Attributes:
        first: seconds to the end of the first execution, with tracing.
        batch: seconds of a batch after it (of the first, if there was no other).
        most: more batches than there is time for.
    """

    most = 10**9

    def __init__(self, seconds):
        super().__init__()
        self._seconds = seconds
        self._ends = []  # (batches done, when)

    def on_train_begin(self, logs=None):
        self._begun = time.perf_counter()

    on_test_begin = on_train_begin

    def on_train_batch_end(self, batch, logs=None):  # Keras has fetched the logs: the work is done
        self._ends.append((batch + 1, time.perf_counter()))
        if len(self._ends) > 2 and self._ends[-1][1] - self._ends[0][1] > self._seconds:
            self.model.stop_training = self.model.stop_evaluating = True

    on_test_batch_end = on_train_batch_end

    @property
    def first(self):
        return self._ends[0][1] - self._begun

    @property
    def batch(self):
        (first, begun), (last, ended) = self._ends[0], self._ends[-1]
        return (ended - begun) / (last - first) if last > first else self.first / first
