"""How a task is compiled, trained and evaluated with Keras, also on labelled data."""

import inspect
import itertools
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_bert.base.errors import InputError, warn_user
from keras_bert.encoders.config import check_max_length
from keras_bert.encoders.encoder import check_ids
from keras_bert.layers.kernels.fused_attention import reads_lengths
from keras_bert.programs import evaluation_steps, training_steps
from keras_bert.tasks.compiling import BATCH_SIZE, CompiledModel, batches_per_epoch
from keras_bert.tasks.findings import example_findings, result_and_loss_findings
from keras_bert.tasks.fit_progress import with_progress
from keras_bert.tasks.losses import means_over
from keras_bert.tasks.raw_data import is_raw, split_point

NO_CHOICE = -10000.0  # the logit of a missing choice, whose probability is then 0
_SIGNATURES = {
    name: inspect.signature(getattr(keras.Model, name)) for name in ("fit", "evaluate", "predict")
}


_OWN_STEPS = {"train_function": training_steps, "test_function": evaluation_steps}


class DatasetInfo(NamedTuple):
    """The attribute `keras_bert_info` of the datasets that `FittingModel.dataset` returns."""

    sequences: Any  # `TokenizedExamples`
    batch_size: int
    steps: float  # per epoch

    @property
    def tokens_per_step(self) -> float:
        return int(self.sequences.lengths.sum()) / max(1, self.steps)

    def in_order(self, *, pad_to_longest: bool = False) -> Any:
        """The dataset of the same examples in their own order, each once."""
        batches = self.sequences.in_order(batch_size=self.batch_size, pad_to_longest=pad_to_longest)
        batches.keras_bert_info = self
        return batches


def dataset_info(dataset: Any) -> DatasetInfo | None:
    """The `DatasetInfo` of a dataset that `dataset` made, else None."""
    return getattr(dataset, "keras_bert_info", None)


class CheckingModel(CompiledModel):
    """A model that raises an error for ids that its encoder does not have (see `check_ids`).

    Arrays are checked as a whole. Of datasets and generators, the lookup on a CPU raises an error
    for an id that is too large. A lookup on a GPU does not, and attention reads the lengths of rows
    there, so that the first batch is checked.
    """

    def check_batches(self, x: Any) -> None:
        """Raises InputError for arrays, (inputs, …) or inputs, that `check_ids` rejects."""
        inputs = x[0] if isinstance(x, tuple) and x else x
        if isinstance(inputs, dict):
            check_ids(inputs, self.config)

    def make_train_function(self, force: bool = False) -> None:
        self._make_checked("train_function", force)

    def make_test_function(self, force: bool = False) -> None:
        self._make_checked("test_function", force)

    def make_predict_function(self, force: bool = False) -> None:
        self._make_checked("predict_function", force)

    def _make_checked(self, name, force):
        """Makes a function of Keras's, or ours for the backend, with the first batch checked."""
        is_new = force or getattr(self, name) is None
        ours = _OWN_STEPS[name](self) if is_new and name in _OWN_STEPS else None
        if ours is None:
            getattr(super(), f"make_{name}")(force)
        else:
            setattr(self, name, ours)
        if is_new and reads_lengths():
            setattr(self, name, _FirstBatchChecked(getattr(self, name), self.check_batches))


class _FirstBatchChecked:
    """A function of (state, iterator), as Keras makes it on JAX, which checks its first batch."""

    def __init__(self, function, check):
        self._function = function
        self._check = check
        self._has_checked = False

    def __call__(self, state, iterator):
        if not self._has_checked:
            batch = next(iterator)
            self._check(keras.tree.map_structure(np.asarray, batch))  # it may be on the device
            self._has_checked, iterator = True, itertools.chain([batch], iterator)
        return self._function(state, iterator)


