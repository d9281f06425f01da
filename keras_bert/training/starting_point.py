"""What a fine-tuning run starts from: a model folder, or an architecture with random weights."""

import functools
import hashlib
import json
import os

from keras_bert.base.errors import InputError
from keras_bert.base.files import read_json
from keras_bert.checkpoints import find_model_folder, load
from keras_bert.checkpoints.model_folder import build_task, fingerprint_of_folder
from keras_bert.checkpoints.named_models import is_name
from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint
from keras_bert.checkpoints.saving import head_scale
from keras_bert.encoders import new_encoder, presets, read_config
from keras_bert.text.template import BERT_TEMPLATE
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary_files import open_vocabulary

# A layer of any size is some hundred objects of Keras: 50 ms and 1 MB, whatever its weights take.
_MOST_LAYERS = 1000


def is_path(architecture):
    """Whether an architecture is the path of a config.json, not a preset's name."""
    text = os.fspath(architecture)
    return text.endswith(".json") or os.sep in text


def read_architecture(architecture, vocabulary):
    """Returns the `EncoderConfig` of new weights for a vocabulary.

    Raises `InputError` where there is no such architecture, its file is not a config, it has fewer
    rows than the vocabulary has pieces, more than a thousand layers, or weights that are more than
    this machine's memory.
    """
    if not is_path(architecture):
        known = presets()
        if str(architecture) not in known:
            raise InputError(
                f"There is no architecture {str(architecture)!r}. Choose from {', '.join(known)}, "
                "or pass the path of a config.json."
            )
        return known[str(architecture)].preset(str(architecture), vocab_size=len(vocabulary))
    config = read_config(read_json(architecture), source=str(architecture))
    if config.vocab_size < len(vocabulary):
        raise InputError(
            f"{architecture} has vocab_size {config.vocab_size}, fewer rows than the vocabulary's "
            f"{len(vocabulary)} pieces."
        )
    _check_memory(config, source=architecture)
    layers = config.num_hidden_states - 1
    if layers > _MOST_LAYERS:
        raise InputError(
            f"{architecture} describes a model of {layers:,} layers; at most {_MOST_LAYERS:,} can "
            "be built."
        )
    config.report_extra_keys(source=architecture)
    return config


def _check_memory(config, *, source):
    """Refuses what could not even be saved: a folder's float32 weights pass through the memory."""
    needed, there = 4 * config.parameter_count(), _memory()
    if needed > there:
        raise InputError(
            f"{source} describes a model of {config.parameter_count():,} parameters, whose weights "
            f"take {needed >> 30:,} GiB; this machine has {there >> 30:,} GiB of memory."
        )


def _memory():
    """The bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class StartingPoint:
    """Either `model`, or `architecture` with `vocab` (and `cased`), checked and ready to build.

    Args:
        model: a model folder, or the output folder of a run.
        architecture: "tiny" … "large", or the path of a config.json: random weights.
        vocab: the vocabulary of an architecture: a vocab.txt, or a folder.
        cased: the vocabulary of an architecture keeps capitals and accents; a folder may say so
            itself.
        dtype: a dtype policy's name, such as "mixed_bfloat16".

    Attributes: `fingerprint`, a hash of everything that the weights and ids depend on but the seed;
    `description`, a line for the user.

    Raises InputError where the arguments do not go together or a file is missing or broken.
    """

    def __init__(self, *, model=None, architecture=None, vocab=None, cased=False, dtype="float32"):
        self._dtype = dtype
        if (model is None) == (architecture is None):
            raise InputError(
                "Give either a model folder to start from, or an architecture (with a vocabulary) "
                "to start from random weights."
            )
        if model is not None and (vocab is not None or cased):
            raise InputError(
                "A model folder has its own vocabulary; leave the vocabulary and its case out."
            )
        if architecture is not None and vocab is None:
            raise InputError("An architecture needs a vocabulary; give a vocab.txt or a folder.")
        if model is not None:
            self._folder = find_model_folder(model)
            said = model if is_name(model) else self._folder
            self.description = f"Starting from the weights in {said}."
            self.fingerprint = fingerprint_of_folder(self._folder)
            return
        self._folder = None
        vocabulary, lowercase, template = open_vocabulary(vocab, lowercase=False if cased else None)
        self._tokenizer = functools.partial(
            Tokenizer, vocabulary, lowercase=lowercase, template=template
        )
        self._config = read_architecture(architecture, vocabulary)
        self.description = f"Starting from random weights ({architecture})."
        described = [self._config.to_dict(), vocabulary.sha256, not lowercase]
        if template != BERT_TEMPLATE:
            described.append(template.to_dict())
        self.fingerprint = hashlib.sha256(json.dumps(described).encode()).hexdigest()

    def earlier_task(self, kind):
        """-> (the `EarlierTask` of that kind in the folder or None, why it is none or None).

        The reason is a sentence, and None where the folder was not fine-tuned.

        Raises InputError for a head of ours that cannot be read. One of another program's may be
        none of those that there are here.
        """
        if self._folder is None:
            return None, None
        source = PretrainedCheckpoint(self._folder)
        own = "task" in source.stored
        if not source.holds_task:
            return None, None
        try:
            found = source.task_class()
            if found.SETTINGS is None:  # of pre-training
                return None, None
            # A class of `transformers` serves several kinds, and its folders do not say which.
            if found is kind or (not own and issubclass(kind, found)):
                return EarlierTask(build_task(source)), None
        except InputError as error:
            if own:
                raise
            return None, str(error)
        return None, f"{self._folder} holds a {found.KIND}, and this run trains a {kind.KIND}."

    def build(self):
        """Returns (encoder, `Tokenizer`); random weights draw on Keras's global seed."""
        if self._folder is None:
            return new_encoder(self._config, dtype=self._dtype), self._tokenizer()
        encoder, tokenizer = load(self._folder, dtype=self._dtype)
        if tokenizer is None:
            raise InputError(
                f"{self._folder} has RoBERTa's byte-level tokenizer, which is not part of "
                "keras-bert, so it cannot be fine-tuned on text."
            )
        return encoder, tokenizer


