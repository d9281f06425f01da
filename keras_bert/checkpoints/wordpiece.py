"""Other programs' formats have a place for WordPiece alone."""

from keras_bert.base.errors import InputError
from keras_bert.text.template import BERT_TEMPLATE
from keras_bert.text.vocabulary import BERT_TOKENS


def check_wordpiece(tokenizer, *, needed_by):
    """Raises `InputError` unless the tokenizer (or None) has a WordPiece vocabulary as BERT's.

    `needed_by` is who reads the format, for the message.
    """
    if tokenizer is None or tokenizer.vocabulary.algorithm != "wordpiece":
        found = "no tokenizer of ours" if tokenizer is None else "one of byte-pair encoding"
        raise InputError(f"{needed_by} needs a WordPiece vocabulary, and this model has {found}.")
    own = tokenizer.template, tokenizer.special_tokens
    if own != (BERT_TEMPLATE, BERT_TOKENS):
        raise InputError(
            f"{needed_by} needs BERT's special tokens, {BERT_TEMPLATE}, and this model's tokenizer "
            f"has the template {tokenizer.template}."
        )