class FittingModel(CheckingModel):
    """The methods of Keras that a `Task` extends, and `dataset`, which makes their batches."""

    def fit(self, x: Any = None, y: Any = None, *more: Any, **options: Any) -> Any:
        """Keras's `fit`, also on texts, tables and files, and without a `compile` before it.

        A task that the user has not compiled learns anew in each `fit`: its optimizer, warm-up and
        linear decay are planned for these batches and epochs (see `compile_defaults`). With an
        `initial_epoch` they go on.

        `x` may be texts, a table with the labels or without them, or a file, which `dataset` makes
        batches of, in a new order in each epoch. `y` are the labels of each row, if `x` has none;
        keys of `class_weight` are labels. `validation_data` is a dataset, texts and labels (x, y),
        a table or a file; `validation_split` takes the last part of the examples.

        The history has the task's `official_metrics` of the validation data as `val_…`, which
        callbacks may monitor, if `dataset` or this method made its batches. The progress bar shows
        tokens/s then. Of such batches it warns (`InputWarning`) of what `keras_bert.finetune` warns
        of: validation texts that are also in the training data, repeated texts with different
        labels, labels that are never predicted, and a loss that did not fall.
        """
        given = _by_name("fit", self, x, y, *more, **options)
        given = self._batches_to_fit(given)
        x, options = given.pop("x"), given
        for batches in (x, options.get("validation_data")):
            self.check_batches(batches)
        info = dataset_info(x)
        totals, steps = (info.sequences.weight_totals, info.steps) if info else ({}, None)
        if hasattr(x, "element_spec"):
            options.setdefault("shuffle", False)  # which Keras warns of, and does not do
        self.compile_to_fit(
            batches=batches_per_epoch(x, options),
            epochs=options.get("epochs", 1),
            initial_epoch=options.get("initial_epoch", 0),
        )
        with means_over(self, totals, steps=steps):
            dev = dataset_info(options.get("validation_data"))
            options, progress = with_progress(self, options, train=info, dev=dev)
            history = super().fit(x, **options)
        self.encoder.is_pretrained = True
        if info is not None and self.reads_files():
            losses = enumerate(history.history.get("loss", ()), start=1)
            records = [{"step": epoch, "train": {"loss": loss}} for epoch, loss in losses]
            metrics = progress and progress.official_metrics
            lines = (
                *example_findings(info.sequences.examples, dev and dev.sequences.examples),
                *result_and_loss_findings(self, metrics, records, steps_per_epoch=1),
            )
            for line in lines:
                warn_user(line)
        return history

    def evaluate(self, x: Any = None, y: Any = None, *more: Any, **options: Any) -> Any:
        """Evaluates as Keras does, also on texts, tables and files (see `fit`).

        `keras_bert.evaluate` returns the official metrics of the task instead.
        """
        given = _by_name("evaluate", self, x, y, *more, **options)
        x, y = given.pop("x"), given.pop("y", None)
        if is_raw(x, self.input):
            weights = given.pop("sample_weight", None)
            x = self._in_order(x, y, weights, batch_size=given.pop("batch_size", None))
        else:
            given |= {} if y is None else {"y": y}
            x = x if dataset_info(x) is None else dataset_info(x).in_order()  # type: ignore[union-attr]
        self.check_batches(x)
        self.compile_to_evaluate()
        info = dataset_info(x)
        totals, count = (info.sequences.weight_totals, len(info.sequences)) if info else ({}, None)
        with means_over(self, totals, examples=count):
            return super().evaluate(x, **given)

    def predict(self, x: Any, *more: Any, **options: Any) -> Any:
        """Predicts as Keras does, also on texts, tables and files: arrays by the output's name.

        Their rows are those of the data, in its order; of a task that splits a long example into
        several sequences, one per sequence. An example without a text is an error. Sequences are
        padded to the longest one if an output has an axis of tokens, and examples to the most
        choices or words; the logit of a choice that an example does not have is below all others.

        `keras_bert.predict` returns labels, tags or answers instead.
        """
        given = _by_name("predict", self, x, *more, **options)
        x = given.pop("x")
        info = dataset_info(x)
        if is_raw(x, self.input):
            batch_size = given.pop("batch_size", None) or BATCH_SIZE
            info = DatasetInfo(self._unlabelled(x), batch_size, steps=0)
        if info is not None:
            has_tokens = any(None in output.shape[1:] for output in self.output.values())
            x = info.in_order(pad_to_longest=has_tokens)
        self.check_batches(x)
        outputs = super().predict(x, **given)
        if info is None:
            return outputs
        return {name: _dense(output) for name, output in outputs.items()}

    def __call__(self, x: Any, *more: Any, **options: Any) -> Any:
        """Predicts as Keras does, also on texts and tables, which become one batch."""
        if is_raw(x, self.input or ()):
            sequences = self._unlabelled(x)
            numbers = np.arange(len(sequences), dtype=np.int32)
            inputs = sequences.inputs(*sequences.take(numbers))
            x = {name: np.asarray(inputs[name]) for name in self.input}
        return super().__call__(x, *more, **options)

    def _batches_to_fit(self, given):
        """The arguments of `fit` by name, with batches in the place of texts, tables and files."""
        dev = given.get("validation_data")
        dev_size = given.get("validation_batch_size") or given.get("batch_size")
        if is_raw(given["x"], self.input):
            given = self._raw_to_fit(given, dev_size=dev_size)
        elif dataset_info(given["x"]) is not None and given.get("class_weight") is not None:
            raise InputError.naming(
                "{class_weight} cannot be given with a dataset. Pass it to `task.dataset`, or pass "
                "`fit` the texts and labels."
            )
        is_pair = isinstance(dev, tuple) and len(dev) in (2, 3) and not isinstance(dev[0], str)
        if is_pair and is_raw(dev[0], self.input):
            dev = self._in_order(*dev, batch_size=dev_size)
        elif is_raw(dev, self.input):
            dev = self._in_order(dev, batch_size=dev_size)
        elif dataset_info(dev) is not None:
            dev = dataset_info(dev).in_order()
        else:
            return given
        given.pop("validation_batch_size", None)
        return {**given, "validation_data": dev}

    def _raw_to_fit(self, given, *, dev_size):
        x, y = given.pop("x"), given.pop("y", None)
        batch_size = given.pop("batch_size", None) or BATCH_SIZE
        split = given.pop("validation_split", 0.0)
        examples, weights = self._examples_of_keras(x, y, given.pop("sample_weight", None))
        if split and given.get("validation_data") is None:
            first = split_point(len(examples), split)
            dev = examples[first:], None if weights is None else weights[first:]
            examples, weights = examples[:first], None if weights is None else weights[:first]
            given["validation_data"] = self._info(*dev, batch_size=dev_size).in_order()
            given.pop("validation_batch_size", None)
        class_weight = given.pop("class_weight", None)
        sequences = self._sequences(examples, weights, class_weight=class_weight)
        steps = -(-len(sequences) // batch_size)
        epochs, first_epoch = given.get("epochs", 1), given.get("initial_epoch", 0)
        per_epoch = given.get("steps_per_epoch") or steps
        if given.pop("shuffle", True):
            # As for Keras's own layers, `keras.utils.set_random_seed` decides.
            seed = int(keras.random.randint((), 0, 2**31 - 1))
            last = first_epoch + -(-per_epoch * (epochs - first_epoch) // steps)
            batches = sequences.training_batches(
                steps=steps, seed=seed, epochs=last, first_step=first_epoch * steps
            )
        else:
            batches = sequences.in_order(batch_size=batch_size)
            batches = batches.repeat(-(-per_epoch * epochs // steps))
        batches.keras_bert_info = DatasetInfo(sequences, batch_size, steps=per_epoch)
        return {**given, "x": batches, "steps_per_epoch": per_epoch}

    def _info(self, examples, weights, *, batch_size):
        """The `DatasetInfo` of labelled examples and their weights."""
        sequences, batch_size = self._sequences(examples, weights), batch_size or BATCH_SIZE
        return DatasetInfo(sequences, batch_size, steps=-(-len(sequences) // batch_size))

    def _in_order(self, x, y=None, sample_weight=None, *, batch_size=None):
        """The labelled batches of texts, a table or a file, in order."""
        return self._info(
            *self._examples_of_keras(x, y, sample_weight), batch_size=batch_size
        ).in_order()

    def dataset(
        self,
        data: Any,
        y: Any = None,
        *,
        batch_size: int = BATCH_SIZE,
        max_length: int | None = None,
        seed: int = 0,
        epochs: int | None = 1,
        shuffle: bool = True,
        sample_weight: Any = None,
        class_weight: dict[Any, float] | None = None,
        **columns: Any,
    ) -> Any:
        """The batches of labelled data, for `fit`, `evaluate` and `predict`.

        They are shuffled for training, with texts of similar length in a batch. `evaluate`,
        `predict` and `validation_data` read the examples of a shuffled dataset in order, too.

        Args:
            data: a labelled file, a table in memory, or a sequence in place of one.
            y: the labels of each row, if `data` are texts or a table without labels.
            batch_size: examples per batch; some batches have one less, to be of even size.
            max_length: tokens per sequence; None is the task's own.
            seed: the order of the examples depends on it and on the epoch alone.
            epochs: number of passes over the data; None is as many as `keras_bert.finetune` makes
                by default.
            shuffle: False gives the examples in the order of the data.
            sample_weight: the weight of each row in the loss.
            class_weight: the weight of each label in the loss, by the label.
            **columns: see `read`. A label that the task does not have is an error, unless
                `unknown_labels` is "count": then it has a weight of 0.

        Raises InputError: the data cannot be read, or the task cannot read files.
        """
        if max_length is not None:
            check_max_length(max_length, self.config, self.tokenizer)
        examples, weights = self._examples(data, y, sample_weight, **columns)
        sequences = self._sequences(
            examples, weights, class_weight=class_weight, max_length=max_length
        )
        if epochs is None:
            defaults = self.training_defaults
            epochs = defaults.epochs(examples=len(examples), batch_size=batch_size)
        if shuffle:
            batches = sequences.shuffled(batch_size=batch_size, seed=seed, epochs=epochs)
        else:
            batches = sequences.in_order(batch_size=batch_size).repeat(epochs)
        steps = -(-len(sequences) // batch_size)
        batches.keras_bert_info = DatasetInfo(sequences, batch_size, steps=steps)
        return batches


def _dense(output):
    """An array of what Keras returns for batches of different shapes, a `tf.RaggedTensor`."""
    if hasattr(output, "to_tensor"):
        return output.to_tensor(default_value=NO_CHOICE).numpy()
    return output


def _by_name(method, model, *given, **options):
    """The arguments of a method of Keras, "fit", "evaluate" or "predict", as given, by name."""
    arguments = _SIGNATURES[method].bind(model, *given, **options).arguments
    more = arguments.pop("kwargs", {})
    return {name: value for name, value in arguments.items() if name != "self"} | more