class EarlierTask:
    """A task that was fine-tuned before, as far as a run of the same kind continues with it.

    Attributes: `labels`; `options`, its settings by the names of those of a run, but for those that
    are tuned again.

    Args:
        task: the task. Nothing of it is kept but numbers: a run builds its own.
    """

    def __init__(self, task):
        self.labels = tuple(task.labels) if task.MIN_LABELS else ()
        self.options = {
            name: getattr(task, name) for name in task.stored_settings() if name not in task.tuned
        }
        self._mix = task.layer_mix
        self.options["scalar_mix"] = self._mix is not None
        if self._mix is not None:
            self.options["scalar_mix_l2"] = self._mix["l2"]
            self.options["scalar_mix_layer_norm"] = self._mix["layer_norm_eps"] is not None
        self._reads = _reads(task)
        self._heads = {
            head: [weight * head_scale(task, head) for weight in getattr(task, head).get_weights()]
            for head in _own_heads(task)
        }

    def has_labels(self, labels):
        """Whether these are the task's labels, in whatever order."""
        return set(labels) == set(self.labels)

    def layer_norm_eps(self, usual):
        """The epsilon of a mix with LayerNorms: that of the task's own, where it has them."""
        own = self._mix and self._mix["layer_norm_eps"]
        return usual if own is None else own

    def continue_in(self, task):
        """Puts the heads into a task that reads the same of the encoder.

        Returns (heads of the task that are new, heads of this one that it does not take over).
        After one that is new, all are: they would read something else than they have learned to.
        """
        (mix, rest), (own_mix, own_rest) = _reads(task), self._reads
        new = []
        for head in _own_heads(task):
            layer, weights = getattr(task, head), self._heads.get(head)
            shapes = [weight.shape for weight in layer.weights]
            same = mix == own_mix and (rest == own_rest or head == "scalar_mix")
            if same and not new and weights and shapes == [weight.shape for weight in weights]:
                layer.set_weights([weight / head_scale(task, head) for weight in weights])
            else:
                new.append(head)
        return new, [head for head in self._heads if head in new or head not in task.heads]


def _own_heads(task):
    """The heads of a task but for the encoder's own transform, which comes with its weights."""
    return [head for head in task.heads if head != "transform"]


def _reads(task):
    """What a task reads of its encoder: two that read the same may have the same heads.

    Returns (how layers are mixed, what is read of the mix or of the encoder): a mix is the same
    whatever is read of it.
    """
    mix = task.layer_mix and {"layer_norm_eps": task.layer_mix["layer_norm_eps"]}
    return mix, (task.ENCODER_OUTPUTS, task.HEAD_READS, getattr(task, "pooling", None))
