"""From the logits of rows to the spans of texts, as `keras-bert predict` prints them.

A span goes from its first to its last word, both counted in. Column 0 of the logits is "no span".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

# What a threshold may be tuned for, and how many times as much as precision recall counts there.
BETA = {"f1": 1.0, "precision": 0.5}
# A lower threshold is not tried: it would call what the model is sure of not to be a span one.
LEAST_THRESHOLD = 0.05


class Found(NamedTuple):
    """A span that is found: its first and last word, the number of its label, its probability."""

    first: int
    last: int
    label: int
    score: float


def spans_above(threshold, logits, *, num_words, starts):
    """The spans of a row whose likeliest label has a probability over the threshold.

    Shapes: logits (W, L, C), of the spans of 1 to L words from each word of the row, padding
    included. Of the `num_words` words, those in the range `starts` (first, end) may begin a span.

    Returns `Found`s, whose words count from the row's first one and whose labels count from 0.
    """
    logits = logits[starts[0] : starts[1]]
    probabilities = softmax(logits.astype(np.float64), axis=-1)[..., 1:]  # (W', L, C - 1)
    scores = probabilities.max(axis=-1)
    width = np.arange(logits.shape[1])
    first = np.arange(*starts)
    inside = first[:, None] + width < num_words
    rows, columns = np.nonzero(inside & (scores > threshold))
    labels = probabilities[rows, columns].argmax(axis=-1)
    return [
        Found(int(first[row]), int(first[row] + column), int(label), float(scores[row, column]))
        for row, column, label in zip(rows, columns, labels, strict=True)
    ]


def without_overlaps(spans):
    """The spans that share no word with a likelier one that is kept, the likeliest first.

    What is kept does not depend on spans of lower scores, so a threshold may come before or after.
    Of two that are as likely, `tie_break` of their first words tells; of one first word, the
    shorter is kept.
    """
    kept, taken = [], set()
    for span in sorted(
        spans, key=lambda span: (-span.score, tie_break(span.first), span.first, span.last)
    ):
        words = range(span.first, span.last + 1)
        if taken.isdisjoint(words):
            kept.append(span)
            taken.update(words)
    return kept


def tie_break(first):
    """The turn of spans that are as likely, the lower first, from their first words (0 to 2³¹ - 1).

    It jumps about (by the golden ratio; Knuth, The Art of Computer Programming, section 6.4), so
    that in a text of one word again and again, where all spans are as likely, which of them are
    kept can be told in all parts of the text at once. Were the earlier one kept, each would wait
    for the one before it.
    """
    return first * 2_654_435_769 % 2**32


def best_threshold(scores, correct, *, expected, metric):
    """The threshold on the scores of spans that gives the best F-measure.

    For "precision" it is F0.5, which counts precision twice as much as recall; by precision alone,
    a single sure span would be best.

    Shapes: scores float (N,), of every span that a low threshold finds; correct bool (N,).

    Args:
        expected: how many spans there are in truth.
        metric: a key of `BETA`.

    Returns:
        A number from `LEAST_THRESHOLD` to 1, half way between the scores of two spans; 0.5 where
        nothing correct is found.
    """
    if not np.any(correct):
        return 0.5
    order = np.argsort(-np.asarray(scores), kind="stable")
    scores = np.append(np.asarray(scores, np.float64)[order], LEAST_THRESHOLD)
    right = np.cumsum(np.asarray(correct)[order])  # (N,), of the first 1 to N spans
    weight = BETA[metric] ** 2
    f = (1 + weight) * right / (weight * expected + np.arange(1, len(order) + 1))
    f[scores[:-1] == scores[1:]] = -1.0  # no threshold lies between two that are equal
    best = int(f.argmax())
    return float(scores[best : best + 2].mean())


def spans_of_examples(logits, rows, *, threshold=LEAST_THRESHOLD, flat):
    """The `Found` spans of each example of `SpanRows`, in words of its text and in their order.

    Args:
        logits: for each row float32 (W, L, C), with the padding of its batch.
        rows: the `SpanRows`.
        threshold: the least probability.
        flat: of spans that overlap, only the likeliest is found.
    """
    found = [[] for _ in rows.examples]
    positions = zip(*rows.positions.values(), strict=True)
    for row, (text, first, end, owned, owned_end) in zip(logits, positions, strict=True):
        own = (int(owned - first), int(owned_end - first))
        for span in spans_above(threshold, row, num_words=end - first, starts=own):
            shifted = span._replace(first=span.first + int(first), last=span.last + int(first))
            found[text].append(shifted)
    if flat:
        found = [without_overlaps(spans) for spans in found]
    return [sorted(spans) for spans in found]


def span_predictions(found, rows, *, labels, label_of):
    """N dictionaries: `text`, its `words`, its `spans`, and `expected` where that is known.

    A span has `start` and `end` in characters of the text, `words` ([first, after the last]), its
    `text`, its `label`, and where it is found its `score`.

    Args:
        found: what `spans_of_examples` gives.
        rows: the `SpanRows`.
        labels: the names of the labels, in order.
        label_of: a function from the label of an expected span to what it is called here.
    """
    predictions = []
    for example, (starts, ends), spans, expected in zip(
        rows.examples, rows.words, found, rows.spans, strict=True
    ):
        position = _Positions(example.text, starts, ends)
        prediction = {"text": example.text, "words": position.words()}
        prediction["spans"] = [
            {
                **position.of(span.first, span.last + 1),
                "label": labels[span.label],
                "score": span.score,
            }
            for span in spans
        ]
        if expected is not None:
            prediction["expected"] = [
                {**position.of(span.start, span.end), "label": label_of(span.label)}
                for span in sorted(expected, key=lambda span: span[:2])
            ]
        predictions.append(prediction)
    return predictions


def pair_predictions(logits, rows, *, labels):
    """N dictionaries: `text`, `words`, `head`, `tail`, `label`, `score` and `probabilities`.

    Also `expected` where it is known. Head and tail are spans like those of `span_predictions`.
    Where a row is too short for both, the label is None and all probabilities are 0.

    Args:
        logits: float32 (N, C).
        rows: the `PairRows`.
        labels: the names of the C labels.
    """
    predictions = []
    probabilities = softmax(logits.astype(np.float64), axis=-1) * rows.fits[:, None]
    for example, (starts, ends), (head, tail), fits, row in zip(
        rows.examples, rows.words, rows.pairs, rows.fits, probabilities, strict=True
    ):
        position = _Positions(example.text, starts, ends)
        best = int(row.argmax())
        prediction = {
            "text": example.text,
            "words": position.words(),
            "head": position.of(head.start, head.end),
            "tail": position.of(tail.start, tail.end),
            "label": labels[best] if fits else None,
            "score": float(row[best]),
        }
        if example.label is not None:
            prediction["expected"] = example.label
        prediction["probabilities"] = dict(zip(labels, map(float, row), strict=True))
        predictions.append(prediction)
    return predictions


class _Positions(NamedTuple):
    """Where the words of a text begin and end in it, in characters."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def words(self):
        return [self.text[start:end] for start, end in zip(self.starts, self.ends, strict=True)]

    def of(self, first, after):
        """The words from `first` to before `after`, as answers describe them."""
        start, end = self.starts[first], self.ends[after - 1]
        return {"start": start, "end": end, "words": [first, after], "text": self.text[start:end]}


