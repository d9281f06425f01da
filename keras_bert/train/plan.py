"""At which steps a run evaluates, writes a checkpoint, and adds an entry to its curve."""

import dataclasses
import math

# An entry of the curve stands for at most this many steps.
_LONGEST_ENTRY = 50


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """The steps of a run.

    Attributes:
        steps: of the whole run.
        entry: steps of an entry of the curve, which is what Keras calls an epoch; the last one may
            be shorter.
        evaluate_every: steps; a whole number of entries. There is an evaluation after the last
            step, too.
        checkpoint_every: steps; a whole number of entries. There is a checkpoint after the last
            step, too.
        checkpoint_evaluations: there is also a checkpoint after each evaluation.
    """

    steps: int
    entry: int
    evaluate_every: int
    checkpoint_every: int
    checkpoint_evaluations: bool = False

    @property
    def entries(self):
        """How many entries there will be."""
        return math.ceil(self.steps / self.entry)

    def step_of(self, entry):
        """The step at the end of an entry, counted from 0."""
        return min((entry + 1) * self.entry, self.steps)

    def evaluates(self, step):
        return step % self.evaluate_every == 0 or step == self.steps

    def checkpoints(self, step):
        return (
            step % self.checkpoint_every == 0
            or step == self.steps
            or (self.checkpoint_evaluations and self.evaluates(step))
        )


def plan_steps(steps, *, evaluate_every, checkpoint_every, steps_per_execution=1):
    """The `Plan` of a run of so many steps, of at least twenty entries."""
    common = math.gcd(evaluate_every, checkpoint_every)
    entry = _entry(common, wanted=steps // 20, multiple_of=steps_per_execution)
    return Plan(
        steps=steps, entry=entry, evaluate_every=evaluate_every, checkpoint_every=checkpoint_every
    )


def plan_epochs(epochs, *, examples, batch_size, checkpoint_every, steps_per_execution=1):
    """The `Plan` of passes over examples, with an evaluation and a checkpoint after each.

    Checkpoints and epochs are both whole numbers of entries; for the latter, an epoch gets a few
    steps more, of batches that are a little smaller.
    """
    needed = math.ceil(examples / batch_size)
    entry = _entry(checkpoint_every, wanted=needed // 8, multiple_of=steps_per_execution)
    an_epoch = math.ceil(needed / entry) * entry
    return Plan(
        steps=epochs * an_epoch,
        entry=entry,
        evaluate_every=an_epoch,
        checkpoint_every=checkpoint_every,
        checkpoint_evaluations=True,
    )


def _entry(common, *, wanted, multiple_of):
    """The longest stretch up to `wanted` steps that `common` is a whole number of."""
    longest = max(multiple_of, min(_LONGEST_ENTRY, wanted))
    fitting = (n for n in range(multiple_of, longest + 1, multiple_of) if common % n == 0)
    return max(fitting)
