"""Predictions as HTML: entities, spans and answers marked in their texts."""

from collections.abc import Iterable
from html import escape
from typing import Any

from keras_bert.base.formatting import html_table

_COLOURS = ("#cfe8ff", "#ffe3c2", "#d6f5d6", "#e6d9f7", "#fde2e8", "#fff3b8")


class ShownPredictions(list):
    """Predictions, a list of dictionaries, which a notebook shows as HTML."""

    def __init__(self, predictions, texts):
        super().__init__(predictions)
        self._texts = texts

    def _repr_html_(self):
        colours = _colours(self)
        shown = [
            _shown(prediction, text, colours)
            for prediction, text in zip(self, self._texts, strict=True)
        ]
        if None not in shown:
            return "".join(f'<p style="line-height:2">{html}</p>' for html in shown)
        rows = [
            tuple(f"{v:.3f}" if isinstance(v, float) else v for v in _plain(prediction).values())
            for prediction in self
        ]
        return html_table(rows, header=tuple(_plain(self[0])) if self else ())


def show_predictions(
    predictions: Iterable[dict[str, Any]], *, texts: Iterable[str] | None = None
) -> list[dict[str, Any]]:
    """Shows predictions of `kb.predict` in a notebook.

    Entities of a tagger, spans of a span classifier and answers to questions are marked in their
    texts; other predictions are a table.

    Args:
        predictions: what `kb.predict` yields, for any task.
        texts: the contexts of questions, one per prediction; other predictions have their text.

    Returns:
        The predictions as a list, which a notebook shows as HTML.
    """
    predictions = list(predictions)
    texts = [None] * len(predictions) if texts is None else list(texts)
    return ShownPredictions(predictions, texts)


def _colours(predictions):
    """A colour for each label, in the order of the alphabet."""
    labels = sorted({mark["label"] for prediction in predictions for mark in _marks(prediction)})
    return {label: _COLOURS[n % len(_COLOURS)] for n, label in enumerate(labels)}


def _marks(prediction):
    """The entities or spans of a prediction."""
    return prediction.get("entities") or prediction.get("spans") or ()


def _shown(prediction, text, colours):
    """A prediction as HTML; None if it has nothing to mark."""
    if "entities" in prediction or "spans" in prediction:
        return _marked(prediction["text"], _marks(prediction), colours)
    if "question" not in prediction or text is None:
        return None
    start, end = prediction["start"], prediction["end"]
    before, answer, after = (escape(part) for part in (text[:start], text[start:end], text[end:]))
    question = f"<b>{escape(prediction['question'])}</b> {prediction['score']:.2f}"
    return f"{question}<br>{before}<mark>{answer}</mark>{after}"


def _marked(text, marks, colours):
    """The text with a coloured box around every mark; boxes may be nested."""
    opened, closed = {}, {}
    for mark in sorted(marks, key=lambda mark: mark["start"] - mark["end"]):
        style = "color:#1f2430;padding:2px 4px;border-radius:4px"
        box = f'<span style="background:{colours[mark["label"]]};{style}">'
        opened[mark["start"]] = opened.get(mark["start"], "") + box
        label = f" <small>{escape(mark['label'])}</small></span>"
        closed[mark["end"]] = label + closed.get(mark["end"], "")
    return "".join(
        closed.get(at, "") + opened.get(at, "") + escape(text[at : at + 1])
        for at in range(len(text) + 1)
    )


def _plain(prediction):
    """The fields of a prediction that fit into a table."""
    return {k: v for k, v in prediction.items() if isinstance(v, str | int | float | bool | None)}
