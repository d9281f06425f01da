"""From logits to the spans of texts, as `keras-bert predict` prints them.

A span is from its first to its last word, both included. Column 0 of the logits is "no span".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from keras_bert.tasks.metrics import worst_first

# The metrics that a threshold may be tuned for, and the beta of their F-measure.
BETA = {"f1": 1.0, "precision": 0.5}
# Lower thresholds are not tried: they would find what is surely not a span.
LEAST_THRESHOLD = 0.05


class Found(NamedTuple):
    """A predicted span: its first and last word, the number of its label, its probability."""

    first: int
    last: int
    label: int
    score: float


class WordPositions(NamedTuple):
    """The characters at which the words of a text begin and end."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def words(self):
        return [self.text[start:end] for start, end in zip(self.starts, self.ends, strict=True)]

    def span(self, first, after):
        """The words from `first` to before `after`, as predictions describe them."""
        start, end = self.starts[first], self.ends[after - 1]
        return {"start": start, "end": end, "words": [first, after], "text": self.text[start:end]}


def spans_above(threshold, logits, *, num_words, starts):
    """The spans of a sequence whose most probable label has a probability over the threshold.

    Shapes: logits (W, L, C), of the spans of 1 to L words from each word, padding included. Of the
    `num_words` words, those in the range `starts` (first, end) may begin a span.

    Returns `Found`s, whose words count from the sequence's first one and whose labels from 0.
    """
    logits = logits[starts[0] : starts[1]]
    probabilities = softmax(logits.astype(np.float64), axis=-1)[..., 1:]  # (W', L, C - 1)
    scores = probabilities.max(axis=-1)
    width = np.arange(logits.shape[1])
    first = np.arange(*starts)
    inside = first[:, None] + width < num_words
    cells = np.nonzero(inside & (scores > threshold))
    labels = probabilities[cells].argmax(axis=-1)
    columns = first[cells[0]], first[cells[0]] + cells[1], labels, scores[cells]
    return [Found(*span) for span in zip(*(x.tolist() for x in columns), strict=True)]


def without_overlaps(spans):
    """The spans without those that overlap with a more probable kept one, by falling score.

    The kept spans do not depend on spans of lower scores, so a threshold may be applied before or
    after. Of two with equal scores the one with the lower `tie_break` is kept, then the shorter.
    """
    selected, taken = [], set()
    for span in sorted(
        spans, key=lambda span: (-span.score, tie_break(span.first), span.first, span.last)
    ):
        words = range(span.first, span.last + 1)
        if taken.isdisjoint(words):
            selected.append(span)
            taken.update(words)
    return selected


def tie_break(first):
    """The order of spans with equal scores, the lowest first, by their first word (0 to 2³¹ - 1).

    It is a hash (by the golden ratio; Knuth, The Art of Computer Programming, section 6.4), so that
    in a text that repeats one word, where all spans have equal scores, they can be selected in all
    parts of the text in parallel. If the first were kept, each would depend on the one before it.
    """
    return first * 2_654_435_769 % 2**32


def best_threshold(scores, correct, *, expected, metric):
    """The threshold on the scores of spans that gives the best F-measure.

    For "precision" it is F0.5, which weighs precision twice as much as recall (precision alone
    would be best for a single confident span).

    Shapes: scores float (N,), of every span that a low threshold finds; correct bool (N,).

    Args:
        expected: the number of expected spans.
        metric: a key of `BETA`.

    Returns:
        A number from `LEAST_THRESHOLD` to 1, half way between the scores of two spans, or 0.5 if no
        span is correct.
    """
    if not np.any(correct):
        return 0.5
    order = np.argsort(-np.asarray(scores), kind="stable")
    scores = np.append(np.asarray(scores, np.float64)[order], LEAST_THRESHOLD)
    hits = np.cumsum(np.asarray(correct)[order])  # (N,), of the first 1 to N spans
    weight = BETA[metric] ** 2
    f = (1 + weight) * hits / (weight * expected + np.arange(1, len(order) + 1))
    f[scores[:-1] == scores[1:]] = -1.0  # no threshold is between equal scores
    best = int(f.argmax())
    return float(scores[best : best + 2].mean())


def spans_of_examples(logits, sequences, *, threshold=LEAST_THRESHOLD, flat):
    """The `Found` spans of each example of `SpanSequences`, in words of its text and in order.

    Args:
        logits: for each sequence float32 (W, L, C), with the padding of its batch.
        sequences: the `SpanSequences`.
        threshold: the lowest probability.
        flat: of overlapping spans, keep only the most probable one.
    """
    spans_of_texts = [[] for _ in sequences.examples]
    columns = (x.tolist() for x in sequences.positions.values())
    for scores, (text, first, end, owned, owned_end) in zip(
        logits, zip(*columns, strict=True), strict=True
    ):
        owned_words = (owned - first, owned_end - first)
        for span in spans_above(threshold, scores, num_words=end - first, starts=owned_words):
            shifted = span._replace(first=span.first + first, last=span.last + first)
            spans_of_texts[text].append(shifted)
    if flat:
        spans_of_texts = [without_overlaps(spans) for spans in spans_of_texts]
    return [sorted(spans) for spans in spans_of_texts]


