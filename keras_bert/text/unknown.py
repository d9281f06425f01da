"""Telling that a vocabulary does not fit a text."""

from keras_bert.base.formatting import percent

# From this share on; a model cannot tell one [UNK] from another.
_MUCH = 0.05


def note_on_unknown(unknown, tokens, *, which=""):
    """A sentence where many of so many tokens are [UNK], else None.

    Args:
        unknown: how many are.
        tokens: how many there are.
        which: says in the sentence whose they are ("dev").
    """
    if unknown <= _MUCH * tokens:
        return None
    return (
        f"{percent(unknown / tokens)} of the {which + ' ' if which else ''}tokens are [UNK]: the "
        "vocabulary does not have these words, nor parts of them."
    )
