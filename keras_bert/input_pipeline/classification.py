"""Labelled texts as the batches that a `Classifier` trains on."""

import hashlib
import json
from itertools import islice

import numpy as np
import tensorflow as tf

from keras_bert.errors import InputError
from keras_bert.input_pipeline.features import check_max_length, features
from keras_bert.input_pipeline.given_texts import GivenTexts
from keras_bert.input_pipeline.labelled_files import LabelledTexts
from keras_bert.input_pipeline.length_batches import shuffled_batches, sorted_batches

# Texts that are tokenized at once: the graph's cost a call is spread over them.
_TOKENIZED_TOGETHER = 1000
# Rows are padded to a multiple of this many tokens, so that a compiler meets few shapes.
PAD_TO = 8


class TokenizedTexts:
    """Tokenized texts in memory (4 bytes a token), each with the number of its label.

    Texts are tokenized once, not once an epoch, and a batch is then a gather by row numbers. Which
    rows make which batch is settled before training starts, so that a run can begin at any step.

    Args:
        tokens: ragged int32 (N, None), ids without special tokens.
        labels: int32 (N,).
        label_names: the names of the labels by number.
        vocabulary: the `Vocabulary` of the ids.
        max_length: tokens that a row is cut to, special tokens counted in.

    Attributes: `tokens`, `labels`, `label_names`, and `lengths`, int (N,), each row's tokens with
    its special ones.
    """

    def __init__(self, tokens, labels, *, label_names, vocabulary, max_length):
        self.tokens = tokens
        self.labels = labels
        self.label_names = label_names
        self._vocabulary = vocabulary
        self._max_length = max_length
        self.lengths = np.minimum(tokens.row_lengths().numpy() + 2, max_length)

    @classmethod
    def from_examples(cls, examples, *, tokenizer, labels, max_length):
        """Reads and tokenizes `LabelledTexts` or `GivenTexts`, a chunk at a time.

        `labels` are the names of the labels in the order of the model's outputs; a label that is
        none of them raises InputError, and so does no example at all. `labels` None takes the names
        from the examples (see `label_names`).
        """
        numbers, chunks = [], []
        found = {}
        for chunk in chunked(examples, _TOKENIZED_TOGETHER):
            chunks.append(tokenizer.tokenize([example.text for example in chunk])[:, :max_length])
            if labels is None:
                numbers.append([found.setdefault(row.label, len(found)) for row in chunk])
            else:
                numbers.append(label_numbers(chunk, labels, source=examples))
        if not chunks:
            raise InputError(f"{examples.name} holds no examples.")
        numbers = np.concatenate(numbers).astype(np.int32)
        if labels is None:
            labels = tuple(sorted(found, key=_label_order))
            numbers = np.array([labels.index(label) for label in found], np.int32)[numbers]
        return cls(
            tf.concat(chunks, axis=0),
            numbers,
            label_names=tuple(labels),
            vocabulary=tokenizer.vocabulary,
            max_length=max_length,
        )

    def __len__(self):
        return len(self.lengths)

    @property
    def fingerprint(self):
        """A hash of the ids, the labels and their names: what a run resumes on must be the same."""
        digest = hashlib.sha256(json.dumps(self.label_names).encode())
        for array in (self.tokens.flat_values, self.tokens.row_splits, self.labels):
            digest.update(np.asarray(array).tobytes())
        return digest.hexdigest()

    def training_batches(self, *, steps, seed, epochs=1, first_step=0):
        """A dataset of `epochs` times `steps` batches, less the first `first_step`.

        In each epoch every row is in one of the batches, with others of about its length. What is
        in them depends on nothing but the arguments.
        """
        plan = []
        for epoch in range(epochs):
            plan += shuffled_batches(self.lengths, count=steps, seed=seed, epoch=epoch)
        return self._dataset(plan[first_step:])

    def evaluation_batches(self, *, batch_size):
        """A dataset of every row once, from the shortest to the longest."""
        return self._dataset(sorted_batches(self.lengths, batch_size=batch_size))

    def _dataset(self, plan):
        rows = np.concatenate([np.empty(0, np.int32), *plan]).astype(np.int32)
        batches = tf.RaggedTensor.from_row_lengths(rows, [len(batch) for batch in plan])
        dataset = tf.data.Dataset.from_tensor_slices(batches)
        return dataset.map(self._batch, num_parallel_calls=2, deterministic=True).prefetch(4)

    def _batch(self, rows):
        batch = features(
            [tf.gather(self.tokens, rows)],
            vocabulary=self._vocabulary,
            max_length=self._max_length,
            multiple_of=PAD_TO,
        )
        return batch, {"logits": tf.gather(self.labels, rows)}


def classification_dataset(task, data, *, batch_size, max_length=None, seed=0, epochs=1):
    """The shuffled training batches of a `Classifier`, as `fit` takes them.

    `data` is a labelled file or a sequence of (text, label); `max_length` None is the task's.
    Gives (features, {"logits": labels}): int32 (B, S) each, and (B,).
    """
    texts = TokenizedTexts.from_examples(
        open_examples(data, labels=task.labels),
        tokenizer=task.tokenizer,
        labels=task.labels,
        max_length=check_max_length(max_length, task),
    )
    steps = -(-len(texts) // batch_size)
    return texts.training_batches(steps=steps, seed=seed, epochs=epochs)


def open_examples(data, **options):
    """`LabelledTexts` of a path (or `-`), `GivenTexts` of a sequence.

    `options` are those of `LabelledTexts`; what a column is, can be said of a file only.
    """
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        return LabelledTexts(data, **options)
    for name in ("text_column", "label_column", "header"):
        if options.get(name) is not None:
            raise ValueError(f"`{name}` is for files. Received: {name}={options[name]!r}")
    return GivenTexts(data)


def label_numbers(chunk, labels, *, source):
    """int32 (N,): the place in `labels` of each example's label; InputError where it has none."""
    place = {label: number for number, label in enumerate(labels)}
    for example in chunk:
        if example.label not in place:
            known = ", ".join(f'"{label}"' for label in labels[:10])
            known += ", …" if len(labels) > 10 else ""
            raise source.error(
                example.line,
                f'the label "{example.label}" is none of those that the model is trained with '
                f"({known}).",
            )
    return np.array([place[example.label] for example in chunk], np.int32)


def _label_order(label):
    """Numbers by their size, then words by the alphabet."""
    return (0, int(label), label) if label.isdecimal() else (1, 0, label)


def chunked(examples, size):
    """Yields lists of up to `size` examples."""
    iterator = iter(examples)
    while chunk := list(islice(iterator, size)):
        yield chunk
