"""Texts that come from Python, or from a command line, instead of from a file."""

from keras_bert.base.errors import InputError
from keras_bert.readers.label_forms import missing_label, one_label
from keras_bert.readers.labelled_text import LabelledText


class GivenTexts:
    """A sequence of strings or of (text, label), with the interface of `LabelledTexts`.

    Of pairs of texts, a sequence of (text, text) or (text, text, label). What a file calls a line
    is the place in the sequence, from 1.

    Args:
        data: the sequence.
        need_labels: whether each must have a label.
        texts: the names of an example's texts, one or two.
        form: what a label is: a function of `label_forms`.

    Raises:
        ValueError: something else than strings and tuples of these.
        InputError: a label is missing, or cannot be.
    """

    name = "the given texts"
    kind = "given"

    description = ""

    def __init__(self, data, *, need_labels=True, texts=("text",), form=one_label):
        self._examples = [
            self._example(place, item, texts, form) for place, item in enumerate(data, start=1)
        ]
        for example in self._examples:
            if need_labels and example.label is None:
                raise example.error(
                    "no label; give a pair of a text and its label."
                    if len(texts) == 1
                    else "no label; give two texts and their label."
                )

    def __iter__(self):
        return iter(self._examples)

    def notes(self):
        """Nothing is left out."""
        return []

    def error(self, line, message):
        """The InputError that says which text is meant."""
        return InputError(f"Text {line} of those given: {message}")

    def _example(self, place, item, names, form):
        parts = (item,) if isinstance(item, str) else tuple(item)
        texts, label = parts[: len(names)], (*parts[len(names) :], None)[0]
        if not (
            len(names) <= len(parts) <= len(names) + 1
            and all(isinstance(text, str) for text in texts)
        ):
            what = "strings or pairs of a text and its label"
            if len(names) > 1:
                what = "pairs of strings, or two strings and their label"
            raise ValueError(f"Texts must be {what}. Received: {item!r}")
        try:
            value = form(label)
        except ValueError as error:
            raise self.error(place, f"{error}.") from None
        if form is one_label and value is None and not isinstance(label, str | None):
            raise self.error(place, f"{missing_label(label)}.")
        return LabelledText(place, texts[0], value, *texts[1:], source=self)
