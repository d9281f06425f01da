"""A run that trains the head alone, over outputs of the encoder that are computed once."""

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import Settings, optimisation_setting
from keras_bert.training.parts import Part

# The settings that train layers of the encoder, with their defaults.
_TRAINS_LAYERS = (
    ("lora_rank", None),
    ("train_layers", None),
    ("layer_decay", 1.0),
    ("gradual_unfreezing", False),
    ("lm_loss_weight", 0.0),
)


class FrozenEncoderSettings(Settings):
    """The setting `freeze_encoder`."""

    freeze_encoder: bool = optimisation_setting(
        False,
        help="train the head alone: the encoder's outputs are computed once for all epochs",
        common=True,
    )

    def check(self):
        super().check()
        for name, default in _TRAINS_LAYERS:
            if self.freeze_encoder and getattr(self, name, default) != default:
                raise InputError.naming(
                    "{} trains layers of the encoder, and {freeze_encoder} none. Leave one of "
                    "them out.",
                    argument(name),
                )
        if self.freeze_encoder and self.recompute:
            raise InputError.naming(
                "{recompute} is for the gradients of the encoder, and {freeze_encoder} needs none. "
                "Leave it out."
            )


class FrozenEncoder(Part):
    """Replaces the task by its head, and the examples by what the encoder makes of them."""

    chief_only = False

    @classmethod
    def of(cls, run):
        return cls() if run.settings.freeze_encoder else None

    def prepare(self, run):
        from keras_bert.training.frozen import compute_once, freeze

        settings, recipe = run.settings, run.data.recipe
        features, run.model = freeze(run.task)
        sample = None if run.examples is run.data.train else (run.count, settings.seed)
        seed = settings.seed if recipe.start.is_random else None
        run.splits = compute_once(
            run.encoded,
            ((settings.layers, sample), seed, settings.batch_size),
            run.splits,
            features,
            run.model,
            batch_size=settings.batch_size,
            folder=run.folder.checkpoints if run.devices.is_chief else None,
        )
