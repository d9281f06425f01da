"""Texts, tables and files in the place of Keras's arrays, with labels and weights, for a task."""

import numbers
from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import quoted
from keras_bert.heads.reader import ReadingModel
from keras_bert.readers import ERROR
from keras_bert.readers.columns import ColumnsUnclear
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.labels import label_or_none, named_labels, unknown_label
from keras_bert.readers.sources import is_file, plain, rows_in_memory


def is_raw(x, input_names):
    """Whether `x` are texts, a table or a file, and not batches of a task's inputs.

    Arrays of other types are neither: Keras says what is wrong with them.
    """
    if isinstance(x, str | bytes | PathLike) or hasattr(x, "itertuples"):
        return True
    if isinstance(x, Mapping):
        return bool(x) and {*input_names}.isdisjoint(x)
    if hasattr(x, "column_names"):  # of `datasets`
        return {*input_names}.isdisjoint(x.column_names)
    if hasattr(x, "element_spec"):
        spec = x.element_spec
        first = spec[0] if isinstance(spec, tuple) and spec else spec
        return not (isinstance(first, Mapping) and not {*input_names}.isdisjoint(first))
    if isinstance(x, list | tuple):
        first = x[0] if len(x) else None
        is_batch = isinstance(first, Mapping) and not {*input_names}.isdisjoint(first)
        return isinstance(first, str | bytes | PathLike | Mapping | list | tuple) and not is_batch
    dtype = getattr(x, "dtype", None)
    return getattr(dtype, "kind", None) in ("U", "S", "O") or "str" in str(dtype)


def check_in_memory(x, **beside):
    """Raises InputError for a file `x` with any of the arguments that have a value per row."""
    for name, value in beside.items():
        if value is not None and is_file(x):
            raise InputError.naming(
                "{} is for texts and tables in memory, and {x} is a file, which has its own "
                "labels. Read it first, such as with pandas.",
                argument(name),
            )


def rows_with_labels(x, y):
    """-> (the columns' names or None of a sequence, its rows or items, a label for each).

    Raises InputError if `y` has another length than `x`.
    """
    names, rows, _ = rows_in_memory(x)
    labels = plain(y)
    labels = labels if isinstance(labels, list) else [plain(label) for label in y]
    if len(labels) != len(rows):
        raise InputError.naming(
            "{x} and {y} must have the same length. Received: {} and {}.", len(rows), len(labels)
        )
    return names, rows, labels


def new_name(name, names):
    """The name of a column that a table does not have yet."""
    while name in names:
        name = f"{name}_"
    return name


def weights_of_rows(x, sample_weight):
    """float32 (N,): the weight of each row of `x`; InputError if they are not N weights from 0."""
    count = len(rows_in_memory(x)[1])
    try:
        weights = np.asarray(sample_weight, np.float32)
    except (TypeError, ValueError):
        weights = np.full(1, np.nan)
    if weights.shape != (count,) or not np.isfinite(weights).all() or weights.min(initial=0) < 0:
        raise InputError.naming(
            "{sample_weight} must be one number from 0 for each of the {} rows of {x}. "
            "Received: an array of shape {}.",
            count,
            weights.shape,
        )
    return weights


def weights_of_examples(weights, examples):
    """float32 (E,): the weights of the rows of examples in memory; a row may be left out."""
    return weights[[example.line - 1 for example in examples]]


def weights_of_classes(class_weight, labels):
    """float32 (C,): the weight of each label; those that `class_weight` leaves out have 1.

    Args:
        class_weight: {a label as in the data: its weight}. A whole number may also be the index of
            a label, as in Keras, if the model has no label of that name.
        labels: those of the model.

    Raises InputError for an unknown label, for a weight that is not a number from 0, and for whole
    numbers that are the name of one label and the index of another.
    """
    if not isinstance(class_weight, Mapping):
        raise InputError.naming(
            "{class_weight} must be a dictionary of labels and their weights. Received: {!r}.",
            class_weight,
        )
    weights = np.ones(len(labels), np.float32)
    for key, weight in class_weight.items():
        number = _number_of_class(plain(key), labels)
        is_number = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
        if not (is_number and 0 <= weight < np.inf):
            raise InputError.naming(
                "The weight of {!r} in {class_weight} must be a number from 0. Received: {!r}.",
                key,
                weight,
            )
        weights[number] = weight
    return weights


