"""The learning rate over a run: linear warm-up, then linear decay to zero."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises in a line to `peak` over `warmup_steps`, then falls in a line to 0 at `steps`.

    As in BERT (Devlin et al. 2019, A.2), but counted so that no step is lost to a rate of zero:
    with `step` updates done, the next one uses peak * (step + 1) / warmup_steps in the warm-up and
    peak * (steps - step) / (steps - warmup_steps) after it, so that both the last step of the
    warm-up and the one after it use `peak`.
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
        rising = (step + 1.0) / max(self.warmup_steps, 1)
        falling = (self.steps - step) / (self.steps - self.warmup_steps)
        share = ops.where(step < self.warmup_steps, rising, falling)
        return self.peak * ops.maximum(share, 0.0)

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "steps": self.steps}
