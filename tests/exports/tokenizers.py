"""A SavedModel with a signature for each algorithm of tokenizers, and what it is asked."""

import tensorflow as tf

from keras_bert.text import Tokenizer
from keras_bert.text.gpt_vocabularies import to_letters
from keras_bert.text.learners import learn_bpe, learn_byte_level_bpe
from keras_bert.text.vocabulary import SPECIAL_TOKENS, WordPieceVocabulary

TOKENS = "the cafe cat ##s sat on mat x ##x , i ##t ##i".split()
WORDS = {"low": 5, "lowest": 2, "newer": 6, "wider": 3, "new": 2}
LETTERS = {to_letters(f" {word}".encode()): count for word, count in WORDS.items()}
TOKENIZERS = {
    "wordpiece": Tokenizer.from_vocab(WordPieceVocabulary([*SPECIAL_TOKENS, *TOKENS])),
    "bpe": Tokenizer.from_vocab(learn_bpe(WORDS, size=24)),
    "byte-level-bpe": Tokenizer.from_vocab(learn_byte_level_bpe(LETTERS, size=280)),
}
TEXTS = {
    "wordpiece": ["The café cats, x" + "x" * 200, "sat\x00", "IT İT II"],
    "bpe": ["New, lowest zzyzx", "the widerlowest!", "IT İT II"],
    "byte-level-bpe": ["the lower  newer\n", "", "IT İT 😀"],
}


def write_tokenizers(folder):
    served = _Served()
    tf.saved_model.save(served, str(folder), signatures=served.functions)


class _Served(tf.Module):
    """One signature a tokenizer: texts -> ids and the ends of the tokens, padded with -1."""

    def __init__(self):
        super().__init__()
        self.tokenizers = TOKENIZERS
        self.functions = {name: self._signature(name) for name in TOKENIZERS}

    def _signature(self, name):
        signature = [tf.TensorSpec([None], tf.string, name="text")]

        @tf.function(input_signature=signature, autograph=False)  # as in our exports
        def serve(text):
            tokens = self.tokenizers[name].tokenize_with_offsets(text)
            return {"ids": tokens.ids.to_tensor(-1), "ends": tokens.ends.to_tensor(-1)}

        return serve
