"""The task contract: an encoder, a head, and what training, inference and export need of them.

CONTRIBUTING.md lists what a new task type defines.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import keras

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import html_table, in_one_line, listed
from keras_bert.base.settings import about
from keras_bert.encoders.config import EncoderConfig
from keras_bert.encoders.encoder import Encoder, check_ids
from keras_bert.heads.classification import FlattenChoices, GroupChoices
from keras_bert.heads.layer_choice import LAST
from keras_bert.heads.lm_head import NextTokenLoss
from keras_bert.heads.reader import ReadingModel, TokenReader
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.labels import unknown_label
from keras_bert.readers.settings import ERROR
from keras_bert.tasks.ensemble import check_can_average, mean_outputs
from keras_bert.tasks.fit_progress import with_progress
from keras_bert.tasks.global_mean import global_means, means_over
from keras_bert.training.optimizer import finetuning_optimizer


class Task(ReadingModel):
    """A functional Keras model of an encoder and a head, with dictionaries in and out.

    A constructor sets its encoder, makes its layers, then calls `super().__init__`, which connects
    them. (A model's weights are in the order in which it gets its layers: the encoder comes first.)

        class Classifier(Task):
            TASK_TYPE = "classifier"
            ENCODER_OUTPUTS = ("first_output",)
            HEADS = ("classifier",)
            MIN_LABELS = 2

            def __init__(self, encoder, tokenizer=None, *, labels, name="classifier"):
                self.set_encoder(encoder)
                self.labels = tuple(labels)
                self.classifier = keras.layers.Dense(len(labels), name="classifier")
                super().__init__(tokenizer, name=name)

            def build_head(self, encoded, inputs):
                return {"logits": self.classifier(encoded["first_output"])}  # (B, C)

    The head of every task may read other layers than the last one, or a learned mix of layers,
    static vectors that are concatenated with them, and a BiLSTM over the tokens; the weights of all
    belong to the head. `set_encoder` takes `layers` (a name of `keras_bert.heads.layer_choice`;
    None is "last", or "mix-all" where there is a `layer_mix`), `layer_mix` (of a learned mix the
    arguments `layer_norm_eps` and `l2` of its `ScalarMix`; None is None and 0), `static_vectors`
    (None, or an encoder of a single layer and the same vocabulary, such as a `StaticEncoder`, whose
    weights are copied) and `bilstm` (None, or the units of a `BiLstm`), and over a causal encoder
    `lm_loss_weight` (see `NextTokenLoss`; not stored).

    Args:
        tokenizer: the `Tokenizer` of the encoder's vocabulary, or None: the task takes token ids
            only.

    Attributes: `encoder`, `tokenizer`, `config` (the encoder's), `reader` (the `TokenReader` before
    the head), `transform` (the encoder's `head_transform` if the head reads it, or None), and
    `max_length` of tasks with `SETTINGS`.

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
        MIN_LABELS: the least number of `labels`; 0 for a task without labels.
        SETTINGS: the `TaskSettings` of a task that is trained on labelled files, else None.
        METRIC: the metric on the dev data that selects the best epoch; higher is better. It is one
            of `default_metrics` or of `official_metrics`.
        SHOWN: {metric: display name}, shown during training.
        tuned: the stored settings that were not given, which `tune_threshold` sets.

    A constructor whose arguments decide one of ENCODER_OUTPUTS, HEAD_READS, SEQUENCE_AXES, METRIC,
    SHOWN or `tuned` sets it before it calls `super().__init__`.

    Raises:
        ValueError: `encoder` is not an `Encoder`, or `layer_mix` is given for other `layers`.
        InputError: the encoder lacks a required capability or has too few layers, or the head reads
            the first token of a causal encoder.
    """

    TASK_TYPE = None
    ENCODER_OUTPUTS = ("sequence_output",)
    HEAD_READS = ()
    HEAD_INPUTS = {}
    SEQUENCE_AXES = ()
    REQUIRES = ()
    HEADS = ()
    HEAD_SCALES = {}
    MIN_LABELS = 0
    SETTINGS = None
    METRIC = None
    SHOWN = {"loss": "loss"}
    tuned = ()

    def __new__(cls, encoder=None, *more, **options):
        # Checked here because constructors use the encoder before ours runs. Keras itself creates
        # a task without arguments.
        by_keras = encoder is None and not (more or options)
        if not by_keras and not isinstance(encoder, Encoder):
            raise ValueError(
                f"`{cls.__name__}` needs an encoder. Load one with `encoder, tokenizer = "
                "kb.load(folder)`, or a whole task with `kb.load_task(folder)`. "
                f"Received: encoder={encoder!r}."
            )
        return super().__new__(cls)

    def set_encoder(
        self,
        encoder,
        *,
        max_length=None,
        layers=None,
        layer_mix=None,
        static_vectors=None,
        bilstm=None,
        lm_loss_weight=0.0,
    ):
        """Sets the encoder and `max_length`, and makes the layers between encoder and head."""
        self.encoder = encoder
        if self.SETTINGS is not None:
            self.max_length = max_length or encoder.default_max_length(self.SETTINGS.MAX_LENGTH)
        self.bilstm = bilstm
        policy = encoder.layer_policy
        if static_vectors is not None:
            static_vectors = _static_vectors(static_vectors, beside=encoder.config, dtype=policy)
        self.reader = TokenReader(
            num_layers=encoder.config.num_hidden_states - 1,
            hidden_size=encoder.config.hidden_size,
            layers=layers,
            mix=layer_mix,
            static_vectors=static_vectors,
            bilstm=bilstm,
            dtype=policy,
            name="reader",
        )
        if self.reader.combines_layers:
            encoder.require("layer-mix")
        if lm_loss_weight:
            if not encoder.config.is_causal:
                raise InputError.naming(
                    "{lm_loss_weight} needs a causal encoder, in which each token sees only the "
                    "tokens before it. Leave it out."
                )
            if max(self.reader.numbers) < encoder.config.num_hidden_states - 1:
                raise InputError.naming(
                    "{lm_loss_weight} trains the last layer, which is not among the {layers} {}. "
                    "Leave one of the two out.",
                    self.reader.layers,
                )
            self.next_token_loss = NextTokenLoss(
                lm_head=encoder.lm_head(), weight=lm_loss_weight, dtype=policy, name="lm_loss"
            )

    def __init__(self, tokenizer=None, *, name):
        encoder = self.encoder
        encoder.require(*self.REQUIRES)
        if tokenizer is not None:
            encoder.set_vocabulary(tokenizer.vocabulary)
        if "first_output" in self.ENCODER_OUTPUTS and encoder.config.is_causal:
            raise InputError.naming(
                "{} reads [CLS], which in a causal encoder sees no other token and is the same "
                "for every text. Use an encoder that is not causal.",
                argument(type(self).__name__),
            )
        if not self.reader.keeps_size:
            self.transform = None  # which takes vectors of the encoder's own size
        features = self.feature_inputs()
        inputs = {**features, **_symbolic(self.HEAD_INPUTS)}
        sequences = {name: self.to_sequences(x) for name, x in features.items()}
        encoded = encoder(sequences, outputs=self.encoder_outputs)
        if self.next_token_loss is not None:
            encoded = self._with_next_token_loss(encoded, sequences)
        outputs = self.head(self.reader.select(encoded), inputs)
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.tokenizer = tokenizer

    def __repr__(self):
        if getattr(self, "encoder", None) is None:  # not constructed yet
            return super().__repr__()
        labels = f"labels {listed(self.labels, most=4)}; " if self.MIN_LABELS else ""
        return f"{type(self).__name__}({labels}{self.config.described})"

    def _repr_html_(self):
        stored = {name: getattr(self, name) for name in self.stored_settings()}
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

    # The model.

    def feature_inputs(self):
        """The encoder's inputs as symbolic int32 tensors (B, S), or (B, n, S), by name."""
        return _symbolic(dict.fromkeys(self.encoder.input_names, (*self.SEQUENCE_AXES, None)))

    def to_sequences(self, x):
        """A feature of the task (B, …, S) -> (R, S), of the encoder's sequences."""
        return FlattenChoices()(x) if self.SEQUENCE_AXES else x

    def to_examples(self, x, features):
        """Vectors of the encoder's sequences (R, S, D) -> of the task's `features` (B, …, S, D)."""
        return GroupChoices()(x, features["input_ids"]) if self.SEQUENCE_AXES else x

    dropout = next_token_loss = None
    _members = ()
    # {part of an example: its columns} in the data that it was trained on, which folders store.
    columns = None

    def _with_next_token_loss(self, encoded, inputs):
        """The encoder's outputs, of which the last layer's passes through `next_token_loss`."""
        mask = inputs["input_mask"]
        if "hidden_states" in encoded:
            *states, last = encoded["hidden_states"]
            last = self.next_token_loss(last, inputs["input_ids"], mask)
            return {**encoded, "hidden_states": (*states, last)}
        hidden = self.next_token_loss(encoded["sequence_output"], inputs["input_ids"], mask)
        return {**encoded, "sequence_output": hidden}

    @property
    def encoder_outputs(self):
        """The outputs requested of the encoder, for the head or for the reader before it."""
        return self.reader.requested(self.ENCODER_OUTPUTS)

    @property
    def inputs_of_head(self):
        """Names of the task's inputs that the head and the reader before it read."""
        names = (*self.HEAD_READS, *self.reader.input_names, *self.HEAD_INPUTS)
        return tuple(dict.fromkeys(names))

    def head(self, selected, inputs):
        """What the reader's `select` returns, and `inputs_of_head`, both by name -> the outputs."""
        return self.build_head(self._read(selected, inputs), inputs)

    def encoded(self, inputs, training=None, causal=None):
        """What `build_head` reads, from the encoder's inputs by name."""
        outputs = self.encoder_outputs
        encoded = self.encoder(inputs, outputs=outputs, causal=causal, training=training)
        return self._read(self.reader.select(encoded), inputs)

    def _read(self, selected, inputs):
        if not self.reader.head_layers:
            return selected
        names = self.reader.input_names
        return self.reader(selected, {name: self.to_sequences(inputs[name]) for name in names})

    @property
    def heads(self):
        """The layers with weights of the head by name: those of the reader, and HEADS."""
        heads = dict(self.reader.head_layers)
        if self.transform is not None:
            heads["transform"] = self.transform
        return {**heads, **{name: getattr(self, name) for name in self.HEADS}}

    def build_head(self, encoded, inputs):
        """The head: ENCODER_OUTPUTS and the task's inputs -> outputs, symbolic, all by name.

        Of the encoder's inputs only HEAD_READS are guaranteed: a frozen encoder's outputs come
        from a file.
        """
        raise NotImplementedError

    @classmethod
    def reads_first_token(cls, **settings):
        """Whether a task with these settings reads the first token, whatever the encoder."""
        return False

    def is_standard(self):
        """Whether the settings compute what the `transformers` class computes."""
        return self.reader.layers == LAST and not self.reader.reads_vectors

    @property
    def architecture(self):
        """The `transformers` class named in the folder.

        The base model's if the task type has no class or its class would compute something else.
        """
        names = self.encoder.tensor_names(self.config)
        return names.class_of(self.TASK_TYPE) if self.is_standard() else names.base_class

    @classmethod
    def settings_in_config(cls, values):
        """Stored settings by name, from the `transformers` keys of a `config.json`."""
        return {}

    def config_keys(self):
        """`transformers` keys about the head for `config.json`, in addition to the labels."""
        return {}

    def call(self, inputs, training=None, mask=None):
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

    @property
    def metrics(self):
        """As Keras's, with the gradient norm if the optimizer measures it."""
        norm = getattr(getattr(self, "optimizer", None), "gradient_norm", None)
        return [*super().metrics, *([] if norm is None else [norm])]

    # Training.

    def default_losses(self) -> dict[str, Any]:
        """Returns the loss of each output, by the output's name."""
        return {}

    def compiled_losses(self):
        """`default_losses` for `compile`; see `means_over` for tasks that read files."""
        return global_means(self.default_losses(), of_epochs=self.SETTINGS is not None)

    def default_loss_weights(self):
        """Returns the weight of each output's loss, by the output's name; None is 1 each."""
        return None

    def default_metrics(self) -> dict[str, Any]:
        """Returns each output's metrics by the output's name; sample weights apply to them."""
        return {}

    def compile_defaults(
        self,
        optimizer: Any = None,
        *,
        steps: int | None = None,
        learning_rate: float | None = None,
        **options: Any,
    ) -> None:
        """`compile` with the task's own losses and metrics; `options` are passed to `compile`.

        The optimizer is built for the weights that are trainable now. As with `compile`, call it
        again after changing them.

        Args:
            optimizer: None is the optimizer of `keras_bert.finetune`: AdamW without decay on biases
                and norms, global clipping, warm-up and linear decay.
            steps: total optimizer steps, for that optimizer's decay: `len(dataset)` times the
                epochs of `fit`. None keeps the learning rate constant.
            learning_rate: its peak; None is 5e-5, or 1e-3 if the encoder is frozen.
        """
        if optimizer is None:
            optimizer = finetuning_optimizer(self, steps=steps, learning_rate=learning_rate)
        elif steps is not None or learning_rate is not None:
            raise ValueError(
                "`steps` and `learning_rate` are for the default optimizer only. "
                f"Received: optimizer={optimizer!r}."
            )
        options = {"loss_weights": self.default_loss_weights(), **options}
        self.compile(
            optimizer=optimizer,
            loss=self.compiled_losses(),
            weighted_metrics=self.default_metrics(),
            **options,
        )
        if not self.optimizer.built:
            # Building it in the first step would trace that step a second time.
            self.optimizer.build(self.trainable_variables)
        if len(self.output) > 1:
            # The same holds for Keras's metric of each output's loss.
            self._compile_loss.build(self.output, self.output)

    def fit(self, x: Any = None, y: Any = None, *more: Any, **options: Any) -> Any:
        """As Keras's, with more in the progress bar for an `x` that `dataset` made.

        The bar shows tokens/s and, if `dataset` made `validation_data` too, the task's METRIC after
        each epoch as `val_METRIC`, which callbacks may monitor.
        """
        for batches in (x, options.get("validation_data")):
            self._check_given("fit", batches, "make batches of them with `task.dataset`")
        info = dataset_info(x)
        totals, steps = (info.sequences.weight_totals, info.steps) if info else ({}, None)
        if hasattr(x, "element_spec") and not more:
            options.setdefault("shuffle", False)  # which Keras warns of, and does not do
        with means_over(self, totals, steps=steps):
            dev = dataset_info(options.get("validation_data"))
            options = with_progress(self, options, train=info, dev=dev)
            return super().fit(x, y, *more, **options)

    def evaluate(self, x: Any = None, *more: Any, **options: Any) -> Any:
        """As Keras's, on batches; `keras_bert.evaluate` takes examples and files."""
        self._check_given("evaluate", x, "use `kb.evaluate(model=task, data=…)`")
        info = dataset_info(x)
        totals, count = (info.sequences.weight_totals, len(info.sequences)) if info else ({}, None)
        with means_over(self, totals, examples=count):
            return super().evaluate(x, *more, **options)

    def predict(self, x: Any, *more: Any, **options: Any) -> Any:
        """As Keras's, on batches; `keras_bert.predict` takes examples and files."""
        self._check_given("predict", x, "use `kb.predict(model=task, data=…)`")
        return super().predict(x, *more, **options)

    def _check_given(self, method, x, instead):
        """Raises an error for a path, for texts (which Keras would print) and for invalid ids."""
        first = x
        if isinstance(first, list | tuple) and len(first):
            first = first[0]
            if isinstance(first, list | tuple | dict):
                first = next(iter(first.values() if isinstance(first, dict) else first), None)
        if isinstance(first, str | bytes | PathLike):
            raise InputError.naming(
                "{} takes batches, not texts or a path; {}.", argument(method), instead
            )
        inputs = x[0] if isinstance(x, tuple) and x else x
        if isinstance(inputs, dict):
            check_ids(inputs, self.config)

    # Labelled data: examples, batches, predictions and metrics.

    @classmethod
    def read(cls, data, *, inferred_arguments=None, schema=None, labelled=True, **columns):
        """The examples of a file or a sequence, in order and streaming.

        Args:
            data: a path, `-` for standard input, or a sequence in place of a file.
            inferred_arguments: the result of `infer_arguments`, which helps to detect the columns;
                None if it is not known yet.
            schema: the `schema` of the data that the task was trained on: columns by their names
                or numbers, which are used where the data have them.
            labelled: whether a file without labels is an error.
            **columns: the settings of SETTINGS with `reads`.

        Returns:
            An iterable of examples, with `name`, `kind`, `description` (one line for the user),
            `schema` and `notes()`. An example's `error(message)` is an InputError that names its
            place.

        Raises:
            InputError: the file cannot be read; at the latest when the bad line is reached.
        """
        raise InputError(
            f"The task {cls.TASK_TYPE} cannot read labelled files. Pass your own batches to `fit`."
        )

    @classmethod
    def infer_arguments(cls, examples):
        """The task's arguments that follow from the training examples, by name.

        Raises InputError if the examples are not enough to train on.
        """
        return {}

    @classmethod
    def summary(cls, train, dev, inferred_arguments):
        """One line for the user about the training and dev examples."""
        return f"{len(train):,} training examples and {len(dev):,} dev examples."

    @classmethod
    def notes(cls, examples: Sequence[Any]) -> list[str]:
        """Warnings for the user about the labelled examples of a file; those of their source."""
        return examples[0].source.notes()

    @classmethod
    def labels_with(cls, inferred_arguments, **settings):
        """The labels of a task with these arguments; empty for a task without labels."""
        return tuple(inferred_arguments.get("labels", ()))

    @property
    def inferred_arguments(self):
        """The arguments of this task that `infer_arguments` gives."""
        return {"labels": list(self.labels)} if self.MIN_LABELS else {}

    def features(self, examples, *, max_length=None, labelled=False):
        """`TokenizedExamples`: one or several sequences per example.

        Args:
            examples: a list of examples.
            max_length: tokens per sequence; None is the task's own.
            labelled: whether to add the labels of training.

        Raises:
            InputError: an example cannot be used; the message names it.
        """
        raise NotImplementedError

    def framing(self, max_length=None):
        """The arguments of `TokenizedExamples` on how texts become sequences of this task."""
        return {
            "tokenizer": self.tokenizer,
            "input_names": self.encoder.input_names,
            "max_length": max_length or self.max_length,
        }

    def context_size(self, *, max_length=None):
        """How many examples on either side may share a sequence with an example."""
        return 0

    def decode(self, outputs, sequences):
        """The predictions: one JSON-like dictionary per example of `sequences.examples`.

        Args:
            outputs: float32 by the output's name, in the order of the sequences: an array, or for
                an output with another axis of variable size a list of arrays, one per sequence,
                padded as in its batch.
            sequences: the result of `features`.
        """
        raise NotImplementedError

    def tune_threshold(self, outputs, sequences):
        """Sets the settings that are `tuned`, such as a threshold; arguments as in `decode`.

        Called on the dev data at each evaluation that uses `official_metrics`, and with the
        outputs of the model that is kept.
        """

    def official_metrics(self, predictions, examples):
        """The official metrics over all predictions, as JSON values.

        Raises InputError, which names the example, if one cannot be evaluated.
        """
        raise NotImplementedError

    def labels_of(self, example):
        """The labels, or tags, of an example."""
        return ()

    def unknown_labels(self, examples):
        """A `Counter` of the labels of examples that this task does not have: its errors.

        Raises InputError if it has none of them: the examples are those of another task.
        """
        counts = Counter(label for example in examples for label in self.labels_of(example))
        unknown = Counter({x: count for x, count in counts.items() if x not in self.labels})
        if counts and len(unknown) == len(counts):
            first = next(example for example in examples if self.labels_of(example))
            raise first.error(unknown_label(self.labels_of(first)[0], self.labels))
        return unknown

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

    def dataset(
        self,
        data: Any,
        *,
        batch_size: int = 32,
        max_length: int | None = None,
        seed: int = 0,
        epochs: int = 1,
        **columns: Any,
    ) -> Any:
        """The shuffled training batches of labelled data, for `fit`.

        Args:
            data: a labelled file, or a sequence in place of one.
            batch_size: examples per batch; some batches have one less, to be of even size.
            max_length: tokens per sequence; None is the task's own.
            seed: the order of the examples depends on it and on the epoch alone.
            epochs: number of passes over the data.
            **columns: see `read`. A label that the task does not have is an error, unless
                `unknown_labels` is "count": then it has a weight of 0.

        Raises InputError: the data cannot be read, or the task cannot read files.
        """
        from keras_bert.inputs.framing import check_max_length

        if self.SETTINGS is None:
            raise InputError(
                f"{type(self).__name__} cannot read labelled files. Pass `fit` batches of "
                f"{', '.join(self.input)} with labels for {', '.join(self.output)}."
            )
        if max_length is not None:
            check_max_length(max_length, self.config, self.tokenizer)
        if "unknown_labels" in self.SETTINGS.names():
            columns = {"unknown_labels": ERROR, **columns}
        inferred = self.inferred_arguments
        source = self.read(data, inferred_arguments=inferred, schema=self.columns, **columns)
        report_source(source, None)
        examples = list(source)
        report_notes(source, None)
        sequences = self.features(examples, max_length=max_length, labelled=True)
        batches = sequences.shuffled(batch_size=batch_size, seed=seed, epochs=epochs)
        batches.keras_bert_info = DatasetInfo(sequences, steps=len(batches) / epochs)
        return batches

    def check_export(self):
        """Raises InputError if a SavedModel of the task would predict something else than it."""

    def signatures(self, *, max_length=None):
        """The entry points of the exported model, `Signature` by name; the first is the default.

        `max_length` is in tokens per sequence; None is the task's own.
        """
        raise InputError(f"The task {self.TASK_TYPE} cannot be exported.")

    def save(self, filepath: str | PathLike[str], overwrite: bool = True, **options: Any) -> None:
        """Writes a model folder, or a Keras file if the name ends in .keras or .h5.

        Every command reads a model folder (config.json, model.safetensors and the tokenizer's
        files, such as vocab.txt). A Keras file has no tokenizer.
        """
        if str(filepath).endswith((".keras", ".h5")):
            super().save(filepath, overwrite=overwrite, **options)
            return
        from keras_bert.checkpoints import save_folder

        save_folder(self, self.tokenizer, filepath, **options)

    def export(self, filepath: str | PathLike[str], **options: Any) -> Path:
        """Writes a SavedModel that takes strings to the next version folder under `filepath`."""
        from keras_bert.exports.saved_model import export_task

        return export_task(self, filepath, **options)

    @classmethod
    def stored_settings(cls):
        """The fields of SETTINGS that a model folder stores, by name."""
        fields = dataclasses.fields(cls.SETTINGS) if cls.SETTINGS is not None else ()
        return {field.name: field for field in fields if about(field).stored}

    def get_config(self):
        # A functional model's own config is its graph, which our constructors do not take.
        stored = {name: getattr(self, name) for name in self.stored_settings()}
        encoder = keras.saving.serialize_keras_object(self.encoder)
        reader = self.reader
        shared = {} if reader.layers == LAST else {"layers": reader.layers}
        shared |= {} if reader.mix is None else {"layer_mix": reader.mix}
        if reader.static_vectors is not None:
            vectors = keras.saving.serialize_keras_object(reader.static_vectors)
            shared["static_vectors"] = vectors
        dropout = {} if self.dropout is None else {"dropout": self.dropout.rate}
        return {
            "encoder": encoder,
            "name": self.name,
            **shared,
            **self.inferred_arguments,
            **stored,
            **dropout,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        for name in ("encoder", "static_vectors"):
            if name in config:
                config[name] = keras.saving.deserialize_keras_object(
                    config[name], custom_objects=custom_objects
                )
        return cls(**config)


def _symbolic(shapes):
    """int32 tensors by name, from their shapes without the batch."""
    return {name: keras.Input(shape, dtype="int32", name=name) for name, shape in shapes.items()}


def _static_vectors(encoder, *, beside, dtype):
    """A copy of an encoder of a single layer, with a name and dtype of its own.

    `beside` is the config of the encoder whose vectors they are concatenated with.
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


class DatasetInfo(NamedTuple):
    """What `Task.dataset` attaches to its dataset."""

    sequences: Any  # `TokenizedExamples`
    steps: float  # per epoch

    @property
    def tokens_per_step(self):
        return int(self.sequences.lengths.sum()) / max(1, self.steps)


def dataset_info(dataset):
    """The `DatasetInfo` of a dataset that `Task.dataset` made, else None."""
    return getattr(dataset, "keras_bert_info", None)
