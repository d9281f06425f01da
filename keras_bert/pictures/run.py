"""The pictures of a training run, drawn from its metrics.json alone."""

import math
import statistics
from os import PathLike
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import ConfusionMatrixDisplay

from keras_bert.base.errors import InputError
from keras_bert.base.files import delete
from keras_bert.base.formatting import counted, percent
from keras_bert.pictures import (
    COLOURS,
    GREY,
    INK,
    LIGHT,
    hide_box,
    load_matplotlib,
    save_picture,
)
from keras_bert.training.run_files import PICTURES, read_metrics

_TITLE = "True and predicted labels"
_TRAINING, _HELD_OUT = COLOURS[0], COLOURS[1]
# With more labels than this, the numbers in the cells would be too small to read.
_MOST_NUMBERS = 30
# Of more tables than this, one per label, those of the most frequent labels are drawn.
_MOST_TABLES = 30
_TABLES_IN_A_ROW = 5
_LONGEST_NAME = 24
_LEAST_SPAN = 0.1  # of the axis of a metric
_ABOVE_ALL = 10_000  # more than the number of any layer

_STYLES = ("-", (0, (4, 1.5)), (0, (1, 1)))  # of a task's outputs, in their order
_NAMES = {
    "masked_lm": "masked tokens",
    "causal_lm": "next tokens",
    "forward_lm": "next tokens",
    "backward_lm": "previous tokens",
    "span_boundary": "from the boundaries",
    "next_sentence": "next sentences",
    "sentence_order": "order of sentences",
}
# Whose loss the unigram entropy bounds.
_TOKEN_OUTPUTS = ("masked_lm", "causal_lm", "forward_lm", "backward_lm", "span_boundary")
_FORMATS = {
    "tokens_per_second": "{x:,.0f}",
    "input_wait": lambda fraction, _: percent(fraction),
}
_LEAST_TOP = {"input_wait": 0.05}  # what is too much (see `keras_bert.training.health`)


def draw_run(run: str | PathLike[str]) -> list[Path]:
    """Draws the results in a run's metrics.json.

    For a pre-training run that is RUN/curves.png: losses with the unigram entropy, accuracies, the
    learning rate and the norm of the gradients, and the speed. For a run on labelled examples they
    are in RUN/pictures: `learning_curve.png` (the loss and the metric that selects the best epoch),
    and if the task has these metrics `confusion.png` (how often each label was predicted for
    each true one), `labels.png` (precision, recall and F1 of each label), `reliability.png`
    (accuracy by confidence). For several training-set sizes there is also `training_sizes.png` (the
    metric by the number of examples), and for several choices of layers `layers.png`, with standard
    deviations over seeds.

    Args:
        run: the output folder of a finished run.

    Returns the list of the files' paths.

    Raises:
        InputError: there are no results of such a run, or see
            `keras_bert.pictures.save_picture`.
    """
    load_matplotlib()  # before earlier pictures are deleted
    path = Path(run) / "metrics.json"
    if not path.is_file():
        raise InputError(f"{path} does not exist: {run} is not a finished run.")
    metrics = read_metrics(path)
    if "unigram_entropy" in metrics:
        delete(Path(run) / "curves.png")  # which may be of a version that did not mark pictures
        return [draw_curves(metrics, Path(run) / "curves.png")]
    if "best_metric" not in metrics:
        raise InputError(f"{path} is not of a training run.")
    folder = Path(run) / "pictures"
    folder.mkdir(exist_ok=True)
    for name in PICTURES:
        delete(folder / name)
    dev = metrics["dev"]
    drawn = [_draw_learning_curve(metrics, folder / "learning_curve.png")]
    sizes = metrics.get("training_sizes") or {}
    if any(len(sizes_of_start) > 1 for sizes_of_start in sizes.values()):
        drawn.append(_draw_training_sizes(metrics, folder / "training_sizes.png"))
    if metrics.get("by_layers"):
        drawn.append(_draw_layers(metrics, folder / "layers.png"))
    if dev.get("confusion"):
        counts = np.array(dev["confusion"])
        draw = _draw_confusion if counts.ndim == 2 else _draw_tables
        drawn.append(draw(counts, _names_of(counts, metrics), folder / "confusion.png"))
    if isinstance(dev.get("labels"), dict) and dev["labels"]:
        drawn.append(_draw_labels(dev["labels"], folder / "labels.png"))
    if any(one["examples"] for one in dev.get("calibration", ())):
        drawn.append(_draw_reliability(dev["calibration"], folder / "reliability.png"))
    return drawn


def _names_of(counts, metrics):
    """The names of the rows of a confusion matrix: the first list of as many names."""
    dev = metrics["dev"]
    for names in (dev.get("confusion_labels"), dev.get("labels"), metrics.get("labels")):
        if names is not None and len(names) == len(counts):
            return [_short(name) for name in names]
    return [str(number) for number in range(1, len(counts) + 1)]