def span_sets(spans):
    """The set of (first word, after the last word, label) of an answer's spans."""
    return {(*span["words"], span["label"]) for span in spans}


def span_errors(predictions, examples):
    """(how bad, text for a person) of each text with a span too many or too few.

    As bad as the probabilities of what is wrongly found, and 1 for each span that is missed.
    """
    errors = []
    for prediction, example in zip(predictions, examples, strict=True):
        expected, found = span_sets(prediction["expected"]), span_sets(prediction["spans"])
        missed = [s for s in prediction["expected"] if (*s["words"], s["label"]) not in found]
        wrong = [s for s in prediction["spans"] if (*s["words"], s["label"]) not in expected]
        if missed or wrong:
            parts = [f'missed {span["label"]} "{span["text"]}"' for span in missed]
            parts += [
                f'found {span["label"]} "{span["text"]}" ({span["score"]:.2f})' for span in wrong
            ]
            badness = len(missed) + sum(span["score"] for span in wrong)
            errors.append(
                (badness, f"line {example.line}, {', '.join(parts)}: {prediction['text']}")
            )
    return errors


def pair_errors(predictions, examples):
    """(how bad, text for a person) of each pair with another label than expected.

    As bad as the probability of the one that it got.
    """
    return [
        (
            prediction["score"],
            f"line {example.line}, {prediction['label'] or 'too far apart'} "
            f"({prediction['score']:.2f}) in "
            f'place of {example.label}, of "{prediction["head"]["text"]}" and '
            f'"{prediction["tail"]["text"]}": {prediction["text"]}',
        )
        for prediction, example in zip(predictions, examples, strict=True)
        if prediction["label"] != example.label
    ]
