"""When a run logs, evaluates and writes a checkpoint, and the batches that it does it on."""

import bisect
import dataclasses
import itertools
import math
from functools import cached_property
from typing import NamedTuple

_LONGEST_RECORD = 50  # steps


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """The steps of a run.

    Attributes:
        steps: of the whole run.
        record: the most steps of a log step, Keras's epoch; one that ends with an evaluation, a
            checkpoint or a phase may be shorter.
        evaluate_every: steps between evaluations, from the beginning of a phase; there is another
            one after the last step of a phase.
        checkpoint_every: likewise for checkpoints.
        checkpoint_evaluations: whether there is also a checkpoint after each evaluation.
        phase_ends: the step at the end of each phase; () is one phase.
        epochs: of `evaluate_every` steps each, or None for a run that has none.
    """

    steps: int
    record: int
    evaluate_every: int
    checkpoint_every: int
    checkpoint_evaluations: bool = False
    phase_ends: tuple = ()
    epochs: int | None = None

    @cached_property
    def _phases(self):
        """The log steps of each phase, a list of `_PhaseRecords`."""
        phases, first_record = [], 0
        for begin, end in itertools.pairwise((0, *(self.phase_ends or (self.steps,)))):
            ends = self._pattern(end - begin)
            phases.append(_PhaseRecords(begin, end, first_record, ends))
            first_record += phases[-1].count
        return phases

    def _pattern(self, steps):
        """The ends of a phase's log steps up to where they begin to repeat, or to its end."""
        period = min(math.lcm(self.evaluate_every, self.checkpoint_every), steps)
        fixed = {0, period}
        for every in (self.evaluate_every, self.checkpoint_every):
            fixed.update(range(every, period, every))
        ends = []
        for begin, end in itertools.pairwise(sorted(fixed)):
            ends += [*range(begin + self.record, end, self.record), end]
        return ends

    @property
    def records(self):
        """The number of log steps."""
        return self._phases[-1].first_record + self._phases[-1].count

    def step_of(self, record):
        """The step at the end of a log step, counted from 0."""
        phases = self._phases
        number = bisect.bisect_right(phases, record, key=lambda phase: phase.first_record)
        return phases[number - 1].step_of(record)

    def record_at(self, step):
        """The log step that begins at a step, which is the number of those before it."""
        phases = self._phases
        number = bisect.bisect_right(phases, step, key=lambda phase: phase.begin)
        return phases[number - 1].record_at(step)

    def phases_from(self, step):
        """(first step, last step) of what remains of each phase from a step on."""
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

    def described(self, step):
        """`step 27/207 (epoch 3 of 23)`, after so many steps."""
        text = f"step {step}/{self.steps}"
        if self.epochs is None:
            return text
        return f"{text} (epoch {max(1, math.ceil(step / self.evaluate_every))} of {self.epochs})"

    def _falls_on(self, step, every):
        """Whether a step is the last of its phase, or a multiple of `every` from its beginning."""
        ends = self.phase_ends or (self.steps,)
        phase = bisect.bisect_left(ends, step)
        begin = ends[phase - 1] if phase else 0
        return step == ends[phase] or (step - begin) % every == 0


class _PhaseRecords(NamedTuple):
    """The log steps of a phase, computed when asked for: a run may have millions of epochs.

    `begin` and `end` are steps of the run, `first_record` is the number of log steps before, and
    `pattern` has the ends of the first log steps, after which they repeat, as steps of the phase.
    """

    begin: int
    end: int
    first_record: int
    pattern: list

    @property
    def count(self):
        """The number of log steps; the last one may be cut short."""
        repeated, rest = divmod(self.end - self.begin - 1, self.pattern[-1])
        return repeated * len(self.pattern) + bisect.bisect_right(self.pattern, rest) + 1

    def step_of(self, record):
        """Returns `Plan.step_of` for a log step of the phase."""
        repeated, number = divmod(record - self.first_record, len(self.pattern))
        step = self.begin + repeated * self.pattern[-1] + self.pattern[number]
        return min(step, self.end)

    def record_at(self, step):
        """Returns `Plan.record_at` for a step of the phase or its end."""
        if step >= self.end:
            return self.first_record + self.count
        repeated, rest = divmod(step - self.begin, self.pattern[-1])
        number = bisect.bisect_right(self.pattern, rest)
        return self.first_record + repeated * len(self.pattern) + number


def plan_steps(steps, *, evaluate_every, checkpoint_every, steps_per_execution=1):
    """The `Plan` of a run of so many steps, or of a list of phases, of at least 20 log steps."""
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

    An epoch is a whole number of log steps: it may get a few more steps, of smaller batches.
    """
    needed = math.ceil(examples / batch_size)
    wanted = {"wanted": needed // 8, "multiple_of": steps_per_execution}
    whole = _divisor(checkpoint_every, **wanted)
    steps_per_epoch = math.ceil(needed / whole) * whole
    return Plan(
        steps=epochs * steps_per_epoch,
        record=_record(checkpoint_every, **wanted),
        evaluate_every=steps_per_epoch,
        checkpoint_every=checkpoint_every,
        checkpoint_evaluations=True,
        epochs=epochs,
    )


def _record(common, *, wanted, multiple_of):
    """The most steps of a log step: a divisor of `common`, unless those are all far too short.

    The greatest common divisor of 1000 and 997 is 1: each step would be an epoch of Keras's.
    """
    longest, divisor = _longest(wanted, multiple_of), _divisor(common, wanted, multiple_of)
    return divisor if 2 * divisor >= longest else longest


def _divisor(common, wanted, multiple_of):
    """The largest divisor of `common` up to `wanted`."""
    longest = _longest(wanted, multiple_of)
    fitting = (n for n in range(multiple_of, longest + 1, multiple_of) if common % n == 0)
    return max(fitting)


def _longest(wanted, multiple_of):
    return max(1, min(_LONGEST_RECORD, wanted) // multiple_of) * multiple_of


class BatchSource:
    """The batches that a run trains on and evaluates on.

    Attributes:
        tokens_per_step: tokens in a step without padding (an average is enough), or None.
        batches_per_step: batches whose gradients make a step.
        flops_per_token: floating-point operations of training a token, or None: not known.
    """

    tokens_per_step = None
    flops_per_token = None
    batches_per_step = 1

    def at(self, step):
        """The `BatchSource` of the phase that a step (from 0) belongs to."""
        return self

    def training(self, first_step):
        """The dataset of all batches from step `first_step` (from 0) on."""
        raise NotImplementedError

    def evaluation(self):
        """The dataset of held-out batches, or None."""
        return None

    def waited(self):
        """Seconds for which steps have waited for their batches so far, or None: not known."""
        return None

    def examples(self):
        """Predictions for some held-out tokens, for people to read; see `MaskExamples`."""
        return []

    def held_out_metrics(self, step):
        """Further metrics on held-out data by name, after `step` steps."""
        return {}
