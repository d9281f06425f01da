"""LoRA in a run: low-rank updates of a frozen encoder's layers, and the adapter that holds them."""

import math
from collections.abc import Sequence

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import listed
from keras_bert.base.settings import Settings, as_list, optimisation_setting
from keras_bert.encoders.config import LORA_ALPHA
from keras_bert.training.parts import Part


class LoraSettings(Settings):
    """The settings of LoRA; `model` and `architecture` are among the others of a run."""

    lora_rank: int | None = optimisation_setting(
        None,
        help="freeze the encoder, and train low-rank updates of its layers (LoRA) of this rank and "
        "the head: OUTPUT/model is a whole model, OUTPUT/adapter has the updates for peft",
        unit="RANK",
        default_help="train the whole model",
        at_least=1,
        common=True,
    )
    lora_alpha: float = optimisation_setting(
        LORA_ALPHA,
        help="factor of the updates, times the rank",
        unit="ALPHA",
        above=0,
        common=True,
    )
    lora_layers: str | Sequence[str] | None = optimisation_setting(
        None,
        help="the layers that have LoRA, by the names or ends of names of their modules in the "
        "model folder, such as query, attention.output.dense",
        unit="NAME",
        default_help="queries and values",
        several=True,
        common=True,
    )

    def check(self):
        super().check()
        if self.lora_rank is None:
            for name, default in (("lora_alpha", LORA_ALPHA), ("lora_layers", None)):
                if getattr(self, name) != default:
                    raise InputError.naming("{} needs {lora_rank}.", argument(name))
        elif self.model is None:
            raise InputError.naming(
                "{lora_rank} keeps the weights of a {model}. Leave it out for random weights, "
                "which are trained whole."
            )


def enable_lora(task, settings):
    """Gives a task's encoder the LoRA of the settings; returns a line on it, None without any."""
    if settings.lora_rank is None:
        return None
    layers = settings.lora_layers and as_list(settings.lora_layers)
    task.encoder.enable_lora(settings.lora_rank, alpha=settings.lora_alpha, layers=layers)
    trained, frozen = (
        sum(math.prod(weight.shape) for weight in weights)
        for weights in (task.trainable_weights, task.non_trainable_weights)
    )
    lora = task.encoder.lora
    return (
        f"Training {trained:,} parameters: the head, and LoRA of rank {lora.rank} in "
        f"{listed(lora.layers)}. {frozen:,} are frozen."
    )


class Lora(Part):
    """Writes the updates and the head as an adapter of peft, beside the whole model."""

    FILES = ("adapter",)

    @classmethod
    def of(cls, run):
        return None if run.settings.lora_rank is None else cls()

    def save(self, run):
        from keras_bert.checkpoints import find_model_folder
        from keras_bert.checkpoints.hub import is_name

        trained, model = run.trained, run.settings.model
        trained.settings, trained.tuned = run.task.settings, run.task.tuned
        base = model if is_name(model) else find_model_folder(model)
        trained.save_adapter(run.folder.adapter, base=base, overwrite=True)