def _short(name):
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _draw_confusion(counts, names, path):
    """One table of all labels: `counts` int (L, L), rows true, columns predicted."""
    has_numbers = len(names) <= _MOST_NUMBERS
    edge = 2 + len(names) * (0.8 if len(names) <= 5 else 0.42 if has_numbers else 0.13)

    def draw(canvas):
        axis = canvas.subplots()
        _draw_table(axis, counts, names, has_numbers=has_numbers)
        axis.tick_params(labelsize=9 if has_numbers else 6)
        axis.set_title(_TITLE, loc="left", fontsize=11)

    return save_picture(draw, path, size=(edge, edge))


def _draw_tables(counts, names, path):
    """For each of several labels a table of no and yes: `counts` int (L, 2, 2), rows true."""
    often = np.argsort(-counts[:, 1].sum(axis=1), kind="stable")
    shown = np.sort(often[:_MOST_TABLES])
    columns = min(len(shown), _TABLES_IN_A_ROW)
    rows = -(-len(shown) // columns)
    left_out = len(names) - len(shown)

    def draw(canvas):
        axes = canvas.subplots(rows, columns, squeeze=False)
        for axis in axes.flat[len(shown) :]:
            axis.set_visible(False)
        for axis, number in zip(axes.flat, shown, strict=False):
            _draw_table(axis, counts[number], ("no", "yes"))
            axis.set_title(names[number], loc="left", fontsize=8)
            axis.tick_params("x", rotation=0)
            axis.label_outer()
        rarer = f"; {left_out:,} rarer ones are left out" if left_out else ""
        canvas.suptitle(_TITLE + rarer, x=0.02, ha="left", fontsize=11)
        canvas.tight_layout(h_pad=2)

    return save_picture(draw, path, size=(0.6 + 1.5 * columns, 0.8 + 1.5 * rows))


def _draw_table(axis, counts, names, *, has_numbers=True):
    """Counts, coloured by their fraction of the row."""
    fractions = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    display = ConfusionMatrixDisplay(fractions, display_labels=names).plot(
        ax=axis,
        cmap="Blues",
        colorbar=False,
        include_values=has_numbers,
        xticks_rotation="vertical",
    )
    if has_numbers:
        for text, count in zip(display.text_.flat, counts.flat, strict=True):
            text.set_text(f"{count:,}")


def draw_curves(metrics, path):
    """Draws losses, accuracies, the schedule and the speed of pre-training; returns the `Path`.

    The losses are those of tokens, with the unigram entropy as a level line.
    """
    history = metrics["history"]
    outputs = [name for name in _NAMES if f"{name}_loss" in metrics["train"]]

    def draw(canvas):
        losses, accuracies, regime, speed = panels = list(canvas.subplots(2, 2).flat)
        for axis in panels:
            _count_steps(axis)
        _draw_outputs(losses, history, [name for name in outputs if name in _TOKEN_OUTPUTS], "loss")
        entropy, tokens = metrics["unigram_entropy"], history[-1].get("tokens")
        if entropy is not None:
            label = f"unigram baseline {entropy:.2f}"
            losses.axhline(entropy, color=GREY, linewidth=1, linestyle="--", label=label)
        if tokens is not None:
            losses.set_xlabel(f"steps; {tokens:,} tokens")
        _draw_outputs(accuracies, history, outputs, "accuracy")
        accuracies.set_ylim(0, 1)
        for axis in (losses, accuracies):  # below the panel, where no line is
            place = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.16), "borderpad": 0}
            axis.legend(frameon=False, fontsize=8, ncols=2, **place)
        _draw_pair(regime, history, "learning_rate", "gradient_norm")
        _draw_pair(speed, history, "tokens_per_second", "input_wait")
        fractions = [record["mfu"] for record in history if "mfu" in record]
        if fractions:
            fraction = percent(statistics.median(fractions), decimals=0)
            speed.set_xlabel(f"steps; {fraction} of the processor's rate of matrix products")
        canvas.tight_layout(w_pad=3, h_pad=2)

    return save_picture(draw, path, size=(10, 7))


def _draw_outputs(axis, history, outputs, metric):
    """For each output, a metric in training and on held-out examples."""
    for style, output in zip(_STYLES, outputs, strict=False):
        for part, name, colour, mark in (
            ("train", "training", _TRAINING, None),
            ("eval", "held out", _HELD_OUT, "o"),
        ):
            points = _points(history, f"{output}_{metric}", part)
            shown = {"linestyle": style, "marker": mark, "ms": 3, "lw": 1.4}
            axis.plot(*points, color=colour, label=f"{_NAMES[output]}, {name}", **shown)
    axis.set_title(f"{metric}{' (nats)' if metric == 'loss' else ''}", loc="left", fontsize=11)


