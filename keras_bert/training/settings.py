"""The settings that all training runs have, and those of pre-training.

The help texts also document the Python arguments.
"""

from collections.abc import Sequence
from dataclasses import InitVar
from typing import NamedTuple

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import (
    Paths,
    PathText,
    Report,
    advanced_setting,
    as_list,
    checkpoint_setting,
    hardware_setting,
    model_setting,
    optimisation_setting,
    required,
)
from keras_bert.encoders import is_preset
from keras_bert.tasks import WARMUP, WEIGHT_DECAY
from keras_bert.training.objective_settings import ObjectiveSettings
from keras_bert.training.parts.user_callbacks import CallbackSettings

OPTIMIZERS = ("adamw", "lamb", "muon", "adagrad")
SCHEDULES = ("linear", "slanted-triangular", "cosine", "one-cycle", "constant", "wsd")
DTYPES = ("float32", "mixed_bfloat16", "mixed_float16")
STRATEGIES = ("auto", "none", "mirrored", "multiworker", "tpu")
INITIALIZATIONS = ("neighbours", "bert")
_AUTO = "auto: the largest power of two that the memory of the GPU or TPU holds, found by trying"
LARGEST_SEED = 2**32 - 1  # of Keras's and numpy's generators
KEEP_CHECKPOINTS = 2  # the newest one, and one in case it is damaged
ARCHITECTURES = (
    "tiny, mini, small, medium, base, large (BERT), distilbert, electra-small, electra-base, "
    "mpnet, albert-base, albert-large, albert-xlarge, albert-xxlarge, deberta-v3-xsmall, "
    "deberta-v3-small, deberta-v3-base, deberta-v3-large, modern-tiny, modern-mini, "
    "modernbert-base, modernbert-large, "
    "gpt-tiny, gpt-mini, gpt-small, gpt, gpt2-tiny, gpt2-mini, gpt2-small, gpt2, elmo-tiny, "
    "elmo-mini, elmo-small, elmo-medium, elmo, awd-lstm-tiny, awd-lstm-mini, awd-lstm, static-50, "
    "static-100, static-200, static, or a config.json"
)


class RunSettings(CallbackSettings):
    """The settings that pre-training and fine-tuning have in common."""

    report: InitVar[Report] = None

    REMOVED = {
        "histograms": "Train a task by `fit` with `keras.callbacks.TensorBoard(histogram_freq=1)` "
        "among the {callbacks}."
    }

    output: PathText = required(
        help="the run's folder, with model/, metrics.json, run.json, logs/ (TensorBoard) and "
        "checkpoints/",
        unit="FOLDER",
        recorded=False,
    )
    batch_size: int | str = optimisation_setting(
        32,
        help=f"examples per step, or {_AUTO}",
        unit="EXAMPLES",
        words=("auto",),
        at_least=1,
        common=True,
    )
    warmup: float = optimisation_setting(
        WARMUP,
        help="fraction of steps for linear learning-rate warm-up",
        unit="FRACTION",
        at_least=0,
        below=1,
    )
    weight_decay: float = optimisation_setting(
        WEIGHT_DECAY,
        help="weight decay; not applied to biases and LayerNorm",
        unit="DECAY",
        at_least=0,
    )
    schedule: str = optimisation_setting(
        "linear",
        help="learning-rate decay after the warm-up: linear or cosine to 0, slanted-triangular "
        "(ULMFiT) to a 32nd, one-cycle (cosine warm-up and decay), constant, or wsd (constant, and "
        "in the last steps to 0)",
        choices=SCHEDULES,
        common=True,
    )
    decay: float | None = optimisation_setting(
        None,
        help="of the schedule wsd: the fraction of the steps at the end in which the rate falls",
        unit="FRACTION",
        default_help="0.2",
        above=0,
        at_most=1,
    )
    layer_decay: float = optimisation_setting(
        1.0,
        help="layer-wise learning-rate decay: the rate of each layer is that of the layer above "
        "times this; heads have the full rate, embeddings the lowest (0.8 to 0.95 are usual for "
        "fine-tuning)",
        unit="FACTOR",
        above=0,
        at_most=1,
        common=True,
    )
    seed: int = optimisation_setting(
        0,
        help="random seed; same seed and input, same result",
        at_least=0,
        at_most=LARGEST_SEED,
        common=True,
    )
    dtype: str | None = hardware_setting(
        None,
        help="dtype of the computation; weights are float32 either way",
        default_help="mixed_bfloat16 on a TPU and a GPU that computes in it, else float32",
        choices=DTYPES,
        common=True,
    )
    recompute: bool = hardware_setting(
        False,
        help="compute each layer's activations again for the gradients instead of storing them: "
        "less memory, about a third more time, the same losses",
        common=True,
    )
    steps_per_execution: int = hardware_setting(
        1,
        help="steps that a device runs before it reports; checkpoints and evaluations fall on "
        "multiples of it",
        unit="STEPS",
        at_least=1,
    )
    checkpoint_every: int = checkpoint_setting(
        500, help="steps between checkpoints", unit="STEPS", at_least=1
    )
    keep_checkpoints: int = checkpoint_setting(
        KEEP_CHECKPOINTS,
        help="number of newest checkpoints to keep until the run is finished; if the newest is "
        "damaged, the run resumes from the one before",
        unit="N",
        at_least=1,
        recorded=False,
    )
    keep_last_checkpoint: bool = checkpoint_setting(
        False,
        help="keep the last checkpoint of a finished run, about three times the size of its model",
        recorded=False,
    )
    strategy: str = hardware_setting(
        "auto",
        help="the devices: one (none), all GPUs of this machine (mirrored), the machines of "
        "TF_CONFIG (multiworker), a TPU (tpu), or whichever is available (auto)",
        choices=STRATEGIES,
    )
    deterministic: bool = hardware_setting(
        False,
        help="bit-identical weights in every run on this machine (slower; applies to the whole "
        "process)",
    )
    force: bool = checkpoint_setting(
        False,
        help="start over: delete what this command left in the output before",
        recorded=False,
    )

    def check(self):
        super().check()
        if self.decay is not None and self.schedule != "wsd":
            raise InputError.naming("{decay} is of {schedule} wsd, not of {}.", self.schedule)
        self._check_multiple("checkpoint_every")

    def paths(self):
        """Also the file of an architecture."""
        architecture = getattr(self, "architecture", None)
        is_file = architecture is not None and not is_preset(architecture)
        return super().paths() + [architecture] * is_file

    def _check_multiple(self, name):
        for number in as_list(getattr(self, name)):
            if number % self.steps_per_execution:
                raise InputError.naming(
                    "{} must be a multiple of {steps_per_execution}, {}. Received: {}.",
                    argument(name),
                    self.steps_per_execution,
                    number,
                )


