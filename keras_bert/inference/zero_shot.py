"""Labels that a model was not trained on, through natural-language inference (Yin et al. 2019).

A text is the premise, and each label makes a hypothesis, such as "This example is sport.". The
label whose hypothesis is entailed most is that of the text.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from scipy.special import softmax

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import quoted
from keras_bert.base.settings import takes
from keras_bert.checkpoints import load_task
from keras_bert.inference.embed import open_texts
from keras_bert.inference.predict import check_task, rounded, with_positional
from keras_bert.inference.settings import ZeroShotSettings
from keras_bert.tasks.outputs import Inference
from keras_bert.tasks.task import Task

# Texts whose pairs with all labels are computed together.
_TEXTS_TOGETHER = 256
_THRESHOLD = 0.5


@takes(ZeroShotSettings)
def zero_shot(
    model=None, text=None, labels=None, *, report=None, **settings
) -> Iterator[dict[str, Any]]:
    """Yields the most probable of some labels for each text, in order.

        model = "hf://cross-encoder/nli-deberta-v3-base"
        kb.zero_shot(model, ["Who scored?"], ["sport", "politics"])

    The model is a `PairClassifier` with a label "entailment", trained on pairs of a premise and a
    hypothesis, such as those of MNLI. A label is as probable as its hypothesis is entailed, among
    all labels; with `multi_label` each label is decided on its own, between entailment and
    contradiction.

    Args:
        **settings: the fields of `ZeroShotSettings`.
        report: a function that is called with a line on how the file was read.

    `model` may also be a task, and `text` a single string.

    Yields:
        Dictionaries of `text`, `label`, `score` and `probabilities` (by label). With `multi_label`
        `labels`, those with a probability over 0.5, in place of `label` and `score`.

    Raises:
        InputError: the model is no classifier of pairs or has no label of entailment, or on bad
            input, at the latest when its line is reached.
    """
    settings = with_positional(settings, model=model, text=text, labels=labels)
    settings = ZeroShotSettings.of(settings)
    task = _pair_classifier(settings.model)
    _, entails = _label_of(task, "entail")
    others = [number for number in range(len(task.labels)) if number != entails]
    if len(others) > 1:
        others = [_label_of(task, "contradict")[1]]
    data = settings.text if settings.data is None else settings.data
    texts = open_texts(data, settings, report=report)
    return _predictions(task, texts, settings, decided=[others[0], entails])


def _pair_classifier(model):
    task = model
    if not isinstance(model, Task):
        try:
            task = load_task(model, task="pair-classifier")
        except InputError:
            task = load_task(model)  # whose own type the message names, if it opens
    check_task(
        task,
        "zero-shot",
        model=model,
        lacks="pairs of a premise and a hypothesis",
        advice="Use a pair-classifier of natural-language inference.",
    )
    return task


def _label_of(task, beginning):
    """The label with this beginning, in any case, and its number; InputError if no label has it."""
    for number, label in enumerate(task.labels):
        if label.casefold().startswith(beginning):
            return label, number
    raise InputError(
        f"The labels of the model are {quoted(task.labels)}. A model of natural-language inference "
        f'has one that begins with "{beginning}".'
    )


def _predictions(task, texts, settings, *, decided):
    inference = Inference(task, batch_size=settings.batch_size, max_length=settings.max_length)
    hypotheses = [settings.template.replace("{}", label) for label in settings.labels]
    has_files, texts, count = texts.location == "file", iter(texts), len(hypotheses)
    while chunk := [*islice(texts, _TEXTS_TOGETHER)]:
        pairs = [
            (labelled_text.text, hypothesis) for labelled_text in chunk for hypothesis in hypotheses
        ]
        examples = list(task.read(pairs, labelled=False))
        sequences = task.features(examples, max_length=settings.max_length)
        logits = inference.outputs(sequences)["logits"]
        logits = logits.reshape(len(chunk), count, -1)[..., decided].astype("float64")  # (N, L, 2)
        softmaxes = softmax(logits, axis=2) if settings.multi_label else softmax(logits, axis=1)
        for labelled_text, row in zip(chunk, softmaxes[..., 1].tolist(), strict=True):
            file = {"file": labelled_text.line} if has_files else {}
            yield rounded({**file, "text": labelled_text.text, **_decision(row, settings)})


def _decision(row, settings):
    probabilities = dict(zip(settings.labels, row, strict=True))
    if settings.multi_label:
        chosen = [label for label, p in probabilities.items() if p > _THRESHOLD]
        return {"labels": chosen, "probabilities": probabilities}
    label = max(probabilities, key=probabilities.get)
    return {"label": label, "score": probabilities[label], "probabilities": probabilities}
