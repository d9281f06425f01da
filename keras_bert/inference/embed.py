"""Contextual embeddings of words and texts, in the order of the texts."""

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError, InputWarning
from keras_bert.base.settings import takes
from keras_bert.checkpoints import find_model_folder
from keras_bert.checkpoints.config_json import columns_of_training
from keras_bert.checkpoints.model_folder import build_task
from keras_bert.checkpoints.pretrained_checkpoint import (
    PretrainedCheckpoint,
    may_be_text_embedder,
)
from keras_bert.heads import CONCAT, layer_numbers
from keras_bert.heads.reader import choose_layers
from keras_bert.inference.vector_settings import EmbedderSettings, EmbedSettings
from keras_bert.inputs.batches import bucket_lengths
from keras_bert.inputs.framing import frame, windows
from keras_bert.programs import COMPILES_EACH_SHAPE, compiled, rows_of_program
from keras_bert.readers import TextFileSettings
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.texts import TextSource


@dataclass(frozen=True, kw_only=True)
class TextEmbedding:
    """The vectors of one text (T its words or subword tokens, D the size of a vector).

    Attributes:
        line: the line of the text in its file, or its position in a sequence, from 1; the name of
            the file if each has one text.
        text: the text.
        starts, ends: int32 (T,), the characters of each token: `text[start:end]`.
        vectors: float32 (T, D), the vector of each token.
        cls: float32 (D,), the vector of [CLS].
        mean: float32 (D,), the mean over all subword tokens including [CLS] and [SEP], as in
            sentence-transformers.
        embedding: of a `TextEmbedder` the vector of the text, which `encode` gives; else None.
        row: the columns of the text's table, a dictionary; None without a table.
    """

    line: int | str
    text: str
    starts: np.ndarray
    ends: np.ndarray
    vectors: np.ndarray
    cls: np.ndarray
    mean: np.ndarray
    embedding: np.ndarray | None = None
    row: dict[str, Any] | None = None

    @property
    def tokens(self) -> list[str]:
        """The tokens as they are in the text, a list of T strings."""
        offsets = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.text[start:end] for start, end in offsets]


# Default maximum sequence length of encoders that take any.
ANY_LENGTH = 512
# Numbers in the vectors that are held at once (256 MiB): the limit for texts that are processed
# together, counted as if every character were a token.
_NUMBERS_TOGETHER = 1 << 26
_TEXTS_TOGETHER = 4096
# Padded tokens per batch: sequences of full length come in smaller batches, which are as fast and
# keep the attention scores (B, N, S, S) small.
_TOKENS_IN_A_STEP = 8192
_PAD_TO = 8
# The fraction of a window that the next window of a long text contains as well.
_OVERLAP = 1 / 4


