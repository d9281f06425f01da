"""At which steps a run evaluates and writes a checkpoint, and how many it has time for."""

import bisect
import dataclasses
import itertools
import math
import time
from functools import cached_property

import keras

# An entry of the curve stands for at most this many steps.
_LONGEST_RECORD = 50


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """The steps of a run.

    Attributes:
        steps: of the whole run.
        record: most steps of an entry of the curve, which is what Keras calls an epoch; one that
            ends with an evaluation, a checkpoint or a phase may be shorter.
        evaluate_every: steps, from the beginning of a phase. There is an evaluation after the last
            step of a phase, too.
        checkpoint_every: likewise for checkpoints.
        checkpoint_evaluations: there is also a checkpoint after each evaluation.
        phase_ends: the step at the end of each phase; a run that has no phases is one.
    """

    steps: int
    record: int
    evaluate_every: int
    checkpoint_every: int
    checkpoint_evaluations: bool = False
    phase_ends: tuple = ()

    @cached_property
    def _ends(self):
        """The step at the end of each entry."""
        fixed, begin = {0}, 0
        for end in self.phase_ends or (self.steps,):
            for every in (self.evaluate_every, self.checkpoint_every):
                fixed.update(range(begin + every, end, every))
            fixed.add(end)
            begin = end
        ends = []
        for begin, end in itertools.pairwise(sorted(fixed)):
            ends += [*range(begin + self.record, end, self.record), end]
        return ends

    @property
    def records(self):
        """How many entries there will be."""
        return len(self._ends)

    def step_of(self, record):
        """The step at the end of an entry, counted from 0."""
        return self._ends[record]

    def first_step_of(self, record):
        """The step at the beginning of an entry."""
        return self._ends[record - 1] if record else 0

    def record_at(self, step):
        """The entry that begins with a step; so many are over before it."""
        return bisect.bisect_right(self._ends, step)

    def phases_from(self, step):
        """(first step, last step) of what is left of each phase from a step on."""
        begin = step
        for end in self.phase_ends or (self.steps,):
            if begin < end:
                yield begin, end
                begin = end

    def evaluates(self, step):
        return self._falls_on(step, self.evaluate_every)

    def checkpoints(self, step):
        return self._falls_on(step, self.checkpoint_every) or (
            self.checkpoint_evaluations and self.evaluates(step)
        )

    def _falls_on(self, step, every):
        """Whether a step is the last of its phase, or has a multiple of so many behind it there."""
        ends = self.phase_ends or (self.steps,)
        phase = bisect.bisect_left(ends, step)
        begin = ends[phase - 1] if phase else 0
        return step == ends[phase] or (step - begin) % every == 0


def plan_steps(steps, *, evaluate_every, checkpoint_every, steps_per_execution=1):
    """The `Plan` of a run of so many steps, or of a list of phases, of at least twenty entries."""
    phases = steps if isinstance(steps, list) else [steps]
    record = _record(
        math.gcd(evaluate_every, checkpoint_every),
        wanted=sum(phases) // 20,
        multiple_of=steps_per_execution,
    )
    return Plan(
        steps=sum(phases),
        record=record,
        evaluate_every=evaluate_every,
        checkpoint_every=checkpoint_every,
        phase_ends=tuple(itertools.accumulate(phases)),
    )


def plan_epochs(epochs, *, examples, batch_size, checkpoint_every, steps_per_execution=1):
    """The `Plan` of passes over examples, with an evaluation and a checkpoint after each.

    For whole entries, an epoch gets a few steps more, of batches that are a little smaller.
    """
    needed = math.ceil(examples / batch_size)
    wanted = {"wanted": needed // 8, "multiple_of": steps_per_execution}
    whole = _divisor(checkpoint_every, **wanted)
    an_epoch = math.ceil(needed / whole) * whole
    return Plan(
        steps=epochs * an_epoch,
        record=_record(checkpoint_every, **wanted),
        evaluate_every=an_epoch,
        checkpoint_every=checkpoint_every,
        checkpoint_evaluations=True,
    )


def _record(common, *, wanted, multiple_of):
    """The most steps of an entry: a divisor of `common`, unless those are all far too short.

    Of 1000 and 997 steps the greatest common divisor is 1: each step would be an epoch of Keras's,
    with an entry of its own in the curve.
    """
    longest, divisor = _longest(wanted, multiple_of), _divisor(common, wanted, multiple_of)
    return divisor if 2 * divisor >= longest else longest


def _divisor(common, wanted, multiple_of):
    """The longest stretch up to `wanted` steps that `common` is a whole number of."""
    longest = _longest(wanted, multiple_of)
    fitting = (n for n in range(multiple_of, longest + 1, multiple_of) if common % n == 0)
    return max(fitting)


def _longest(wanted, multiple_of):
    return max(1, min(_LONGEST_RECORD, wanted) // multiple_of) * multiple_of


# Of the time there is, what measuring may take, in seconds and as a share.
_MEASURED = (2.0, 20.0)
_FRACTION_MEASURED = 0.02
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
        _Costs.of(model, feed, seconds=_clipped(_FRACTION_MEASURED * 60 * given))
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
