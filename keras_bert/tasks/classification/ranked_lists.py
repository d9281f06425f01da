"""Lists of passages by their scores: predictions, metrics and errors."""

import numpy as np

from keras_bert.tasks import summed_metrics as summed
from keras_bert.tasks.classification import LIST_METRICS
from keras_bert.tasks.metrics import worst_first
from keras_bert.tasks.text_embedding.metrics import retrieval_metrics


def list_predictions(scores, examples):
    """The scores (n,) of the passages of each list -> N dictionaries."""
    predictions = []
    for example, list_scores in zip(examples, scores, strict=True):
        prediction = {"query": example.query, "passages": [*example.passages]}
        prediction["scores"] = [float(score) for score in list_scores]
        if example.grades is not None:
            prediction["expected"] = [*example.grades]
        predictions.append(prediction)
    return predictions


def ranked_list(scores, grades):
    """The numbers of the passages of a list, the highest score first: (n,), (n,) -> a list.

    Of equal scores the lower grade is first, so that a model that tells nothing apart gets nothing.
    """
    return sorted(range(len(scores)), key=lambda number: (-scores[number], grades[number]))


def metrics_of_list(scores, grades):
    """`ndcg@10`, `mrr@10`, `map@100` and `accuracy@1` of a list (see `retrieval_metrics`)."""
    relevant = {number: grade for number, grade in enumerate(grades) if grade > 0}
    metrics = retrieval_metrics([ranked_list(scores, grades)], [relevant])
    return {name: metrics[name] for name in LIST_METRICS}


def list_metrics(grades, scores):
    """The official metrics of lists of passages, the means over the lists, as JSON values.

    Args:
        grades: the grades of the passages of each list, of which one is above 0.
        scores: likewise.
    """
    rows = [metrics_of_list(*pair) for pair in zip(scores, grades, strict=True)]
    means = {name: float(np.mean([row[name] for row in rows])) for name in LIST_METRICS}
    sizes = {"examples": len(rows), "lists": len(rows), "passages": sum(map(len, scores))}
    return {**means, **sizes}


def summed_lists(grades, scores):
    """The `SummedMetrics` of lists; arguments as in `list_metrics`."""
    rows = [metrics_of_list(*pair) for pair in zip(scores, grades, strict=True)]
    parts = {name: np.array([row[name] for row in rows]) for name in LIST_METRICS}
    parts["lists"] = np.ones(len(rows))

    def metrics_of_sums(sums):
        return {name: summed.ratio(sums[name], sums["lists"]) for name in LIST_METRICS}

    return summed.SummedMetrics(parts=parts, metrics=metrics_of_sums)


def list_errors(predictions, examples):
    """The lists whose first passage by score has not the highest grade, the worst first.

    `error` is 1 - nDCG@10; `expected` is a passage with the highest grade, `predicted` the first.
    """
    errors = []
    for prediction, example in zip(predictions, examples, strict=True):
        ranks, grades = ranked_list(prediction["scores"], example.grades), example.grades
        if grades[ranks[0]] < max(grades):
            errors.append(
                {
                    "line": example.line,
                    "query": example.query,
                    "expected": example.passages[grades.index(max(grades))],
                    "predicted": example.passages[ranks[0]],
                    "error": 1 - metrics_of_list(prediction["scores"], grades)["ndcg@10"],
                }
            )
    return worst_first(errors, by="error")
