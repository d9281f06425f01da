"""From the logits of rows to the spans of texts, as `keras-bert predict` prints them."""

from collections.abc import Sequence
from typing import NamedTuple

from keras_bert.tasks.probabilities import softmax
from keras_bert.tasks.span_classification.candidates import (
    LEAST_THRESHOLD,
    spans_above,
    without_overlaps,
)


def spans_of_examples(logits, rows, *, threshold=LEAST_THRESHOLD, flat):
    """The `Found` spans of each example of `SpanRows`, in words of its text and in their order.

    Args:
        logits: for each row float32 (W, L, C), with the padding of its batch.
        rows: the `SpanRows`.
        threshold: the least probability.
        flat: of spans that overlap, only the likeliest is found.
    """
    found = [[] for _ in rows.examples]
    places = zip(*rows.places.values(), strict=True)
    for row, (text, first, end, owned, owned_end) in zip(logits, places, strict=True):
        own = (int(owned - first), int(owned_end - first))
        for span in spans_above(threshold, row, num_words=end - first, starts=own):
            shifted = span._replace(first=span.first + int(first), last=span.last + int(first))
            found[text].append(shifted)
    if flat:
        found = [without_overlaps(spans) for spans in found]
    return [sorted(spans) for spans in found]


def span_answers(found, rows, *, labels, label_of):
    """N dictionaries: `text`, its `words`, its `spans`, and `expected` where that is known.

    A span has `start` and `end` in characters of the text, `words` ([first, after the last]), its
    `text`, its `label`, and where it is found its `score`.

    Args:
        found: what `spans_of_examples` gives.
        rows: the `SpanRows`.
        labels: the names of the labels, in order.
        label_of: a function from the label of an expected span to what it is called here.
    """
    answers = []
    for example, (starts, ends), spans, expected in zip(
        rows.examples, rows.words, found, rows.spans, strict=True
    ):
        place = _Places(example.text, starts, ends)
        answer = {"text": example.text, "words": place.words()}
        answer["spans"] = [
            {
                **place.of(span.first, span.last + 1),
                "label": labels[span.label],
                "score": span.score,
            }
            for span in spans
        ]
        if expected is not None:
            answer["expected"] = [
                {**place.of(span.start, span.end), "label": label_of(span.label)}
                for span in sorted(expected, key=lambda span: span[:2])
            ]
        answers.append(answer)
    return answers


def pair_answers(logits, rows, *, labels):
    """N dictionaries: `text`, `words`, `head`, `tail`, `label`, `score` and `probabilities`.

    Also `expected` where it is known. Head and tail are spans like those of `span_answers`. Where a
    row is too short for both, the label is None and all probabilities are 0.

    Args:
        logits: float32 (N, C).
        rows: the `PairRows`.
        labels: the names of the C labels.
    """
    answers = []
    chances = softmax(logits) * rows.fits[:, None]
    for example, (starts, ends), (head, tail), fits, row in zip(
        rows.examples, rows.words, rows.pairs, rows.fits, chances, strict=True
    ):
        place = _Places(example.text, starts, ends)
        best = int(row.argmax())
        answer = {
            "text": example.text,
            "words": place.words(),
            "head": place.of(head.start, head.end),
            "tail": place.of(tail.start, tail.end),
            "label": labels[best] if fits else None,
            "score": float(row[best]),
        }
        if example.label is not None:
            answer["expected"] = example.label
        answer["probabilities"] = dict(zip(labels, map(float, row), strict=True))
        answers.append(answer)
    return answers


class _Places(NamedTuple):
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


def span_mistakes(answers, examples):
    """(how bad, text for a person) of each text with a span too many or too few.

    As bad as the probabilities of what is wrongly found, and 1 for each span that is missed.
    """
    mistakes = []
    for answer, example in zip(answers, examples, strict=True):
        expected, found = span_sets(answer["expected"]), span_sets(answer["spans"])
        missed = [s for s in answer["expected"] if (*s["words"], s["label"]) not in found]
        wrong = [s for s in answer["spans"] if (*s["words"], s["label"]) not in expected]
        if missed or wrong:
            parts = [f'missed {span["label"]} "{span["text"]}"' for span in missed]
            parts += [
                f'found {span["label"]} "{span["text"]}" ({span["score"]:.2f})' for span in wrong
            ]
            badness = len(missed) + sum(span["score"] for span in wrong)
            mistakes.append((badness, f"line {example.line}, {', '.join(parts)}: {answer['text']}"))
    return mistakes


def pair_mistakes(answers, examples):
    """(how bad, text for a person) of each pair with another label than expected.

    As bad as the probability of the one that it got.
    """
    return [
        (
            answer["score"],
            f"line {example.line}, {answer['label'] or 'too far apart'} ({answer['score']:.2f}) in "
            f'place of {example.label}, of "{answer["head"]["text"]}" and '
            f'"{answer["tail"]["text"]}": {answer["text"]}',
        )
        for answer, example in zip(answers, examples, strict=True)
        if answer["label"] != example.label
    ]