def _number_of_class(key, labels):
    name = key if isinstance(key, str) and key in labels else label_or_none(key)
    name = name if name is None else named_labels([name], labels)[name]
    by_name = labels.index(name) if name in labels else None
    if isinstance(key, str) or isinstance(key, bool) or not isinstance(key, int):
        by_index = None
    else:
        by_index = key if 0 <= key < len(labels) else None
    if None not in (by_name, by_index) and by_name != by_index:
        raise InputError.naming(
            "{} in {class_weight} is the label {} and also the index of the label {}. Name the "
            "labels as strings, such as {!r}.",
            key,
            quoted([labels[by_name]]),
            quoted([labels[by_index]]),
            labels[by_name],
        )
    number = by_index if by_name is None else by_name
    if number is None:
        raise InputError.naming(
            "Unknown label {!r} in {class_weight}. The labels are {}.", key, quoted(labels)
        )
    return number


def split_point(count, validation_split):
    """How many of `count` examples are before the part for validation, which is the last one.

    Raises InputError if a part would have no example.
    """
    is_fraction = isinstance(validation_split, numbers.Real) and 0 < validation_split < 1
    first = int(count * (1 - validation_split)) if is_fraction else 0
    if not 0 < first < count:
        raise InputError.naming(
            "{validation_split} must be a fraction between 0 and 1 that leaves examples in both "
            "parts. Received: {} of {} examples.",
            validation_split,
            count,
        )
    return first


