"""Learning rates of a run: a warm-up, and what follows it."""

import math

import keras
from keras import ops


class Warmup(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to `peak` over `warmup_steps`; subclasses define what follows.

    No step has a learning rate of zero: with `step` updates done, the next one of the warm-up uses
    peak * (step + 1) / warmup_steps, so that both its last step and the one after it use `peak`.

    Args:
        peak: the highest learning rate.
        warmup_steps: the steps of the warm-up; 0 begins at the peak.
        steps: of the whole run.
    """

    def __init__(self, *, peak, warmup_steps, steps):
        if peak <= 0 or not 0 <= warmup_steps < steps:
            raise ValueError(
                "`peak` must be positive and `warmup_steps` at least 0 and below `steps`. "
                f"Received: peak={peak}, warmup_steps={warmup_steps}, steps={steps}."
            )
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.steps = steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        fraction = ops.where(step < self.warmup_steps, self.rising(step), self.falling(step))
        return self.peak * ops.maximum(fraction, 0.0)

    def rising(self, step):
        """The fraction of the peak in the warm-up, with `step` (float32) updates done."""
        return (step + 1.0) / max(self.warmup_steps, 1)

    def falling(self, step):
        """The fraction of the peak after the warm-up: 1 with `warmup_steps` updates done."""
        raise NotImplementedError

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "steps": self.steps}


@keras.saving.register_keras_serializable(package="keras_bert")
class OneCycle(Warmup):
    """Half a cosine up from `peak / 25` to `peak`, and half a cosine down to a ten-thousandth.

    With t updates done, of T, and w the `warmup_steps`, the next one uses

        low + (peak - low) * (1 - cos(pi * t / w)) / 2          low = peak / 25, up to w
        end + (peak - end) * (1 + cos(pi * (t - w) / (T - w))) / 2      end = low / 10,000, after it

    The fractions are those of fastai and PyTorch, whose warm-up takes 0.25 to 0.3 of the steps. The
    betas are constant: the paper's cycle of the momentum was found for SGD.
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
    """A short rise and a long decay, both linear, between `peak / ratio` and `peak` (ULMFiT).

    With t updates done, of T, and cut the `warmup_steps`, the next one uses

        p = t / cut before the cut, else 1 - (t - cut) / (T - cut)
        peak * (1 + p * (ratio - 1)) / ratio

    The paper's cut_frac is 0.1 (the default warm-up here, too) and its ratio 32.
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
    """After the warm-up the learning rate stays at `peak`."""

    def falling(self, step):
        return ops.ones_like(step)


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupCosineDecay(Warmup):
    """After the warm-up, half a cosine to 0 at `steps` (SGDR, Loshchilov and Hutter 2017)."""

    def falling(self, step):
        passed = (step - self.warmup_steps) / (self.steps - self.warmup_steps)
        return 0.5 * (1.0 + ops.cos(math.pi * ops.minimum(passed, 1.0)))


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupLinearDecay(Warmup):
    """After the warm-up the learning rate decays linearly to 0 (Devlin et al. 2019, A.2).

    With `step` updates done, the next one uses peak * (steps - step) / (steps - warmup_steps).
    """

    def falling(self, step):
        return (self.steps - step) / (self.steps - self.warmup_steps)


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupStableDecay(Warmup):
    """After the warm-up the rate stays at `peak`, and falls to 0 in the last steps (wsd).

    With t updates done, of T, of which d are the `decay_steps`, the next one uses

        peak * (1 - sqrt((t - (T - d)) / d))        after T - d

    the decay of Hägele et al. 2024. What is trained before it does not depend on T: another run can
    go on from there.

    Args:
        peak, warmup_steps, steps: see `Warmup`.
        decay_steps: d, from 1 to those after the warm-up.
    """

    def __init__(self, *, peak, warmup_steps, steps, decay_steps):
        super().__init__(peak=peak, warmup_steps=warmup_steps, steps=steps)
        if not 1 <= decay_steps <= steps - warmup_steps:
            raise ValueError(
                "`decay_steps` must be from 1 to the steps after the warm-up, "
                f"{steps - warmup_steps}. Received: {decay_steps}."
            )
        self.decay_steps = decay_steps

    def falling(self, step):
        passed = (step - (self.steps - self.decay_steps)) / self.decay_steps
        return 1.0 - ops.sqrt(ops.clip(passed, 0.0, 1.0))

    def get_config(self):
        return {**super().get_config(), "decay_steps": self.decay_steps}


@keras.saving.register_keras_serializable(package="keras_bert")
class PerUpdate(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule over updates that Keras calls with the number of batches.

    Under gradient accumulation `optimizer.iterations` counts updates, but Keras calls the schedule
    with the number of batches.

    Args:
        schedule: the learning rate by the number of updates done.
        batches: the batches of an update.
        first_step: updates that were done before those that are counted.
    """

    def __init__(self, *, schedule, batches, first_step=0):
        self.schedule = schedule
        self.batches = batches
        self.first_step = first_step

    def __call__(self, step):
        return self.schedule(ops.floor_divide(step, self.batches) + self.first_step)

    def get_config(self):
        return {
            "schedule": keras.saving.serialize_keras_object(self.schedule),
            "batches": self.batches,
            "first_step": self.first_step,
        }

    @classmethod
    def from_config(cls, config):
        schedule = keras.saving.deserialize_keras_object(config["schedule"])
        return cls(**{**config, "schedule": schedule})


SCHEDULES = {
    "linear": WarmupLinearDecay,
    "slanted-triangular": SlantedTriangular,
    "cosine": WarmupCosineDecay,
    "one-cycle": OneCycle,
    "constant": WarmupConstant,
    "wsd": WarmupStableDecay,
}
