"""The task contract: an encoder, a head, and what training, inference and export need of them.

CONTRIBUTING.md lists what a new task type defines.
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import html_table, in_one_line, listed
from keras_bert.base.settings import Settings
from keras_bert.encoders.config import EncoderConfig
from keras_bert.encoders.encoder import Encoder, check_ids
from keras_bert.heads import LAST
from keras_bert.heads.classification import check_labels
from keras_bert.heads.reader import TokenReader, WithoutMasks, symbolic_inputs
from keras_bert.tasks import imported, made_with, show_arguments
from keras_bert.tasks.losses import check_can_average, mean_outputs
from keras_bert.tasks.storing import StoredModel
from keras_bert.tasks.summed_metrics import SummedMetrics, right_alone

if TYPE_CHECKING:
    from keras_bert.text.tokenizer import Tokenizer


class Task(StoredModel):
    """A functional Keras model of an encoder and a head, with dictionaries in and out.

        class LabelSettings(TaskSettings):
            threshold: float = setting(0.5, help="…", above=0, below=1, stored=True)

        class Classifier(Task):
            TASK_TYPE = "classifier"
            ENCODER_OUTPUTS = ("first_output",)
            HEADS = ("classifier",)
            MIN_LABELS = 2
            SETTINGS = LabelSettings

            def make_head(self):
                self.classifier = keras.layers.Dense(len(self.labels), name="classifier")

            def build_head(self, encoded, inputs):
                return {"logits": self.classifier(encoded["first_output"])}  # (B, C)

    The constructor sets `encoder`, `settings`, `labels` and `reader`, calls `make_head`, and
    connects the layers. A `TokenReader` before the head may read other layers than the last one, or
    a learned mix of layers, static vectors that are concatenated with them, and a BiLSTM over the
    tokens; the weights of all belong to the head.

    Args:
        encoder: an `Encoder`, such as a `BertEncoder`.
        tokenizer: the `Tokenizer` of the encoder's vocabulary, or None: the task takes token ids
            only.
        labels: of a task with MIN_LABELS the names of its labels in their order, each once.
        layers: the layers that the head reads, a name of `keras_bert.heads`; None is
            "last", or "mix-all" if there is a `layer_mix`.
        layer_mix: of a learned mix the arguments `layer_norm_eps` and `l2` of its `ScalarMix`; None
            is None and 0.
        static_vectors: an encoder of a single layer and the same vocabulary, such as a
            `StaticEncoder`, whose weights are copied; or None.
        name: the model's name; None is the name of its class.
        **settings: the fields of SETTINGS, except those that only say how a file is read.

    Attributes: `encoder`, `tokenizer`, `config` (the encoder's), `settings` (an instance of
    SETTINGS, in which a default that depends on the encoder has its value), `labels`, `reader` (the
    `TokenReader`), `transform` (the layer over the first token's vector, see
    `Encoder.new_head_transform`, if the head has one, or None), and
    `tuned` (the names of the settings that `tune_threshold` sets).

    Class attributes:
        TASK_TYPE: its name in `keras_bert.tasks.TASKS`, stored in model folders.
        ENCODER_OUTPUTS: names of the encoder's outputs that the head reads.
        HEAD_READS: names of the encoder's inputs that the head reads too.
        HEAD_INPUTS: the shape of each of the head's own inputs, int32, without the batch, by name.
        SEQUENCE_AXES: the axes of the encoder's inputs between batch and tokens, if an example has
            several sequences: (2,) if it has two, (None,) for any number.
        REQUIRES: capabilities that the encoder must have (see `Encoder.LIMITS`).
        HEADS: attributes that hold the head's layers. A folder stores weights that the
            `transformers` class has no name for under `keras_bert.` and the layer's own name, which
            must be given (Keras numbers the names it makes up).
        HEAD_SCALES: {attribute of HEADS: attribute with the factor, a power of two, by which a
            folder's weights of the head are multiplied}.
        LABELLED_HEADS: {attribute of HEADS: the axes of its weights, from 1 on, that have an item
            per label}; of a vector it is its only axis.
        FIRST_LABEL: the item of the first label on these axes.
        READS_WORDS: whether the task reads words, as which it may be trained.
        ACTIVATIONS: the activations that the output may have, if a folder says so.
        MIN_LABELS: the least number of `labels`; 0 for a task without labels.
        SETTINGS: the class of its settings; a `TaskSettings` if it is trained on labelled files.
        TUNED: the stored settings that `tune_threshold` sets if they are not given.
        METRIC: the metric on the dev data that selects the best epoch; higher is better. It is one
            of `default_metrics` or of `official_metrics`.
        SHOWN: {metric: display name}, shown during training.
        TEACHES: the output whose values a student learns of a teacher (`keras_bert.distill`), or
            None if that is not possible.
        ANSWER: the key of a prediction that has what it says (see `answer_of`).
        FEATURES, SIGNATURES, INFERENCE: "module:name" of what `features`, `signatures` and the
            metrics of `fit` call, which may import TensorFlow.
        exported_prediction: a function of a task, an example and the outputs of an export for it
            (see `keras_bert.tasks.exported_predictions`), which gives the prediction that `decode`
            gives; None if exports are not evaluated.
        OFFERS: what it does beside `predict`, for those who must not know its class:
            "data-folders" (is trained and evaluated on those), "fill-mask", "span-boundary",
            "next-sentence", "generate", "zero-shot", "text-vectors" or "rerank".
        RATE_FACTOR: the factor of the default learning rate of an encoder's weights.
        DEFAULT_OPTIMIZER: the arguments of `make_optimizer` in which the optimizer of
            `compile_defaults` differs from that of fine-tuning.

    A task whose arguments decide one of ENCODER_OUTPUTS, HEAD_READS, SEQUENCE_AXES, HEADS, METRIC
    or SHOWN sets it in `make_head`.

    Raises:
        ValueError: `encoder` is not an `Encoder`, the labels are too few or not unique, or
            `layer_mix` is given for other `layers`.
        InputError: a setting is unknown or invalid, the encoder lacks a required capability or has
            too few layers, or the head reads the first token of a causal encoder.
    """

    TASK_TYPE: Any = None
    REQUIRES: tuple[str, ...] = ()
    HEAD_SCALES: dict[str, str] = {}
    LABELLED_HEADS: dict[str, tuple[int, ...]] = {"classifier": (-1,), "crf": (0, -1)}
    FIRST_LABEL = 0
    READS_WORDS = False
    ACTIVATIONS: tuple[str, ...] = ()
    MIN_LABELS = 0
    SETTINGS: type[Any] = Settings
    TUNED: tuple[str, ...] = ()
    METRIC: Any = None
    SHOWN: dict[str, str] = {"loss": "loss"}
    TEACHES: Any = None
    ANSWER = "label"
    FEATURES: str | None = None
    SIGNATURES: str | None = None
    INFERENCE = "keras_bert.tasks.outputs:Inference"
    exported_prediction: Any = None
    OFFERS: tuple[str, ...] = ()
    RATE_FACTOR = 1.0
    DEFAULT_OPTIMIZER: dict[str, Any] = {}

    dropout: Any = None
    _members: tuple[Any, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        show_arguments(cls)

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: "Tokenizer | None" = None,
        *,
        labels: Sequence[str] | None = None,
        layers: str | None = None,
        layer_mix: dict[str, float | None] | None = None,
        static_vectors: Encoder | None = None,
        name: str | None = None,
        **settings: Any,
    ):
        if not isinstance(encoder, Encoder):
            raise ValueError(
                f"`{type(self).__name__}` needs an encoder. Load one with `encoder, tokenizer = "
                "kb.load(folder)`, or a whole task with `kb.load_task(folder)`. "
                f"Received: encoder={encoder!r}."
            )
        # A model's weights are in the order in which it gets its layers.
        self.encoder = encoder
        self.check_encoder()
        given = made_with(self.SETTINGS, settings)
        policy = encoder.layer_policy
        if static_vectors is not None:
            static_vectors = _copy_of_static(static_vectors, beside=encoder.config, dtype=policy)
        self.reader = TokenReader(
            num_layers=encoder.config.num_hidden_states - 1,
            hidden_size=encoder.config.hidden_size,
            layers=layers,
            mix=layer_mix,
            static_vectors=static_vectors,
            bilstm=getattr(given, "bilstm", None),
            dtype=policy,
            name="reader",
        )
        if self.reader.combines_layers:
            encoder.require("layer-mix")
        if lm_loss_weight := getattr(given, "lm_loss_weight", 0.0):
            self.next_token_loss = self.make_next_token_loss(lm_loss_weight)
        if self.MIN_LABELS:
            self.labels = self.checked_labels(labels, given)
        elif labels is not None:
            raise ValueError(f"`{type(self).__name__}` takes no labels. Received: {labels!r}.")
        self.tuned = self.tuned_settings(given)
        self.settings = dataclasses.replace(given, **self.defaults_for(given))
        self.make_head()
        self._connect(tokenizer, name or _name_of(type(self)))

    def check_encoder(self) -> None:
        """Raises InputError unless the task can be over `encoder`."""
        self.encoder.require(*self.REQUIRES)

    def checked_labels(self, labels: Sequence[str] | None, settings: Any) -> tuple[str, ...]:
        """The argument `labels` as a tuple; ValueError for too few and for equal ones."""
        return check_labels(labels, least=self.MIN_LABELS)

    def defaults_for(self, settings: Any) -> dict[str, Any]:
        """The values of settings that are None, if they depend on the encoder or the labels."""
        if not self.reads_files():
            return {}
        length = settings.max_length or self.encoder.default_max_length(self.SETTINGS.MAX_LENGTH)
        return {"max_length": length}

    def update_settings(self, **changes: Any) -> None:
        """Replaces settings that predictions are made by, such as a threshold.

        Do not change settings that the head was made with, such as `pooling`. Raises InputError if
        a value is invalid.
        """
        self.settings = dataclasses.replace(self.settings, **changes)

    def make_head(self) -> None:
        """Sets the attributes HEADS to new layers; `dropout` is the `Dropout` before them."""

    @property
    def head_dropout(self) -> float:
        """The rate of `dropout`: the setting, or else that of the encoder's config."""
        rate = getattr(self.settings, "dropout", None)
        return self.config.head_dropout(self.TASK_TYPE) if rate is None else rate

    def new_transform(self) -> keras.layers.Layer | None:
        """The `transform` of a head that reads one vector per sequence.

        None if the encoder has no such layer, or the head reads vectors of another size.
        """
        return self.encoder.new_head_transform(self.TASK_TYPE) if self.reader.keeps_size else None

    def new_token_transform(self) -> keras.layers.Layer | None:
        """The `transform` of a head that reads the vectors of all tokens; None as above.

        None, too, for a task type that `transformers` has no class for.
        """
        names = self.encoder.tensor_names(self.config)
        has_class = names.class_of(self.TASK_TYPE) != names.base_class
        return self.new_transform() if has_class else None

    def _connect(self, tokenizer, name):
        encoder = self.encoder
        self._set_tokenizer(tokenizer)
        if "first_output" in self.ENCODER_OUTPUTS and encoder.config.is_causal:
            raise InputError.naming(
                "{} reads [CLS], which in a causal encoder sees no other token and is the same "
                "for every text. Use an encoder that is not causal.",
                argument(type(self).__name__),
            )
        features = self.feature_inputs()
        inputs = {**features, **symbolic_inputs(self.HEAD_INPUTS)}
        sequences = {name: self.to_sequences(x) for name, x in features.items()}
        encoded = WithoutMasks()(encoder(sequences, outputs=self.encoder_outputs))
        encoded = self.with_next_token_loss(encoded, sequences)
        outputs = self.head(self.reader.select(encoded), inputs)
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.tokenizer = tokenizer

    def _set_tokenizer(self, tokenizer):
        if tokenizer is not None:
            self.encoder.set_vocabulary(tokenizer.vocabulary)
            tokenizer.input_names = self.encoder.input_names

    def __repr__(self) -> str:
        if getattr(self, "encoder", None) is None:  # not constructed yet
            return super().__repr__()
        labels = f"labels {listed(self.labels, most=4)}; " if self.MIN_LABELS else ""
        return f"{type(self).__name__}({labels}{self.config.described})"

    def _repr_html_(self):
        stored = {name: getattr(self.settings, name) for name in self.stored_settings()}
        rows = [
            ("task", self.TASK_TYPE),
            *([("labels", listed(self.labels, most=20))] if self.MIN_LABELS else []),
            ("encoder", self.config.described),
            ("tokenizer", self.tokenizer or "none (takes token ids)"),
            ("inputs", ", ".join(self.input)),
            ("outputs", ", ".join(f"{name} {out.shape}" for name, out in self.output.items())),
            ("parameters", f"{self.count_params():,}"),
            *stored.items(),
        ]
        return html_table(rows, caption=type(self).__name__)

    @classmethod
    def reads_first_token(cls, **settings: Any) -> bool:
        """Whether a task with these settings reads the first token, whatever the encoder."""
        return False

    def is_standard(self) -> bool:
        """Whether the settings compute what the `transformers` class computes."""
        return self.reader.layers == LAST and not self.reader.reads_vectors

    @property
    def heads_in_files(self) -> tuple[str, ...]:
        """The names of HEADS whose weights a model folder has in files of their own."""
        return ()

    @property
    def architecture(self) -> str:
        """The `transformers` class named in the folder.

        The base model's if the task type has no class or its class would compute something else.
        """
        names = self.encoder.tensor_names(self.config)
        return names.class_of(self.TASK_TYPE) if self.is_standard() else names.base_class

    @classmethod
    def settings_in_config(cls, config_json: dict[str, Any]) -> dict[str, Any]:
        """Stored settings by name, from the `transformers` keys of a `config.json`."""
        return {}

    @classmethod
    def with_effect(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Stored settings by name, without those that other ones leave without an effect."""
        return settings

    def config_keys(self) -> dict[str, Any]:
        """`transformers` keys about the head for `config.json`, in addition to the labels."""
        return {}

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        # Given an extra name, Keras would assign the inputs in alphabetical order.
        if not isinstance(inputs, dict) or set(inputs) != set(self.input):
            received = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
            raise ValueError(
                f"The inputs must be a dictionary of {', '.join(self.input)}. Received: {received}."
            )
        check_ids(inputs, self.config)
        outputs = super().call(inputs, training=training, mask=mask)
        if not self._members:
            return outputs
        others = [member(inputs, training=training) for member in self._members]
        return mean_outputs([outputs, *others], self.default_losses())

    def average_with(self, others: Sequence["Task"]) -> None:
        """Makes the task an ensemble: it predicts the mean of its probabilities and the others'.

        An ensemble predicts and is exported; it cannot be saved or trained on.

        Args:
            others: tasks of the same type, labels and tokenizer.

        Raises InputError: the task has a CRF.
        """
        check_can_average(self.default_losses())
        # Keras does not count them among the weights of the task, which have its paths.
        object.__setattr__(self, "_members", (*self._members, *others))

    @property
    def config(self) -> EncoderConfig:
        """The encoder's config."""
        return self.encoder.config

    # Labelled data: examples, batches, predictions and metrics.

    def features(
        self, examples: Sequence[Any], *, max_length: int | None = None, labelled: bool = False
    ) -> Any:
        """`TokenizedExamples`: one or several sequences per example.

        Args:
            examples: a list of examples.
            max_length: tokens per sequence; None is the task's own.
            labelled: whether to add the labels of training.

        Raises:
            InputError: an example cannot be used; the message names it.
        """
        return imported(self.FEATURES)(
            self, examples, max_length=max_length or self.settings.max_length, labelled=labelled
        )

    def framing(self, max_length: int | None = None) -> dict[str, Any]:
        """The arguments of `TokenizedExamples` on how texts become sequences of this task."""
        return {
            "tokenizer": self.tokenizer,
            "input_names": self.encoder.input_names,
            "max_length": max_length or self.settings.max_length,
        }

    def evaluate_on(self, examples: Sequence[Any]) -> None:
        """Called with the dev examples of a run before it; METRIC may depend on them."""

    def context_size(self, *, max_length: int | None = None) -> int:
        """How many examples on either side may share a sequence with an example."""
        return 0

    def decode(self, outputs: dict[str, Any], sequences: Any) -> list[dict[str, Any]]:
        """The predictions: one JSON-like dictionary per example of `sequences.examples`.

        Args:
            outputs: float32 by the output's name, in the order of the sequences: an array, or for
                an output with another axis of variable size a list of arrays, one per sequence,
                padded as in its batch.
            sequences: the result of `features`.
        """
        raise NotImplementedError

    def tuned_settings(self, given: Any) -> tuple[str, ...]:
        """The names of the settings that `tune_threshold` sets, of the `given` settings."""
        return tuple(name for name in self.TUNED if getattr(given, name) is None)

    def calibration_error(self, outputs: dict[str, Any], sequences: Any) -> dict[str, float] | None:
        """The expected calibration error `before` and `after` `tune_threshold`, a dictionary.

        None if it does not calibrate. Arguments are as in `decode`.
        """
        return None

    def tune_threshold(self, outputs: dict[str, Any], sequences: Any) -> None:
        """Sets the settings that are `tuned`, such as a threshold; arguments as in `decode`.

        Called on the dev data at each evaluation that uses `official_metrics`, and with the
        outputs of the model that is kept.
        """

    def official_metrics(
        self, predictions: Sequence[Any], examples: Sequence[Any]
    ) -> dict[str, Any]:
        """The official metrics over all predictions, as JSON values.

        Raises InputError, which names the example, if one cannot be evaluated.
        """
        raise NotImplementedError

    def summed_metrics(self, predictions: Sequence[Any], examples: Sequence[Any]) -> SummedMetrics:
        """The official metrics that follow from sums over examples, for intervals of them.

        By default it is `right`, the fraction of examples without an error.
        """
        return right_alone(self.is_right(predictions, examples))

    def is_right(self, predictions: Sequence[Any], examples: Sequence[Any]) -> list[bool] | None:
        """Whether each prediction is right, so that `errors` lacks it; None of numbers."""
        pairs = zip(predictions, examples, strict=True)
        return [not self.errors([prediction], [example]) for prediction, example in pairs]

    def answer_of(self, prediction: dict[str, Any]) -> Any:
        """The content of a prediction without its probabilities, as JSON can hold it."""
        return prediction[self.ANSWER]

    def taught_answers(self, outputs: dict[str, Any], sequences: Any) -> np.ndarray:
        """The answers that a student learns (see `keras_bert.training.teaching`): (N, A).

        Arguments are as in `decode`; N examples, or all of their words.
        """
        return outputs[self.TEACHES]

    def with_answer(self, example: Any, prediction: dict[str, Any]) -> Any:
        """A copy of an example with the answer of a prediction as its label."""
        return dataclasses.replace(example, label=self.answer_of(prediction))

    def errors(self, predictions: Sequence[Any], examples: Sequence[Any]) -> list[dict[str, Any]]:
        """The wrong predictions, the worst first.

        Returns dictionaries, the rows of a table: `line`, the texts, `expected`, `predicted` and
        `score`, how confident or how wrong the prediction is; task types may have more.
        """
        return []

    @staticmethod
    def describe_error(error: dict[str, Any]) -> str:
        """One of `errors` in words, for the user."""
        expected, predicted = (
            ("|".join(value) or "none") if isinstance(value, list) else value
            for value in (error["expected"], error["predicted"])
        )
        names = ("text", "text_a", "text_b", "context")
        texts = " / ".join(in_one_line(error[name]) for name in names if name in error)
        return (
            f"line {error['line']}, true: {expected}, predicted: {predicted} "
            f"({error['score']:.2f}): {texts}"
        )

    @staticmethod
    def describe_metrics(metrics: dict[str, Any]) -> str:
        """The main `official_metrics` as text for the user."""
        return ", ".join(
            f"{name} {value:.3f}" for name, value in metrics.items() if isinstance(value, float)
        )

    def check_export(self) -> None:
        """Raises InputError if a SavedModel of the task would predict something else than it."""

    def signatures(self, *, max_length: int | None = None) -> dict[str, Any]:
        """The entry points of the exported model, `Signature` by name; the first is the default.

        `max_length` is in tokens per sequence; None is the task's own.
        """
        if self.SIGNATURES is None:
            raise InputError(f"The task {self.TASK_TYPE} cannot be exported.")
        self.check_export()
        return imported(self.SIGNATURES)(self, max_length=max_length or self.settings.max_length)


def _name_of(cls):
    """The name of a model of a class: `PairClassifier` -> `pair_classifier`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


def _copy_of_static(encoder, *, beside, dtype):
    """A copy of an encoder of a single layer, with the name `static_vectors` and another dtype.

    `beside` is the config of the encoder whose vectors they are concatenated with. Raises
    InputError if that is static, too, and ValueError if the one to copy is not.
    """
    if beside.num_hidden_states == 1:
        raise InputError.naming(
            "{static_vectors} are concatenated with contextual vectors. Received: a {} encoder, "
            "whose vectors are static. Leave it out.",
            beside.model_type,
        )
    if not isinstance(encoder, Encoder) or encoder.config.num_hidden_states != 1:
        raise ValueError(
            "`static_vectors` must be an encoder whose vectors do not depend on the context, such "
            f"as a `StaticEncoder`. Received: {encoder!r}."
        )
    copy = type(encoder)(encoder.config, dtype=dtype, name="static_vectors")
    copy.set_weights(encoder.get_weights())
    copy.trainable = encoder.trainable
    return copy
