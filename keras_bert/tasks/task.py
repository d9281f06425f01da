"""The contract of a task: an encoder, a head, and what runs, commands and exports ask of them.

Training, inference, export and the command line are each written once over this class, so that none
of them names a kind of task. docs/decisions.md tells what a new kind has to define.
"""

import dataclasses
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import keras

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import html_table, listed
from keras_bert.base.settings import about
from keras_bert.encoders.config import EncoderConfig
from keras_bert.encoders.encoder import Encoder, check_ids
from keras_bert.heads.bilstm import BiLstm
from keras_bert.heads.layer_mix import ScalarMix
from keras_bert.tasks.global_mean import global_means, means_over


def reject_examples(method, x, instead):
    """Raises `InputError` where `x` is a path, a list of examples, or a pair of one and its labels.

    Keras would print all of them. `method` and `instead` say what was called, and what to call.
    """
    if isinstance(x, list | tuple) and len(x):
        x = x[0]
        if isinstance(x, list | tuple | dict):
            x = next(iter(x.values() if isinstance(x, dict) else x), None)
    if isinstance(x, str | bytes | PathLike):
        raise InputError(f"`{method}` takes batches of rows, not texts or a path; {instead}.")


class Task(keras.Model):
    """A functional Keras model of an encoder and a head, with dictionaries in and out.

    A subclass takes its encoder, makes its layers, then calls `super().__init__`, which connects
    them, then is an ordinary `keras.Model` that `fit`, `evaluate` and `predict` work on. (The order
    of a model's weights is that in which it gets its layers: the encoder first.)

        class Classifier(Task):
            KIND = "classifier"
            ENCODER_OUTPUTS = ("first_output",)
            HEADS = ("classifier",)
            LEAST_LABELS = 2

            def __init__(self, encoder, tokenizer=None, *, labels, name="classifier"):
                self.read_from(encoder)
                self.labels = tuple(labels)
                self.classifier = keras.layers.Dense(len(labels), name="classifier")
                super().__init__(tokenizer, name=name)

            def build_head(self, encoded, inputs):
                return {"logits": self.classifier(encoded["first_output"])}  # (B, C)

    Between encoder and head every kind may have a learned mix of the encoder's layers
    (`layer_mix`) and a BiLSTM over the tokens (`bilstm`), which belong to the head.

    `read_from` takes `layer_mix` (None, or the arguments `layer_norm_eps` and `l2` of a
    `ScalarMix`) and `bilstm` (None, or the units of a `BiLstm`).

    Args:
        tokenizer: the `Tokenizer` of the encoder's vocabulary, or None: then the task takes token
            ids only.

    Attributes: `encoder`, `tokenizer`, `config` (the encoder's), `scalar_mix` and `bilstm_layer`
    (or None), `transform` (the encoder's `head_transform` where the head reads it, or None).

    Class attributes:
        KIND: its name in `keras_bert.tasks.KINDS`, which a model folder stores.
        ENCODER_OUTPUTS: the outputs of the encoder that the head reads, by name.
        HEAD_READS: the encoder's inputs that the head reads as well, by name.
        REQUIRES: what the encoder must be able to do (see `Encoder.LIMITS`).
        HEADS: the attributes that hold the head's layers, whose weights a folder keeps. What the
            class of `transformers` has no name for is kept under `keras_bert.` and the layers' own
            names, which must be given (Keras numbers those that it makes up).
        HEAD_SCALES: {attribute of HEADS: attribute with the number, a power of two, that a folder
            has the head's weights multiplied by}.
        LEAST_LABELS: how many `labels` the task is made with at least; 0 where it has none.
        SETTINGS: the `TaskSettings` of a kind that is trained on labelled files, else None.
        METRIC: the figure on the dev data by which a run keeps the best epoch; more is better. It
            is one of `default_metrics`, or else of `official_metrics`.
        SHOWN: {figure: what a person calls it}, shown while the task trains.

        tuned: the stored settings that nobody gave, so that `tune_threshold` sets them.

    ENCODER_OUTPUTS, HEAD_READS, METRIC, SHOWN and `tuned` are set by a constructor, before it calls
    ours, where they depend on its arguments.

    Raises:
        ValueError: `encoder` is not an `Encoder`.
        InputError: the encoder cannot do what the task requires, or the head reads the first token
            of a causal one.
    """

    KIND = None
    ENCODER_OUTPUTS = ("sequence_output",)
    HEAD_READS = ()
    REQUIRES = ()
    HEADS = ()
    HEAD_SCALES = {}
    LEAST_LABELS = 0
    SETTINGS = None
    METRIC = None
    SHOWN = {"loss": "loss"}
    tuned = ()

    def __new__(cls, encoder=None, *more, **options):
        # Here, as each constructor looks into its encoder. (Keras makes a task without anything.)
        by_keras = encoder is None and not (more or options)
        if not by_keras and not isinstance(encoder, Encoder):
            raise ValueError(
                f"`{cls.__name__}` takes an encoder: `encoder, tokenizer = kb.load(folder)` loads "
                "a model folder's, and `kb.load_task(folder)` the whole task that a folder holds. "
                f"Received: encoder={encoder!r}"
            )
        return super().__new__(cls)

    def read_from(self, encoder, *, layer_mix=None, bilstm=None):
        """Takes the encoder, and makes the layers between it and the head."""
        self.encoder = encoder
        self.layer_mix = layer_mix
        self.bilstm = bilstm
        policy = encoder.layer_policy
        if layer_mix is not None:
            encoder.require("layer-mix")
            states = encoder.config.num_hidden_states
            self.scalar_mix = ScalarMix(
                num_layers=states, **layer_mix, dtype=policy, name="scalar_mix"
            )
        if bilstm is not None:
            self.bilstm_layer = BiLstm(units=bilstm, dtype=policy, name="bilstm")

    def __init__(self, tokenizer=None, *, name):
        encoder = self.encoder
        encoder.require(*self.REQUIRES)
        if "first_output" in self.ENCODER_OUTPUTS and encoder.config.is_causal:
            raise InputError(
                f"`{type(self).__name__}` reads [CLS], which in a causal encoder sees no other "
                "token, so that it is the same for every text. Use an encoder that is not causal."
            )
        if self.bilstm_layer is not None:
            self.transform = None  # the BiLSTM takes the encoder's own vectors
        features = self.feature_inputs()
        inputs = {**features, **self.head_inputs()}
        rows = {name: self.to_sequences(x) for name, x in features.items()}
        encoded = encoder(rows, outputs=self.encoder_outputs)
        super().__init__(inputs=inputs, outputs=self.head(encoded, inputs), name=name)
        self.tokenizer = tokenizer

    # As a notebook shows it.

    def __repr__(self):
        if getattr(self, "encoder", None) is None:  # not made yet
            return super().__repr__()
        labels = f"labels {listed(self.labels, most=4)}; " if self.LEAST_LABELS else ""
        return f"{type(self).__name__}({labels}{self.config.described})"

    def _repr_html_(self):
        stored = {name: getattr(self, name) for name in self.stored_settings()}
        rows = [
            ("task", self.KIND),
            *([("labels", listed(self.labels, most=20))] if self.LEAST_LABELS else []),
            ("encoder", self.config.described),
            ("tokenizer", self.tokenizer or "none: token ids only"),
            ("in", ", ".join(self.input)),
            ("out", ", ".join(f"{name} {out.shape}" for name, out in self.output.items())),
            ("parameters", f"{self.count_params():,}"),
            *stored.items(),
        ]
        return html_table(rows, caption=type(self).__name__)

    # The model.

    def feature_inputs(self):
        """The encoder's inputs as symbolic (B, S) int32 tensors by name."""
        return self.encoder.symbolic_inputs()

    @staticmethod
    def head_inputs():
        """The symbolic inputs that the head has beside the encoder's, by name."""
        return {}

    @staticmethod
    def to_sequences(x):
        """A feature of the task's -> the encoder's (R, S); another where an example has rows."""
        return x

    @staticmethod
    def to_examples(x, features):
        """Vectors of the encoder's rows, (R, S, D), -> of the task's `features`, (B, …, S, D)."""
        return x

    layer_mix = bilstm = scalar_mix = bilstm_layer = transform = None

    @property
    def encoder_outputs(self):
        """The outputs that the encoder is asked for: the head's, or what lies between reads."""
        if self.scalar_mix is not None:
            return ("hidden_states",)
        return self.ENCODER_OUTPUTS if self.bilstm_layer is None else ("sequence_output",)

    @property
    def inputs_of_head(self):
        """The names of the task's inputs that the head and what lies below it read."""
        mask = () if self.bilstm_layer is None else ("input_mask",)
        return tuple(dict.fromkeys((*self.HEAD_READS, *mask, *self.head_inputs())))

    def head(self, encoded, inputs):
        """From the `encoder_outputs` and the `inputs_of_head`, both by name, to the outputs."""
        mask = inputs.get("input_mask") if self.bilstm_layer is not None else None
        return self.build_head(self._between(encoded, mask), inputs)

    def encoded(self, inputs, training=None, causal=None):
        """What `build_head` reads of the encoder, for the encoder's inputs by name."""
        outputs = self.encoder_outputs
        found = self.encoder(inputs, outputs=outputs, causal=causal, training=training)
        return self._between(found, inputs["input_mask"])

    def _between(self, encoded, mask):
        if self.scalar_mix is not None:
            hidden = self.scalar_mix(list(encoded["hidden_states"]))  # (B, S, D)
            encoded = {"sequence_output": hidden, "first_output": hidden[:, 0]}
        if self.bilstm_layer is not None:
            hidden = encoded["sequence_output"]
            hidden = self.bilstm_layer(hidden, self.to_sequences(mask))  # (B, S, 2 U)
            encoded = {"sequence_output": hidden, "first_output": hidden[:, 0]}
        return encoded

    @property
    def heads(self):
        """The attributes that hold weights of the head: HEADS, and what every kind may have."""
        shared = ("scalar_mix", "bilstm_layer", "transform")
        held = (name for name in shared if getattr(self, name) is not None)
        return (*dict.fromkeys((*held, *self.HEADS)),)

    def build_head(self, encoded, inputs):
        """The head: the ENCODER_OUTPUTS and the task's inputs -> the outputs.

        All are symbolic, in dictionaries by name. Of the encoder's inputs only those of HEAD_READS
        are there in any case: a frozen encoder's outputs come from a file.
        """
        raise NotImplementedError

    @classmethod
    def reads_first_token(cls, **settings):
        """Whether a task with these settings asks for the first token, whatever the encoder."""
        return False

    def is_standard(self):
        """Whether the settings compute what the class of `transformers` for the kind computes."""
        return self.scalar_mix is None and self.bilstm_layer is None

    @property
    def architecture(self):
        """The class of `transformers` that the folder names.

        It is the one for the kind, or that of the encoder alone where there is none or it would
        compute something else.
        """
        names = self.encoder.tensor_names(self.config)
        return names.class_of(self.KIND) if self.is_standard() else names.base_class

    @classmethod
    def settings_in_config(cls, values):
        """Stored settings that the keys of `transformers` in a `config.json` tell, by name."""
        return {}

    def config_keys(self):
        """What `config.json` says of the head by keys of `transformers`, beside the labels."""
        return {}

    def call(self, inputs, training=None, mask=None):
        # Keras takes the inputs of a dictionary with a name too many by alphabetical order.
        if not isinstance(inputs, dict) or set(inputs) != set(self.input):
            received = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
            raise ValueError(
                f"The inputs must be a dictionary of {', '.join(self.input)}. Received: {received}"
            )
        check_ids(inputs, self.config)
        return super().call(inputs, training=training, mask=mask)

    @property
    def config(self) -> EncoderConfig:
        """The encoder's config."""
        return self.encoder.config

    @property
    def metrics(self):
        """As Keras's, with the norm of the gradients where the optimizer of a run measures it."""
        norm = getattr(getattr(self, "optimizer", None), "gradient_norm", None)
        return [*super().metrics, *([] if norm is None else [norm])]

    @property
    def trainable_variables(self):
        """As Keras's, without a pooler that the head does not read: nothing would train it."""
        return self._without_unread(super().trainable_variables)

    @property
    def trainable_weights(self):
        return self._without_unread(super().trainable_weights)

    @property
    def non_trainable_variables(self):
        trained = {id(variable) for variable in self.trainable_variables}
        return [variable for variable in self.variables if id(variable) not in trained]

    @property
    def non_trainable_weights(self):
        trained = {id(variable) for variable in self.trainable_weights}
        return [variable for variable in self.weights if id(variable) not in trained]

    def _without_unread(self, variables):
        encoder = getattr(self, "encoder", None)
        if encoder is None:
            return variables
        read = [layer for group in encoder.layer_groups for layer in group]
        read += [] if self.transform is None else [self.transform]
        read = {id(variable) for layer in read for variable in layer.variables}
        unread = {id(v) for v in encoder.variables if id(v) not in read}
        return [variable for variable in variables if id(variable) not in unread]

    # Training.

    def default_losses(self) -> dict[str, Any]:
        """Returns the loss of each output, by the output's name."""
        return {}

    def compiled_losses(self):
        """`default_losses` as `compile` takes them.

        Those of a kind that reads files are means over all tokens of an epoch (see `means_over`).
        """
        return global_means(self.default_losses(), of_epochs=self.SETTINGS is not None)

    def default_loss_weights(self):
        """Returns what each loss counts in their sum, by the output's name; None is 1 each."""
        return None

    def default_metrics(self) -> dict[str, Any]:
        """Returns the metrics of each output by the output's name; sample weights apply to them."""
        return {}

    def compile_defaults(
        self,
        optimizer: Any = None,
        *,
        steps: int | None = None,
        learning_rate: float | None = None,
        **options: Any,
    ) -> None:
        """`compile` with the task's own losses and metrics; `options` go to `compile`.

        The optimizer is built for what is trainable now. As after every `compile`, call it again
        where that has changed.

        Args:
            optimizer: None is that of `keras_bert.finetune`: AdamW without decay on biases and
                norms, global clipping, warm-up and linear decay.
            steps: the optimizer steps that are to come, for the decay of that optimizer's rate:
                `len(dataset)` times the epochs of `fit`. None keeps the rate as it is.
            learning_rate: its highest rate; None is 5e-5, or 1e-3 where the encoder is frozen.
        """
        if optimizer is None:
            from keras_bert.training.optimizers.optimizer import finetuning_optimizer

            optimizer = finetuning_optimizer(self, steps=steps, learning_rate=learning_rate)
        elif steps is not None or learning_rate is not None:
            raise ValueError(
                "`steps` and `learning_rate` are those of the optimizer that is made where none "
                f"is given. Received: optimizer={optimizer!r}"
            )
        options = {"loss_weights": self.default_loss_weights(), **options}
        self.compile(
            optimizer=optimizer,
            loss=self.compiled_losses(),
            weighted_metrics=self.default_metrics(),
            **options,
        )
        if not self.optimizer.built:
            # Built in the first step, it would have TensorFlow trace that step a second time.
            self.optimizer.build(self.trainable_variables)
        if len(self.output) > 1:
            # The same holds for the figure that Keras keeps of each output's loss.
            self._compile_loss.build(self.output, self.output)

    def fit(self, x: Any = None, y: Any = None, *more: Any, **options: Any) -> Any:
        """As Keras's, whose progress bar shows more where `x` comes from `dataset`.

        That is tokens/s, and after an epoch the task's own figure (METRIC) on `validation_data`,
        where that comes from `dataset`, too: as `val_FIGURE`, which callbacks may watch.
        """
        for batches in (x, options.get("validation_data")):
            self._check_given("fit", batches, "`task.dataset` makes batches of those")
        from keras_bert.training.monitoring.progress import with_progress

        found = made_of(x)
        totals, steps = (found.rows.weight_totals, found.steps) if found else ({}, None)
        with means_over(self, totals, steps=steps):
            return super().fit(x, y, *more, **with_progress(self, x, options))

    def evaluate(self, x: Any = None, *more: Any, **options: Any) -> Any:
        """As Keras's, of batches: see `keras_bert.evaluate` for examples and files."""
        self._check_given("evaluate", x, "kb.evaluate(model=task, data=…) measures it on those")
        found = made_of(x)
        totals, rows = (found.rows.weight_totals, len(found.rows)) if found else ({}, None)
        with means_over(self, totals, rows=rows):
            return super().evaluate(x, *more, **options)

    def predict(self, x: Any, *more: Any, **options: Any) -> Any:
        """As Keras's, of batches: see `keras_bert.predict` for examples and files."""
        self._check_given("predict", x, "kb.predict(model=task, data=…) answers those")
        return super().predict(x, *more, **options)

    def _check_given(self, method, x, instead):
        """Looks at what a method of Keras's is given, as far as that can be seen before it runs."""
        reject_examples(method, x, instead)
        inputs = x[0] if isinstance(x, tuple) and x else x
        if isinstance(inputs, dict):
            check_ids(inputs, self.config)

    # Labelled files: examples in, batches, answers and figures out.

    @classmethod
    def read(cls, data, *, inferred_arguments=None, like=None, labelled=True, **columns):
        """The examples of a file (or of a sequence), in order and streaming.

        Args:
            data: a path, `-` for standard input, or a sequence in place of a file.
            inferred_arguments: what `infer_arguments` gave, which helps to detect the columns;
                None where it is not known yet.
            like: another file read before; where this one has the same form, so are its columns.
            labelled: whether a file without labels is an error.
            **columns: the settings of SETTINGS that say how a file is `read`.

        Returns:
            An iterable of examples, with `name`, `kind` and `description` (a line for the user).
            An example has `error(message)`, the InputError that names its place.

        Raises:
            InputError: the file cannot be read; at the latest when the bad line is reached.
        """
        raise InputError(
            f"The task {cls.KIND} reads no files; give `fit` batches that are made in another way."
        )

    @classmethod
    def infer_arguments(cls, examples):
        """What the training examples settle of the task: a dictionary of its arguments.

        Raises InputError where the examples are not enough to train on.
        """
        return {}

    @classmethod
    def summary(cls, train, dev, inferred_arguments):
        """A line for the user on the training and dev examples."""
        return f"{len(train):,} training examples and {len(dev):,} dev examples."

    @classmethod
    def notes(cls, examples: Sequence[Any]) -> list[str]:
        """Lines for the user on what is odd among the labelled examples of a file, but no error."""
        return []

    @classmethod
    def labels_with(cls, inferred_arguments, **settings):
        """The labels of a task that is made with these arguments; none where it has none."""
        return tuple(inferred_arguments.get("labels", ()))

    @property
    def inferred_arguments(self):
        """What `infer_arguments` settled for this task."""
        return {"labels": list(self.labels)} if self.LEAST_LABELS else {}

    def features(self, examples, *, max_length=None, labelled=False):
        """`TokenizedExamples`: the rows of some examples, one or several each.

        Args:
            examples: a list of examples.
            max_length: tokens in a row; None is the task's own.
            labelled: with what training compares the outputs with.

        Raises:
            InputError: an example cannot be used; it is named.
        """
        raise NotImplementedError

    def context_size(self, *, max_length=None):
        """How many examples on either side the rows of one may hold tokens of.

        `max_length` is as in `features`.
        """
        return 0

    def decode(self, outputs, rows):
        """The answers: one JSON-like dictionary an example of `rows.examples`.

        Args:
            outputs: float32 by the name of the output, in the order of the rows: an array, or where
                there is an axis of no fixed size beside the rows, a list of arrays, one a row with
                the padding of its batch.
            rows: what `features` gave.
        """
        raise NotImplementedError

    def tune_threshold(self, outputs, rows):
        """Settles what is best set when training is over, such as a threshold.

        Sets the settings that are `tuned`; called at each evaluation by official
        figures, and with what the model that is kept says of the dev rows. As `decode`.
        """

    def official_metrics(self, answers, examples):
        """The official figures over all answers, as JSON can hold them.

        Raises InputError for an example that cannot be measured, which is named.
        """
        raise NotImplementedError

    def errors(self, answers: Sequence[Any], examples: Sequence[Any]) -> list[tuple[float, str]]:
        """The wrong ones among the answers: a list of (how bad it is, text for a person)."""
        return []

    @staticmethod
    def describe_measures(measures: dict[str, Any]) -> str:
        """The main figures of `official_metrics`, as a person reads them."""
        return ", ".join(
            f"{name} {value:.3f}" for name, value in measures.items() if isinstance(value, float)
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
        """The shuffled training batches of labelled data, as `fit` takes them.

        Args:
            data: a labelled file, or a sequence in place of one.
            batch_size: rows of a batch; some have one less, so that all weigh about the same.
            max_length: tokens in a row; None is the task's own.
            seed: the order of the rows depends on it and on the epoch alone.
            epochs: how many passes over the data the dataset holds.
            **columns: see `read`.

        Raises InputError: the data cannot be read, or the task reads no files.
        """
        from keras_bert.inputs.framing import check_max_length

        if self.SETTINGS is None:
            raise InputError(
                f"A {type(self).__name__} reads no files; give `fit` batches of "
                f"{', '.join(self.input)} with labels for {', '.join(self.output)}."
            )
        if max_length is not None:
            check_max_length(max_length, self.config, self.tokenizer)
        examples = list(self.read(data, inferred_arguments=self.inferred_arguments, **columns))
        rows = self.features(examples, max_length=max_length, labelled=True)
        batches = rows.shuffled(batch_size=batch_size, seed=seed, epochs=epochs)
        batches.keras_bert_made_of = MadeOf(rows, steps_an_epoch=len(batches) / epochs)
        return batches

    # Saving and serving.

    def signatures(self, *, max_length=None):
        """The entry points of the exported model, `Signature` by name; the first is the default.

        `max_length`, tokens in a row, is the task's own where it is None.
        """
        raise InputError(f"There is no export of the task {self.KIND} yet.")

    def save(self, filepath: str | PathLike[str], overwrite: bool = True, **options: Any) -> None:
        """Writes the task as a model folder, or as Keras's own file where the name ends so.

        A model folder (config.json, model.safetensors and the tokenizer's files, such as vocab.txt)
        is what every command reads. A name that ends in .keras or .h5 is saved as Keras saves any
        model, without the tokenizer.
        """
        if str(filepath).endswith((".keras", ".h5")):
            super().save(filepath, overwrite=overwrite, **options)
            return
        from keras_bert.checkpoints import save_folder

        save_folder(self, self.tokenizer, filepath, **options)

    def export(self, filepath: str | PathLike[str], **options: Any) -> Path:
        """Writes a SavedModel that takes strings under `filepath`, in its next version folder."""
        from keras_bert.export.saved_model import export_task

        return export_task(self, filepath, **options)

    @classmethod
    def stored_settings(cls):
        """The fields of SETTINGS that a model folder keeps, by name."""
        fields = dataclasses.fields(cls.SETTINGS) if cls.SETTINGS is not None else ()
        return {field.name: field for field in fields if about(field).stored}

    def get_config(self):
        # A functional model's own config is its graph, which cannot be given to our constructors.
        stored = {name: getattr(self, name) for name in self.stored_settings()}
        encoder = keras.saving.serialize_keras_object(self.encoder)
        shared = {} if self.layer_mix is None else {"layer_mix": self.layer_mix}
        return {
            "encoder": encoder,
            "name": self.name,
            **shared,
            **self.inferred_arguments,
            **stored,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        config["encoder"] = keras.saving.deserialize_keras_object(
            config["encoder"], custom_objects=custom_objects
        )
        return cls(**config)


class MadeOf:
    """What `Task.dataset` notes at a dataset: its `rows`, and the tokens of a step on average.

    `steps` are those of an epoch.
    """

    def __init__(self, rows, *, steps_an_epoch):
        self.rows = rows
        self.steps = steps_an_epoch
        self.tokens_a_step = int(rows.lengths.sum()) / max(1, steps_an_epoch)


def made_of(dataset):
    """What `Task.dataset` noted at its dataset; None of any other."""
    return getattr(dataset, "keras_bert_made_of", None)
