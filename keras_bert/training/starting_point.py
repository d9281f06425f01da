"""What a run starts from: a model folder or random weights."""

import functools
import hashlib
import json
import os

from keras_bert.base.errors import InputError
from keras_bert.base.files import read_json
from keras_bert.checkpoints import find_model_folder, load
from keras_bert.checkpoints.adapters import is_adapter
from keras_bert.checkpoints.loading import is_name, name_of, with_task_tokens
from keras_bert.checkpoints.model_folder import (
    build_task,
    fingerprint_of_folder,
    head_scale,
)
from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint
from keras_bert.encoders import new_encoder, presets, read_config
from keras_bert.text.template import BERT_TEMPLATE
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary_files import open_vocabulary
from keras_bert.training.finetuning_settings import RANDOM

_MOST_LAYERS = 1000  # each takes 50 ms and 1 MB in Keras, whatever the size of its weights


def fingerprint(value):
    """A hash of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def read_architecture(architecture, vocabulary):
    """Returns the `EncoderConfig` of new weights for a vocabulary.

    Raises `InputError` where the architecture is unknown, its file is not a config, it has a
    smaller vocabulary, more than a thousand layers, or more weights than this machine's memory.
    """
    name = os.fspath(architecture)
    if is_preset(name):
        names = presets()
        if name not in names:
            raise InputError(
                f"Unknown architecture {name!r}. Choose from {', '.join(names)}, or pass the "
                "path of a config.json."
            )
        return names[name].preset(name, vocab_size=len(vocabulary))
    config = read_config(read_json(architecture), source=name)
    if config.vocab_size < len(vocabulary):
        raise InputError(
            f"{name} has vocab_size {config.vocab_size}, less than the {len(vocabulary)} tokens of "
            "the vocabulary."
        )
    parameters, memory = config.parameter_count(), _memory()
    if 4 * parameters > memory:  # the float32 weights that a folder is written from
        raise InputError(
            f"{name} describes a model of {parameters:,} parameters, which take "
            f"{4 * parameters >> 30:,} GiB. This machine has {memory >> 30:,} GiB of memory."
        )
    layers = config.num_hidden_states - 1
    if layers > _MOST_LAYERS:
        raise InputError(
            f"{name} describes a model of {layers:,} layers. At most {_MOST_LAYERS:,} are "
            "supported."
        )
    config.report_extra_keys(source=architecture)
    return config


def is_preset(architecture):
    """Whether an architecture is one of `presets`, and not a path."""
    return not architecture.endswith(".json") and os.sep not in architecture


def _memory():
    """The bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class StartingPoint:
    """The start of fine-tuning: either `model`, or `architecture` with `vocab` (and `cased`).

    Args:
        model: a model folder, or the output folder of a run.
        architecture: "tiny" … "large", or the path of a config.json: random weights.
        vocab: the vocabulary of an architecture: a vocab.txt, or a folder.
        cased: whether the vocabulary of an architecture keeps capitals and accents; a folder may
            contain this itself.
        is_random: take of the model only its sizes and its tokenizer: the weights are random.
        dtype: the name of a dtype policy, such as "mixed_bfloat16".

    Attributes: `fingerprint`, a hash of everything that the weights and ids depend on except the
    seed; `description`, a line for the user; `is_random`, also of an architecture.

    Raises InputError for arguments that exclude each other, or a missing or damaged file.
    """

    def __init__(
        self,
        *,
        model=None,
        architecture=None,
        vocab=None,
        cased=False,
        dtype="float32",
        is_random=False,
    ):
        self._dtype = dtype
        self.is_random = is_random or model is None
        if (model is None) == (architecture is None):
            raise InputError(
                "Give either a model folder to start from, or an architecture (with a vocabulary) "
                "to start from random weights."
            )
        if model is not None and (vocab is not None or cased):
            raise InputError(
                "A model folder has its own vocabulary. Leave the vocabulary and its case out."
            )
        if architecture is not None and vocab is None:
            raise InputError("An architecture needs a vocabulary: a vocab.txt or a folder.")
        if model is not None:
            self._folder = find_model_folder(model)
            self._name = name = model if is_name(model) else name_of(self._folder)
            self.description = f"Starting from the weights in {name}."
            self.appended = ()  # the special tokens that `build` has appended
            self.fingerprint = fingerprint_of_folder(self._folder)
            if is_random:
                self.description = f"Starting from random weights, of the sizes of {name}."
                self.fingerprint = f"{RANDOM} {self.fingerprint}"
            return
        self._folder, self.appended = None, ()
        vocabulary, lowercase, template = open_vocabulary(vocab, lowercase=False if cased else None)
        self._tokenizer = functools.partial(
            Tokenizer, vocabulary, lowercase=lowercase, template=template
        )
        self._config = read_architecture(architecture, vocabulary)
        self.description = f"Starting from random weights ({architecture})."
        described = [self._config.identity(), vocabulary.sha256, not lowercase]
        if template != BERT_TEMPLATE:
            described.append(template.to_dict())
        self.fingerprint = hashlib.sha256(json.dumps(described).encode()).hexdigest()

    @classmethod
    def of(cls, settings, *, is_random=False):
        """The one that the settings of a run describe."""
        if settings.lora_rank is not None and is_adapter(find_model_folder(settings.model)):
            raise InputError.naming(
                "{} is an adapter, and {lora_rank} makes adapters of whole models. `keras-bert "
                "convert` writes it as one.",
                settings.model,
            )
        names = ("model", "architecture", "vocab", "cased", "dtype")
        return cls(**{name: getattr(settings, name) for name in names}, is_random=is_random)

    def earlier_task(self, task_class):
        """-> (the `EarlierTask` of that class in the folder or None, the reason for None or None).

        The reason is a sentence; it is None where the folder was not fine-tuned.

        Raises InputError for a head of ours that cannot be read. Another program's may be of a task
        that does not exist here.
        """
        if self.is_random:
            return None, None
        source = PretrainedCheckpoint(self._folder)
        is_ours = "task" in source.stored
        if not source.holds_task:
            return None, None
        try:
            of_folder = source.task_class()
            if not of_folder.reads_files():  # of pre-training
                return None, None
            # A class of `transformers` serves several task types; its folders do not name one.
            if of_folder is task_class or (not is_ours and issubclass(task_class, of_folder)):
                return EarlierTask(build_task(source)), None
        except InputError as error:
            if is_ours:
                raise
            return None, str(error)
        return (
            None,
            f"{self._name} contains a {of_folder.TASK_TYPE}, and this run trains a "
            f"{task_class.TASK_TYPE}.",
        )

    def build(self):
        """Returns (encoder, `Tokenizer`); random weights depend on Keras's global seed."""
        if self._folder is None:
            return new_encoder(self._config, dtype=self._dtype), self._tokenizer()
        encoder, tokenizer = load(self._folder, dtype=self._dtype)
        if tokenizer is None:
            raise InputError(
                f"{self._name} has no tokenizer. Add the files of the model's tokenizer to "
                "fine-tune it on text."
            )
        if self.is_random:
            of_model, encoder = encoder, new_encoder(encoder.config, dtype=self._dtype)
            encoder.came_as(of_model)  # the same pooling
        before = len(tokenizer)
        encoder, tokenizer = with_task_tokens(encoder, tokenizer)
        self.appended = tokenizer.vocabulary.tokens[before:]
        return encoder, tokenizer


