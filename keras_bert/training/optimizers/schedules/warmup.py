"""What all schedules have in common: a rate that rises in a line."""

import keras
from keras import ops


class Warmup(keras.optimizers.schedules.LearningRateSchedule):
    """Rises in a line to `peak` over `warmup_steps`; a subclass says what comes after.

    Counted so that no step is lost to a rate of zero: with `step` updates done, the next one uses
    peak * (step + 1) / warmup_steps in the warm-up, so that both its last step and the one after it
    use `peak`.

    Args:
        peak: the highest rate.
        warmup_steps: how many steps the rate rises for; 0 begins at the peak.
        steps: of the whole run.
    """

    def __init__(self, *, peak, warmup_steps, steps):
        if peak <= 0 or not 0 <= warmup_steps < steps:
            raise ValueError(
                "`peak` must be positive and `warmup_steps` at least 0 and below `steps`. "
                f"Received: peak={peak}, warmup_steps={warmup_steps}, steps={steps}"
            )
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.steps = steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        share = ops.where(step < self.warmup_steps, self.rising(step), self.falling(step))
        return self.peak * ops.maximum(share, 0.0)

    def rising(self, step):
        """The share of the peak in the warm-up, with `step` (float32) updates done."""
        return (step + 1.0) / max(self.warmup_steps, 1)

    def falling(self, step):
        """The share of the peak after the warm-up: 1 with `warmup_steps` updates done."""
        raise NotImplementedError

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "steps": self.steps}
