"""How many steps a run has time for, by measuring what a step takes."""

import math
import time

import keras

# Of the time there is, what measuring may take, in seconds and as a share.
_MEASURED = (2.0, 20.0)
_SHARE_MEASURED = 0.02
# Checkpoints, and what is not even on a quiet machine.
_KEPT_BACK = 0.03


def steps_in(minutes, model, feeds, *, spent, compile_model, evaluate_every, multiple_of=1):
    """The steps that there is time for: a list of ints, one a phase.

    For a little while the model is trained and evaluated on the first batches of each phase, and
    put back to what it was, to the last bit. What is then planned for leaves room for tracing the
    step once more, an evaluation before the first step and all others, and some percent for the
    rest.

    Args:
        minutes: of each phase; what came before counts for the first.
        model: the task.
        feeds: the `RowsOfFolder` of each phase.
        spent: a function that gives the seconds that are gone.
        compile_model: compiles the model with an optimizer like the run's.
        evaluate_every: steps between two evaluations, in a phase.
        multiple_of: steps of an execution.
    """
    before = [keras.ops.convert_to_numpy(variable) for variable in model.variables]
    compile_model()
    costs = [
        _Costs.of(model, feed, seconds=_clipped(_SHARE_MEASURED * 60 * given))
        for given, feed in zip(minutes, feeds, strict=True)
    ]
    for variable, value in zip(model.variables, before, strict=True):
        variable.assign(value)
    plan, gone = [], spent()
    for given, cost in zip(minutes, costs, strict=True):
        left = (1 - _KEPT_BACK) * 60 * given - gone - cost.start
        left -= cost.evaluation * (1 if plan else 2)  # at the end; at the start of the run, too
        steps = left / (cost.step + cost.evaluation / evaluate_every)
        plan.append(max(1, math.floor(steps / multiple_of)) * multiple_of)
        gone = 0.0
    return plan


class _Costs:
    """Seconds: of a `step`, of an `evaluation`, and of the `start`, tracing both."""

    def __init__(self, *, step, evaluation, start):
        self.step = step
        self.evaluation = evaluation
        self.start = start

    @classmethod
    def of(cls, model, feed, *, seconds):
        """Measured on the batches of a feed for about so many seconds."""
        model.train_function = model.test_function = None
        training, watch = feed.training(0), _Stopwatch(seconds)
        model.fit(training, steps_per_epoch=watch.most, callbacks=[watch], verbose=0, shuffle=False)
        start, step = watch.first, watch.each * feed.batches_a_step
        evaluation = feed.evaluation()
        if evaluation is None:
            return cls(step=step, evaluation=0.0, start=start)
        watch = _Stopwatch(seconds / 4)
        model.evaluate(evaluation, callbacks=[watch], verbose=0)
        batches = int(evaluation.cardinality())
        return cls(step=step, evaluation=watch.each * batches, start=start + watch.first)


class _Stopwatch(keras.callbacks.Callback):
    """Ends training or an evaluation after so many seconds.

    Attributes:
        first: seconds to the end of the first execution, which traces it.
        each: seconds of a batch after it (of the first, where there was no other).
        most: batches that are surely enough.
    """

    most = 10**9

    def __init__(self, seconds):
        super().__init__()
        self._seconds = seconds
        self._ends = []  # (batches done, when)

    def on_train_begin(self, logs=None):
        self._begun = time.perf_counter()

    on_test_begin = on_train_begin

    def on_train_batch_end(self, batch, logs=None):  # Keras has fetched the logs: it is done
        self._ends.append((batch + 1, time.perf_counter()))
        if len(self._ends) > 2 and self._ends[-1][1] - self._ends[0][1] > self._seconds:
            self.model.stop_training = self.model.stop_evaluating = True

    on_test_batch_end = on_train_batch_end

    @property
    def first(self):
        return self._ends[0][1] - self._begun

    @property
    def each(self):
        (first, begun), (last, ended) = self._ends[0], self._ends[-1]
        return (ended - begun) / (last - first) if last > first else self.first / first


def _clipped(seconds):
    least, most = _MEASURED
    return min(max(seconds, least), most)
