"""Other programs' formats have a place for WordPiece alone."""

from keras_bert.base.errors import InputError


def check_wordpiece(tokenizer, *, needed_by):
    """Raises `InputError` unless the tokenizer (or None) has a WordPiece vocabulary.

    `needed_by` is who reads the format, for the message.
    """
    if tokenizer is None or tokenizer.vocabulary.algorithm != "wordpiece":
        found = "no tokenizer of ours" if tokenizer is None else "one of byte-pair encoding"
        raise InputError(f"{needed_by} needs a WordPiece vocabulary, and this model has {found}.")