def _draw_pair(axis, history, first, second):
    """One metric by the left axis and one by the right, each in the colour of its name."""
    right = axis.twinx()
    right.spines[["top", "left"]].set_visible(False)
    for side, where, name, colour in (
        (axis, "left", first, _TRAINING),
        (right, "right", second, _HELD_OUT),
    ):
        steps, numbers = _points(history, name)
        side.set_visible(bool(steps))
        side.plot(steps, numbers, color=colour, linewidth=1.4)
        side.set_title(name.replace("_", " "), loc=where, fontsize=11, color=colour)
        side.set_ylim(bottom=0, top=max(side.get_ylim()[1], _LEAST_TOP.get(name, 0)))
        if name in _FORMATS:
            side.yaxis.set_major_formatter(_FORMATS[name])


def _count_steps(axis):
    axis.set_xlabel("steps")
    axis.locator_params("x", integer=True)
    hide_box(axis)


def _points(history, name, part=None):
    """(steps, numbers) of the log records that have a number of a name, directly or in a part."""
    steps, numbers = [], []
    for record in history:
        number = (record if part is None else record.get(part, {})).get(name)
        if number is not None:
            steps.append(record["step"])
            numbers.append(number)
    return steps, numbers


def _draw_learning_curve(metrics, path):
    history, metric = metrics["history"], metrics["best_metric"]
    kept_step = metrics["kept"]["step"]

    def draw(canvas):
        panels = canvas.subplots(1, 2)
        for axis, name in zip(panels, ("loss", metric), strict=True):
            axis.axvline(kept_step, color=LIGHT, linewidth=5, zorder=0)
            train, dev = (_points(history, name, part) for part in ("train", "eval"))
            axis.plot(*train, color=_TRAINING, linewidth=1.2, label="training")
            axis.plot(*dev, "o-", color=_HELD_OUT, linewidth=1.6, ms=4, label="dev")
            axis.set_title(name.replace("_", " "), loc="left", fontsize=11)
            _count_steps(axis)
        _widen(panels[1])
        panels[0].set_ylim(bottom=0)
        panels[0].legend(frameon=False)
        if dev[0]:  # not if all examples were trained on
            score = dict(zip(*dev, strict=True))[kept_step]
            panels[1].set_xlabel(f"steps; the best is step {kept_step}, {score:.3f} on dev")
        canvas.tight_layout(w_pad=3)

    return save_picture(draw, path, size=(9, 3.4))


def _widen(axis):
    """Makes an axis of a metric at least as high as `_LEAST_SPAN`: small changes look small."""
    low, high = axis.get_ylim()
    if high - low < _LEAST_SPAN:
        middle = min((low + high) / 2, 1 - _LEAST_SPAN / 2)
        axis.set_ylim(middle - _LEAST_SPAN / 2, middle + _LEAST_SPAN / 2)


def _draw_training_sizes(metrics, path):
    """The score of the model, and of the baseline, against the number of training examples."""
    starts = metrics["training_sizes"]

    def draw(canvas):
        axis = canvas.subplots()
        for (start, sizes), colour in zip(starts.items(), COLOURS, strict=False):
            examples = [size["train_examples"] for size in sizes]
            _with_deviations(axis, examples, sizes, colour, fmt="o-", label=start)
        axis.set_xscale("log")
        axis.set_xticks(examples, [f"{count:,}" for count in examples])
        axis.minorticks_off()
        axis.set_xlabel("training examples")
        axis.set_title(_on_dev(metrics, sizes[0]), loc="left", fontsize=11)
        axis.legend(frameon=False)
        hide_box(axis)

    return save_picture(draw, path, size=(5.6, 3.6))


def _draw_layers(metrics, path):
    """The score of each choice of layers: single layers by their number, then the others."""
    scores = metrics["by_layers"]
    single = {name: n for name in scores if (n := _layer_of(name)) is not None}
    names = sorted(single, key=single.get) + [name for name in scores if name not in single]

    def draw(canvas):
        axis = canvas.subplots()
        for chosen, colour, fmt, label in (
            (names[: len(single)], _TRAINING, "o-", "one layer"),
            (names[len(single) :], _HELD_OUT, "D", "several layers"),
        ):
            if chosen:
                at, chosen_scores = map(names.index, chosen), [scores[name] for name in chosen]
                _with_deviations(axis, [*at], chosen_scores, colour, fmt=fmt, label=label)
        shown = [name.removeprefix("layer-") for name in names]
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        axis.set_xticks(range(len(names)), shown, **turned)
        axis.set_xlabel("layers that the head reads")
        axis.set_title(_on_dev(metrics, scores[names[0]]), loc="left", fontsize=11)
        hide_box(axis)

    return save_picture(draw, path, size=(2.2 + 0.42 * len(names), 3.6))


