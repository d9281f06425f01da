"""From the logits of rows to the spans of texts, as `keras-bert predict` prints them."""

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

        def described(first, after, label, text=example.text, starts=starts, ends=ends):
            start, end = starts[first], ends[after - 1]
            return {
                "start": start,
                "end": end,
                "words": [first, after],
                "text": text[start:end],
                "label": label,
            }

        words = [example.text[start:end] for start, end in zip(starts, ends, strict=True)]
        answer = {"text": example.text, "words": words}
        answer["spans"] = [
            {**described(span.first, span.last + 1, labels[span.label]), "score": span.score}
            for span in spans
        ]
        if expected is not None:
            answer["expected"] = [
                described(span.start, span.end, label_of(span.label))
                for span in sorted(expected, key=lambda span: span[:2])
            ]
        answers.append(answer)
    return answers


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
