"""From a classifier's logits to answers."""

import numpy as np


def softmax(logits):
    """(…, C) -> float64 (…, C)."""
    logits = logits.astype(np.float64)
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def classifier_answers(logits, examples, *, labels):
    """logits (N, C) -> N dictionaries, as `keras-bert predict` prints them."""
    answers = []
    for example, row in zip(examples, softmax(logits), strict=True):
        best = int(row.argmax())
        answer = {"text": example.text, "label": labels[best], "score": float(row[best])}
        if example.label is not None:
            answer["expected"] = example.label
        answer["probabilities"] = dict(zip(labels, map(float, row), strict=True))
        answers.append(answer)
    return answers