class Phase(NamedTuple):
    """A part of a pre-training run on one data folder: of `steps`, `epochs` and `minutes` one."""

    data: str
    batch_size: int  # once `auto` is resolved
    batch_tokens: int | None
    steps: int | None
    epochs: int | None
    minutes: float | None


class PretrainSettings(ObjectiveSettings, RunSettings):
    """Settings of `keras_bert.pretrain`.

    Lists of `data`, `steps` (or `epochs` or `minutes`), and `batch_size` make `phases`.
    """

    REMOVED = {
        "bad_records": "A damaged shard is an error that names it; make its data again with "
        "`keras-bert pretraining-data --force`."
    }
    REMOVED_DEFAULTS = {"bad_records": "error"}

    data: Paths = required(
        help="the folder written by keras-bert pretraining-data; several are phases of the run, "
        "one after another",
        unit="FOLDER",
        several=True,
    )
    vocab: PathText | None = advanced_setting(
        None,
        help="the vocabulary that the data must have been made with; another one is an error",
        unit="PATH",
        default_help="that of the data, which holds it",
    )
    steps: int | Sequence[int] | None = optimisation_setting(
        None,
        help="optimizer steps (per phase)",
        unit="STEPS",
        default_help="give minutes",
        at_least=1,
        several=True,
        common=True,
    )
    epochs: int | Sequence[int] | None = optimisation_setting(
        None,
        help="instead of steps: passes over the data (per phase)",
        unit="EPOCHS",
        default_help="give steps",
        at_least=1,
        several=True,
        instead_of="steps",
        common=True,
    )
    minutes: float | Sequence[float] | None = optimisation_setting(
        None,
        help="instead of steps: the total training time; the number of steps, and with it the "
        "schedule, is planned at the start by measuring (per phase)",
        unit="MINUTES",
        default_help="give steps",
        above=0,
        several=True,
        instead_of="steps",
        common=True,
    )
    batch_size: int | str | Sequence[int] = optimisation_setting(
        32,
        help=f"examples per step (per phase), or {_AUTO}",
        unit="EXAMPLES",
        words=("auto",),
        at_least=1,
        several=True,
        common=True,
    )
    batch_tokens: int | Sequence[int] | None = optimisation_setting(
        None,
        help="instead of the batch size: tokens per step including padding; batches are of "
        "examples of similar length, as many as fit (per phase)",
        unit="TOKENS",
        default_help="batch_size examples",
        at_least=1,
        several=True,
        instead_of="batch_size",
    )
    architecture: str | None = model_setting(
        None,
        help=f"start from random weights: {ARCHITECTURES}",
        unit="NAME|FILE",
        default_help="modern-tiny, or tiny for pairs of segments and for next tokens, if no model "
        "is given",
        instead_of="model",
        common=True,
    )
    model: PathText | None = model_setting(
        None,
        help="start from the weights of a model folder, of a run's output, or of hf://owner/name",
        unit="FOLDER",
        default_help="start from random weights",
        common=True,
    )
    add_words: int | None = model_setting(
        None,
        help="add to the vocabulary of the model so many words of the data, those that it cuts "
        "into several tokens and that save most tokens; their vectors begin as the mean of those "
        "tokens'",
        unit="N",
        default_help="none",
        at_least=1,
    )
    initialization: str | None = advanced_setting(
        None,
        help="initialization of random weights: attention heads of the first layer attend to the "
        "neighbouring tokens (neighbours), which a masked LM otherwise learns only after thousands "
        "of steps, or to nothing in particular, as in BERT (bert)",
        default_help="neighbours, if no model is given",
        choices=INITIALIZATIONS,
    )
    learning_rate: float | None = optimisation_setting(
        None,
        help="learning rate at the end of the warm-up",
        unit="RATE",
        default_help="5e-4; 0.1 for skip-gram and cbow",
        above=0,
        common=True,
    )
    optimizer: str | None = optimisation_setting(
        None,
        help="AdamW, LAMB for batches of thousands of examples, Muon, which makes the updates of "
        "matrices orthogonal, or AdaGrad, which updates only the vectors of a batch",
        default_help="adamw; adagrad for skip-gram and cbow",
        choices=OPTIMIZERS,
    )
    weight_decay: float | None = optimisation_setting(
        None,
        help="weight decay; not applied to biases and LayerNorm",
        unit="DECAY",
        default_help="0.01; 0 for skip-gram and cbow",
        at_least=0,
    )
    clip_norm: float = optimisation_setting(
        1.0, help="global norm for gradient clipping; 0: no clipping", unit="NORM", at_least=0
    )
    gradient_accumulation: int = optimisation_setting(
        1,
        help="split each step's batch into this many parts, computed one after another, to fit "
        "into memory",
        unit="PARTS",
        at_least=1,
    )
    eval_every: int | None = checkpoint_setting(
        None,
        help="steps between evaluations",
        unit="STEPS",
        default_help="at every checkpoint",
        at_least=1,
    )
    eval_batches: int | None = checkpoint_setting(
        None,
        help="evaluate on this many batches of the eval split",
        unit="N",
        default_help="on all of it",
        at_least=1,
    )

    @classmethod
    def of(cls, given):
        """Makes them as `Settings.of`; only here is it known whether `batch_size` is given."""
        if given.get("batch_tokens") is not None and given.get("batch_size") is not None:
            raise InputError.naming(
                "Give either {batch_size} (examples per step) or {batch_tokens} (tokens per step)."
            )
        return super().of(given)

    def check(self):
        super().check()
        self._check_multiple("eval_every")
        self._check_multiple("steps")
        if self.model is not None and self.architecture is not None:
            raise InputError.naming(
                "Give either {model}, to start from its weights, or {architecture}, to start from "
                "random weights."
            )
        if self.model is None and self.add_words is not None:
            raise InputError.naming(
                "{add_words} is for the vocabulary of a {model}. Learn a vocabulary from the text "
                "for random weights."
            )
        if self.model is not None and self.initialization is not None:
            raise InputError.naming(
                "{initialization} is for random weights. Leave it out with {model}."
            )
        if sum(length is not None for length in (self.steps, self.epochs, self.minutes)) != 1:
            raise InputError.naming("Give one of {steps}, {epochs} and {minutes}.")
        if "auto" in as_list(self.batch_size):
            self._check_auto()
            return
        for phase in self.phases:
            name = "batch_size" if phase.batch_tokens is None else "batch_tokens"
            size = getattr(phase, name)
            if size % self.gradient_accumulation:
                raise InputError.naming(
                    "{}, the size of a whole step, must be a multiple of {gradient_accumulation}, "
                    "{}. Received: {}.",
                    argument(name),
                    self.gradient_accumulation,
                    size,
                )
        if self.causal_fraction and self.batch_tokens is not None:
            raise InputError.naming(
                "{causal_fraction} splits batches of a fixed number of examples. Use {batch_size} "
                "instead of {batch_tokens}."
            )
        if self.causal_fraction and any(
            phase.batch_size // self.gradient_accumulation < 2 for phase in self.phases
        ):
            raise InputError.naming(
                "{causal_fraction} needs at least 2 examples in a batch, one masked and one causal."
            )
        if self.layer_decay != 1 and self.optimizer not in (None, "adamw", "muon"):
            raise InputError.naming("{layer_decay} needs {optimizer} adamw or muon.")

    def _check_auto(self):
        if isinstance(self.batch_size, list):
            raise InputError.naming("{batch_size} auto is one size for all phases. Give it once.")
        if self.gradient_accumulation > 1 or self.causal_fraction:
            raise InputError.naming(
                "{batch_size} auto is for whole steps. Give a number with {gradient_accumulation} "
                "and {causal_fraction}."
            )

    @property
    def phases(self):
        """The list of `Phase`: a single value is that of all phases.

        Raises `InputError` if lists differ in length.
        """
        by_field = {name: getattr(self, name) for name in Phase._fields}
        lists = {name: value for name, value in by_field.items() if isinstance(value, list)}
        count = max(map(len, lists.values()), default=1)
        for name, phase_values in lists.items():
            if len(phase_values) != count:
                longest = next(name for name in lists if len(lists[name]) == count)
                raise InputError.naming(
                    "{} has {} values and {} {}. Give one value for all phases, or one per phase.",
                    argument(name),
                    len(phase_values),
                    argument(longest),
                    count,
                )
        columns = (lists.get(name, [value] * count) for name, value in by_field.items())
        return [Phase(*phase_fields) for phase_fields in zip(*columns, strict=True)]
