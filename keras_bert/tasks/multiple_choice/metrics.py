"""How often the right choice was made."""

import numpy as np

from keras_bert.tasks.classification.metrics import calibration


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