class EarlierTask:
    """A fine-tuned task with which a run of the same class continues.

    Attributes: `labels`; `columns`, those of its training data; `options`, its settings by the
    names of a run's, except those that are tuned again; `static_vectors`, the config of its static
    vectors, or None.

    Args:
        task: the task. Only numbers are kept of it: a run builds its own.
    """

    def __init__(self, task):
        self.labels = tuple(task.labels) if task.MIN_LABELS else ()
        self.options = {
            name: getattr(task.settings, name)
            for name in task.stored_settings()
            if name not in task.tuned
        }
        self._mix = task.reader.mix
        self.options["layers"] = task.reader.layers
        if self._mix is not None:
            self.options["scalar_mix_l2"] = self._mix["l2"]
            self.options["scalar_mix_layer_norm"] = self._mix["layer_norm_eps"] is not None
        self.columns = task.columns
        vectors = task.reader.static_vectors
        self.static_vectors = None if vectors is None else vectors.config
        self._reads = _reads(task)
        self._heads = {
            head: [weight * head_scale(task, head) for weight in task.heads[head].get_weights()]
            for head in _own_heads(task)
        }

    def has_labels(self, labels):
        """Whether these are the task's labels, in any order."""
        return set(labels) == set(self.labels)

    def layer_norm_eps(self, default):
        """The epsilon of a mix with LayerNorm: the task's own, if it has one."""
        epsilon = self._mix and self._mix["layer_norm_eps"]
        return default if epsilon is None else epsilon

    def continue_in(self, task):
        """Puts the heads into a task that reads the same of the encoder.

        Returns (heads of the task that continue, those that are new, heads of this one that are not
        used). After a new head all are new: they would read something else than they were trained
        on.
        """
        (mix, rest), (earlier_mix, earlier_rest) = _reads(task), self._reads
        continued, new = [], []
        for head in _own_heads(task):
            layer, weights = task.heads[head], self._heads.get(head)
            shapes = [weight.shape for weight in layer.weights]
            same = mix == earlier_mix and (rest == earlier_rest or head == "scalar_mix")
            if same and not new and weights and shapes == [weight.shape for weight in weights]:
                layer.set_weights([weight / head_scale(task, head) for weight in weights])
                continued.append(head)
            else:
                new.append(head)
        lost = [head for head in self._heads if head in new or head not in task.heads]
        return continued, new, lost


def _own_heads(task):
    """The heads of a task without its transform, whose weights come with the encoder's."""
    return [head for head in task.heads if head != "transform"]


def _reads(task):
    """-> (how a task mixes layers, what it reads of the mix or of the encoder).

    Heads can be exchanged between tasks for which this is equal.
    """
    mix = task.reader.mix and task.reader.mix["layer_norm_eps"]
    return (task.reader.layers, mix), (
        task.ENCODER_OUTPUTS,
        task.HEAD_READS,
        getattr(task.settings, "pooling", None),
        task.reader.static_vectors is not None,
    )
