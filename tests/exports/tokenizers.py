"""A SavedModel with a signature for each algorithm of tokenizers, and what it is asked."""

import tensorflow as tf

from keras_bert.text import Tokenizer
from keras_bert.text.learners import learn_bpe, learn_byte_level_bpe
from keras_bert.text.normalizers import AddedToken
from keras_bert.text.unigram_learner import learn_unigram
from keras_bert.text.vocabularies.byte_level import ByteLevelVocabulary, to_letters
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS

TOKENS = "the cafe cat ##s sat on mat x ##x , i ##t ##i".split()
WORDS = {"low": 5, "lowest": 2, "newer": 6, "wider": 3, "new": 2}
LETTERS = {to_letters(f" {word}".encode()): count for word, count in WORDS.items()}


def with_steps():
    """A byte-level vocabulary with a normalizer and an added token."""
    learned = learn_byte_level_bpe(LETTERS, size=280)
    return ByteLevelVocabulary(
        [*learned.tokens, "[x]"],
        learned.merges,
        normalizers=["nfc", "lowercase"],
        added_tokens=[AddedToken(content="[x]", lstrip=True)],
    )


TOKENIZERS = {
    "wordpiece": Tokenizer.from_vocab(WordPieceVocabulary([*SPECIAL_TOKENS, *TOKENS])),
    "bpe": Tokenizer.from_vocab(learn_bpe(WORDS, size=24)),
    "byte-level-bpe": Tokenizer.from_vocab(learn_byte_level_bpe(LETTERS, size=280)),
    "byte-level-bpe-with-steps": Tokenizer(with_steps(), lowercase=False),
    "unigram": Tokenizer.from_vocab(learn_unigram(WORDS, size=24)),
}
TEXTS = {
    "wordpiece": ["The café cats, x" + "x" * 200, "sat\x00", "IT İT II"],
    "bpe": ["New, lowest zzyzx", "the widerlowest!", "IT İT II"],
    "byte-level-bpe": ["the lower  newer\n", "", "IT İT 😀"],
    "byte-level-bpe-with-steps": ["the lower  newer\n", "", "IT I\u0307T 😀[x] "],
    "unigram": [" NEW,  lowest\tzzyzx 東", "", "IT İT II"],
}


def write_tokenizers(folder, *, names):
    """Writes the SavedModel of the tokenizers with these names."""
    served = _Served(names)
    tf.saved_model.save(served, str(folder), signatures=served.functions)


class _Served(tf.Module):
    """One signature a tokenizer: texts -> ids and the ends of the tokens, padded with -1."""

    def __init__(self, names):
        super().__init__()
        self.tokenizers = {name: TOKENIZERS[name] for name in sorted(names)}
        self.functions = {name: self._signature(name) for name in self.tokenizers}

    def _signature(self, name):
        signature = [tf.TensorSpec([None], tf.string, name="text")]

        @tf.function(input_signature=signature, autograph=False)  # as in our exports
        def serve(text):
            tokens = self.tokenizers[name].tokenize_with_offsets(text)
            return {"ids": tokens.ids.to_tensor(-1), "ends": tokens.ends.to_tensor(-1)}

        return serve
