"""Sentences on what is off with the examples or the results of fine-tuning, and what helps.

Each finding is a sentence or two. A run reports them, and metrics.json has them as `warnings`;
`fit` warns of them.
"""

import numpy as np

from keras_bert.base.formatting import counted, listed
from keras_bert.readers.examples import first_location
from keras_bert.readers.text_notes import contradictions

_MOST_NAMES = 5
_CLASS_WEIGHTS = 'If labels are rare, `class_weights="balanced"` (--class-weights balanced) helps.'


def result_and_loss_findings(
    task, metrics, records, *, steps_per_epoch, defaults=None, chosen=frozenset()
):
    """Says what is off with a trained task: see `result_findings` and `loss_finding`.

    `defaults` is what `advice_of_defaults` gives, or None; `chosen` is as there.
    """
    advice = defaults or _advice_to_learn_more(chosen)
    if hasattr(task.settings, "class_weights"):
        advice = _sentences(advice, _CLASS_WEIGHTS)
    yield from result_findings(metrics or {}, advice)
    another = "" if "learning_rate" in chosen else "Try another `learning_rate` (--learning-rate)."
    yield from loss_finding(records, steps_per_epoch, defaults or another)
    if "temperature" in task.tuned and task.settings.temperature == 1:
        scores = metrics or {}
        is_right = 1.0 in (scores.get("accuracy"), scores.get("subset_accuracy"))
        reason = (
            "the model is right on all dev examples, so that they do not show how often it is wrong"
            if is_right
            else "no temperature makes the calibration error on the dev data lower"
        )
        yield f"Not calibrated: {reason}. Give `calibrate` (--calibrate) more `dev` (--dev) data."


def _advice_to_learn_more(chosen):
    advice = {
        "learning_rate": "a higher `learning_rate` (--learning-rate)",
        "epochs": "more `epochs` (--epochs)",
    }
    text = " or ".join(part for name, part in advice.items() if name not in chosen)
    helps = "helps" if "epochs" in chosen else "help"
    return text and f"{text[0].upper()}{text[1:]} {helps} if the model has learned too little."


def _sentences(*sentences):
    """Some sentences as one text, without those that are empty."""
    return " ".join(filter(None, sentences))


def advice_of_defaults(settings, default, chosen=frozenset()):
    """To take the default learning rate or epochs; None for a run that has these, or more epochs.

    Args:
        settings: those of the run.
        default: the same settings with the default learning rate and epochs.
        chosen: the names of settings that a series of runs has chosen, and not the user.
    """
    given = {}
    if settings.learning_rate != default.learning_rate:
        given["learning_rate"] = settings.learning_rate, default.learning_rate
    if settings.epochs < default.epochs:
        given["epochs"] = settings.epochs, default.epochs
    parts = [
        f"`{name}` (--{name.replace('_', '-')}), which is {here:g} here and {other:g} by default"
        for name, (here, other) in given.items()
        if name not in chosen
    ]
    return f"Leave out {', and '.join(parts)}." if parts else None


# What a run may do about texts that are in both of its files.
LEAVE_DEV_OUT = (
    "Or leave `dev` (--dev) out: the held-back tenth shares no text with the training data."
)


def example_findings(train, dev, *, advice=""):
    """Findings on lists of examples: texts in both, and repeated texts with different labels.

    `advice` is a sentence on what else helps against texts in both.
    """
    train_contents = set(map(_content, train))
    shared = [example for example in dev or () if _content(example) in train_contents]
    if shared:
        has_or_have = "has" if len(shared) == 1 else "have"
        yield _sentences(
            f"{first_location(shared)}: {len(shared):,} of the {counted(len(dev), 'dev example')} "
            f"{has_or_have} a text that is also in the training data. Metrics on such texts do not "
            "show how well the model does on new ones. Remove them from one of the two.",
            advice,
        )
    if hasattr(train[0], "texts"):
        advice = " Give each text the same labels everywhere."
        if isinstance(train[0].label, float):
            advice = " Give each text one score, such as the mean."
        elif isinstance(train[0].label, str):
            advice = (
                " Give each text one label, or set `multi_label=True` (--multi-label) if a text "
                "may have several."
            )
        yield from (line + advice for line in contradictions(train, noun="training example"))


def _content(example):
    """Returns what equal examples share; of questions about one context also the question."""
    return getattr(example, "question", None), example.unit


def counts_by_label(metrics):
    """-> (the labels of official metrics, how often each is expected, and predicted).

    Without a confusion all three are empty.
    """
    table = np.array(metrics.get("confusion") or np.zeros((0, 0), int))
    if table.ndim == 3:  # of several labels a table each, with a row for those that have it
        expected, predicted = table[:, 1].sum(axis=1), table[:, :, 1].sum(axis=1)
    else:
        expected, predicted = table.sum(axis=1), table.sum(axis=0)
    names = metrics.get("confusion_labels") or [*metrics.get("labels", ())]
    if len(names) != len(expected):
        return (), expected[:0], predicted[:0]
    return names, expected, predicted


def result_findings(metrics, advice):
    """Findings on the official metrics of the dev data, a dictionary: what is never predicted."""
    names, expected, predicted = counts_by_label(metrics)
    has_several = np.ndim(metrics.get("confusion")) == 3  # labels per text
    missed = np.flatnonzero((expected > 0) & (predicted == 0))
    if not has_several and np.count_nonzero(predicted) == 1 and len(missed):
        only = names[int(predicted.argmax())]
        yield _sentences(f'The model predicts "{only}" for everything in the dev data.', advice)
    elif len(missed):
        labels = listed([f'"{names[number]}"' for number in missed], most=_MOST_NAMES)
        is_or_are = "is" if len(missed) == 1 else "are"
        yield _sentences(f"{labels} {is_or_are} never predicted on the dev data.", advice)


def loss_finding(records, steps_per_epoch, advice):
    """A finding if the training loss of the last epoch is not below that of the first."""
    train = ((record["step"], record.get("train", {}).get("loss")) for record in records)
    losses = [(step, loss) for step, loss in train if loss is not None]
    if len(losses) < 2:
        return
    first = [loss for step, loss in losses if step <= steps_per_epoch]
    last = [loss for step, loss in losses if step > losses[-1][0] - steps_per_epoch]
    if losses[-1][0] <= steps_per_epoch:  # one epoch: its first record and its last
        first, last = first[:1], last[-1:]
    if np.mean(last) >= np.mean(first):
        yield _sentences(
            f"The training loss did not fall: {np.mean(first):.3f} at the beginning, "
            f"{np.mean(last):.3f} at the end.",
            advice,
            "Look at the examples and their labels with `keras_bert.evaluate(show_errors=20)` "
            "(keras-bert evaluate --show-errors 20).",
        )
