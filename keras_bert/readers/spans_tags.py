"""From a tag a word to spans."""

import re

from keras_bert.readers.schemes import scheme_of, spans_of
from keras_bert.readers.spans import LabelledSpan, SpannedWords, joined

_TAG = re.compile(r"O|[BIESLUMW](-.+)?")


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
        scheme = scheme_of(example.tags or () for example in examples)
        for example in examples if scheme is not None else ():
            broken.look_at(example, scheme)
    return (_spanned(example, source) for example in examples)


def spans_of_tags(tags, *, error):
    """The `LabelledSpan`s of tags of whatever scheme (see `schemes`), by conlleval's rules.

    Args:
        tags: a sequence of tags.
        error: a function of a message and the number of a word to the error to raise for a tag of
            another form.
    """
    for place, tag in enumerate(tags):
        if not _TAG.fullmatch(tag):
            raise error(f'the tag "{tag}" is no O, B-…, I-…, E-… or S-….', place)
    return tuple(LabelledSpan(start, end, label or None) for start, end, label in spans_of(tags))


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
