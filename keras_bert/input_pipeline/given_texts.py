"""Texts that come from Python instead of from a file."""

from keras_bert.errors import InputError
from keras_bert.input_pipeline.labelled_files import LabelledText


class GivenTexts:
    """A sequence of strings, or of (text, label) pairs, with the interface of `LabelledTexts`.

    What a file calls a line is the place in the sequence, from 1. Raises ValueError for anything
    else than strings and pairs of strings.
    """

    name = "the given texts"
    kind = "given"

    def __init__(self, texts):
        self._examples = [_example(place, text) for place, text in enumerate(texts, start=1)]
        self.labelled = any(example.label is not None for example in self._examples)

    def __iter__(self):
        return iter(self._examples)

    def error(self, line, message):
        """The InputError that says which text is meant."""
        return InputError(f"Text {line} of those given: {message}")


def _example(place, item):
    text, label = (item, None) if isinstance(item, str) else item
    if not isinstance(text, str) or not isinstance(label, str | None):
        raise ValueError(
            f"Texts must be strings or pairs of a text and its label. Received: {item!r}"
        )
    return LabelledText(line=place, text=text, label=label)
