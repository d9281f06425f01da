"""The unigram model in the graph: TensorFlow Text's SentencePiece, by the vocabulary's ids."""

import hashlib

import tensorflow as tf
from tensorflow_text.python.ops.sentencepiece_tokenizer import gen_sentencepiece_tokenizer

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
        # The op is a part of every graph, with the model's content. TensorFlow Text's own class has
        # one handle, which is not valid any more once a seed is set (`tf.random.set_seed` clears
        # the kernels that own such resources), and which an export would have to restore. With a
        # name of its content the model is there once in a process.
        self._content = vocabulary.to_sentencepiece().to_bytes()
        self._name = f"sentencepiece_{hashlib.sha256(self._content).hexdigest()}"
        with tf.init_scope():
            self._is_space = tf.constant(vocabulary.is_space)
        self._steps = None
        if vocabulary.normalizers:  # added tokens are the model's own
            self._steps = Steps(vocabulary.normalizers, (), vocabulary.id)
        self._edges = TokenEdges(vocabulary)
        signature = [tf.TensorSpec([None], tf.string)]
        self._graph = tf.function(self._call, input_signature=signature, autograph=False)
        self._ids_graph = tf.function(self._ids, input_signature=signature, autograph=False)

    def normalize(self, texts):
        return valid_utf8(texts)

    def tokenize(self, texts):
        return self._ids_graph(texts)

    def tokenize_with_offsets(self, texts):
        return self._graph(texts)

    def _ids(self, texts):
        if self._steps is not None:
            return self._steps(texts, self._pieces)[0]
        op = gen_sentencepiece_tokenizer.sentencepiece_tokenize_op
        ids, splits = op(*self._arguments(texts), return_nbest=False)
        return tf.RaggedTensor.from_row_splits(ids, splits, validate=False)

    def _arguments(self, texts):
        """The arguments of both operations: the model, texts, and no sampling, ends or reversal."""
        model = gen_sentencepiece_tokenizer.sentencepiece_op(
            model=self._content, shared_name=self._name
        )
        return model, texts, 0, 1.0, False, False, False, tf.int32

    def _call(self, texts):
        steps = self._steps
        ids, starts, ends = steps(texts, self._pieces) if steps else self._pieces(texts)
        starts, ends = self._character_offsets(texts, ids, starts, ends)
        return self._edges(texts, ids, starts, ends)

    def _pieces(self, texts):
        """Texts (P,) -> ids, ragged (P, None), starts and ends (T,), bytes of all texts."""
        op = gen_sentencepiece_tokenizer.sentencepiece_tokenize_with_offsets_op
        ids, splits, starts, ends = op(*self._arguments(texts), return_nbest=False)
        ids = tf.RaggedTensor.from_row_splits(ids, splits, validate=False)
        text_starts = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64), exclusive=True)
        text_starts = tf.gather(text_starts, row_ids(ids))
        return ids, tf.cast(starts, tf.int64) + text_starts, tf.cast(ends, tf.int64) + text_starts

    def _character_offsets(self, texts, ids, starts, ends):
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
