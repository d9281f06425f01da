"""Slanted triangular rates (Howard and Ruder 2018, ULMFiT, section 3.2)."""

import keras

from keras_bert.training.optimizers.schedules.warmup import Warmup


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
