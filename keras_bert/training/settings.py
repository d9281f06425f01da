"""The settings of training runs: what all have in common, and those of fine-tuning."""

import dataclasses
from itertools import product

from keras_bert.base.errors import InputError
from keras_bert.base.settings import Settings, about, setting, together
from keras_bert.readers.sources import STANDARD_INPUT
from keras_bert.tasks import finetuned_kinds, kind_named, settings_class

KEEP = ("best", "last")
OPTIMIZERS = ("adamw", "lamb")
SCHEDULES = ("linear", "slanted-triangular", "cosine", "one-cycle", "constant")
DTYPES = ("float32", "mixed_bfloat16")
STRATEGIES = ("auto", "none", "mirrored", "multiworker", "tpu")
LARGEST_SEED = 2**32 - 1  # of Keras's and numpy's generators
KEEP_CHECKPOINTS = 2  # the newest one, and one to go back to


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings(Settings):
    """What pre-training and fine-tuning have in common."""

    output: str = setting(
        help="the run's folder: gets model/, metrics.json, run.json, logs/ (TensorBoard) and "
        "checkpoints/",
        unit="FOLDER",
        is_path=True,
        recorded=False,
    )
    batch_size: int = setting(32, help="rows in a step", unit="ROWS", at_least=1)
    warmup: float = setting(
        0.1,
        help="share of the steps in which the rate rises from 0",
        unit="SHARE",
        at_least=0,
        below=1,
    )
    weight_decay: float = setting(
        0.01, help="of matrices; biases and norms have none", unit="DECAY", at_least=0
    )
    seed: int = setting(
        0, help="same seed, same input, same result", at_least=0, at_most=LARGEST_SEED
    )
    dtype: str = setting(
        "float32", help="what is computed in; weights are float32 in any case", choices=DTYPES
    )
    steps_per_execution: int = setting(
        1,
        help="steps that a device does before it reports; checkpoints and evaluations fall on "
        "multiples of it",
        unit="STEPS",
        at_least=1,
    )
    checkpoint_every: int = setting(
        500, help="steps between two checkpoints to resume from", unit="STEPS", at_least=1
    )
    keep_checkpoints: int = setting(
        KEEP_CHECKPOINTS,
        help="checkpoints that are kept until the run is finished, the newest ones; where the "
        "newest turns out to be broken, a run goes on from the one before it",
        unit="N",
        at_least=1,
        recorded=False,
    )
    strategy: str = setting(
        "auto",
        help="the devices: one (none), all GPUs of this machine (mirrored), the machines of "
        "TF_CONFIG (multiworker), a TPU (tpu), or which of these is there (auto)",
        choices=STRATEGIES,
    )
    deterministic: bool = setting(
        False,
        help="the same weights to the last bit in every run on this machine (slower; it holds for "
        "the whole process)",
    )
    histograms: bool = setting(
        False,
        help="write the distribution of every trained variable's numbers into logs/ at each "
        "evaluation, for TensorBoard",
        recorded=False,
    )
    force: bool = setting(
        False,
        help="begin anew: delete what this command left in the output before",
        recorded=False,
    )

    def check(self):
        self._check_multiple("checkpoint_every")

    def _check_multiple(self, name):
        given = getattr(self, name)
        for value in given if isinstance(given, list) else [given]:
            if value is not None and value % self.steps_per_execution:
                raise InputError(
                    f"`{name}` is {value}; it should be a multiple of `steps_per_execution`, "
                    f"{self.steps_per_execution}."
                )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelledRunSettings(RunSettings):
    """What fine-tuning once, with several seeds, or in a sweep have in common."""

    task: str = setting(
        "classifier", help="the kind of task", unit="{" + ",".join(finetuned_kinds()) + "}"
    )
    model: str | None = setting(
        None,
        help="the model to start from: a folder, the output of a run, hf://owner/name[@revision], "
        "kaggle://owner/model/framework/variation, or an archive (.zip, .tar.gz)",
        unit="FOLDER",
        default_help="start from random weights",
        is_path=True,
    )
    architecture: str | None = setting(
        None,
        help="start from random weights instead: tiny, mini, small, medium, base, large, or a "
        "config.json",
        unit="NAME|FILE",
        default_help="as the model",
        instead_of="model",
    )
    vocab: str | None = setting(
        None,
        help="the vocabulary of an architecture: a vocab.txt, or a folder with a vocabulary "
        "(byte-pair encoding: vocab.json and merges.txt)",
        unit="PATH",
        default_help="the model's",
        is_path=True,
    )
    cased: bool = setting(
        False, help="the vocabulary of an architecture keeps capitals and accents"
    )
    train: str = setting(
        help="the examples to train on; - is standard input", unit="FILE", is_path=True
    )
    dev: str = setting(
        help="the examples to evaluate on after each epoch", unit="FILE", is_path=True
    )
    epochs: int = setting(3, help="passes over the training data", at_least=1)
    learning_rate: float | None = setting(
        None,
        help="the highest rate, reached at the end of the warm-up",
        unit="RATE",
        default_help="5e-5, which suits base sizes; 1e-3 for the head of a frozen encoder",
        above=0,
    )
    freeze_encoder: bool = setting(
        False,
        help="train the head alone: the encoder's outputs are computed once and used in all epochs",
    )
    scalar_mix: bool = setting(
        False,
        help="the head reads a learned mix of all layers instead of the last one",
        stored=True,
    )
    scalar_mix_l2: float = setting(
        0.0, help="pulls the mix toward the average", unit="STRENGTH", at_least=0
    )
    scalar_mix_layer_norm: bool = setting(
        False, help="normalise every layer before mixing", stored=True
    )
    schedule: str = setting(
        "linear",
        help="how the rate falls after the warm-up: to 0 in a line or along half a cosine, to a "
        "32nd (ULMFiT's slanted triangular), along half a cosine as it also rose (one-cycle), or "
        "not at all",
        choices=SCHEDULES,
    )
    train_layers: int | None = setting(
        None,
        help="train the last so many blocks and the head; the embeddings and the blocks below stay "
        "as they are",
        unit="BLOCKS",
        default_help="all of the model",
        at_least=1,
    )
    layer_decay: float = setting(
        1.0,
        help="the rate of each block is that of the one above it, times this; the head has the "
        "whole rate, and the embeddings the lowest (0.8 to 0.95 are usual)",
        unit="SHARE",
        above=0,
        at_most=1,
    )
    gradual_unfreezing: bool = setting(
        False,
        help="train the head alone in the first epoch, and one more block in each that follows, "
        "from the last down (ULMFiT)",
    )
    patience: int | None = setting(
        None,
        help="stop after so many epochs in a row without a better figure on the dev data",
        unit="EPOCHS",
        default_help="train all epochs",
        at_least=1,
    )
    keep: str = setting(
        "best",
        help="the model of the epoch with the best figure on the dev data, or of the last one",
        choices=KEEP,
    )

    def __post_init__(self):
        if isinstance(self.task, str):
            object.__setattr__(self, "task", kind_named(self.task))
        super().__post_init__()

    def check(self):
        super().check()
        self._check_task()
        self._check_layers()

    def _check_task(self):
        settings_class(self.task)  # refuses what is no kind
        if self.train == self.dev == STANDARD_INPUT:
            raise InputError(
                "`train` and `dev` are both standard input, which is read once; give one of them "
                "as a file."
            )
        if not self.scalar_mix:
            for name in ("scalar_mix_l2", "scalar_mix_layer_norm"):
                if getattr(self, name):
                    raise InputError(
                        f"`{name}` is a setting of the mix of layers; give `scalar_mix`, too."
                    )

    def _check_layers(self):
        for name, other in (
            ("train_layers", None),
            ("layer_decay", 1.0),
            ("gradual_unfreezing", False),
        ):
            if self.freeze_encoder and getattr(self, name) != other:
                raise InputError(
                    f"`{name}` is about the encoder's layers, and `freeze_encoder` trains none of "
                    "them; leave one of the two out."
                )
        if self.gradual_unfreezing and self.epochs < 2:
            raise InputError(
                "`gradual_unfreezing` trains the head alone in the first epoch; give `epochs` of 2 "
                "or more."
            )

    @property
    def columns(self):
        """How the files are read: arguments of the task's `read`."""
        return self._of_task(lambda setting: setting.reads)

    @property
    def arguments(self):
        """What the task is made with, beside what its examples settle."""
        return self._of_task(lambda setting: setting.stored or not setting.reads)

    def _of_task(self, belongs):
        fields = dataclasses.fields(settings_class(self.task))
        return {f.name: getattr(self, f.name) for f in fields if belongs(about(f))}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneSettings(LabelledRunSettings):
    """Settings of `keras_bert.finetune`, beside those of the kind of task."""

    num_seeds: int = setting(
        1,
        help="repeat the run with so many seeds in a row, in OUTPUT/runs/: the mean and the "
        "deviation of the figures are told, and the model that is best on the dev data is kept",
        unit="N",
        at_least=1,
    )

    def check(self):
        super().check()
        if self.seed + self.num_seeds - 1 > LARGEST_SEED:
            raise InputError(f"`seed` and `num_seeds` go beyond the largest seed, {LARGEST_SEED}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SweepSettings(LabelledRunSettings):
    """Settings of `keras_bert.sweep`, beside those of the kind of task.

    By itself it is the search of Devlin et al. 2018, appendix A.3.
    """

    learning_rate: list[float] = setting(
        (5e-5, 3e-5, 2e-5),
        help="the highest rates to try, reached at the end of the warm-up",
        unit="RATE",
        above=0,
    )
    batch_size: list[int] = setting(
        (16, 32), help="the rows in a step to try", unit="ROWS", at_least=1
    )
    epochs: list[int] = setting(
        (2, 3, 4), help="the passes over the training data to try", unit="EPOCHS", at_least=1
    )

    def check(self):
        for name in ("learning_rate", "batch_size", "epochs"):
            if not getattr(self, name):
                raise InputError(f"`{name}` is empty; give at least one value to try.")
        for values in self.runs().values():
            finetune_settings(self.task).of(values)

    def runs(self):
        """The settings of `finetune` for each run, by its name."""
        common = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        tried = product(self.learning_rate, self.batch_size, self.epochs)
        return {
            f"rate-{_shortest(rate)}-batch-{size}-epochs-{epochs}": {
                **common,
                "learning_rate": rate,
                "batch_size": size,
                "epochs": epochs,
            }
            for rate, size, epochs in tried
        }


def _shortest(rate):
    """A rate as it is written for people, with as many digits as tell it from any other."""
    text = f"{rate:g}"
    return text if float(text) == rate else repr(rate)


def finetune_settings(task):
    """The class of all settings of a run that fine-tunes a kind of task."""
    return together(settings_class(task), FinetuneSettings)


def sweep_settings(task):
    """The class of all settings of a sweep over runs that fine-tune a kind of task."""
    return together(settings_class(task), SweepSettings)
