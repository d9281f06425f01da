"""Two models of one task on the same labelled examples: what differs, and whether by chance.

Intervals are of the paired bootstrap (Efron and Tibshirani 1993, chapter 13): examples are drawn
with replacement, the same for both models, and the interval of a difference has 95 % of the
samples. McNemar's test (1947) is the exact one, a binomial test of the examples that one model
alone has right.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, quoted
from keras_bert.base.settings import takes_of_model
from keras_bert.inference.evaluate import predicted_examples
from keras_bert.inference.predict import open_export_or_task, rounded, with_positional
from keras_bert.inference.settings import CompareSettings, compare_settings
from keras_bert.inference.table_files import PredictionRows, check_table_output, write_table
from keras_bert.readers.examples import located
from keras_bert.readers.sources import STANDARD_INPUT, is_file
from keras_bert.tasks import settings_class

OLD, NEW = "old", "new"
BETTER, WORSE, OTHER = "better", "worse", "other"
_INTERVAL = (2.5, 97.5)  # percentiles
_CELLS = 1 << 22  # of a matrix of samples and examples that is held at once
# Parts of a prediction that say which example it is of.
_PARTS = ("id", "text", "text_a", "text_b", "question", "context", "choices", "words")
_PARTS += ("head", "tail", "predicate")


@takes_of_model(CompareSettings, compare_settings(settings_class("classifier")))
def compare(models=None, data=None, *, report=None, **settings) -> dict[str, Any]:
    """Compares two models of one task on the same labelled examples.

    Each model reads the data as `evaluate` does, by the columns that it was trained on. Examples
    that one of them leaves out are left out for both, and counted.

    Args:
        **settings: the fields of `CompareSettings`, and those of the models' task.
        report: a function that is called with a line on how the data were read, and one per note.

    `models` may also be tasks, and `data` as for `evaluate`. These are the arguments for a
    classifier; other tasks have their own on how a file is read.

    Returns:
        A dictionary. `metrics` has for each official metric `old`, `new`, `difference` (new minus
        old) and, if it follows from sums over the examples, `low` and `high`, the ends of the 95 %
        interval of the difference. `labels` has the same for the F1 of each label, which is 0 for a
        model that lacks it, and `examples`, those with the label. `mcnemar` counts the examples
        that both, only one or none has entirely right (`both`, `only_old`, `only_new`, `neither`),
        with `p_value`; scores have none. `changed` counts the examples with another answer: now
        right (`better`), now wrong (`worse`), otherwise different (`other`). `only_old` and
        `only_new` are labels that only one model has, `metric` the one that selects the best
        epoch, and `examples` the number of examples.

    Raises:
        InputError: on bad input, or if the models are of different tasks.
    """
    settings = with_positional(settings, models=models, data=data)
    names = CompareSettings.names()
    first = CompareSettings.of({name: x for name, x in settings.items() if name in names})
    if is_file(first.data) and str(first.data) == STANDARD_INPUT:
        raise InputError.naming("{data} is read twice, so it cannot be standard input.")
    if first.output is not None:
        inputs = [path for path in (*first.models, first.data) if is_file(path)]
        check_table_output(first.output, inputs=inputs, force=first.force, command="compare")
    tasks = [open_export_or_task(model) for model in first.models]
    types = [task.TASK_TYPE for task in tasks]
    for task, model in zip(tasks, first.models, strict=True):
        if not task.reads_files():
            raise InputError(f"{model} is of the task {task.TASK_TYPE}, which has no labels.")
    if types[0] != types[1]:
        raise InputError(
            f"The models are of different tasks: {types[0]} and {types[1]}. Compare two of one "
            "task."
        )
    settings = compare_settings(tasks[1].SETTINGS).of(settings)
    sides = _read_by_both(tasks, first.models, settings, report)
    compared = comparison(sides, samples=settings.samples, seed=settings.seed)
    answers = _answers(sides)
    changes = [(example, answer) for example, answer in answers if answer[OLD] != answer[NEW]]
    counts = Counter(change["change"] for _, change in changes)
    compared["changed"] = {name: counts[name] for name in (BETTER, WORSE, OTHER)}
    if settings.output is not None:
        source = sides[1].source
        columns = next(iter(PredictionRows(source, answers)))
        rows = PredictionRows(source, changes)
        write_table(rows, settings.output, columns=columns, command="compare")
    return compared


class Side(NamedTuple):
    """One of the models with the examples and its predictions for them."""

    task: Any
    source: Any
    examples: list
    predictions: list


def _read_by_both(tasks, models, settings, report):
    """The `Side` of each model, with the examples that both read."""
    said = set()

    def once(line):
        if line not in said:
            said.add(line)
            report(line)

    sides = [
        Side(task, *predicted_examples(task, settings, once if report is not None else None))
        for task in tasks
    ]
    keys = [_keys(side.examples) for side in sides]
    shared = keys[0].keys() & keys[1].keys()
    if not shared:
        raise InputError(f"{sides[0].source.name}: the models read no example that is the same.")
    for side, chosen, model in zip(sides, keys, models, strict=True):
        others = [chosen[key] for key in chosen if key not in shared]
        if others and report is not None:
            where = located([side.examples[number].line for number in others], side.source)
            count = counted(len(others), "example")
            report(f"Note: {where}: {count} that only {model} reads, left out for both.")
    numbers = [[chosen[key] for key in keys[1] if key in shared] for chosen in keys]
    return [
        side._replace(
            examples=[side.examples[n] for n in chosen],
            predictions=[side.predictions[n] for n in chosen],
        )
        for side, chosen in zip(sides, numbers, strict=True)
    ]


def _keys(examples):
    """{(where an example is, how many are there before it): its number}."""
    seen, keys = Counter(), {}
    for number, example in enumerate(examples):
        keys[example.line, seen[example.line]] = number
        seen[example.line] += 1
    return keys


def comparison(sides, *, samples, seed):
    """Returns the result of `compare`, without `changed`, of two `Side`s of the same examples."""
    official = [side.task.official_metrics(side.predictions, side.examples) for side in sides]
    summed = [side.task.summed_metrics(side.predictions, side.examples) for side in sides]
    labels = [label for label in summed[1].labels if label in summed[0].labels]
    intervals, by_label = _intervals(summed, labels, samples=samples, seed=seed)
    metrics = {
        name: {**_difference(*(metrics[name] for metrics in official)), **intervals.get(name, {})}
        for name, value in official[1].items()
        if isinstance(value, float) and isinstance(official[0].get(name), float)
    }
    compared = {
        "metric": sides[1].task.METRIC,
        "examples": len(sides[1].examples),
        "metrics": metrics,
    }
    if labels:
        tables = [metrics["labels"] for metrics in official]
        compared["labels"] = {
            label: {
                **_difference(*(table[label]["f1"] for table in tables)),
                **by_label[label],
                "examples": tables[1][label]["examples"],
            }
            for label in labels
        }
    are_right = [side.task.is_right(side.predictions, side.examples) for side in sides]
    if None not in are_right:
        compared["mcnemar"] = mcnemar(*are_right)
    known = [side.task.labels if side.task.MIN_LABELS else () for side in sides]
    for name, (own_labels, other_labels) in {"only_old": known, "only_new": known[::-1]}.items():
        compared[name] = [label for label in own_labels if label not in other_labels]
    return rounded(compared)


def _difference(old, new):
    return {OLD: old, NEW: new, "difference": new - old}


def _intervals(summed, labels, *, samples, seed):
    """The intervals of the differences of metrics, and of the F1 of labels, both by name."""
    columns = [
        [metrics_of_side.labels.index(label) for label in labels] for metrics_of_side in summed
    ]
    differences, label_differences = [], []
    for counts in bootstrap_counts(summed[0].count, samples=samples, seed=seed):
        (old, old_f1), (new, new_f1) = (
            metrics_of_side.metrics_of_samples(counts) for metrics_of_side in summed
        )
        differences.append({name: new[name] - old[name] for name in new if name in old})
        label_differences.append(new_f1[:, columns[1]] - old_f1[:, columns[0]])
    by_label = _ends(np.concatenate(label_differences))
    by_name = {
        name: _ends(np.concatenate([some[name] for some in differences])) for name in differences[0]
    }
    by_label = {
        label: {end: values[number] for end, values in by_label.items()}
        for number, label in enumerate(labels)
    }
    return by_name, by_label


def _ends(values):
    """The ends of the interval of samples (R, …), as JSON can hold them."""
    low, high = np.percentile(values, _INTERVAL, axis=0)
    return {"low": low.tolist(), "high": high.tolist()}


def bootstrap_counts(examples, *, samples, seed):
    """Yields float64 (R, N), how often each of N examples is in some of the samples."""
    rng = np.random.default_rng(seed)
    while samples:
        samples_per_batch = min(samples, max(1, _CELLS // examples))
        drawn = rng.integers(examples, size=(samples_per_batch, examples))
        drawn += np.arange(samples_per_batch)[:, None] * examples
        counts = np.bincount(drawn.ravel(), minlength=samples_per_batch * examples)
        yield counts.reshape(samples_per_batch, examples).astype(np.float64)
        samples -= samples_per_batch


def mcnemar(old, new):
    """McNemar's exact test of whether two models have equally many examples right.

    Args:
        old, new: whether each has an example right, sequences of N.

    Returns:
        A dictionary of the numbers of examples that `both`, `only_old`, `only_new` and `neither`
        has right, and the two-sided `p_value`.
    """
    counts = Counter(zip(old, new, strict=True))
    only_old, only_new = counts[True, False], counts[False, True]
    different = only_old + only_new
    p_value = binomtest(only_old, different).pvalue if different else 1.0
    return {
        "both": counts[True, True],
        "only_old": only_old,
        "only_new": only_new,
        "neither": counts[False, False],
        "p_value": float(p_value),
    }


def _answers(sides):
    """Pairs of an example of the newer model and both answers, a dictionary with the change."""
    qualities = [_qualities(side) for side in sides]
    pairs = []
    for example, old, new, before, after in zip(
        sides[1].examples, *(side.predictions for side in sides), *qualities, strict=True
    ):
        answers = [
            rounded(side.task.answer_of(prediction))
            for side, prediction in zip(sides, (old, new), strict=True)
        ]
        change = {name: new[name] for name in _PARTS if name in new}
        change["change"] = OTHER if before == after else BETTER if after > before else WORSE
        change["expected"] = new.get("expected")
        for name, answer, prediction in zip((OLD, NEW), answers, (old, new), strict=True):
            change[name] = answer
            if prediction.get("score") not in (None, answer):
                change[f"{name}_score"] = rounded(prediction["score"])
        pairs.append((example, change))
    return pairs


def _qualities(side):
    """A number per example, higher for a better prediction: 1 and 0, or minus the error."""
    are_right = side.task.is_right(side.predictions, side.examples)
    if are_right is not None:
        return are_right
    pairs = zip(side.predictions, side.examples, strict=True)
    return [-side.task.errors([prediction], [example])[0]["error"] for prediction, example in pairs]


def describe_comparison(compared):
    """A sentence on the metric that selects a model: what changed, and whether by chance."""
    name = compared["metric"]
    metric = compared["metrics"].get(name)
    if metric is None:
        return ""
    difference = metric["difference"]
    if not difference:
        line = f"{name} did not change: {metric[OLD]:.4f}"
    else:
        line = f"{name} {'rose' if difference > 0 else 'fell'} by {abs(difference):.4f}, from "
        line += f"{metric[OLD]:.4f} to {metric[NEW]:.4f}"
    if "low" not in metric:
        return f"{line}."
    line += f" (95 % interval of the difference: {metric['low']:z.4f} to {metric['high']:z.4f})."
    if difference and metric["low"] <= 0 <= metric["high"]:
        line += " Such a difference may be chance."
    return line


def describe_labels(compared):
    """Yields a sentence for the labels that only one of the models has."""
    for name, which in (("only_old", "earlier"), ("only_new", "newer")):
        if compared[name]:
            yield f"Only the {which} model has {quoted(compared[name], most=10)}."
