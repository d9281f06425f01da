"""From a tag a word to spans."""

import re

from keras_bert.examples.schemes import OUTSIDE, join_tag, spans_of
from keras_bert.examples.spans import LabelledSpan

_TAG = re.compile(r"O|([BIELMSUW])(?:-(.+))?")
# BIOES under other names: BILOU's, and BMEOW's.
_LETTERS = {"L": "E", "M": "I", "U": "S", "W": "S"}


def spans_of_tags(tags, *, error):
    """The `LabelledSpan`s of tags in IOB1, IOB2 (BIO) or IOBES, by conlleval's rules.

    Args:
        tags: a sequence of tags.
        error: a function of a message and the number of a word to the error to raise for a tag of
            another form.
    """
    usual = []
    for place, tag in enumerate(tags):
        found = _TAG.fullmatch(tag)
        if found is None:
            raise error(f'the tag "{tag}" is no O, B-…, I-…, E-… or S-….', place)
        letter, label = found[1], found[2]
        usual.append(join_tag(_LETTERS.get(letter, letter), label) if letter else OUTSIDE)
    return tuple(LabelledSpan(start, end, label or None) for start, end, label in spans_of(usual))
