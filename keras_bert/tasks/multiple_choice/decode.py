"""From a multiple-choice task's logits to answers, figures and mistakes."""

import numpy as np

from keras_bert.tasks.classification.decode import softmax
from keras_bert.wording import percent

_SHOWN = 200  # characters of a text


def choice_answers(logits, examples):
    """A list of N arrays (n,), padding behind the example's own choices -> N dictionaries."""
    answers = []
    for example, row in zip(examples, logits, strict=True):
        probabilities = softmax(np.asarray(row)[: len(example.choices)])
        best = int(probabilities.argmax())
        answer = {
            "context": example.context,
            "choices": list(example.choices),
            "label": best,
            "choice": example.choices[best],
            "score": float(probabilities[best]),
        }
        if example.label is not None:
            answer["expected"] = example.label
        answers.append({**answer, "probabilities": probabilities.tolist()})
    return answers


def choice_mistakes(answers, examples):
    """[(how sure the wrong answer was, its text)]."""
    return [
        (
            answer["score"],
            f"line {example.line}: {_cut(example.context)} … "
            f'"{_cut(example.choices[example.label])}", and not "{_cut(answer["choice"])}" '
            f"({percent(answer['score'])})",
        )
        for answer, example in zip(answers, examples, strict=True)
        if answer["label"] != example.label
    ]


def _cut(text):
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
