"""From a multiple-choice task's logits to answers, figures and mistakes."""

import numpy as np
from scipy.special import softmax

from keras_bert.base.formatting import percent
from keras_bert.tasks.classification.decode import in_one_line
from keras_bert.tasks.metrics import calibration


def choice_metrics(predictions, examples):
    """The official measures, as JSON can hold them, of answers that say what is `expected`.

    `accuracy`, `cross_entropy` in nats, `examples`, and `calibration` (see there).
    """
    right = np.array(
        [
            prediction["label"] == e.label
            for prediction, e in zip(predictions, examples, strict=True)
        ]
    )
    chosen = [a["probabilities"][e.label] for a, e in zip(predictions, examples, strict=True)]
    smallest = np.finfo(np.float32).tiny  # a probability of 0 in float32 is not one in truth
    return {
        "accuracy": float(right.mean()),
        "cross_entropy": float(-np.log(np.maximum(chosen, smallest)).mean()),
        "examples": len(examples),
        "calibration": calibration([prediction["score"] for prediction in predictions], right),
    }


def choice_predictions(logits, examples):
    """A list of N arrays (n,), padding behind the example's own choices -> N dictionaries."""
    predictions = []
    for example, row in zip(examples, logits, strict=True):
        probabilities = softmax(np.asarray(row, np.float64)[: len(example.choices)])
        best = int(probabilities.argmax())
        prediction = {
            "context": example.context,
            "choices": list(example.choices),
            "label": best,
            "choice": example.choices[best],
            "score": float(probabilities[best]),
        }
        if example.label is not None:
            prediction["expected"] = example.label
        predictions.append({**prediction, "probabilities": probabilities.tolist()})
    return predictions


def choice_errors(predictions, examples):
    """[(how sure the wrong answer was, its text)]."""
    return [
        (prediction["score"], _mistake(prediction, example))
        for prediction, example in zip(predictions, examples, strict=True)
        if prediction["label"] != example.label
    ]


def _mistake(prediction, example):
    texts = (example.context, example.choices[example.label], prediction["choice"])
    context, right, wrong = map(in_one_line, texts)
    return (
        f'line {example.line}: {context} … "{right}", and not "{wrong}" '
        f"({percent(prediction['score'])})"
    )
