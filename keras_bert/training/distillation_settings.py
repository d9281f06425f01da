"""The settings of distillation: a smaller student that learns the answers of a teacher."""

from collections.abc import Sequence
from dataclasses import InitVar
from typing import Any, ClassVar

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import (
    PathText,
    Report,
    Settings,
    checkpoint_setting,
    hardware_setting,
    merged,
    model_setting,
    optimisation_setting,
    required,
)
from keras_bert.readers.sources import STANDARD_INPUT, is_file
from keras_bert.tasks import settings_class
from keras_bert.training.finetuning_settings import TaskRunSettings, runs_of_seeds
from keras_bert.training.settings import ARCHITECTURES

# Numbers of a static vector, and a in a / (a + p), of Arora et al. 2017 (see
# `keras_bert.training.static_student`).
DIMENSIONS, SIF = 256, 1e-4
_TEMPERATURE, _LABEL_WEIGHT = 2.0, 0.5

_TEACHER = required(
    help="the model whose answers are learned: a fine-tuned folder, the output of a run or "
    "hf://owner/name[@revision]",
    unit="FOLDER",
)


class StaticStudentSettings(Settings):
    """Settings of a static student's vectors."""

    static: bool = model_setting(
        False,
        help="the student is one vector per token, made of a text embedder without any data; with "
        "`data` it is then trained toward the vectors of the teacher",
        common=True,
    )
    dimensions: int | None = model_setting(
        None,
        help="numbers of a static vector, the first principal components",
        unit="NUMBERS",
        default_help=f"{DIMENSIONS}, or as many as the teacher has if that is less; with `data` "
        "the teacher's own axes",
        at_least=1,
        common=True,
    )
    sif: float = model_setting(
        SIF,
        help="weight of static vectors: a / (a + p) for a token of the probability p; 0 weights "
        "all alike",
        unit="A",
        at_least=0,
        below=1,
    )


class StaticDistillSettings(StaticStudentSettings):
    """Settings of `keras_bert.distill` for a static student without data."""

    report: InitVar[Report] = None

    teacher: PathText = _TEACHER
    output: PathText = required(
        help="the folder to write: a static embedding of sentence-transformers", unit="FOLDER"
    )
    batch_size: int = hardware_setting(256, help="tokens per step of the teacher", at_least=1)
    force: bool = checkpoint_setting(False, help="replace a folder that this command wrote before")


class DistillSettings(StaticStudentSettings, TaskRunSettings):
    """Settings of `keras_bert.distill`, without those of the task, which is the teacher's."""

    teacher: PathText = _TEACHER
    data: object = required(
        help="the texts to learn the answers for, with labels or without: a file or a glob; - is "
        "standard input",
        unit="FILE",
    )
    student: PathText | None = model_setting(
        None,
        help="the model that the student starts from: a folder, the output of a run or "
        "hf://owner/name[@revision]",
        unit="FOLDER",
        default_help="see `architecture` and `keep_layers`",
        common=True,
    )
    architecture: str | None = model_setting(
        None,
        help=f"start from random weights instead: {ARCHITECTURES}; the vocabulary is the "
        "teacher's, unless `vocab` is given",
        unit="NAME|FILE",
        default_help="as the student",
        instead_of="student",
        common=True,
    )
    keep_layers: Sequence[int] | None = model_setting(
        None,
        help="start from the teacher with these of its layers alone, from 0",
        unit="LAYER",
        default_help="see `student` and `architecture`",
        at_least=0,
        common=True,
    )
    distillation_temperature: float = optimisation_setting(
        _TEMPERATURE,
        help="the logits of teacher and student are divided by it before they become the "
        "probabilities that are learned (Hinton et al. 2015)",
        unit="TEMPERATURE",
        above=0,
        common=True,
    )
    label_weight: float = optimisation_setting(
        _LABEL_WEIGHT,
        help="weight of an example's own label in the loss; that of the teacher's answer is the "
        "rest, and all of it if an example has no label",
        unit="WEIGHT",
        at_least=0,
        at_most=1,
        common=True,
    )

    # Settings of fine-tuning that a student is not made with.
    train_fraction: ClassVar[float] = 1.0
    fractions: ClassVar[list[float]] = [1.0]
    folds: ClassVar[None] = None
    baseline: ClassVar[None] = None
    ensemble: ClassVar[bool] = False

    def check(self):
        super().check()
        if all(is_file(data) and data == STANDARD_INPUT for data in (self.data, self.dev)):
            raise InputError.naming(
                "{data} and {dev} are both standard input, which is read only once. Give one of "
                "them as a file."
            )
        starts = {
            "student": self.student,
            "architecture": self.architecture,
            "keep_layers": self.keep_layers,
            "static": self.static or None,
        }
        given = [name for name, value in starts.items() if value is not None]
        if len(given) != 1:
            raise InputError.naming(
                "A student starts from one of {student}, {architecture}, {keep_layers} and "
                "{static}. Received: {}.",
                ", ".join(given) or "none",
            )
        if self.dimensions is not None:
            raise InputError.naming(
                "{dimensions} is for a static student without {data}: with it, the student learns "
                "vectors of the teacher's size. Leave it out."
            )
        if self.sif != SIF and not self.static:
            raise InputError.naming("{sif} is for {static}. Leave it out.")
        if self.keep_layers is not None and sorted({*self.keep_layers}) != [*self.keep_layers]:
            raise InputError.naming(
                "{keep_layers} must rise, each layer once. Received: {}.",
                " ".join(map(str, self.keep_layers)),
            )
        if self.vocab is not None and self.architecture is None:
            raise InputError.naming("{vocab} is for an {architecture}. Leave it out.")
        for name in ("freeze_encoder", "lora_rank"):
            if getattr(self, name) and self.student is None:
                raise InputError.naming(
                    "{} keeps the weights of a trained {student}. Leave it out.", argument(name)
                )

    def check_answers(self, *, have_labels, are_probabilities):
        """Raises InputError for a setting that has no effect on the teacher's kind of answers."""
        if self.distillation_temperature != _TEMPERATURE and not are_probabilities:
            raise InputError.naming(
                "{distillation_temperature} is for probabilities, and the teacher gives scores or "
                "vectors. Leave it out."
            )
        if self.label_weight != _LABEL_WEIGHT and not have_labels:
            raise InputError.naming(
                "{label_weight} is for labels, and a student of a text embedder learns without "
                "any. Leave it out."
            )

    @property
    def model(self):
        """The model that the run starts from."""
        return self.student

    @property
    def train(self):
        """The data that the run trains on."""
        return self.data

    def runs(self):
        """The settings of each run by name."""
        return runs_of_seeds(self)


def distill_settings(task: str) -> Any:
    """The class of all settings of `distill` for a teacher of a task."""
    return merged(settings_class(task), DistillSettings)