class LabelledModel(ReadingModel):
    """The part of a `Task` on labelled data and how it reads them; `Task` describes the rest."""

    @classmethod
    def read(
        cls,
        data: Any,
        *,
        inferred_arguments: dict[str, Any] | None = None,
        schema: dict[str, Any] | None = None,
        labelled: bool = True,
        **columns: Any,
    ) -> Any:
        """The examples of a file or a sequence, in order and streaming.

        Args:
            data: a path, `-` for standard input, or a sequence in place of a file.
            inferred_arguments: the result of `infer_arguments`, which helps to detect the columns;
                None if it is not known yet.
            schema: the `schema` of the data that the task was trained on: columns by their names
                or numbers, which are used if the data have them.
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
    def infer_arguments(cls, examples: Sequence[Any]) -> dict[str, Any]:
        """The task's arguments that follow from the training examples, by name.

        Raises InputError if the examples are not enough to train on.
        """
        return {}

    @classmethod
    def describe_examples(
        cls, train: Sequence[Any], dev: Sequence[Any], inferred_arguments: dict[str, Any]
    ) -> str:
        """One line for the user about the training and dev examples."""
        return f"{len(train):,} training examples and {len(dev):,} dev examples."

    @classmethod
    def notes(cls, examples: Sequence[Any]) -> list[str]:
        """Warnings for the user about the labelled examples of a file; those of their source."""
        return examples[0].source.notes()

    @classmethod
    def labels_with(cls, inferred_arguments: dict[str, Any], **settings: Any) -> tuple[str, ...]:
        """The labels of a task with these arguments; empty for a task without labels."""
        return tuple(inferred_arguments.get("labels", ()))

    @property
    def inferred_arguments(self) -> dict[str, Any]:
        """The arguments of this task that `infer_arguments` gives."""
        return {"labels": list(self.labels)} if self.MIN_LABELS else {}

    def labels_of(self, example: Any) -> Sequence[str]:
        """The labels, or tags, of an example."""
        return ()

    def unknown_labels(self, examples: Sequence[Any]) -> Counter[str]:
        """A `Counter` of the labels of examples that this task does not have: its errors.

        Raises InputError if it has none of them: the examples are those of another task.
        """
        counts = Counter(label for example in examples for label in self.labels_of(example))
        unknown = Counter({x: count for x, count in counts.items() if x not in self.labels})
        if counts and len(unknown) == len(counts):
            first = next(example for example in examples if self.labels_of(example))
            raise first.error(unknown_label(self.labels_of(first)[0], self.labels))
        return unknown

    @classmethod
    def with_labels(cls, x: Any, y: Any) -> tuple[Any, dict[str, Any]]:
        """Texts or a table with the labels of its rows, and arguments of `read` to find them by.

        Raises InputError if the labels of this task are not one value per row.
        """
        raise InputError.naming(
            "{y} is for tasks with one label, score or list of tags per row. Pass {} a table or a "
            "file that has the labels.",
            cls.__name__,
        )

    def check_class_weight(self) -> None:
        """Raises InputError unless the labels of training are numbers of `labels`."""
        raise InputError.naming(
            "{class_weight} is for tasks with one label per text or word. Leave it out of {}.",
            type(self).__name__,
        )

    def check_sample_weight(self) -> None:
        """Raises InputError if the loss takes no weights of examples."""

    def _unlabelled(self, data):
        """`TokenizedExamples` of all rows of texts, a table or a file."""
        columns = {"missing": ERROR} if "missing" in self.SETTINGS.names() else {}
        return self._sequences(
            self._examples_of_keras(data, labelled=False, **columns)[0], labelled=False
        )

    def _examples_of_keras(self, *given, **options):
        """`_examples` for Keras's methods, which have no arguments that name columns."""
        try:
            return self._examples(*given, **options)
        except ColumnsUnclear as error:
            raise InputError(
                f"{error} They are arguments of `dataset`, whose batches Keras's methods take; or "
                "pass the texts alone, and their labels as y."
            ) from error

    def _examples(self, x, y=None, sample_weight=None, *, labelled=True, **columns):
        """-> (the list of examples, float32 (E,) their weights or None)."""
        if not self.reads_files():
            raise InputError(
                f"{type(self).__name__} cannot read labelled files. Pass `fit` batches of "
                f"{', '.join(self.input)} with labels for {', '.join(self.output)}."
            )
        if self.tokenizer is None:
            raise InputError.naming(
                "{} has no tokenizer, so it takes batches of token ids. Make it with {tokenizer}.",
                type(self).__name__,
            )
        check_in_memory(x, y=y, sample_weight=sample_weight)
        weights = None if sample_weight is None else weights_of_rows(x, sample_weight)
        if y is not None:
            x, label_columns = self.with_labels(x, y)
            columns = {**label_columns, **columns}
        if "unknown_labels" in self.SETTINGS.names() and labelled:
            columns = {"unknown_labels": ERROR, **columns}
        source = self.read(
            x,
            inferred_arguments=self.inferred_arguments,
            schema=self.columns,
            labelled=labelled,
            **columns,
        )
        report_source(source, None)
        examples = list(source)
        report_notes(source, None)
        if not examples:
            raise InputError(f"{source.name} has no examples.")
        return examples, None if weights is None else weights_of_examples(weights, examples)

    def _sequences(
        self, examples, weights=None, *, class_weight=None, labelled=True, max_length=None
    ):
        """The `features` of examples, with weights of the examples and of the labels."""
        sequences = self.features(examples, max_length=max_length, labelled=labelled)
        if class_weight is not None:
            self.check_class_weight()
            class_weight = weights_of_classes(class_weight, self.labels)
        if weights is not None:
            self.check_sample_weight()
        sequences.weight_by(example_factors=weights, class_factors=class_weight)
        return sequences
