"""One cycle of the rate (Smith and Topin 2018, "Super-Convergence")."""

import math

import keras
from keras import ops

from keras_bert.training.optimizers.schedules.warmup import Warmup


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