def span_predictions(spans_of_texts, sequences, *, labels, label_of):
    """N dictionaries: `text`, `words`, `spans`, and `expected` if that is known.

    A span has `start` and `end` in characters of the text, `words` ([first, after the last]), its
    `text`, its `label`, and if it is predicted its `score`.

    Args:
        spans_of_texts: what `spans_of_examples` returned.
        sequences: the `SpanSequences`.
        labels: the names of the labels, in order.
        label_of: a function from the label of an expected span to its name here.
    """
    predictions = []
    for example, (starts, ends), spans, expected in zip(
        sequences.examples, sequences.words, spans_of_texts, sequences.spans, strict=True
    ):
        position = WordPositions(example.text, starts, ends)
        prediction = {"text": example.text, "words": position.words()}
        prediction["spans"] = [
            {
                **position.span(span.first, span.last + 1),
                "label": labels[span.label],
                "score": span.score,
            }
            for span in spans
        ]
        if expected is not None:
            prediction["expected"] = [
                {**position.span(span.start, span.end), "label": label_of(span.label)}
                for span in sorted(expected, key=lambda span: span[:2])
            ]
        predictions.append(prediction)
    return predictions


def pair_predictions(logits, sequences, *, labels):
    """N dictionaries: `text`, `words`, `head`, `tail`, `label`, `score` and `probabilities`.

    Also `expected` if it is known. Head and tail are spans like those of `span_predictions`. If
    they do not fit into a sequence, the label is None and all probabilities are 0.

    Args:
        logits: float32 (N, C).
        sequences: the `PairSequences`.
        labels: the names of the C labels.
    """
    predictions = []
    probabilities = softmax(logits.astype(np.float64), axis=-1) * sequences.fits[:, None]
    columns = (getattr(sequences, name) for name in ("examples", "words", "pairs", "fits"))
    for example, (starts, ends), (head, tail), fits, scores in zip(
        *columns, probabilities.tolist(), strict=True
    ):
        position = WordPositions(example.text, starts, ends)
        best = int(np.argmax(scores))
        prediction = {
            "text": example.text,
            "words": position.words(),
            "head": position.span(head.start, head.end),
            "tail": position.span(tail.start, tail.end),
            "label": labels[best] if fits else None,
            "score": scores[best],
        }
        if example.label is not None:
            prediction["expected"] = example.label
        prediction["probabilities"] = dict(zip(labels, scores, strict=True))
        predictions.append(prediction)
    return predictions


def span_sets(spans):
    """The set of (first word, after the last word, label) of a prediction's spans."""
    return {(*span["words"], span["label"]) for span in spans}


def span_errors(predictions, examples):
    """The texts with wrong or missed spans, the worst first.

    Returns dictionaries of `line`, `text`, the `expected` and the `predicted` spans, and `score`:
    the sum of the probabilities of wrong spans, and 1 for each missed span.
    """
    errors = []
    for prediction, example in zip(predictions, examples, strict=True):
        error = {
            "line": example.line,
            "text": prediction["text"],
            "expected": prediction["expected"],
            "predicted": prediction["spans"],
        }
        missed, wrong = _differences(error)
        if missed or wrong:
            score = len(missed) + sum(span["score"] for span in wrong)
            errors.append({**error, "score": float(score)})
    return worst_first(errors)


def describe_span_error(error):
    """One of `span_errors` in words."""
    missed, wrong = _differences(error)
    parts = [f'missed {span["label"]} "{span["text"]}"' for span in missed]
    parts += [f'predicted {span["label"]} "{span["text"]}" ({span["score"]:.2f})' for span in wrong]
    return f"line {error['line']}, {', '.join(parts)}: {error['text']}"


def _differences(error):
    """-> (the expected spans that are not predicted, the predicted ones that are not expected)."""
    expected, predicted = span_sets(error["expected"]), span_sets(error["predicted"])
    missed = [s for s in error["expected"] if (*s["words"], s["label"]) not in predicted]
    return missed, [s for s in error["predicted"] if (*s["words"], s["label"]) not in expected]


def pair_errors(predictions, examples):
    """The pairs with a wrong label, the most confident first.

    Returns dictionaries of `line`, `text`, the texts of `head` and `tail`, the label that is
    `expected` and the one that is `predicted` (None: too far apart), and its `score`.
    """
    return worst_first(
        {
            "line": example.line,
            "text": prediction["text"],
            "head": prediction["head"]["text"],
            "tail": prediction["tail"]["text"],
            "expected": example.label,
            "predicted": prediction["label"],
            "score": prediction["score"],
        }
        for prediction, example in zip(predictions, examples, strict=True)
        if prediction["label"] != example.label
    )


def describe_pair_error(error):
    """One of `pair_errors` in words."""
    return (
        f"line {error['line']}, true: {error['expected']}, predicted: "
        f"{error['predicted'] or 'none (too far apart)'} ({error['score']:.2f}), "
        f'"{error["head"]}" and "{error["tail"]}": {error["text"]}'
    )
