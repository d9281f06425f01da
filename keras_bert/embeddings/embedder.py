"""An encoder at work on a stream of texts: batches of about one length, memory that stays put."""

import keras
import numpy as np
import tensorflow as tf

from keras_bert.embeddings.choices import check_layers, check_tokens, choose_layers
from keras_bert.embeddings.long_texts import rows_of
from keras_bert.embeddings.text_embedding import TextEmbedding
from keras_bert.errors import InputError
from keras_bert.input_pipeline.framing import frame

# Numbers in the vectors that are held at once (256 MiB): texts are worked on together up to it,
# counted as if every character were a token.
_NUMBERS_TOGETHER = 1 << 26
_TEXTS_TOGETHER = 4096
# Padded tokens in a step: rows of full length come in smaller batches, which are as fast and keep
# the attention scores (rows x heads x length x length) small.
_TOKENS_IN_A_STEP = 8192
_PAD_TO = 8


class Embedder:
    """Turns texts into `TextEmbedding`s.

    Args:
        encoder: a `BertEncoder`.
        tokenizer: its `Tokenizer`.
        layers: which layers make a vector (see `choices.choose_layers`).
        tokens: what has a vector beside the text as a whole: "words-mean" and "words-first", each
            word, as the mean of its pieces' vectors or that of its first piece; "pieces", each
            piece; "none", nothing. Words are the tokenizer's: parted at white space and
            punctuation.
        max_length: tokens in a row, [CLS] and [SEP] counted in; None is as many as the model has
            positions. Nothing of a longer text is lost: it is read in rows that overlap (see
            `long_texts`), and its [CLS] and [SEP] are the means of its rows'.
        batch_size: rows in a step, at most.

    Attribute: `width`, D of the vectors.

    Raises:
        InputError: a choice that there is not, or that the model has too few layers or positions
            for.
    """

    def __init__(
        self,
        encoder,
        tokenizer,
        *,
        layers="last",
        tokens="words-mean",
        max_length=None,
        batch_size=32,
    ):
        config = encoder.config
        check_layers(layers, config=config)
        check_tokens(tokens)
        max_length = config.max_length if max_length is None else max_length
        if not 3 <= max_length <= config.max_length:
            raise InputError(
                f"A length of {max_length} tokens cannot be: a row has room for [CLS], [SEP] and a "
                f"token at least, and the model has {config.max_length} positions."
            )
        view = encoder.view(hidden_states=True)
        vectors = keras.ops.cast(choose_layers(view.output["hidden_states"], layers), "float32")
        # Over the view's own symbols, so that blocks above the chosen layers are not computed.
        self._model = keras.Model(view.input, vectors)
        # Rows come in many shapes: a compiler would work longer than it saves. JAX cannot without.
        self._model.jit_compile = keras.backend.backend() == "jax"
        self._tokenizer = tokenizer
        self._tokens = tokens

        # As a graph: on small models the many small operations of it cost more than the model.
        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int64)]
        )
        def inputs_of(ids, lengths):
            rows = tf.RaggedTensor.from_row_lengths(ids, lengths)
            return frame(
                [rows], vocabulary=tokenizer.vocabulary, max_length=max_length, multiple_of=_PAD_TO
            )

        self._inputs_of = inputs_of
        self._max_length = max_length
        self._batch_size = batch_size
        self.width = vectors.shape[-1]

    def __call__(self, examples):
        """Yields the `TextEmbedding` of each example, in order.

        Args:
            examples: an iterable of `LabelledText` that can tell an `error(line, message)`.

        Raises:
            InputError: a text so long that its vectors take more than 256 MiB.
        """
        for block in self._blocks(examples):
            tokens = self._tokenizer.tokenize_with_offsets([example.text for example in block])
            splits = tokens.ids.row_splits.numpy()
            for example, length in zip(block, np.diff(splits).tolist(), strict=True):
                if length * self.width > _NUMBERS_TOGETHER:
                    raise examples.error(
                        example.line,
                        f"{length} tokens are too many for one text (here it may have "
                        f"{_NUMBERS_TOGETHER // self.width}); part it into several.",
                    )
            vectors, cls, mean = self._run(tokens.ids.values.numpy(), splits)
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
        rows = rows_of(np.diff(splits), room=self._max_length - 2)
        first, last = splits[rows.text] + rows.first, splits[rows.text] + rows.last  # into ids
        lengths = last - first
        vectors = np.empty((len(ids), self.width), np.float32)
        ends_of_rows = np.empty((2, len(lengths), self.width), np.float32)  # [CLS] and [SEP]
        for batch in self._batches(lengths):
            pieces = np.concatenate([ids[first[row] : last[row]] for row in batch])
            inputs = self._inputs_of(pieces, lengths[batch])
            found = self._model.predict_on_batch({name: x.numpy() for name, x in inputs.items()})
            for vector, row in zip(found, batch, strict=True):
                start = splits[rows.text[row]]
                keep = slice(start + rows.keep_first[row], start + rows.keep_last[row])
                vectors[keep] = vector[1 + keep.start - first[row] : 1 + keep.stop - first[row]]
                ends_of_rows[:, row] = vector[0], vector[1 + lengths[row]]
        return vectors, *_sentences(vectors, splits, ends_of_rows, rows.text)

    def _batches(self, lengths):
        """Yields arrays of row numbers, from the longest rows to the shortest."""
        order = np.argsort(-lengths, kind="stable")
        start = 0
        while start < len(order):
            longest = int(lengths[order[start]]) + 2
            size = max(1, min(self._batch_size, _TOKENS_IN_A_STEP // longest))
            yield order[start : start + size]
            start += size

    def _pool(self, vectors, starts, ends, word_starts):
        """The pieces of one text as the tokens that were asked for: starts, ends, vectors."""
        if self._tokens == "pieces":
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


def _sentences(vectors, splits, ends_of_rows, text_of_row):
    """-> [CLS] (N, D) and the mean over [CLS], the text's tokens and [SEP] (N, D)."""
    # Every text has a row, and rows are in the order of texts.
    rows = np.flatnonzero(np.diff(text_of_row, prepend=-1))
    counts = np.diff(rows, append=len(text_of_row)).astype(np.float32)[:, None]
    cls, sep = (np.add.reduceat(x, rows, axis=0) / counts for x in ends_of_rows)
    mean = np.stack(
        [
            (vectors[start:end].sum(axis=0) + c + s) / np.float32(end - start + 2)
            for start, end, c, s in zip(splits[:-1], splits[1:], cls, sep, strict=True)
        ]
    )
    return cls, mean
