"""The settings of fine-tuning once, or in several runs that differ in seed, size and start.

The help texts also document the Python arguments.
"""

import dataclasses
from collections.abc import Sequence
from itertools import product

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import (
    PathText,
    about,
    advanced_setting,
    as_list,
    data_setting,
    merged,
    model_setting,
    optimisation_setting,
    required,
    setting,
)
from keras_bert.heads import LAST, LAYERS, MIXES, check_layers
from keras_bert.readers.sources import STANDARD_INPUT, is_file
from keras_bert.tasks import settings_class, task_type_named
from keras_bert.tasks.training_defaults import EPOCHS
from keras_bert.training.parts.contrastive import ContrastiveSettings
from keras_bert.training.parts.early_stopping import PatienceSettings
from keras_bert.training.parts.frozen_encoder import FrozenEncoderSettings
from keras_bert.training.parts.keep_best import KeepSettings
from keras_bert.training.parts.lora import LoraSettings
from keras_bert.training.parts.trained_layers import TrainedLayersSettings
from keras_bert.training.settings import ARCHITECTURES, LARGEST_SEED, RunSettings

BASELINE = "baseline"
RANDOM = "random"  # the baseline with random weights


class TaskRunSettings(
    TrainedLayersSettings,
    LoraSettings,
    FrozenEncoderSettings,
    PatienceSettings,
    KeepSettings,
    RunSettings,
):
    """The settings of runs that train a task, whatever they start from and train on."""

    REMOVED = {
        "features": "Use {freeze_encoder}, which computes the encoder's outputs once, for all "
        "epochs and runs."
    }

    contrastive = False  # a setting of runs on labels alone

    task: str = model_setting("classifier", help="the task", unit="TASK", common=True)
    vocab: PathText | None = data_setting(
        None,
        help="the vocabulary of an architecture: a vocab.txt, or a folder with a vocabulary "
        "(byte-pair encoding: vocab.json and merges.txt)",
        unit="PATH",
        default_help="the model's",
        common=True,
    )
    cased: bool = data_setting(
        False, help="the vocabulary of an architecture is cased: keep capitals and accents"
    )
    dev: object = data_setting(
        None,
        help="the examples to evaluate on after each epoch, likewise",
        unit="FILE",
        default_help="a tenth of the training examples, which is held back",
        several=True,
        common=True,
    )
    epochs: int | None = optimisation_setting(
        None,
        help="passes over the training data",
        unit="EPOCHS",
        default_help=f"{EPOCHS}, or as many as make 100 steps (base, large) to 600 (tiny)",
        at_least=1,
        common=True,
    )
    learning_rate: float | None = optimisation_setting(
        None,
        help="learning rate at the end of the warm-up",
        unit="RATE",
        default_help="by the size of the model, from 1e-3 (tiny) over 5e-5 (base) to 3e-5 (large), "
        "and more for random weights; 1e-3 for the head of a frozen encoder",
        above=0,
        common=True,
    )
    layers: str = setting(
        LAST,
        help=f"the layers that the head reads: {', '.join(LAYERS)}, layer-K (first is the "
        f"embedding layer), or a learned mix: {', '.join(MIXES)}",
        unit="LAYERS",
        stored=True,
        common=True,
    )
    scalar_mix_l2: float = advanced_setting(
        0.0,
        help="L2 regularization of a learned mix toward equal weights",
        unit="STRENGTH",
        at_least=0,
        common=True,
    )
    scalar_mix_layer_norm: bool = advanced_setting(
        False, help="normalize every layer before a learned mix", stored=True
    )
    static_vectors: PathText | None = advanced_setting(
        None,
        help="a model folder of static vectors, or a file of word vectors, of the model's own "
        "vocabulary: the head reads them concatenated with the encoder's output",
        unit="FOLDER",
        default_help="none",
        common=True,
    )
    freeze_static_vectors: bool = advanced_setting(
        False, help="keep the `static_vectors` as they are"
    )
    num_seeds: int = optimisation_setting(
        1,
        help="repeat each run with this many consecutive seeds, in OUTPUT/runs/: reports mean and "
        "standard deviation, and keeps the model that is best on the dev data",
        unit="N",
        at_least=1,
        common=True,
    )

    def __post_init__(self, *arguments):
        if isinstance(self.task, str):
            object.__setattr__(self, "task", task_type_named(self.task))
        super().__post_init__()

    def check(self):
        super().check()
        settings_class(self.task)  # raises an error for an unknown task
        check_layers_to_read(self)
        if self.freeze_static_vectors and self.static_vectors is None:
            raise InputError.naming("{freeze_static_vectors} needs {static_vectors}.")
        check_seeds(self)

    @property
    def columns(self):
        """How the files are read: arguments of the task's `read`."""
        return self._task_settings(lambda setting: setting.reads)

    @property
    def arguments(self):
        """The task's arguments, except those that are inferred from its examples."""
        return self._task_settings(lambda setting: setting.stored or not setting.reads)

    def _task_settings(self, belongs):
        fields = dataclasses.fields(settings_class(self.task))
        return {f.name: getattr(self, f.name) for f in fields if belongs(about(f))}


