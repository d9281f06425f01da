"""From a tag a word to spans."""

import re

from keras_bert.examples.spans import LabelledSpan

# O, B-PER, I-PER, …, or without a type; L and U (or M and W) are other names in BIOES.
_TAG = re.compile(r"O|([BIELMSUW])(?:-(.+))?")
_BEGINS, _ENDS = "BSUW", "ELSUW"


def spans_of_tags(tags, *, error):
    """The `LabelledSpan`s of tags in IOB1, IOB2 (BIO) or IOBES, by conlleval's rules.

    A span begins at B and S, and at another tag with a type that does not go on with the one before
    it: where that is O, is of another type, or ends a span (E, S). So every sequence has spans.

    Args:
        tags: a sequence of tags.
        error: a function of a message and the number of a word to the error to raise for a tag of
            another form.
    """
    spans, start, label = [], None, None
    for place, tag in enumerate(tags):
        found = _TAG.fullmatch(tag)
        if found is None:
            raise error(f'the tag "{tag}" is no O, B-…, I-…, E-… or S-….', place)
        prefix, its_label = found[1], found[2]
        if start is not None and (
            prefix is None or prefix in _BEGINS or its_label != label or tags[place - 1][0] in _ENDS
        ):
            spans.append(LabelledSpan(start, place, label))
            start = None
        if prefix is not None and start is None:
            start, label = place, its_label
    if start is not None:
        spans.append(LabelledSpan(start, len(tags), label))
    return tuple(spans)
