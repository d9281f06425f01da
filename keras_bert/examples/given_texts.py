"""Texts that come from Python instead of from a file."""

from keras_bert.errors import InputError
from keras_bert.examples.labelled_text import LabelledText


class GivenTexts:
    """A sequence of strings, or of (text, label) pairs, with the interface of `LabelledTexts`.

    What a file calls a line is the place in the sequence, from 1. Raises ValueError for anything
    else than strings and pairs of strings.
    """

    name = "the given texts"
    kind = "given"

    description = ""

    def __init__(self, texts, *, need_labels=True):
        self._examples = [
            LabelledText(place, *_text_and_label(text), source=self)
            for place, text in enumerate(texts, start=1)
        ]
        for example in self._examples:
            if need_labels and example.label is None:
                raise example.error("no label; give a pair of a text and its label.")

    def __iter__(self):
        return iter(self._examples)

    def error(self, line, message):
        """The InputError that says which text is meant."""
        return InputError(f"Text {line} of those given: {message}")


def _text_and_label(item):
    text, label = (item, None) if isinstance(item, str) else item
    if not isinstance(text, str) or not isinstance(label, str | None):
        raise ValueError(
            f"Texts must be strings or pairs of a text and its label. Received: {item!r}"
        )
    return text, label