class LabelledRunSettings(ContrastiveSettings, TaskRunSettings):
    """The settings that fine-tuning once, with several seeds, and in a sweep have in common."""

    model: PathText | None = model_setting(
        None,
        help="the model to start from: a folder, the output of a run or hf://owner/name[@revision]",
        unit="FOLDER",
        default_help="start from random weights",
        common=True,
    )
    architecture: str | None = model_setting(
        None,
        help=f"start from random weights instead: {ARCHITECTURES}",
        unit="NAME|FILE",
        default_help="as the model",
        instead_of="model",
        common=True,
    )
    train: object = required(
        help="the examples to train on: a file, several, or a glob; - is standard input",
        unit="FILE",
        several=True,
    )

    @classmethod
    def missing_arguments(cls, given):
        """Adds `model` if neither `model` nor `architecture` is given."""
        missing = super().missing_arguments(given)
        if missing and given.get("model") is None and given.get("architecture") is None:
            missing.append("model")
        order = {"model": 0, "train": 1}
        return sorted(missing, key=lambda name: order.get(name, 2))

    def check(self):
        super().check()
        if all(is_file(data) and data == STANDARD_INPUT for data in (self.train, self.dev)):
            raise InputError.naming(
                "{train} and {dev} are both standard input, which is read only once. Give one of "
                "them as a file."
            )


def check_layers_to_read(settings):
    layers = as_list(settings.layers)
    for choice in layers:
        check_layers(choice, learned=True)
    for name in ("scalar_mix_l2", "scalar_mix_layer_norm"):
        if getattr(settings, name) and not {*layers} & {*MIXES}:
            raise InputError.naming("{} needs {layers} {}.", argument(name), " or ".join(MIXES))


def check_seeds(settings):
    if settings.seed + settings.num_seeds - 1 > LARGEST_SEED:
        raise InputError.naming("{seed} and {num_seeds} exceed the largest seed, {}.", LARGEST_SEED)


class FinetuneSettings(LabelledRunSettings):
    """Settings of `keras_bert.finetune`, without those of the task."""

    train_fraction: float | Sequence[float] = optimisation_setting(
        1.0,
        help="train on a random part of the training examples: fractions up to 1, or counts above "
        "1; with several, a run for each, for the score against the number of examples",
        unit="FRACTION",
        above=0,
        several=True,
        common=True,
    )
    baseline: str | None = optimisation_setting(
        None,
        help="make each run from this model, too: a folder, or random, which has the sizes of the "
        "model and random weights",
        unit="FOLDER|random",
        default_help="none",
        common=True,
    )
    folds: int | None = optimisation_setting(
        None,
        help="cross-validation in place of dev: divide the training examples into this many folds, "
        "train a model without each and evaluate it there, and keep a model that is trained on all "
        "examples for the mean best epoch",
        unit="K",
        default_help="none",
        at_least=2,
        common=True,
    )
    ensemble: bool = optimisation_setting(
        False,
        help="average the probabilities of all seeds' models: evaluates the ensemble on the dev "
        "data, and exports it as one SavedModel, in OUTPUT/ensemble/",
    )

    def check(self):
        super().check()
        if self.ensemble and (self.num_seeds == 1 or len(self.runs()) > self.num_seeds):
            raise InputError.naming(
                "{ensemble} averages the models of several seeds. Give {num_seeds} of 2 or more, "
                "and neither several {train_fraction} nor {baseline}."
            )
        others = self.dev, self.baseline, self.num_seeds, self.fractions
        if self.folds is not None and others != (None, None, 1, [1.0]):
            raise InputError.naming(
                "{folds} trains on all of {train} but a fold, and evaluates on that. Leave {dev}, "
                "{num_seeds}, {baseline} and {train_fraction} out."
            )
        for fraction in self.fractions:
            if fraction > 1 and fraction != int(fraction):
                raise InputError.naming(
                    "{train_fraction} must be a fraction up to 1 or a whole number of examples. "
                    "Received: {}.",
                    fraction,
                )
        if len({*self.fractions}) < len(self.fractions):
            raise InputError.naming(
                "{train_fraction} has a value twice. Received: {}.", self.fractions
            )
        if self.baseline == RANDOM and self.model is None:
            raise InputError.naming(
                "{baseline} random is for runs that start from a model. This one starts from "
                "random weights."
            )
        if self.baseline == RANDOM and self.lora_rank is not None:
            raise InputError.naming(
                "{lora_rank} keeps the weights of a model, and {baseline} random has none. Leave "
                "one of them out."
            )

    def paths(self):
        """Also the folder of a baseline."""
        return super().paths() + [self.baseline] * (self.baseline not in (None, RANDOM))

    @property
    def fractions(self):
        """The list of `train_fraction`."""
        return as_list(self.train_fraction)

    def runs(self):
        """The settings of each run by name; those of the baseline begin with "baseline-"."""
        starts = ("",) if self.baseline is None else ("", f"{BASELINE}-")
        are_compared = len(self.fractions) * len(starts) > 1
        alone = {"num_seeds": 1, "baseline": None, "ensemble": False}
        return {
            f"{start}{f'train-{in_few_digits(fraction)}-' if are_compared else ''}seed-{seed}": (
                dataclasses.replace(self, train_fraction=fraction, seed=seed, **alone)
            )
            for fraction, start, seed in product(
                self.fractions, starts, range(self.seed, self.seed + self.num_seeds)
            )
        }


def runs_of_seeds(settings):
    """The settings of the run of each seed by name."""
    seeds = range(settings.seed, settings.seed + settings.num_seeds)
    return {f"seed-{n}": dataclasses.replace(settings, seed=n, num_seeds=1) for n in seeds}


def in_few_digits(rate):
    """A learning rate in few digits that identify it."""
    text = f"{rate:g}"
    return text if float(text) == rate else repr(rate)


def finetune_settings(task):
    """The class of all settings of `finetune` for a task."""
    return merged(settings_class(task), FinetuneSettings)
