"""Metrics from sums over examples: those of any sample are the official ones of its examples."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert.tasks.classification import metrics as classification
from keras_bert.tasks.coreference import coreference_resolver as coreference
from keras_bert.tasks.multiple_choice.multiple_choice import MultipleChoice
from keras_bert.tasks.question_answering import metrics as squad
from keras_bert.tasks.span_classification import metrics as spans
from keras_bert.tasks.summed_metrics import right_alone
from keras_bert.tasks.tagging import metrics as tagging
from tests.seeds import make_rng

COUNT, SAMPLES = 25, 6
TAGS = ["O", "B-A0", "I-A0", "B-A1", "I-A1"]
ANSWERS = ["the cat", "a dog", "cat and dog", "", "bird"]


def some_tags(rng, lengths, tags=TAGS):
    return [rng.choice(tags, length).tolist() for length in lengths]


def some_spans(rng):
    starts, labels = rng.integers(4, size=(COUNT, 3)), rng.choice(["x", "y"], (COUNT, 3))
    rows = zip(starts.tolist(), labels.tolist(), strict=True)
    return [{(n, n + 1, label) for n, label in zip(*row, strict=True)} for row in rows]


def some_clusters(rng):
    return [
        [{(int(n), int(n) + 1) for n in part} for part in np.split(rng.permutation(8), [2, 4])[:2]]
        for _ in range(COUNT)
    ]


def some_scores(tags):
    return [[0.5] * len(sentence) for sentence in tags]


def classifier_case(rng, *, labels):
    # The model lacks the last label.
    drawn = rng.integers(len(labels), size=COUNT), rng.dirichlet([1.0] * (len(labels) - 1), COUNT)
    return (
        drawn,
        lambda true, p: classification.classification_metrics(np.array(true), p, labels=labels),
        lambda true, p: classification.summed_classification(np.array(true), p, labels=labels),
    )


def several_labels_case(rng):
    sides = (rng.random((COUNT, 3)) < 0.4 for _ in range(2))
    probabilities = rng.random((COUNT, 3))
    return (
        (*sides, probabilities),
        lambda *a: classification.multi_label_metrics(*map(np.array, a), labels=["a", "b", "c"]),
        lambda true, given, _: classification.summed_multi_label(
            np.array(true), np.array(given), labels=["a", "b", "c"]
        ),
    )


def scores_case(rng):
    numbers = 1000 + rng.normal(size=(2, COUNT))
    return tuple(numbers), classification.score_metrics, classification.summed_scores


def chunks_case(rng):
    lengths = rng.integers(1, 6, COUNT)
    sides = some_tags(rng, lengths), some_tags(rng, lengths)
    return (
        sides,
        lambda *a: tagging.chunk_metrics(*a, some_scores(a[0]), scheme="bio"),
        lambda *a: tagging.summed_chunks(*a, scheme="bio"),
    )


def words_case(rng):
    lengths = rng.integers(1, 6, COUNT)
    sides = some_tags(rng, lengths, ["N", "V", "X"]), some_tags(rng, lengths, ["N", "V"])
    return (
        sides,
        lambda *a: tagging.word_metrics(*a, some_scores(a[0]), labels=["N", "V"]),
        lambda *a: tagging.summed_words(*a, labels=["N", "V"]),
    )


def roles_case(rng):
    lengths = rng.integers(1, 6, COUNT)
    sides = some_tags(rng, lengths, [*TAGS, "B-V"]), some_tags(rng, lengths, [*TAGS, "B-V"])
    return (
        sides,
        lambda *a: tagging.role_metrics(*a, some_scores(a[0]), scheme="bio"),
        lambda *a: tagging.summed_roles(*a, scheme="bio"),
    )


def questions_case(rng, *, golds):
    predictions = rng.choice(ANSWERS, COUNT).tolist()
    golds = [golds[number] for number in rng.integers(len(golds), size=COUNT)]
    official = squad.squad_1 if all(golds) else squad.squad_2
    return (predictions, golds), official, squad.summed_squad


def spans_case(rng):
    sides = some_spans(rng), some_spans(rng)
    return (
        sides,
        lambda *a: spans.span_metrics(*a, labels=["x", "y"]),
        lambda *a: spans.summed_spans(*a, labels=["x", "y"]),
    )


def relations_case(rng):
    sides = rng.choice(["none", "of", "in"], (2, COUNT)).tolist()
    sides[1][0] = None  # too far apart
    options = {"labels": ["none", "of", "in"], "null_label": "none"}
    return (
        sides,
        lambda *a: spans.relation_metrics(*a, **options),
        lambda *a: spans.summed_relations(*a, **options),
    )


def documents_case(rng):
    sides = some_clusters(rng), some_clusters(rng)
    return sides, coreference.coreference_metrics, coreference.summed_coreference


def choices_case(rng):
    probabilities = rng.dirichlet([1.0] * 3, COUNT)
    predictions = [
        {"label": int(p.argmax()), "score": float(p.max()), "probabilities": p.tolist()}
        for p in probabilities
    ]
    examples = [SimpleNamespace(label=int(label)) for label in rng.integers(3, size=COUNT)]
    return (
        (predictions, examples),
        lambda *a: MultipleChoice.official_metrics(None, *a),
        lambda *a: MultipleChoice.summed_metrics(None, *a),
    )


KINDS = {
    "two labels": lambda rng: classifier_case(rng, labels=["no", "yes", "unknown"]),
    "labels": lambda rng: classifier_case(rng, labels=["a", "b", "c", "unknown"]),
    "several labels": several_labels_case,
    "scores": scores_case,
    "chunks": chunks_case,
    "words": words_case,
    "roles": roles_case,
    "questions": lambda rng: questions_case(rng, golds=[["cat"], ["dog", "the bird"]]),
    "questions without answers": lambda rng: questions_case(rng, golds=[["cat"], [], ["dog"]]),
    "spans": spans_case,
    "relations": relations_case,
    "coreference": documents_case,
    "choices": choices_case,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_metrics_of_a_sample_are_the_official_ones_of_its_examples(kind):
    rng = make_rng(6)
    given, official, summed = KINDS[kind](rng)
    counts = rng.multinomial(COUNT, [1 / COUNT] * COUNT, size=SAMPLES)
    counts[0] = 1  # all examples, once each
    metrics, by_label = summed(*given).metrics_of_samples(counts.astype(float))
    assert summed(*given).count == COUNT and metrics
    for number, sample in enumerate(counts):
        drawn = np.repeat(np.arange(COUNT), sample)
        expected = official(*([side[n] for n in drawn] for side in given))
        for name, values in metrics.items():
            if name in expected:  # not of a group that the sample lacks
                np.testing.assert_allclose(values[number], expected[name], atol=1e-9, err_msg=name)
        for label, f1 in zip(summed(*given).labels, by_label[number], strict=True):
            label_metrics = expected["labels"].get(label, {"f1": 0.0})
            np.testing.assert_allclose(f1, label_metrics["f1"], atol=1e-9)


def test_a_task_without_sums_has_the_fraction_of_right_examples():
    metrics, by_label = right_alone([True, False, True]).metrics_of_samples(
        np.array([[1.0, 1, 1], [0, 3, 0]])
    )
    assert metrics["right"].tolist() == pytest.approx([2 / 3, 0]) and by_label.shape == (2, 0)


def test_a_constant_side_has_no_correlation():
    summed = classification.summed_scores([1.0, 2.0, 3.0], [0.1, 0.1, 0.4])
    metrics, _ = summed.metrics_of_samples(np.array([[2.0, 1, 0], [1, 1, 1]]))
    assert metrics["pearson"][0] == 0 and metrics["pearson"][1] > 0.8
