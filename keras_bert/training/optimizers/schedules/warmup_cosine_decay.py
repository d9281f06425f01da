"""Linear warm-up, then half a cosine down to zero."""

import math

import keras
from keras import ops

from keras_bert.training.optimizers.schedules.warmup import Warmup


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupCosineDecay(Warmup):
    """After the warm-up the rate falls to 0 at `steps` along half a cosine.

    (Loshchilov and Hutter 2017, SGDR, without restarts.)
    """

    def falling(self, step):
        passed = (step - self.warmup_steps) / (self.steps - self.warmup_steps)
        return 0.5 * (1.0 + ops.cos(math.pi * ops.minimum(passed, 1.0)))
