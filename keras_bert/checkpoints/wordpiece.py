"""Other programs' formats have a place for WordPiece alone."""

from keras_bert.errors import InputError
from keras_bert.text.bpe_vocabulary import BpeVocabulary


def check_wordpiece(tokenizer, *, needed_by):
    """Raises `InputError` unless the tokenizer (or None) has a WordPiece vocabulary.

    `needed_by` is who reads the format, for the message.
    """
    if tokenizer is None or isinstance(tokenizer.vocabulary, BpeVocabulary):
        found = "no tokenizer of ours" if tokenizer is None else "one of byte-pair encoding"
        raise InputError(f"{needed_by} needs a WordPiece vocabulary, and this model has {found}.")
