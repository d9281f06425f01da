"""From logits to answers."""

from keras_bert.tasks.probabilities import sigmoid, softmax


def texts_of(example):
    """The text or the two texts of an example, as an answer shows them."""
    names = ("text",) if example.text_b is None else ("text_a", "text_b")
    return dict(zip(names, example.texts, strict=True))


def classifier_answers(logits, examples, *, labels):
    """logits (N, C) -> N dictionaries, as `keras-bert predict` prints them."""
    answers = []
    for example, row in zip(examples, softmax(logits), strict=True):
        best = int(row.argmax())
        answer = {**texts_of(example), "label": labels[best], "score": float(row[best])}
        if example.label is not None:
            answer["expected"] = example.label
        answer["probabilities"] = dict(zip(labels, map(float, row), strict=True))
        answers.append(answer)
    return answers


def multi_label_answers(logits, examples, *, labels, threshold):
    """logits (N, C) -> N dictionaries, with every label that is likelier than the threshold."""
    answers = []
    for example, row in zip(examples, sigmoid(logits), strict=True):
        probabilities = dict(zip(labels, map(float, row), strict=True))
        said = [label for label, probability in probabilities.items() if probability > threshold]
        answer = {**texts_of(example), "labels": said}
        if example.label is not None:
            answer["expected"] = list(example.label)
        answers.append({**answer, "probabilities": probabilities})
    return answers


def score_answers(scores, examples):
    """scores (N,) -> N dictionaries."""
    answers = []
    for example, score in zip(examples, scores, strict=True):
        answer = {**texts_of(example), "score": float(score)}
        if example.label is not None:
            answer["expected"] = example.label
        answers.append(answer)
    return answers
