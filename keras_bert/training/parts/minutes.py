"""The minutes of pre-training: steps are planned again if a run turns out faster or slower.

The first plan comes from a short measurement (`keras_bert.training.costs.steps_in`). At checkpoints
the run compares it with the time that its steps have taken. A new plan is stored in run.json, from
which the run resumes at the checkpoint, in this process or, after an interruption, in another.
"""

from keras_bert.training.parts import Part

# A new plan is made if the rest would differ by more than this, and not for the last tenth: it
# traces the step again.
_TOLERANCE = 0.05
_LEAST_LEFT = 0.1


class Minutes(Part):
    """When `fit` ends to plan the steps again: at a checkpoint of the plan.

    Args:
        minutes: of each phase; the seconds `before` the run's first record count toward the first.
        steps: the planned steps of each phase.
        plan: the `Plan` of these.
        before: as of `steps_again`.
        multiple_of: steps of an execution.
    """

    chief_only = False
    # `may_end` stays False: what is trained depends on the time alone.

    def __init__(self, minutes, steps, plan, before, multiple_of=1):
        self.minutes = minutes
        self.steps = steps
        self.plan = plan
        self.before = before
        self.multiple_of = multiple_of

    @classmethod
    def of(cls, run):
        if run.settings.minutes is None:
            return None
        minutes = [phase.minutes for phase in run.settings.phases]
        return cls(minutes, run.steps, run.plan, run.before, run.settings.steps_per_execution)

    def is_over(self, records):
        return self.new_steps(records) is not None

    def new_steps(self, records):
        """The steps of each phase of a new plan, or None."""
        if not records or not self.plan.checkpoints(records[-1]["step"]):
            return None
        return steps_again(
            self.minutes,
            self.steps,
            records,
            before=self.before,
            multiple_of=self.multiple_of,
        )


def steps_again(minutes, steps, records, *, before=0.0, multiple_of=1):
    """The steps of each phase that there is time for, a list, or None: the plan is good enough.

    The phase of the last record alone changes. Its seconds per step are those since its first
    record, evaluations and checkpoints among them, so that the ones to come have room, too.

    Args:
        minutes: of each phase.
        steps: of each phase, as planned.
        records: the log records of the run so far.
        before: seconds before the first record, which count toward the first phase.
        multiple_of: steps of an execution.
    """
    done, begin = records[-1]["step"], 0
    for phase, planned in enumerate(steps):
        end = begin + planned
        if done < end or phase == len(steps) - 1:
            break
        begin = end
    phase_records = [record for record in records if record["step"] > begin]
    if not phase_records:
        return None
    earlier = [record for record in records if record["step"] <= begin]
    first, last = phase_records[0], phase_records[-1]
    timed, left = last["step"] - first["step"], end - done
    if timed <= 0 or left <= _LEAST_LEFT * planned:
        return None
    begun = earlier[-1]["seconds"] if earlier and begin else -before
    seconds_left = 60 * minutes[phase] - (last["seconds"] - begun)
    there_is_time_for = seconds_left * timed / (last["seconds"] - first["seconds"])
    more = max(1, int(there_is_time_for / multiple_of)) * multiple_of
    if abs(more - left) <= _TOLERANCE * left:
        return None
    return [*steps[:phase], done - begin + more, *steps[phase + 1 :]]
