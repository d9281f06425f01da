"""The starts of a student: layers of its teacher, a vector per token of it, or another model."""

import copy
import dataclasses

from keras_bert.base import rename
from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed
from keras_bert.checkpoints.locations import name_of
from keras_bert.checkpoints.model_folder import fingerprint_of_folder
from keras_bert.encoders import new_encoder
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.heads import LAST
from keras_bert.layers.dense import without_random_weights
from keras_bert.training.earlier_task import EarlierTask
from keras_bert.training.finetuning_task import StartingPoint
from keras_bert.training.static_student import static_student


def starting_point(settings, folder, teacher):
    """The `StartingPoint` of a student, with its `config`.

    Args:
        settings: the `DistillSettings`.
        folder: the folder of the teacher.
        teacher: the task in it.
    """
    if settings.keep_layers is not None:
        start = KeptLayers(folder, teacher, settings)
    elif settings.static:
        start = StaticStart(folder, teacher, settings)
    else:
        vocab = settings.vocab
        if settings.architecture is not None and vocab is None:
            vocab = str(folder)
        start = StartingPoint(
            model=settings.student,
            architecture=settings.architecture,
            vocab=vocab,
            cased=settings.cased,
            dtype=settings.dtype,
        )
    return start


class TeacherStart(StartingPoint):
    """A start that is made of the teacher.

    Args:
        folder: the teacher's folder.
        teacher: the task in it.
        settings: the `DistillSettings`.
    """

    is_random, appended = False, ()
    config = None

    def __init__(self, folder, teacher, settings):
        self._folder, self._name, self._dtype = folder, name_of(folder), settings.dtype
        self._teacher, self._settings = teacher, settings
        self.fingerprint = f"{self._made()} {fingerprint_of_folder(folder)}"

    def _made(self):
        """Says what is made of the teacher, in a word."""
        raise NotImplementedError


class KeptLayers(TeacherStart):
    """The teacher with some of its layers, and its head."""

    is_teacher = True

    def __init__(self, folder, teacher, settings):
        super().__init__(folder, teacher, settings)
        encoder, kept = teacher.encoder, settings.keep_layers
        names = encoder.tensor_names(encoder.config)
        is_uniform = isinstance(encoder, TransformerEncoder) and not any(
            line.not_in for line in names.encoder
        )
        count = getattr(encoder.config, "num_hidden_layers", None)
        if not is_uniform or names.layers != count:
            raise InputError.naming(
                "{keep_layers} is for Transformers whose layers are alike and have weights of "
                "their own. The teacher is a {}. Give {architecture} or {student}.",
                encoder.config.model_type,
            )
        if kept[-1] >= count:
            raise InputError.naming(
                "{keep_layers} has the layer {}, and the teacher's {} are 0 to {}.",
                kept[-1],
                counted(count, "layer"),
                count - 1,
            )
        if teacher.reader.layers != LAST:
            raise InputError.naming(
                "The head of the teacher reads the layers {}, and {keep_layers} leaves some out. "
                "Give {architecture} or {student}.",
                teacher.reader.layers,
            )
        self.config = dataclasses.replace(encoder.config, num_hidden_layers=len(kept))
        self.description = (
            f"Starting from the layers {listed(kept, most=20)} of the teacher, {self._name}."
        )

    def _made(self):
        return f"layers {self._settings.keep_layers}"

    def earlier_task(self, task_class):
        return EarlierTask(self._teacher), None

    def build(self):
        teacher, kept = self._teacher.encoder, self._settings.keep_layers
        names = teacher.tensor_names(teacher.config)
        tensors = rename.gather(teacher, names.table(), sizes=names.sizes)
        with without_random_weights():
            student = new_encoder(self.config, dtype=self._dtype)
        names, teacher_names = student.tensor_names(self.config), {}
        for line in names.encoder:
            for number, layer in enumerate(kept):
                teacher_names[line.theirs.format(i=number)] = line.theirs.format(i=layer)
        rename.assign(student, names.table(), lambda name: tensors[teacher_names[name]])
        student.copy_origin_of(teacher)
        if teacher.pooler is not None:
            student.new_pooler().set_weights(teacher.pooler.get_weights())
        student.is_pretrained = True
        tokenizer = copy.copy(self._teacher.tokenizer)
        student.set_vocabulary(tokenizer.vocabulary)
        tokenizer.input_names = student.input_names
        return student, tokenizer


class StaticStart(TeacherStart):
    """A vector per token of the teacher, in the space of its vectors."""

    is_teacher = False

    def __init__(self, folder, teacher, settings):
        super().__init__(folder, teacher, settings)
        self.description = f"Starting from a vector per token of the teacher, {self._name}."
        self._student = static_student(teacher, dimensions=None, sif=settings.sif or None)
        self.config = self._student.config

    def _made(self):
        return f"static {self._settings.sif}"

    def earlier_task(self, task_class):
        return None, None

    def build(self):
        student = self._student
        encoder = student.encoder.rebuilt(dtype=self._dtype)
        encoder.set_vocabulary(student.tokenizer.vocabulary)
        return encoder, copy.copy(student.tokenizer)
