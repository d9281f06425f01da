"""The learning rate over a run: a warm-up, and what comes after it."""

import math

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
        fraction = ops.where(step < self.warmup_steps, self.rising(step), self.falling(step))
        return self.peak * ops.maximum(fraction, 0.0)

    def rising(self, step):
        """The share of the peak in the warm-up, with `step` (float32) updates done."""
        return (step + 1.0) / max(self.warmup_steps, 1)

    def falling(self, step):
        """The share of the peak after the warm-up: 1 with `warmup_steps` updates done."""
        raise NotImplementedError

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "steps": self.steps}


@keras.saving.register_keras_serializable(package="keras_bert")
class OneCycle(Warmup):
    """Half a cosine up from `peak / 25` to `peak`, and half a cosine down to a ten-thousandth.

    With t updates done, of T, and w the `warmup_steps`, the next one uses

        low + (peak - low) * (1 - cos(pi * t / w)) / 2          low = peak / 25, up to w
        end + (peak - end) * (1 + cos(pi * (t - w) / (T - w))) / 2      end = low / 10,000, after it

    The shares are those of fastai and PyTorch, whose rise takes 0.25 to 0.3 of the steps. The
    moments' decay stays as it is: the cycle of the momentum that the paper lays against it was
    found for SGD.
    """

    START = 1 / 25
    END = START / 10_000

    def rising(self, step):
        risen = 0.5 * (1.0 - ops.cos(math.pi * step / max(self.warmup_steps, 1)))
        return self.START + (1.0 - self.START) * risen

    def falling(self, step):
        passed = (step - self.warmup_steps) / (self.steps - self.warmup_steps)
        left = 0.5 * (1.0 + ops.cos(math.pi * ops.minimum(passed, 1.0)))
        return self.END + (1.0 - self.END) * left


@keras.saving.register_keras_serializable(package="keras_bert")
class SlantedTriangular(Warmup):
    """A short rise and a long fall, both in a line, between `peak / ratio` and `peak`.

    With t updates done, of T, and cut the `warmup_steps`, the next one uses

        p = t / cut before the cut, else 1 - (t - cut) / (T - cut)
        peak * (1 + p * (ratio - 1)) / ratio

    The paper's cut_frac is 0.1 (which is the share of the warm-up here, too) and its ratio 32.
    """

    def __init__(self, *, peak, warmup_steps, steps, ratio=32):
        super().__init__(peak=peak, warmup_steps=warmup_steps, steps=steps)
        self.ratio = ratio

    def rising(self, step):
        return self._above_the_floor(step / max(self.warmup_steps, 1))

    def falling(self, step):
        passed = (step - self.warmup_steps) / (self.steps - self.warmup_steps)
        return self._above_the_floor(1.0 - passed)

    def _above_the_floor(self, p):
        return (1.0 + p * (self.ratio - 1)) / self.ratio

    def get_config(self):
        return {**super().get_config(), "ratio": self.ratio}


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupConstant(Warmup):
    """After the warm-up the rate stays at `peak`."""

    def falling(self, step):
        return ops.ones_like(step)


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupCosineDecay(Warmup):
    """After the warm-up the rate falls to 0 at `steps` along half a cosine.

    (Loshchilov and Hutter 2017, SGDR, without restarts.)
    """

    def falling(self, step):
        passed = (step - self.warmup_steps) / (self.steps - self.warmup_steps)
        return 0.5 * (1.0 + ops.cos(math.pi * ops.minimum(passed, 1.0)))


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupLinearDecay(Warmup):
    """After the warm-up the rate falls in a line to 0 at `steps` (Devlin et al. 2019, A.2).

    With `step` updates done, the next one uses peak * (steps - step) / (steps - warmup_steps).
    """

    def falling(self, step):
        return (self.steps - step) / (self.steps - self.warmup_steps)