class Embedder:
    """Turns texts into `TextEmbedding`s.

    Args:
        encoder: an `Encoder`.
        tokenizer: its `Tokenizer`.
        settings: `EmbedderSettings`. For its `layers` see `choose_layers`. Words are the
            tokenizer's: split at white space and punctuation. A text longer than `max_length` is
            split into overlapping windows (see `windows_of`), and the vector of a special token is
            the mean over its windows.
        text_embedder: a `TextEmbedder` of the encoder, which gives the `embedding` of each text, or
            None.

    Attributes:
        width: D, the size of a vector.
        max_length: of a sequence, in tokens.
        tokens, unknown: how many subword tokens the texts so far had, and how many are [UNK].

    Raises:
        InputError: the model has too few layers or positions for the settings.
    """

    def __init__(self, encoder, tokenizer, settings, *, text_embedder=None):
        config = encoder.config
        max_length = settings.max_length or encoder.default_max_length(ANY_LENGTH)
        if config.max_length is not None and max_length > config.max_length:
            raise InputError.naming(
                "{max_length} is {}, but the model has {} positions.", max_length, config.max_length
            )
        traced = _traced(encoder, tokenizer, layers=settings.layers, max_length=max_length)
        self._vectors_of, self._inputs_of, self.width = traced
        self._tokenizer = tokenizer
        self._tokens = settings.tokens
        self.text_embedder = text_embedder
        self.max_length = max_length
        self._batch_size = settings.batch_size
        self.tokens = self.unknown = 0

    def __call__(self, examples):
        """Yields the `TextEmbedding` of each example, in order.

        Args:
            examples: an iterable of `LabelledText` with a method `error(line, message)`.

        Raises:
            InputError: a text so long that its vectors take more than 256 MiB.
        """
        for block in self._blocks(examples):
            tokens = self._tokenizer.tokenize_with_offsets([example.text for example in block])
            ids, splits = tokens.ids.values.numpy(), tokens.ids.row_splits.numpy()
            self.tokens += len(ids)
            self.unknown += int(np.sum(ids == self._tokenizer.vocabulary.unk_id))
            for example, length in zip(block, np.diff(splits).tolist(), strict=True):
                if length * self.width > _NUMBERS_TOGETHER:
                    raise examples.error(
                        example.line,
                        f"the text has {length} tokens, more than the "
                        f"{_NUMBERS_TOGETHER // self.width} that fit into memory. Split it.",
                    )
            vectors, cls, mean = self._run(ids, splits)
            text_embeddings = None
            if self.text_embedder is not None:
                text_embeddings = text_vectors(
                    self.text_embedder, block, batch_size=self._batch_size
                )
            starts, ends = tokens.starts.values.numpy(), tokens.ends.values.numpy()
            word_starts = tokens.word_starts.values.numpy()
            for number, example in enumerate(block):
                inside = slice(splits[number], splits[number + 1])
                yield TextEmbedding(
                    line=example.line,
                    text=example.text,
                    cls=cls[number],
                    mean=mean[number],
                    embedding=None if text_embeddings is None else text_embeddings[number],
                    row=examples.row_of(example) if hasattr(examples, "row_of") else None,
                    **self._pool(
                        vectors[inside], starts[inside], ends[inside], word_starts[inside]
                    ),
                )

    def text_vectors(self, examples):
        """Yields (a list of examples, their vectors (N, D) of `text_embedder`), in order."""
        for block in self._blocks(examples):
            yield block, text_vectors(self.text_embedder, block, batch_size=self._batch_size)

    def _blocks(self, examples):
        """Yields lists of texts that are processed together."""
        block, size = [], 0
        for example in examples:
            is_full = (size + len(example.text)) * self.width > _NUMBERS_TOGETHER
            if block and (is_full or len(block) == _TEXTS_TOGETHER):
                yield block
                block, size = [], 0
            block.append(example)
            size += len(example.text)
        if block:
            yield block

    def _run(self, ids, splits):
        """Ids (T,) of N texts, splits (N + 1,) -> vectors (T, D), [CLS] (N, D), mean (N, D)."""
        template = self._tokenizer.template
        text_windows = windows_of(np.diff(splits), room=template.room(self.max_length))
        special, before = template.num_special(1), template.before(0, texts=1)
        begin, lengths = splits[text_windows.sequence], text_windows.sizes
        first, last = begin + text_windows.starts, begin + text_windows.starts + lengths  # into ids
        vectors = np.empty((len(ids), self.width), np.float32)
        firsts = np.empty((len(lengths), self.width), np.float32)
        specials = np.empty((special, len(lengths), self.width), np.float32)
        for batch in self._batches(lengths):
            rows = np.resize(batch, rows_of_program(len(batch)))
            tokens = np.concatenate([ids[first[window] : last[window]] for window in rows])
            inputs = self._inputs_of(tf.RaggedTensor.from_row_lengths(tokens, lengths[rows]))
            for vector, window in zip(np.asarray(self._vectors_of(inputs)), batch, strict=False):
                start = begin[window] + text_windows.core_starts[window]
                end = begin[window] + text_windows.core_ends[window]
                shift = before - first[window]
                vectors[start:end] = vector[start + shift : end + shift]
                firsts[window] = vector[0]
                specials[:before, window] = vector[:before]
                after = before + lengths[window]
                specials[before:, window] = vector[after : after + special - before]
        return vectors, *_text_vectors(vectors, splits, firsts, specials, text_windows.sequence)

    def _batches(self, lengths):
        """Yields arrays of window numbers, from the longest windows to the shortest."""
        order = np.argsort(-lengths, kind="stable")
        start = 0
        while start < len(order):
            longest = int(lengths[order[start]]) + self._tokenizer.template.num_special(1)
            size = max(1, min(self._batch_size, _TOKENS_IN_A_STEP // longest))
            yield order[start : start + size]
            start += size

    def _pool(self, vectors, starts, ends, word_starts):
        """The starts, ends and vectors of a text's tokens, from those of its subword tokens."""
        if self._tokens == "subwords":
            return {"starts": starts, "ends": ends, "vectors": vectors}
        first = np.flatnonzero(word_starts)
        if self._tokens == "none":
            first = first[:0]
        last = np.append(first[1:], len(starts))[: len(first)]
        if self._tokens == "words-mean" and len(first):
            counts = (last - first)[:, None].astype(np.float32)
            vectors = np.add.reduceat(vectors, first, axis=0) / counts  # (W, D)
        else:
            vectors = vectors[first]
        return {"starts": starts[first], "ends": ends[last - 1], "vectors": vectors}


def text_vectors(task, examples, *, batch_size):
    """The vectors of the texts of examples, float32 (N, D), of a `TextEmbedder`."""
    return task.encode([example.text for example in examples], batch_size=batch_size)


# The attribute of an encoder with its traced functions.
_COMPUTATIONS = "_keras_bert_embedders"


def _traced(encoder, tokenizer, *, layers, max_length):
    """-> (a function of inputs to vectors, one of ids to inputs, the size of a vector).

    The encoder keeps them, so that another `Embedder` of it traces nothing again, until its weights
    are others.
    """
    weights = (*map(id, encoder.variables),)
    key = (layers, max_length, id(tokenizer), weights)
    made = {k: v for k, v in vars(encoder).get(_COMPUTATIONS, {}).items() if k[-1] == weights}
    if key not in made:
        model = layers_model(encoder, layers)

        def inputs_of(ids):
            return frame(
                [ids],
                tokenizer=tokenizer,
                names=encoder.input_names,
                max_length=max_length,
                multiple_of=bucket_lengths(max_length)[0] if COMPILES_EACH_SHAPE else _PAD_TO,
            )

        # As a graph: its many small operations would take longer than a small model. Without
        # AutoGraph, which writes Python files outside the output.
        ragged = tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=1)
        inputs_of = tf.function(inputs_of, input_signature=[ragged], autograph=False)
        made[key] = _traced_once(model), inputs_of, model.output.shape[-1]
        # Not as Keras sets attributes, which it would track.
        object.__setattr__(encoder, _COMPUTATIONS, made)
    return made[key]


def _traced_once(model):
    """A model as a function of its inputs by name, int32 (B, S) with any B and S."""
    # On TensorFlow without XLA, which would take longer to compile a shape than it saves; and not
    # by Keras's `predict`, which is traced twice, first for one shape.
    signature = {name: tf.TensorSpec([None, None], tf.int32) for name in model.input}
    return compiled(
        lambda inputs: model(inputs, training=False), signature=[signature], reads=[model]
    )


def layers_model(encoder, choice):
    """A `keras.Model` from an encoder's inputs to the vectors of a choice, float32 (B, S, D).

    In a graph the layers above those chosen are not computed. Raises `InputError` if the model has
    too few layers for the choice.
    """
    numbers, how = layer_numbers(choice, layers=encoder.config.num_hidden_states - 1)
    if len(numbers) > 1 and how != CONCAT:
        encoder.require("layer-mix")
    inputs = encoder.symbolic_inputs()
    states = encoder(inputs, outputs=("hidden_states",))["hidden_states"]
    return keras.Model(inputs, keras.ops.cast(choose_layers(states, choice), "float32"))


def windows_of(lengths, *, room):
    """The `Windows` of texts with these numbers of tokens, int (N,), of up to `room` tokens each.

    Neighbours overlap by a quarter: where their cores meet, a token has at least an eighth of a
    window as context on either side.
    """
    overlap = min(int(room * _OVERLAP), room - 1)
    lengths = tf.constant(lengths, tf.int64)
    return windows(lengths, room, stride=room - overlap, last="even").numpy()


def _text_vectors(vectors, splits, firsts, specials, text_of_window):
    """The vectors of whole texts, from those of their tokens and windows.

    Shapes: vectors (T, D) of all tokens; for all windows, firsts (R, D), the vector of the first
    token, and specials (K, R, D), those of the special tokens -> the first token's (N, D), and the
    mean over the text's tokens and the special ones (N, D).
    """
    # Every text has a window, and windows are in the order of texts.
    start = np.flatnonzero(np.diff(text_of_window, prepend=-1))
    counts = np.diff(start, append=len(text_of_window)).astype(np.float32)[:, None]
    cls, *specials = (np.add.reduceat(x, start, axis=0) / counts for x in (firsts, *specials))
    mean = np.stack(
        [
            sum((x[text] for x in specials), vectors[start:end].sum(axis=0))
            / np.float32(max(1, end - start + len(specials)))
            for text, (start, end) in enumerate(zip(splits[:-1], splits[1:], strict=True))
        ]
    )
    return cls, mean


@takes(EmbedSettings)
def embed(*, report=None, **settings) -> Iterator[TextEmbedding]:
    """Yields one `TextEmbedding` per text, in order; memory does not grow with their number.

        for embedding in kb.embed(model="folder", text=["The bank of the river."], layers="last"):
            embedding.tokens, embedding.vectors, embedding.cls, embedding.mean

    Args:
        **settings: the fields of `EmbedSettings`.
        report: a function that is called with a line on how the file was read.

    `model` may also be a pair of an encoder and its tokenizer, or a `TextEmbedder`, and `text` a
    single string. A model in memory is traced once.

    Raises:
        InputError: on bad input, at the latest when its line is reached.
    """
    text = settings.get("text")
    if text is not None:
        settings["text"] = [text] if isinstance(text, str) else list(text)
    settings = EmbedSettings.of(settings)
    data = settings.text if settings.data is None else settings.data
    texts = open_texts(data, settings, model=settings.model, report=report)
    return open_embedder(settings.model, **settings.part(EmbedderSettings))(texts)


def open_embedder(model, **settings):
    """The `Embedder` of a model folder, of a pair (encoder, tokenizer), or of a `TextEmbedder`."""
    settings, task = EmbedderSettings.of(settings), open_text_embedder(model)
    if task is None:
        return Embedder(*open_model(model), settings)
    return Embedder(task.encoder, task.tokenizer, settings, text_embedder=task)


def open_text_embedder(model):
    """The given `TextEmbedder`, or that of a model folder; None of any other model.

    Raises `InputError` if it has no tokenizer.
    """
    if isinstance(model, tuple):
        return None
    task = model
    if "text-vectors" not in getattr(model, "OFFERS", ()):
        folder = find_model_folder(model)
        if not may_be_text_embedder(folder):
            return None
        checkpoint = PretrainedCheckpoint(folder)
        try:
            if not checkpoint.is_text_embedder:
                return None
            task = build_task(checkpoint)
        except InputError as error:
            message = f"The texts have no vectors as the folder describes them: {error}"
            warnings.warn(message, InputWarning, stacklevel=4)
            return None
    if task.tokenizer is None:
        raise InputError(f"{model} has no supported tokenizer, so it cannot read text.")
    return task


def open_model(model):
    """The (encoder, tokenizer) of a model folder, or the given pair.

    Raises `InputError` if the folder has no supported tokenizer.
    """
    if isinstance(model, tuple):
        encoder, tokenizer = model
    else:
        checkpoint = PretrainedCheckpoint(find_model_folder(model))
        encoder, tokenizer = checkpoint.encoder(), checkpoint.tokenizer
    if tokenizer is None:
        raise InputError(f"{model} has no supported tokenizer, so it cannot read text.")
    return encoder, tokenizer


def open_texts(data, settings, *, model=None, report=None):
    """The examples of a file, read as `settings` say, or of a sequence of texts.

    The column of a table's texts may be the one that `model`, a folder or a task, was trained on.
    """
    columns = getattr(model, "columns", None)
    if isinstance(model, str | os.PathLike):
        columns = columns_of_training(find_model_folder(model))
    examples = TextSource(
        data,
        need_labels=False,
        schema={part: names for part, names in (columns or {}).items() if part == "text"},
        **settings.part(TextFileSettings),
    )
    examples.keeps_rows = True
    report_source(examples, report)
    examples.at_end = partial(report_notes, examples, report)
    return examples
