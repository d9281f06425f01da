"""Examples that are held back from training: a tenth, or each of several folds in its turn."""

import dataclasses
import hashlib
from collections import Counter
from pathlib import Path

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, listed, percent
from keras_bert.training.run_folder import read_metrics
from keras_bert.training.series import mean_and_std, run_series

HELD_BACK = 10  # one example in so many
ALL = "all"  # the run on all examples


def fold_numbers(examples, count):
    """The number of each example's fold, a list of ints from 0 to below `count`.

    Examples with the same text, of the same context or of the same document are in one fold. The
    folds have about the same number of examples, and of examples of each label; of several labels
    of a text, the rarest counts. A label that one text alone has is in the last fold.

    The folds depend on the content of the examples alone, not on their order.

    Raises `InputError` where there are fewer texts or documents than folds.
    """
    units = _units(examples)
    if len(units) < count:
        raise InputError.naming(
            "{} has {} to divide into {}. Give {dev}.",
            examples[0].source.name,
            counted(len(units), "different text") if len(units) != 1 else "one document or text",
            counted(count, "part"),
        )
    frequencies = Counter(label for example in examples for label in _labels(example))
    strata = {}
    for unit in sorted(units, key=_hash):
        labels = {label for number in units[unit] for label in _labels(examples[number])}
        rarest = min(labels, key=lambda label: (frequencies[label], label), default=None)
        strata.setdefault(rarest, []).append(units[unit])
    folds, sizes = [count - 1] * len(examples), np.zeros(count, int)
    for _, of_stratum in sorted(strata.items(), key=lambda item: (-len(item[1]), str(item[0]))):
        of_label = np.zeros(count, int)
        for numbers in of_stratum:
            fold = min(range(count), key=lambda k: (of_label[k], sizes[k], k))
            fold = count - 1 if len(of_stratum) == 1 else fold
            for number in numbers:
                folds[number] = fold
            of_label[fold] += len(numbers)
            sizes[fold] += len(numbers)
    return folds


def _units(examples):
    """{what is not divided: the numbers of its examples}: a document, a context or a text."""
    has_documents = any(getattr(example, "document", 0) for example in examples)
    units = {}
    for number, example in enumerate(examples):
        unit = (example.source.name, example.document) if has_documents else example.unit
        units.setdefault(unit, []).append(number)
    return units


def _labels(example):
    """The labels that decide an example's stratum; empty for a score or tags."""
    label = getattr(example, "label", None)
    return label if isinstance(label, tuple) else (label,) if isinstance(label, str) else ()


def _hash(unit):
    return hashlib.blake2b(repr(unit).encode("utf-8", "surrogatepass")).digest()


def divided(examples, fold, count):
    """-> (the examples of the other folds, those of a fold), each in their order."""
    return _parts(examples, fold_numbers(examples, count), fold)


def held_back(examples):
    """-> (the examples that are left, about a tenth that is held back), each in their order.

    It is the first of ten folds. Where documents are so unequal that this has less than half or
    more than twice a tenth of the examples, it is the fold that is nearest to a tenth.
    """
    folds = fold_numbers(examples, HELD_BACK)
    sizes, tenth = Counter(folds), len(examples) / HELD_BACK
    fold = 0
    if not tenth / 2 <= sizes[fold] <= 2 * tenth:
        fold = min(range(HELD_BACK), key=lambda number: abs(sizes[number] - tenth))
    return _parts(examples, folds, fold)


def _parts(examples, folds, fold):
    parts = [], []
    for example, number in zip(examples, folds, strict=True):
        parts[number == fold].append(example)
    return parts


def line_on_held_back(train, dev):
    """A line for the user on the tenth of the examples that is held back."""
    by_label = Counter(label for example in dev for label in _labels(example))
    labels = f" ({listed(f'{label}: {n:,}' for label, n in by_label.most_common())})"
    count, tenth = len(train) + len(dev), (len(train) + len(dev)) / HELD_BACK
    is_tenth = tenth / 2 <= len(dev) <= 2 * tenth
    return (
        f"No dev data are given: {counted(len(dev), 'example')} of the {count:,}, "
        f"{'a tenth' if is_tenth else percent(len(dev) / count)}, are held back as dev "
        f"examples{labels if by_label else ''}. Texts that are repeated, and examples of one "
        "document, are on one side."
    )


