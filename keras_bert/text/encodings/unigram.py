"""The unigram model in the graph: TensorFlow Text's SentencePiece, by the vocabulary's ids."""

import tensorflow as tf
import tensorflow_text as tf_text

from keras_bert.text.encodings.encoding import Encoding, TokenEdges
from keras_bert.text.encodings.steps import Steps
from keras_bert.text.normalization import characters, utf8_width, valid_utf8
from keras_bert.text.ragged import row_ids
from keras_bert.text.vocabularies.spaced import WHITE_SPACE


class Unigram(Encoding):
    """The encoding of a `UnigramVocabulary`, with the ids of the library `sentencepiece`.

    A character that becomes several belongs to the last of its tokens, and to those that have no
    other. White space, and what SentencePiece makes white space of, belongs to the token after it.
    """

    def __init__(self, vocabulary, *, lowercase):
        super().__init__()
        with tf.init_scope():
            self._model = tf_text.SentencepieceTokenizer(
                model=vocabulary.to_sentencepiece().to_bytes(), out_type=tf.int32
            )
            self._is_space = tf.constant(vocabulary.is_space)
        self._steps = None
        if vocabulary.normalizers:  # added tokens are the model's own
            self._steps = Steps(vocabulary.normalizers, (), vocabulary.id)
        self._edges = TokenEdges(vocabulary)
        signature = [tf.TensorSpec([None], tf.string)]
        self._graph = tf.function(self._call, input_signature=signature, autograph=False)

    def normalize(self, texts):
        return valid_utf8(texts)

    def tokenize(self, texts):
        if self._steps is None:
            return self._model.tokenize(texts)
        return self._steps(texts, self._pieces)[0]

    def tokenize_with_offsets(self, texts):
        return self._graph(texts)

    def _call(self, texts):
        steps = self._steps
        ids, starts, ends = steps(texts, self._pieces) if steps else self._pieces(texts)
        starts, ends = self._of_characters(texts, ids, starts, ends)
        return self._edges(texts, ids, starts, ends)

    def _pieces(self, texts):
        """Texts (P,) -> ids, ragged (P, None), starts and ends (T,), bytes of all texts."""
        ids, starts, ends = self._model.tokenize_with_offsets(texts)
        text_starts = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64), exclusive=True)
        text_starts = tf.gather(text_starts, row_ids(ids))
        starts, ends = (tf.cast(edges.values, tf.int64) + text_starts for edges in (starts, ends))
        return ids, starts, ends

    def _of_characters(self, texts, ids, starts, ends):
        """Gives tokens of a part of a character alone that character: starts, ends (T,)."""
        letters = characters(texts)
        points = tf.constant([ord(character) for character in WHITE_SPACE], tf.int32)
        at = tf.minimum(tf.searchsorted(points, letters.points), len(WHITE_SPACE) - 1)
        is_word = tf.gather(points, at) != letters.points
        firsts = tf.boolean_mask(letters.positions, is_word)
        lasts = firsts + utf8_width(tf.boolean_mask(letters.points, is_word))
        text_ends = tf.gather(tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64)), row_ids(ids))
        # The next character that is not white space, of the same text.
        number = tf.searchsorted(firsts, starts)
        firsts, lasts = (tf.concat([edges, [-1]], axis=0) for edges in (firsts, lasts))
        first, last = tf.gather(firsts, number), tf.gather(lasts, number)
        is_part = ~tf.gather(self._is_space, ids.values) & (first >= ends) & (first < text_ends)
        return tf.where(is_part, first, starts), tf.where(is_part, last, ends)
