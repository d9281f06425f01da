"""WordPiece in the graph, with exactly the ids of the original BERT tokenizer."""

import tensorflow as tf

from keras_bert.text.normalization import characters, fast_wordpiece
from keras_bert.text.ragged import kept
from keras_bert.text.vocabulary import MAX_WORD_LENGTH

_MAX_BYTES = 4 * MAX_WORD_LENGTH  # UTF-8 takes at most four a character
_LONG_RUN = rf"(?s).*\S{{{MAX_WORD_LENGTH + 1}}}.*"


class WordPiece(tf.Module):
    """Greedy longest-match-first pieces of normalized texts.

    Args:
        vocabulary: `WordPieceVocabulary`.
    """

    def __init__(self, vocabulary):
        super().__init__()
        self._unk_id = vocabulary.unk_id
        self._pieces = fast_wordpiece(vocabulary.pieces, max_bytes=_MAX_BYTES)
        with tf.init_scope():
            self._continuations = tf.constant(vocabulary.continuations)

    def __call__(self, texts):
        """string (B,) -> ids (int32), starts, ends (int64, bytes of `texts`): ragged (B, None)."""
        ids, starts, ends = self._pieces.tokenize_with_offsets(texts)
        # Looking for so long a run without white space takes a tenth of the time that looking at
        # the words takes, and nearly every batch is done with it.
        suspicious = tf.reduce_any(tf.strings.regex_full_match(texts, _LONG_RUN))
        return tf.cond(
            suspicious,
            lambda: self._without_long_words(texts, ids, starts, ends),
            lambda: (ids, starts, ends),
        )

    def word_starts(self, ids):
        """ragged ids (B, None) -> ragged bool (B, None)."""
        return ids.with_values(~tf.gather(self._continuations, ids.values))

    def _without_long_words(self, texts, ids, starts, ends):
        """Makes one [UNK] of every word of more than MAX_WORD_LENGTH characters."""
        continues = tf.gather(self._continuations, ids.values)  # (T,)
        word_of = tf.cumsum(tf.cast(~continues, tf.int32)) - 1  # (T,)
        words = tf.reduce_sum(tf.cast(~continues, tf.int32))  # W
        word_starts = tf.math.unsorted_segment_min(starts.values, word_of, words)  # (W,)
        word_ends = tf.math.unsorted_segment_max(ends.values, word_of, words)
        # Counted by the places of all characters: to cut long words out of a long text would copy
        # the text for each of them.
        found = characters(texts)
        rows = tf.boolean_mask(ids.value_rowids(), ~continues)
        base = tf.gather(found.text_places, rows)
        last = tf.searchsorted(found.places, base + word_ends)
        bad_word = last - tf.searchsorted(found.places, base + word_starts) > MAX_WORD_LENGTH
        bad = tf.gather(bad_word, word_of)  # (T,)
        new_ids = tf.where(bad, self._unk_id, ids.values)
        new_ends = tf.where(bad, tf.gather(word_ends, word_of), ends.values)
        keep = ~(bad & continues)
        return tuple(
            kept(ids.with_values(values), keep) for values in (new_ids, starts.values, new_ends)
        )