@dataclasses.dataclass(frozen=True)
class OverFolds:
    """What a run on all examples has in place of dev examples.

    Attributes:
        epochs: the mean best epoch of the folds, rounded.
        metrics: the official metrics of the folds, as `pooled` gives them.
        tuned: the means of the settings that the folds have tuned, such as thresholds, by name.
    """

    epochs: int
    metrics: dict
    tuned: dict


def run_folds(settings, data, task, one_run, report):
    """A run for each fold, on the others, and one on all examples for the mean best epoch.

    Args:
        settings: those of the series, with `folds`.
        data: the `FinetuningData` in which the first fold is the dev data.
        task: a task of the data.
        one_run: a function of `FinetuningData` and settings that makes a run.
        report: called with each line about the runs.

    Returns the contents of metrics.json: see `run_series`, with the `mean` and `std` of the
    official metrics over the folds, and those of all folds together as `dev`.
    """
    examples, count = [*data.train.examples, *data.dev.examples], settings.folds
    one = dataclasses.replace(settings, folds=None)
    names = [f"fold-{number}" for number in range(1, count + 1)]
    runs = dict.fromkeys(names, one)
    runs[ALL] = dataclasses.replace(one, keep="last", patience=None)

    def of_fold(name, run):
        if name != ALL:
            parts = divided(examples, names.index(name), count)
            return one_run(data.with_examples(task, *parts), run)
        folder = Path(run.output).parent
        of_folds = [read_metrics(folder / fold / "metrics.json") for fold in names]
        over = _over(of_folds)
        report(f"Training on all examples for {counted(over.epochs, 'epoch')}, the folds' mean.")
        on_all = data.with_examples(task, examples, over_folds=over)
        return one_run(on_all, dataclasses.replace(run, epochs=over.epochs))

    def summary(metrics, models):
        mean, std = mean_and_std([metrics[name]["dev"] for name in names])
        seconds = sum(of_run["seconds"] for of_run in metrics.values())
        return {"mean": mean, "std": std, "seconds": round(seconds, 3)}

    return run_series(
        settings,
        runs,
        of_fold,
        command="finetune",
        inputs=data.inputs,
        varied=(),
        candidates=[ALL],
        summary=summary,
        report=report,
    )


def _over(of_folds):
    """The `OverFolds` of the metrics.json of all folds."""
    tuned = {}
    for name in of_folds[0].get("tuned", {}):
        of_name = [metrics["tuned"][name] for metrics in of_folds]
        of_name = [value for value in of_name if value is not None]
        if of_name:
            tuned[name] = np.mean(of_name, axis=0).tolist()
    return OverFolds(
        epochs=max(1, round(np.mean([metrics["kept"]["epoch"] for metrics in of_folds]))),
        metrics=pooled([metrics["dev"] for metrics in of_folds]),
        tuned=tuned,
    )


def pooled(parts):
    """Official metrics of several parts of the data as one: means of ratios, and sums of counts.

    Bins of a calibration are weighted by their examples.
    """
    first = parts[0]
    if isinstance(first, dict):
        names = [name for name in first if all(name in part for part in parts)]
        if set(first) == {"confidence", "accuracy", "examples"}:
            weights = np.array([part["examples"] for part in parts], float)
            total = max(1.0, weights.sum())
            means = {n: float(weights @ [part[n] for part in parts] / total) for n in first}
            return {**means, "examples": int(weights.sum())}
        return {name: pooled([part[name] for part in parts]) for name in names}
    if isinstance(first, float):
        return float(np.mean(parts))
    if isinstance(first, int):
        return sum(parts)
    if isinstance(first, list) and len({len(part) for part in parts}) == 1:
        return [pooled(column) for column in zip(*parts, strict=True)]
    return first
