"""A tokenizer and an encoder small enough to make in a moment, for tests of what stands on them."""

import string

import keras

from keras_bert.encoders.bert.config import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary import SPECIAL_PIECES
from keras_bert.text.wordpiece_vocabulary import WordPieceVocabulary

LETTERS = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]


def make_tokenizer(words=()):
    """Knows these words, punctuation, and every other word by its letters."""
    return Tokenizer.from_vocab(
        WordPieceVocabulary([*SPECIAL_PIECES, *LETTERS, *string.punctuation, *words])
    )


def make_encoder(tokenizer, **changes):
    """The same random weights in every call; large ones, so that texts differ."""
    keras.utils.set_random_seed(5)
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 40,
        "initializer_range": 0.3,
    }
    return BertEncoder(BertConfig(**{**sizes, **changes}))
