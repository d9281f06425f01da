"""The task of a fine-tuning run: from a model or random weights, with its head new or continued."""

import dataclasses
import functools
import hashlib
import json
from typing import Any

import keras
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.base.settings import as_list
from keras_bert.checkpoints import find_model_folder, load
from keras_bert.checkpoints.adapters import is_adapter
from keras_bert.checkpoints.hub import is_name
from keras_bert.checkpoints.loading import with_task_tokens
from keras_bert.checkpoints.locations import name_of
from keras_bert.checkpoints.model_folder import build_task, fingerprint_of_folder
from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint
from keras_bert.encoders import new_encoder, read_architecture
from keras_bert.encoders.transformer import TransformerEncoder
from keras_bert.heads import MIXES
from keras_bert.layers.kernels.program import device
from keras_bert.optimizers.optimizer import (
    depths,
    make_optimizer,
    options_of,
)
from keras_bert.programs import COMPILES_EACH_SHAPE, Devices, make_deterministic
from keras_bert.tasks.training_defaults import training_defaults
from keras_bert.text.template import BERT_TEMPLATE
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary_files import open_vocabulary
from keras_bert.training.earlier_task import EarlierTask, line_on_continued
from keras_bert.training.finetuning_settings import RANDOM
from keras_bert.training.parts.lora import enable_lora


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
    seed; `description`, a line for the user; `is_random`, also of an architecture; `config`, the
    encoder's; `is_teacher`, whether it is the teacher of a student, with its head.

    Raises InputError for arguments that exclude each other, or a missing or damaged file.
    """

    is_teacher = False

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

    @property
    def config(self):
        if self._folder is None:
            return self._config
        return PretrainedCheckpoint(self._folder, tokenizer=False).config

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

        The reason is a sentence, and None if the folder was not fine-tuned. One reason is that
        another program wrote a head for a task that does not exist here.

        Raises `InputError` if this library wrote the folder, and its head cannot be read.
        """
        if self.is_random:
            return None, None
        source = PretrainedCheckpoint(self._folder)
        is_ours = "task" in source.stored
        if not source.holds(task_class.TASK_TYPE):
            return None, None
        try:
            folder_class = source.task_class()
            if not folder_class.reads_files():  # of pre-training
                return None, None
            # A class of `transformers` serves several task types; its folders do not name one.
            if folder_class is task_class or (not is_ours and issubclass(task_class, folder_class)):
                return EarlierTask(build_task(source)), None
        except InputError as error:
            if is_ours:
                raise
            return None, str(error)
        return (
            None,
            f"{self._name} contains a {folder_class.TASK_TYPE}, and this run trains a "
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
            earlier_encoder, encoder = encoder, new_encoder(encoder.config, dtype=self._dtype)
            encoder.copy_origin_of(earlier_encoder)  # the same pooling
        before = len(tokenizer)
        encoder, tokenizer = with_task_tokens(encoder, tokenizer)
        self.appended = tokenizer.vocabulary.tokens[before:]
        return encoder, tokenizer


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskRecipe:
    """The ingredients of the tasks of one or more runs, besides the settings of each run.

    Attributes:
        task_class: the class of the tasks.
        start: the `StartingPoint`.
        earlier: the `EarlierTask` whose head the runs continue with, or None.
        options: the settings that come from the model, since the caller does not give them.
        inferred_arguments: the arguments of the task that follow from the training examples.
        columns: the columns of the training data.
        max_length: the maximum sequence length in tokens.
        hidden_size: that of the encoder.
        built: tasks that were built to tokenize the examples, by seed and layers. `build` gives
            each away once.
    """

    task_class: type
    start: StartingPoint
    earlier: EarlierTask | None
    options: dict
    inferred_arguments: dict
    columns: Any
    max_length: int
    hidden_size: int
    built: dict = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def resolved(self, settings):
        """The settings of a run, with the model's options if none are given."""
        return dataclasses.replace(settings, **self.options)

    def with_defaults(self, settings, count, report):
        """-> (the settings of a run on so many examples, the same with all defaults).

        The first have the default learning rate and epochs if none are given, the second in any
        case. `report` is called with a line on the first.
        """
        defaults = self._training_defaults(settings)
        epochs = defaults.epochs(examples=count, batch_size=settings.batch_size)
        chosen = {"learning_rate": defaults.learning_rate, "epochs": epochs}
        given = self._with_defaults(settings, chosen, defaults.least_steps, count, report)
        return given, dataclasses.replace(settings, **chosen)

    def with_defaults_of_sweep(self, settings, count, report):
        """Does `with_defaults` for a sweep, which tries several rates and numbers of epochs.

        One that compares layers tries one of both.
        """
        defaults = self._training_defaults(settings)
        examples = {"examples": count, "batch_size": max(settings.batch_size)}
        if "layers" in settings.varied:
            rates, epochs = [defaults.learning_rate], [defaults.epochs(**examples)]
        else:
            rates, epochs = defaults.learning_rates_to_try, defaults.epochs_to_try(**examples)
        chosen = {"learning_rate": rates, "epochs": epochs}
        return self._with_defaults(settings, chosen, defaults.least_steps, count, report)

    def _training_defaults(self, settings):
        return training_defaults(
            hidden_size=self.hidden_size,
            is_pretrained=not self.start.is_random,
            is_frozen=settings.freeze_encoder,
            has_lora=settings.lora_rank is not None,
            is_contrastive=settings.contrastive,
            rate_factor=self.task_class.RATE_FACTOR,
        )

    def _with_defaults(self, settings, chosen, least_steps, count, report):
        """The settings with those of `chosen` that are not given, and a line on these."""
        chosen = {name: value for name, value in chosen.items() if getattr(settings, name) is None}
        if chosen:
            parts = [
                f"{name} {', '.join(f'{number:g}' for number in as_list(value))}"
                for name, value in chosen.items()
            ]
            steps = f", for at least {least_steps} steps" if "epochs" in chosen else ""
            weights = "random" if self.start.is_random else "trained"
            report(
                f"Defaults for {counted(count, 'training example')}, {weights} weights and the "
                f"hidden size {self.hidden_size}: {' and '.join(parts)}{steps}."
            )
        return dataclasses.replace(settings, **chosen)

    def build(self, settings, report, *, drawn=None):
        """Returns the task of a run with `resolved` settings.

        Args:
            settings: the settings.
            report: called with each line about the head.
            drawn: the result of `draw` for these settings, if there is one already.
        """
        key = settings.seed, settings.layers
        if drawn is None and key in self.built:
            return self.built.pop(key)
        encoder, tokenizer = drawn or draw(self.start, settings)
        arguments = {
            **self.inferred_arguments,
            **settings.arguments,
            "max_length": self.max_length,
            "layers": settings.layers,
        }
        if settings.layers in MIXES:
            epsilon = encoder.config.head_layer_norm_eps
            if self.earlier is not None:
                epsilon = self.earlier.layer_norm_eps(epsilon)
            epsilon = epsilon if settings.scalar_mix_layer_norm else None
            arguments["layer_mix"] = {"layer_norm_eps": epsilon, "l2": settings.scalar_mix_l2}
        vectors = _static_vectors(self.earlier, settings, tokenizer)
        if vectors is not None:
            arguments["static_vectors"] = vectors
        if not encoder.came_with_pooler and encoder.has_head_transform(self.task_class.TASK_TYPE):
            if self.task_class.reads_first_token(**settings.arguments):
                report("The model has no pooler; the head reads the first token through a new one.")
            elif arguments.get("pooling") is None and encoder.default_pooling == "mean":
                report("The model has no pooler; the head reads the mean of all tokens.")
        task = self.task_class(encoder, tokenizer, **arguments)
        task.columns = self.columns
        if self.earlier is not None:
            heads = self.earlier.continue_in(task)
            report(line_on_continued(settings, self.earlier.options, *heads))
        if (line := enable_lora(task, settings)) is not None:
            report(line)
        if settings.recompute:
            encoder.require("recompute")
            encoder.recomputes = True
        return task


def draw(start, settings):
    """-> (encoder, tokenizer) of a `StartingPoint`; new weights are drawn from the seed."""
    keras.utils.set_random_seed(settings.seed)
    if settings.deterministic:
        make_deterministic()
    return start.build()


def _static_vectors(earlier, settings, tokenizer):
    """The encoder whose vectors are concatenated with the other's, or None.

    A model that the run continues with has its own.
    """
    earlier_encoder = None if earlier is None else earlier.static_vectors
    if earlier_encoder is not None:
        if settings.static_vectors is not None:
            raise InputError.naming(
                "{} has static vectors already. Leave {static_vectors} out.", settings.model
            )
        return new_encoder(earlier_encoder, dtype=settings.dtype)
    if settings.static_vectors is None:
        return None
    vectors, vocabulary_of = load(settings.static_vectors, dtype=settings.dtype)
    if vectors.config.num_hidden_states != 1:
        raise InputError(
            f"{settings.static_vectors} contains a {vectors.config.model_type} encoder, not "
            "static vectors."
        )
    if vocabulary_of is None or vocabulary_of.vocabulary != tokenizer.vocabulary:
        raise InputError(
            f"The static vectors in {settings.static_vectors} have another vocabulary than the "
            "model. Train them with the model's vocabulary."
        )
    vectors.trainable = not settings.freeze_static_vectors
    return vectors


# Compiling a step takes XLA up to a minute. So many tokens of a base model make up for it, by
# estimate: benchmarks/NOTES.md.
_TOKENS_PER_PROGRAM = 10_000_000


def for_xla(task, examples, *, epochs, steps_per_epoch):
    """The training examples in few lengths, for steps that XLA compiles; None without XLA.

    On TensorFlow it is for one GPU or TPU, if a run is long enough for the programs of all
    shapes. The loops of a CRF and of an LSTM do not compile if the length of a batch varies.

    Args:
        task: the task that is trained as a whole.
        examples: its `TokenizedExamples`.
    """
    if device() == "cpu" or Devices().replicas > 1 or not examples.shapes_follow_from_length:
        return None
    has_loops = getattr(task, "crf", None) is not None or task.reader.bilstm is not None
    if has_loops or not isinstance(task.encoder, TransformerEncoder):
        return None
    examples = examples.in_few_lengths()
    sizes = 2 if len(examples) % steps_per_epoch else 1  # of batches, which differ by one
    programs = sizes * len(np.unique(examples.padded_lengths))
    tokens = epochs * int(examples.lengths.sum())
    return examples if tokens >= programs * _TOKENS_PER_PROGRAM else None


def compile_for(settings, plan, *, model, task, losses=None, jit_compile=False):
    """Compiles the model that a run trains: the task, its head alone, or with `losses` another.

    `jit_compile` is whether XLA compiles the steps, again for each shape of a batch. `losses` by
    output take the place of the task's own and of its metrics, which are for labels alone.
    """
    depth = depths(task, model.trainable_variables)
    unfreeze_every = plan.evaluate_every if settings.gradual_unfreezing else 0
    optimizer = make_optimizer(
        model,
        **options_of(settings),
        steps=plan.steps,
        fractions=[settings.layer_decay**below for below in depth],
        first_steps=[unfreeze_every * below for below in depth],
        measures_gradients=model is task,
    )
    are_own = losses is None
    model.compile(
        optimizer=task.with_scaled_loss(optimizer),  # a head alone has no policy of its own
        loss=task.compiled_losses() if are_own else losses,
        loss_weights=task.default_loss_weights(),
        weighted_metrics=task.default_metrics() if are_own else {},
        jit_compile=jit_compile or COMPILES_EACH_SHAPE,
        steps_per_execution=settings.steps_per_execution,
    )
