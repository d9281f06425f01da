"""Linear warm-up, then linear decay to zero."""

import keras

from keras_bert.training.optimizers.schedules.warmup import Warmup


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupLinearDecay(Warmup):
    """After the warm-up the rate falls in a line to 0 at `steps` (Devlin et al. 2019, A.2).

    With `step` updates done, the next one uses peak * (steps - step) / (steps - warmup_steps).
    """

    def falling(self, step):
        return (self.steps - step) / (self.steps - self.warmup_steps)
