"""From a tag a word to spans."""

import re

from keras_bert.examples.schemes import OUTSIDE, join_tag, scheme_of, spans_of
from keras_bert.examples.spans import LabelledSpan, SpannedWords, joined

_TAG = re.compile(r"O|([BIELMSUW])(?:-(.+))?")
# BIOES under other names: BILOU's, and BMEOW's.
_LETTERS = {"L": "E", "M": "I", "U": "S", "W": "S"}


def of_tagged(examples, source, *, broken, look):
    """Yields the `SpannedWords` of `TaggedWords`.

    Args:
        examples: an iterable of these.
        source: what they come from.
        broken: the `BrokenTags` that looks at their tags.
        look: whether it does; then all examples are read before the first is given, since what the
            scheme of a file is, all of its tags tell.
    """
    if look:
        examples = list(examples)
        tags = [_usual_tags(example) for example in examples]
        scheme = scheme_of(tags)
        for example, usual in zip(examples, tags, strict=True):
            if scheme is not None:
                broken.look_at(example, scheme, tags=usual)
    return (_spanned(example, source) for example in examples)


def spans_of_tags(tags, *, error):
    """The `LabelledSpan`s of tags in IOB1, IOB2 (BIO) or IOBES, by conlleval's rules.

    Args:
        tags: a sequence of tags.
        error: a function of a message and the number of a word to the error to raise for a tag of
            another form.
    """
    found = spans_of(_usual(tags, error=error))
    return tuple(LabelledSpan(start, end, label or None) for start, end, label in found)


def _usual(tags, *, error):
    """The tags in the letters of BIOES."""
    usual = []
    for place, tag in enumerate(tags):
        found = _TAG.fullmatch(tag)
        if found is None:
            raise error(f'the tag "{tag}" is no O, B-…, I-…, E-… or S-….', place)
        letter, label = found[1], found[2]
        usual.append(join_tag(_LETTERS.get(letter, letter), label) if letter else OUTSIDE)
    return usual


def _usual_tags(example):
    return _usual(example.tags or (), error=lambda message, word: example.error(message, word=word))


def _spanned(example, source):
    spans = None
    if example.tags is not None:
        spans = spans_of_tags(
            example.tags, error=lambda message, word: example.error(message, word=word)
        )
    text, starts = example.text, example.starts
    if text is None:
        text, starts = joined(example.words)
    return SpannedWords(
        example.line,
        text,
        example.words,
        starts,
        spans,
        document=example.document,
        source=source,
    )
