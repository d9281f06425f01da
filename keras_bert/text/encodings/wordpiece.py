"""WordPiece in the graph: BERT's words, and the longest tokens that they begin with."""

import tensorflow as tf

from keras_bert.text.encodings.encoding import Encoding
from keras_bert.text.normalization import characters, fast_wordpiece, normalize
from keras_bert.text.ragged import row_ids, select
from keras_bert.text.vocabulary import MAX_WORD_LENGTH

_MAX_BYTES = 4 * MAX_WORD_LENGTH  # UTF-8 takes at most four a character
_LONG_RUN = rf"(?s).*\S{{{MAX_WORD_LENGTH + 1}}}.*"


class WordPiece(Encoding):
    """Greedy longest-match-first tokens of normalized texts, by a `WordPieceVocabulary`."""

    def __init__(self, vocabulary, *, lowercase):
        super().__init__()
        self._lowercase = lowercase
        self._unk_id = vocabulary.unk_id
        self._tokens = fast_wordpiece(vocabulary.tokens, max_bytes=_MAX_BYTES)
        with tf.init_scope():
            self._continuations = tf.constant(vocabulary.continuations)

    def normalize(self, texts):
        return normalize(texts, lowercase=self._lowercase)

    def tokenize(self, texts):
        return self._tokenize(texts)[0]

    def tokenize_with_offsets(self, texts):
        ids, starts, ends = self._tokenize(texts)
        begins = ids.with_values(~tf.gather(self._continuations, ids.values))
        return ids, starts, ends, begins

    def _tokenize(self, texts):
        ids, starts, ends = self._tokens.tokenize_with_offsets(texts)
        # A search for such a run without white space takes a tenth of the time that checking each
        # word takes, and is enough for nearly every batch.
        suspicious = tf.reduce_any(tf.strings.regex_full_match(texts, _LONG_RUN))
        return tf.cond(
            suspicious,
            lambda: self._without_long_words(texts, ids, starts, ends),
            lambda: (ids, starts, ends),
        )

    def _without_long_words(self, texts, ids, starts, ends):
        """Makes one [UNK] of every word of more than MAX_WORD_LENGTH characters."""
        continues = tf.gather(self._continuations, ids.values)  # (T,)
        word_of = tf.cumsum(tf.cast(~continues, tf.int32)) - 1  # (T,)
        words = tf.reduce_sum(tf.cast(~continues, tf.int32))  # W
        word_starts = tf.math.unsorted_segment_min(starts.values, word_of, words)  # (W,)
        word_ends = tf.math.unsorted_segment_max(ends.values, word_of, words)
        # Counted by the positions of all characters: to cut long words out of a long text would
        # copy the text for each of them.
        all_characters = characters(texts)
        rows = tf.boolean_mask(row_ids(ids), ~continues)
        base = tf.gather(all_characters.text_positions, rows)
        first = tf.searchsorted(all_characters.positions, base + word_starts)
        last = tf.searchsorted(all_characters.positions, base + word_ends)
        bad = tf.gather(last - first > MAX_WORD_LENGTH, word_of)  # (T,)
        new_ids = tf.where(bad, self._unk_id, ids.values)
        new_ends = tf.where(bad, tf.gather(word_ends, word_of), ends.values)
        keep = ~(bad & continues)
        return tuple(
            select(ids.with_values(column), keep) for column in (new_ids, starts.values, new_ends)
        )
