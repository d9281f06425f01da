"""Linear warm-up, then the same rate to the end."""

import keras
from keras import ops

from keras_bert.training.optimizers.schedules.warmup import Warmup


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupConstant(Warmup):
    """After the warm-up the rate stays at `peak`."""

    def falling(self, step):
        return ops.ones_like(step)
