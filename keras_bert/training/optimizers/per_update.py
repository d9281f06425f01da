"""Schedules under gradient accumulation."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class PerUpdate(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule that is asked by batches and answers by updates.

    Under gradient accumulation `optimizer.iterations` counts updates, but Keras asks the schedule
    by the number of batches, so that it would be through with its rates too early.

    Args:
        schedule: the rate by the number of updates done.
        batches: how many make an update.
    """

    def __init__(self, *, schedule, batches):
        self.schedule = schedule
        self.batches = batches

    def __call__(self, step):
        return self.schedule(ops.floor_divide(step, self.batches))

    def get_config(self):
        return {
            "schedule": keras.saving.serialize_keras_object(self.schedule),
            "batches": self.batches,
        }

    @classmethod
    def from_config(cls, config):
        schedule = keras.saving.deserialize_keras_object(config["schedule"])
        return cls(**{**config, "schedule": schedule})
