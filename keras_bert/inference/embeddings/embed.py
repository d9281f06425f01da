"""The embeddings of texts, one after another: batches of about one length, from an encoder."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.settings import takes
from keras_bert.checkpoints import find_model_folder, load
from keras_bert.inference.embeddings.settings import (
    ANY_LENGTH,
    EmbedderSettings,
    EmbedSettings,
    check_layers,
    layers_model,
)
from keras_bert.inputs.framing import frame
from keras_bert.inputs.windows import windows
from keras_bert.readers.texts import TextSource


@dataclass(frozen=True, kw_only=True)
class TextEmbedding:
    """The vectors of one text (T its tokens: words, or pieces where these were asked for; D width).

    Attributes:
        line: where the text stands in its file or sequence, from 1.
        text: the text.
        starts, ends: int32 (T,), the place of each token: `text[start:end]`, in characters.
        vectors: float32 (T, D), the vector of each token.
        cls: float32 (D,), the vector of [CLS].
        mean: float32 (D,), the mean over all pieces of the text, [CLS] and [SEP] counted in, as
            sentence-transformers has it.
    """

    line: int
    text: str
    starts: np.ndarray
    ends: np.ndarray
    vectors: np.ndarray
    cls: np.ndarray
    mean: np.ndarray

    @property
    def tokens(self) -> list[str]:
        """The tokens as they stand in the text, a list of T strings."""
        places = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.text[start:end] for start, end in places]


# Numbers in the vectors that are held at once (256 MiB): texts are worked on together up to it,
# counted as if every character were a token.
_NUMBERS_TOGETHER = 1 << 26
_TEXTS_TOGETHER = 4096
# Padded tokens in a step: rows of full length come in smaller batches, which are as fast and keep
# the attention scores (rows x heads x length x length) small.
_TOKENS_IN_A_STEP = 8192
_PAD_TO = 8
# The part of a row that a long text's next row has, too.
_OVERLAP = 1 / 4


class Embedder:
    """Turns texts into `TextEmbedding`s.

    Args:
        encoder: an `Encoder`.
        tokenizer: its `Tokenizer`.
        settings: `EmbedderSettings`. Its `layers` are explained at `choices.choose_layers`. Words
            are the tokenizer's: parted at white space and punctuation. Nothing of a text longer
            than `max_length` is lost: it is read in rows that overlap (see `windows_of`), and its
            special tokens are the means of its rows'.

    Attributes:
        width: D of the vectors.
        tokens, unknown: how many pieces the texts so far had, and how many of them are [UNK].

    Raises:
        InputError: the model has too few layers or positions for the settings.
    """

    def __init__(self, encoder, tokenizer, settings):
        config = encoder.config
        check_layers(settings.layers, config=config)
        max_length = settings.max_length or encoder.default_max_length(ANY_LENGTH)
        if config.max_length is not None and max_length > config.max_length:
            raise InputError(
                f"`max_length` is {max_length}, and the model has {config.max_length} positions."
            )
        model = layers_model(encoder, settings.layers)
        self._vectors_of = _traced_once(model)
        self._tokenizer = tokenizer
        self._tokens = settings.tokens

        # As a graph: on small models the many small operations of it cost more than the model.
        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int64)],
            autograph=False,  # it writes Python files outside the output
        )
        def inputs_of(ids, lengths):
            rows = tf.RaggedTensor.from_row_lengths(ids, lengths)
            return frame(
                [rows],
                tokenizer=tokenizer,
                names=encoder.input_names,
                max_length=max_length,
                multiple_of=_PAD_TO,
            )

        self._inputs_of = inputs_of
        self._max_length = max_length
        self._batch_size = settings.batch_size
        self.width = model.output.shape[-1]
        self.tokens = self.unknown = 0

    def __call__(self, examples):
        """Yields the `TextEmbedding` of each example, in order.

        Args:
            examples: an iterable of `LabelledText` that can tell an `error(line, message)`.

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
                        f"{length} tokens are too many for one text (here it may have "
                        f"{_NUMBERS_TOGETHER // self.width}); part it into several.",
                    )
            vectors, cls, mean = self._run(ids, splits)
            starts, ends = tokens.starts.values.numpy(), tokens.ends.values.numpy()
            word_starts = tokens.word_starts.values.numpy()
            for number, example in enumerate(block):
                own = slice(splits[number], splits[number + 1])
                found = self._pool(vectors[own], starts[own], ends[own], word_starts[own])
                yield TextEmbedding(
                    line=example.line,
                    text=example.text,
                    cls=cls[number],
                    mean=mean[number],
                    **found,
                )

    def _blocks(self, examples):
        """Yields lists of texts that are worked on together."""
        block, size = [], 0
        for example in examples:
            full = (size + len(example.text)) * self.width > _NUMBERS_TOGETHER
            if block and (full or len(block) == _TEXTS_TOGETHER):
                yield block
                block, size = [], 0
            block.append(example)
            size += len(example.text)
        if block:
            yield block

    def _run(self, ids, splits):
        """Ids (T,) of N texts, splits (N + 1,) -> vectors (T, D), [CLS] (N, D), mean (N, D)."""
        template = self._tokenizer.template
        found = windows_of(np.diff(splits), room=template.room(self._max_length))
        special, before = template.num_special(1), template.before(0, texts=1)
        begin, lengths = splits[found.sequence], found.sizes
        first, last = begin + found.starts, begin + found.starts + lengths  # into ids
        vectors = np.empty((len(ids), self.width), np.float32)
        firsts = np.empty((len(lengths), self.width), np.float32)
        specials = np.empty((special, len(lengths), self.width), np.float32)
        for batch in self._batches(lengths):
            tokens = np.concatenate([ids[first[row] : last[row]] for row in batch])
            inputs = self._inputs_of(tokens, lengths[batch])
            for vector, row in zip(np.asarray(self._vectors_of(inputs)), batch, strict=True):
                keep = slice(begin[row] + found.core_starts[row], begin[row] + found.core_ends[row])
                here = before - first[row]
                vectors[keep] = vector[here + keep.start : here + keep.stop]
                firsts[row] = vector[0]
                specials[:before, row] = vector[:before]
                behind = before + lengths[row]
                specials[before:, row] = vector[behind : behind + special - before]
        return vectors, *_sentences(vectors, splits, firsts, specials, found.sequence)

    def _batches(self, lengths):
        """Yields arrays of row numbers, from the longest rows to the shortest."""
        order = np.argsort(-lengths, kind="stable")
        start = 0
        while start < len(order):
            longest = int(lengths[order[start]]) + self._tokenizer.template.num_special(1)
            size = max(1, min(self._batch_size, _TOKENS_IN_A_STEP // longest))
            yield order[start : start + size]
            start += size

    def _pool(self, vectors, starts, ends, word_starts):
        """The pieces of one text as the tokens that were asked for: starts, ends, vectors."""
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


def _traced_once(model):
    """A model as a function of its inputs, rows of any number and length: int32 (B, S) by name."""
    if keras.backend.backend() != "tensorflow":
        return lambda inputs: model.predict_on_batch({n: x.numpy() for n, x in inputs.items()})
    # Without a compiler, which would work longer on each shape than it saves. What Keras traces for
    # `predict` would be traced twice, first for one shape.
    signature = {name: tf.TensorSpec([None, None], tf.int32) for name in model.input}
    return tf.function(
        lambda inputs: model(inputs, training=False), input_signature=[signature], autograph=False
    )


def windows_of(lengths, *, room):
    """The `Windows` of texts of so many tokens, int (N,), when so many fit into a row.

    A quarter of a row is in common with the next: where two cores meet, a token sees at least an
    eighth of a row on either side.
    """
    overlap = min(int(room * _OVERLAP), room - 1)
    lengths = tf.constant(lengths, tf.int64)
    return windows(lengths, room, stride=room - overlap, last="even").numpy()


def _sentences(vectors, splits, firsts, specials, text_of_sequence):
    """Those of texts, of the rows that each is read in.

    Shapes: vectors (T, D) of all texts; of their rows, firsts (R, D), those of the first token, and
    specials (K, R, D), those of the special tokens -> the first token's (N, D), and the mean over
    the text's tokens and the special ones (N, D).
    """
    # Every text has a row, and rows are in the order of texts.
    rows = np.flatnonzero(np.diff(text_of_sequence, prepend=-1))
    counts = np.diff(rows, append=len(text_of_sequence)).astype(np.float32)[:, None]
    cls, *specials = (np.add.reduceat(x, rows, axis=0) / counts for x in (firsts, *specials))
    mean = np.stack(
        [
            sum((x[text] for x in specials), vectors[start:end].sum(axis=0))
            / np.float32(max(1, end - start + len(specials)))
            for text, (start, end) in enumerate(zip(splits[:-1], splits[1:], strict=True))
        ]
    )
    return cls, mean


@takes(EmbedSettings)
def embed(*, report: Callable[[str], None] | None = None, **settings) -> Iterator[TextEmbedding]:
    """Yields one `TextEmbedding` a text, in order, in memory that does not grow with their number.

        for found in kb.embed(model="folder", text=["The bank of the river."], layers="last"):
            found.tokens, found.vectors, found.cls, found.mean

    Args:
        {settings}
        report: a function that is told in one line how the file was read.

    `model` may also be a pair of an encoder and its tokenizer, and `text` a single string.

    Raises:
        InputError: on bad input, at the latest when its line is reached.
    """
    text = settings.get("text")
    if text is not None:
        settings["text"] = [text] if isinstance(text, str) else list(text)
    settings = EmbedSettings.of(settings)
    data = settings.text if settings.data is None else settings.data
    texts = open_texts(data, settings, report=report)
    return open_embedder(settings.model, **settings.part(EmbedderSettings))(texts)


def open_embedder(model, **settings):
    """The `Embedder` of a folder or of a pair (encoder, tokenizer)."""
    return Embedder(*open_model(model), EmbedderSettings.of(settings))


def open_model(model):
    """The encoder and tokenizer of a folder, or of a pair of them.

    Raises InputError where the folder has no tokenizer.
    """
    encoder, tokenizer = model if isinstance(model, tuple) else load(find_model_folder(model))
    if tokenizer is None:
        raise InputError(f"{model} has no tokenizer of ours, so no text can be given to it.")
    return encoder, tokenizer


def open_texts(data, settings, *, report=None):
    """The examples of a file or of a sequence of texts; `settings` say how a file is read."""
    examples = TextSource(
        data, text_column=settings.text_column, header=settings.header, need_labels=False
    )
    if report is not None and examples.description:
        report(examples.description)
    return examples
