"""From a multiple-choice task's logits to answers, figures and mistakes."""

import numpy as np

from keras_bert.base.formatting import percent
from keras_bert.tasks.classification.decode import in_one_line
from keras_bert.tasks.classification.metrics import calibration
from keras_bert.tasks.probabilities import softmax


def choice_metrics(answers, examples):
    """The official measures, as JSON can hold them, of answers that say what is `expected`.

    `accuracy`, `cross_entropy` in nats, `examples`, and `calibration` (see there).
    """
    right = np.array(
        [answer["label"] == e.label for answer, e in zip(answers, examples, strict=True)]
    )
    chosen = [a["probabilities"][e.label] for a, e in zip(answers, examples, strict=True)]
    smallest = np.finfo(np.float32).tiny  # a probability of 0 in float32 is not one in truth
    return {
        "accuracy": float(right.mean()),
        "cross_entropy": float(-np.log(np.maximum(chosen, smallest)).mean()),
        "examples": len(examples),
        "calibration": calibration([answer["score"] for answer in answers], right),
    }


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


def choice_errors(answers, examples):
    """[(how sure the wrong answer was, its text)]."""
    return [
        (answer["score"], _mistake(answer, example))
        for answer, example in zip(answers, examples, strict=True)
        if answer["label"] != example.label
    ]


def _mistake(answer, example):
    texts = (example.context, example.choices[example.label], answer["choice"])
    context, right, wrong = map(in_one_line, texts)
    return (
        f'line {example.line}: {context} … "{right}", and not "{wrong}" '
        f"({percent(answer['score'])})"
    )
