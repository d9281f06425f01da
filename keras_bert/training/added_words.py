"""A vocabulary that grows by the frequent words of the data, before a model is trained on them."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed
from keras_bert.records import DataFolder
from keras_bert.records.added_words import OtherTokens, WordCounts
from keras_bert.records.folder import CardVocabulary
from keras_bert.tasks.pretraining.pretrainer import PretrainingTask
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary

_BATCH = 1024  # examples that are read together


def with_added_words(
    task: PretrainingTask,
    folders: list[DataFolder],
    count: int,
    *,
    report: Callable[[str], None],
) -> tuple[PretrainingTask, list[DataFolder]]:
    """A task and data folders whose vocabulary also has the words that save most tokens.

    Args:
        task: the pre-training task, with its weights.
        folders: the `DataFolder`s, whose vocabulary is the task's.
        count: how many words.
        report: called with a line on the words.

    Returns:
        (the task, the folders). A new token's rows of the tables are the means of those of the
        tokens that its word had.

    Raises:
        InputError: another kind of vocabulary, or examples that are padded or masked already.
    """
    vocabulary = task.tokenizer.vocabulary
    if type(vocabulary) is not WordPieceVocabulary:
        raise InputError.naming(
            "{add_words} is for vocabularies of WordPiece. Received: {}. Leave it out.",
            vocabulary.DESCRIPTION,
        )
    for folder in folders:
        if folder.card.masking == "static":
            raise InputError.naming(
                "{add_words} needs examples that are masked as they are read. Make the data in {} "
                'again with {masking="dynamic"}.',
                folder.path,
            )
    words = _words_of(folders, vocabulary)
    added = words.most_worth(count)
    if not added:
        report("No word of the data is frequent and cut into several tokens: none was added.")
        return task, folders
    longer = vocabulary.with_words(added)
    other = words.other_tokens(longer)
    saved = sum(words.counts[ids] * (len(ids) - len(new)) for ids, new in other.items())
    report(
        f"Added {len(added):,} words to the vocabulary, which save {saved:,} tokens of the data: "
        f"{listed(added, most=5)}."
    )
    parts = [vocabulary.ids_of_word(word) for word in added]
    replaced = OtherTokens(vocabulary, other)
    return _grown(task, longer, parts), [_grown_folder(f, longer, replaced) for f in folders]


def _words_of(folders, vocabulary):
    """The `WordCounts` of the examples of data folders."""
    words = WordCounts(vocabulary)
    for folder in folders:
        for split in ("train", "eval"):
            if not folder.card.splits[split].instances:
                continue
            records = tf.data.TFRecordDataset(folder.shards(split), folder.compression)
            for serialized in records.batch(_BATCH):
                ids = folder.spec.parse(serialized)["input_ids"]
                words.add(ids.flat_values.numpy(), ids.row_lengths().numpy())
    return words


def _grown_folder(folder, vocabulary, other_tokens):
    """A `DataFolder` that is read with a longer vocabulary."""
    card, more = folder.card, len(vocabulary) - folder.card.vocabulary.size
    counts = card.unigram_counts and [*card.unigram_counts, *[0] * more]
    card = dataclasses.replace(
        card,
        vocabulary=CardVocabulary(sha256=vocabulary.sha256, size=len(vocabulary)),
        unigram_counts=counts,
    )
    grown = type(folder)(path=folder.path, card=card)
    grown.other_tokens = other_tokens
    return grown


def _grown(task, vocabulary, parts):
    """A copy of a task with a longer vocabulary; `parts` are the ids of each new token's word."""
    tokenizer = task.tokenizer.with_vocabulary(vocabulary)
    before = task.config.vocab_size
    size = max(before, len(vocabulary))
    encoder = task.encoder.rebuilt(vocab_size=size)
    encoder.recomputes = task.encoder.recomputes
    config = {**task.get_config(), "encoder": encoder, "tokenizer": tokenizer}
    grown = type(task).from_config(config)
    first = len(vocabulary) - len(parts)
    for weight, copy in zip(task.weights, grown.weights, strict=True):
        value = keras.ops.convert_to_numpy(weight)
        axes = [axis for axis, length in enumerate(weight.shape) if length == before]
        # Tables and biases of tokens have them along their first axis.
        if axes and axes[0] == 0 and weight.path.endswith(_TOKEN_WEIGHTS):
            rows = np.zeros((size, *value.shape[1:]), value.dtype)
            rows[:before] = value
            rows[first : len(vocabulary)] = [value[list(ids)].mean(axis=0) for ids in parts]
            value = rows
        copy.assign(value)
    return grown


# The ends of the paths of weights with a row or a number per token.
_TOKEN_WEIGHTS = ("token_embedding/embeddings", "lm_head/bias", "span_boundary/bias")