def _layer_of(choice):
    """The place of a choice of one layer among such choices, from the lowest; None for others."""
    if choice.startswith("layer-"):
        return int(choice.removeprefix("layer-"))
    return {"first": 0, "second-to-last": _ABOVE_ALL, "last": _ABOVE_ALL + 1}.get(choice)


def _with_deviations(axis, at, scores, colour, *, fmt, label):
    """Means of seeds with their standard deviations, and each seed as a small point."""
    means = [math.nan if score["mean"] is None else score["mean"] for score in scores]
    deviations = [score["std"] or 0.0 for score in scores]
    shown = {"color": colour, "linewidth": 1.6, "ms": 5, "capsize": 3, "elinewidth": 1.2}
    axis.errorbar(at, means, yerr=deviations, fmt=fmt, label=label, **shown)
    for x, score in zip(at, scores, strict=True):
        seed_metrics = [metric for metric in score["metrics"] if metric is not None]
        axis.scatter([x] * len(seed_metrics), seed_metrics, s=8, color=colour, alpha=0.4, zorder=3)


def _on_dev(metrics, score):
    seeds = len(score["metrics"])
    over = f"; mean and deviation over {seeds} seeds" if seeds > 1 else ""
    return f"{metrics['best_metric'].replace('_', ' ')} on dev{over}"


def _draw_labels(labels, path):
    """labels: {label: {precision, recall, f1, examples}}."""
    heights = np.arange(len(labels))[::-1]  # the first one on top
    columns = {"precision": ("o", COLOURS[5]), "recall": ("o", COLOURS[2]), "f1": ("D", INK)}

    def draw(canvas):
        axis = canvas.subplots()
        known = [number for number, x in enumerate(labels.values()) if x["examples"]]
        ends = [sorted((x["precision"], x["recall"])) for x in labels.values() if x["examples"]]
        if ends:
            axis.hlines(heights[known], *np.transpose(ends), color=LIGHT, linewidth=3, zorder=1)
        for number, (key, (marker, colour)) in enumerate(columns.items()):
            # A label without an example has no score.
            fractions = [x[key] if x["examples"] else math.nan for x in labels.values()]
            size = 20 if key == "f1" else 34
            axis.scatter(fractions, heights, s=size, marker=marker, color=colour, zorder=2 + number)
            shown = ["–" if math.isnan(fraction) else f"{fraction:.3f}" for fraction in fractions]
            title = key.replace("f1", "F1")
            _write_column(axis, 1.06 + 0.13 * number, [title, *shown], colour)
        examples = ["examples", *(f"{label['examples']:,}" for label in labels.values())]
        _write_column(axis, 1.11 + 0.13 * len(columns), examples, GREY)
        axis.set_yticks(heights, [_short(name) for name in labels])
        axis.set_ylim(-0.7, len(labels) - 0.3)
        axis.set_xlim(-0.02, 1.02)
        axis.set_xticks(np.linspace(0, 1, 6))
        hide_box(axis)
        axis.grid(axis="x", color=LIGHT, linewidth=0.6, zorder=0)

    return save_picture(draw, path, size=(5.2, 0.9 + 0.28 * len(labels)))


def _write_column(axis, x, texts, colour):
    """A title and a text per label on the right of the axes, at `x` in widths of them."""
    heights = [len(texts) - 1.1, *range(len(texts) - 2, -1, -1)]
    colours = [colour, *[INK] * (len(texts) - 1)]
    shown = {"ha": "right", "va": "center", "transform": axis.get_yaxis_transform(), "fontsize": 8}
    for y, text, text_colour in zip(heights, texts, colours, strict=True):
        axis.text(x + 0.1, y, text, color=text_colour, **shown)


def _draw_reliability(bins, path):
    """bins: {confidence, accuracy, examples} from 0 to 1; those without examples are left out."""
    width = 1 / len(bins)
    middles = [(number + 0.5) * width for number, one in enumerate(bins) if one["examples"]]
    confidence, accuracy, examples = (
        np.array([one[key] for one in bins if one["examples"]])
        for key in ("confidence", "accuracy", "examples")
    )
    gap = float(np.sum(examples * np.abs(confidence - accuracy)) / examples.sum())

    def draw(canvas):
        above, below = canvas.subplots(2, 1, sharex=True, height_ratios=[4, 1])
        CalibrationDisplay(accuracy, confidence, y_prob=None).plot(ax=above)
        title = counted(examples.sum(), "example")
        title += f": accuracy by confidence, calibration error {gap:.3f}"
        above.set(xlabel="", ylabel="accuracy")
        above.set_title(title, loc="left", fontsize=11)
        below.bar(middles, examples, width=0.9 * width)
        below.set(xlabel="confidence", ylabel="examples")
        for axis in (above, below):
            hide_box(axis)

    return save_picture(draw, path, size=(4.8, 5.2))
