"""The wrong answers over whole texts, as a person reads them."""

from keras_bert.base.formatting import percent

_SHOWN = 200  # characters of a text


def label_mistakes(answers, examples):
    """[(how sure the wrong answer was, its text)] of answers with one label."""
    return [
        (
            answer["score"],
            f'{where(example)}: "{example.label}", and not "{answer["label"]}" '
            f"({percent(answer['score'])}): {shown(example)}",
        )
        for answer, example in zip(answers, examples, strict=True)
        if answer["label"] != example.label
    ]


def multi_label_mistakes(answers, examples):
    """[(how sure the surest wrong decision was, its text)] of answers with any number of labels."""
    found = []
    for answer, example in zip(answers, examples, strict=True):
        wrong = set(answer["labels"]) ^ set(example.label)
        if wrong:
            probabilities = answer["probabilities"]
            surest = max(
                probabilities[label] if label in answer["labels"] else 1 - probabilities[label]
                for label in wrong
            )
            right, said = ("|".join(labels) for labels in (example.label, answer["labels"]))
            line = f'{where(example)}: "{right}", and not "{said}": {shown(example)}'
            found.append((surest, line))
    return found


def score_mistakes(answers, examples):
    """[(how far off, the text)] of all scores."""
    return [
        (
            abs(answer["score"] - example.label),
            f"{where(example)}: {example.label:g}, and not {answer['score']:.2f}: {shown(example)}",
        )
        for answer, example in zip(answers, examples, strict=True)
    ]


def where(example):
    """Where an example stands: "line 3" of its file, from 1."""
    return f"line {example.line}"


def shown(example):
    """The texts of an example in one line, each cut where it is long."""
    return " / ".join(map(in_one_line, example.texts))


def in_one_line(text):
    """A text without line breaks, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
