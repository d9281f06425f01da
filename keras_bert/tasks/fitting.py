"""How a task reads labelled data, and is compiled, trained and evaluated with Keras."""

import time
from collections import Counter
from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

import keras

from keras_bert.base.errors import InputError, argument
from keras_bert.encoders.config import check_max_length
from keras_bert.encoders.encoder import check_ids
from keras_bert.heads.reader import ReadingModel
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.labels import unknown_label
from keras_bert.readers.settings import ERROR
from keras_bert.tasks.global_mean import global_means, means_over
from keras_bert.training.optimizer import default_optimizer


class DatasetInfo(NamedTuple):
    """The attribute `keras_bert_info` of the datasets that `FittingModel.dataset` returns."""

    sequences: Any  # `TokenizedExamples`
    steps: float  # per epoch

    @property
    def tokens_per_step(self) -> float:
        return int(self.sequences.lengths.sum()) / max(1, self.steps)


def dataset_info(dataset: Any) -> DatasetInfo | None:
    """The `DatasetInfo` of a dataset that `dataset` made, else None."""
    return getattr(dataset, "keras_bert_info", None)


class FittingModel(ReadingModel):
    """The methods of Keras that a `Task` extends, and what reads labelled data for them."""

    def default_losses(self) -> dict[str, Any]:
        """Returns the loss of each output, by the output's name."""
        return {}

    def default_loss_weights(self) -> dict[str, float] | None:
        """Returns the weight of each output's loss, by the output's name; None is 1 each."""
        return None

    def default_metrics(self) -> dict[str, Any]:
        """Returns each output's metrics by the output's name; sample weights apply to them."""
        return {}

    def compiled_losses(self) -> dict[str, Any]:
        """`default_losses` for `compile`; see `means_over` for tasks that read files."""
        return global_means(self.default_losses(), of_epochs=self.reads_files())

    def compile(
        self,
        optimizer: Any = "rmsprop",
        *arguments: Any,
        auto_scale_loss: bool = True,
        **options: Any,
    ) -> None:
        """As Keras's; `auto_scale_loss` is about an encoder that computes in float16.

        Its gradients would vanish, so the optimizer becomes a
        `keras.optimizers.LossScaleOptimizer`.
        """
        if auto_scale_loss and self._computes_in_float16():
            optimizer = keras.optimizers.get(optimizer)
            if not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
                optimizer = keras.optimizers.LossScaleOptimizer(optimizer, name="loss_scale")
        super().compile(optimizer, *arguments, auto_scale_loss=auto_scale_loss, **options)

    def _computes_in_float16(self):
        policy = self.encoder.layer_policy
        return keras.dtype_policies.get(policy).compute_dtype == "float16"

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
                and norms, global clipping, warm-up and linear decay. Of static vectors it is that
                of `keras_bert.pretrain`: `Adagrad` with linear decay.
            steps: total optimizer steps, for that optimizer's decay: `len(dataset)` times the
                epochs of `fit`. None keeps the learning rate constant.
            learning_rate: its peak; None is 5e-5, or 1e-3 if the encoder is frozen. Of static
                vectors it is 0.1.
        """
        if optimizer is None:
            optimizer = default_optimizer(self, steps=steps, learning_rate=learning_rate)
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

    @property
    def metrics(self) -> list:
        """As Keras's, with the gradient norm if the optimizer measures it."""
        optimizer = getattr(self, "optimizer", None)
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # of one that scales the loss
        norm = getattr(optimizer, "gradient_norm", None)
        return [*super().metrics, *([] if norm is None else [norm])]

    def fit(self, x: Any = None, y: Any = None, *more: Any, **options: Any) -> Any:
        """As Keras's, with more in the progress bar for an `x` that `dataset` made.

        The bar shows tokens/s and, if `dataset` made `validation_data` too, the task's METRIC after
        each epoch as `val_METRIC`, which callbacks may monitor.
        """
        for batches in (x, options.get("validation_data")):
            self._check_batches("fit", batches, "make batches of them with `task.dataset`")
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
        self._check_batches("evaluate", x, "use `kb.evaluate(model=task, data=…)`")
        info = dataset_info(x)
        totals, count = (info.sequences.weight_totals, len(info.sequences)) if info else ({}, None)
        with means_over(self, totals, examples=count):
            return super().evaluate(x, *more, **options)

    def predict(self, x: Any, *more: Any, **options: Any) -> Any:
        """As Keras's, on batches; `keras_bert.predict` takes examples and files."""
        self._check_batches("predict", x, "use `kb.predict(model=task, data=…)`")
        return super().predict(x, *more, **options)

    def _check_batches(self, method, x, instead):
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

    # Labelled data.

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
        if not self.reads_files():
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


class FitProgress(keras.callbacks.Callback):
    """Adds tokens/s to the logs of every step, and the task's own metric to those of an epoch.

    The task's metric (`Task.METRIC`) is added as `val_METRIC` where Keras does not compute it: it
    takes the task's `decode` and `official_metrics`, and another pass over the dev examples.

    Args:
        task: the `Task`.
        tokens_per_step: tokens in a batch on average; None adds no tokens/s.
        dev_examples: the `TokenizedExamples` that are evaluated on, or None.
    """

    def __init__(self, task, *, tokens_per_step, dev_examples):
        super().__init__()
        self.task = task
        self.tokens_per_step = tokens_per_step
        self._rate = None
        self.dev_examples = dev_examples
        self._inference = None

    def on_epoch_begin(self, epoch, logs=None):
        self._began = None

    def on_train_batch_end(self, batch, logs=None):
        if self.tokens_per_step is None or logs is None:
            return
        if self._began is None:  # the first step compiles, and is left out
            self._began = batch, time.perf_counter()
            return
        first, when = self._began
        steps_per_second = (batch - first) / (time.perf_counter() - when)
        logs["tokens/s"] = self._rate = round(steps_per_second * self.tokens_per_step)

    def on_epoch_end(self, epoch, logs=None):
        if self._rate is not None:
            logs["tokens/s"] = self._rate
        metric = self.task.METRIC
        if self.dev_examples is None or metric is None or f"val_{metric}" in logs:
            return
        from keras_bert.inference.predict import Inference  # needs TensorFlow, which `fit` does not

        if self._inference is None:
            self._inference = Inference(self.task, batch_size=32)
        predictions = self._inference.of_sequences(self.dev_examples)
        metrics = self.task.official_metrics(predictions, self.dev_examples.examples)
        if metric in metrics:
            logs[f"val_{metric}"] = metrics[metric]


def with_progress(task, options, *, train, dev):
    """The options of `fit` with a `FitProgress` among the callbacks, where a bar is shown.

    `train` and `dev` are the `DatasetInfo` of the batches, or None for others.

    A `CallbackList` stays as it is. Keras must not shuffle what `dataset` has shuffled: it would
    not, but warn about it.
    """
    callbacks = options.get("callbacks")
    if train is not None:
        options = {"shuffle": False, **options}
    if options.get("verbose", "auto") == 0 or isinstance(callbacks, keras.callbacks.CallbackList):
        return options
    if train is None and dev is None:
        return options
    progress = FitProgress(
        task,
        tokens_per_step=train and train.tokens_per_step,
        dev_examples=dev and dev.sequences,
    )
    callbacks = [] if callbacks is None else callbacks
    callbacks = list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
    # First, so that early stopping and best weights by the task's own metric find it.
    return {**options, "callbacks": [progress, *callbacks]}
