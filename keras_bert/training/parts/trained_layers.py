"""Which layers of the encoder a run trains: the last ones, or one more with each epoch (ULMFiT)."""

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.base.settings import Settings, optimisation_setting
from keras_bert.training.parts import Part


class TrainedLayersSettings(Settings):
    """The settings `train_layers` and `gradual_unfreezing`."""

    train_layers: int | None = optimisation_setting(
        None,
        help="train only the last layers, this many, and the head; freeze the rest",
        unit="LAYERS",
        default_help="the whole model",
        at_least=1,
    )
    gradual_unfreezing: bool = optimisation_setting(
        False,
        help="train the head alone in the first epoch, and unfreeze one more layer in each "
        "following epoch, from the last down (ULMFiT)",
        common=True,
    )

    def check(self):
        super().check()
        if self.gradual_unfreezing and self.epochs == 1:
            raise InputError.naming(
                "{gradual_unfreezing} trains the head alone in the first epoch and needs {epochs} "
                "of 2 or more. Received: {}.",
                self.epochs,
            )


def freeze_lower_layers(task, settings):
    """Freezes the layers that a run never trains; returns a line on it, None if it trains all."""
    from keras_bert.optimizers.optimizer import layers_to_train, train_last_layers

    epochs = settings.epochs if settings.gradual_unfreezing else None
    groups = task.read_groups
    layers = layers_to_train(groups, last=settings.train_layers, epochs=epochs)
    above = len(groups) - 1  # the embeddings
    if layers > above:
        return None
    train_last_layers(task, layers)
    return f"Training the head and the last {layers} of {counted(above, 'layer')}."


class TrainedLayers(Part):
    """Freezes the layers below those that the run trains. The optimizer waits for the others."""

    chief_only = False

    @classmethod
    def of(cls, run):
        return None if run.settings.freeze_encoder else cls()

    def prepare(self, run):
        if (line := freeze_lower_layers(run.task, run.settings)) is not None:
            run.report(line)
