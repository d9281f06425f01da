"""The pictures of a training run, drawn from its metrics.json alone."""

import json
import statistics
from os import PathLike
from pathlib import Path

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import percent
from keras_bert.pictures.canvas import COLOURS, GREY, INK, save_picture

_TITLE = "Expected and predicted labels"
# Fields of more labels than this have no numbers in them: they would be too small to read.
_MOST_NUMBERS = 30
# Of more tables than this, one a label, those of the most frequent labels are drawn.
_MOST_TABLES = 30
_TABLES_A_ROW = 5


def draw_confusion(counts, names, path):
    """One table of all labels; returns the file's path.

    Args:
        counts: int (L, L): rows are the expected labels, columns the predicted ones.
        names: those of the L labels.
        path: the file.
    """

    def draw(canvas):
        axis = canvas.subplots()
        _table(axis, counts, size=_text_size(len(names)))
        few = len(names) <= _MOST_NUMBERS
        font, angle = (9, 45) if few else (6, 90)
        turned = {"rotation": angle, "ha": "right", "va": "top" if few else "center"}
        axis.set_xticks(range(len(names)), names, fontsize=font, rotation_mode="anchor", **turned)
        axis.set_yticks(range(len(names)), names, fontsize=font)
        axis.set_xlabel("predicted")
        axis.set_ylabel("expected")
        axis.set_title(_TITLE, loc="left", fontsize=11)

    edge = 2 + len(names) * _cell(len(names))
    return save_picture(draw, path, size=(edge, edge))


def draw_tables(counts, names, path):
    """A table of no and yes for each label, where a text may have several; returns the path.

    Args:
        counts: int (L, 2, 2): rows are no and yes as expected, columns as predicted.
        names: those of the L labels.
        path: the file.
    """
    often = np.argsort(-counts[:, 1].sum(axis=1), kind="stable")
    shown = np.sort(often[:_MOST_TABLES])
    columns = min(len(shown), _TABLES_A_ROW)
    rows = -(-len(shown) // columns)
    left_out = len(names) - len(shown)

    def draw(canvas):
        axes = canvas.subplots(rows, columns, squeeze=False)
        for place, axis in enumerate(axes.flat):
            if place >= len(shown):
                axis.set_visible(False)
                continue
            _table(axis, counts[shown[place]], size=9)
            axis.set_title(names[shown[place]], loc="left", fontsize=8)
            on_the_left, at_the_end = place % columns == 0, place + columns >= len(shown)
            axis.set_yticks((0, 1), ("no", "yes") if on_the_left else ("", ""))
            axis.set_xticks((0, 1), ("no", "yes") if at_the_end else ("", ""))
            axis.set_ylabel("expected" if on_the_left else "")
            axis.set_xlabel("predicted" if at_the_end else "")
        rarer = f"; {left_out:,} rarer ones are left out" if left_out else ""
        canvas.suptitle(_TITLE + rarer, x=0.02, ha="left", fontsize=11)
        canvas.tight_layout()

    return save_picture(draw, path, size=(0.6 + 1.5 * columns, 0.8 + 1.5 * rows))


def _table(axis, counts, *, size):
    """Counts coloured by their share of the row; without numbers where the text has no size."""
    fractions = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axis.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    for side in axis.spines.values():
        side.set_visible(False)
    for (row, column), count in np.ndenumerate(counts) if size else ():
        colour = "white" if fractions[row, column] > 0.6 else INK if count else "#c4c8cf"
        shown = {"ha": "center", "va": "center", "fontsize": size}
        axis.text(column, row, f"{count:,}", color=colour, **shown)


def _text_size(labels):
    if labels > _MOST_NUMBERS:
        return None
    return 10 if labels <= 5 else 7.5


def _cell(labels):
    """The inches of a cell."""
    if labels > _MOST_NUMBERS:
        return 0.13
    return 0.8 if labels <= 5 else 0.42


_PRETRAINED, _HELD_OUT = COLOURS[0], COLOURS[1]
_STYLES = ("-", (0, (4, 1.5)), (0, (1, 1)))  # of a task's outputs, in their order
_NAMES = {
    "masked_lm": "masked tokens",
    "causal_lm": "next tokens",
    "span_boundary": "from the boundaries",
    "next_sentence": "next sentences",
    "sentence_order": "order of sentences",
}
_FORMATS = {
    "tokens_per_second": "{x:,.0f}",
    "input_wait": lambda fraction, _: percent(fraction),
}
_LEAST_TOP = {"input_wait": 0.05}  # what is too much (see `keras_bert.training.monitoring.health`)
_OF_TOKENS = ("masked_lm", "causal_lm", "span_boundary")  # whose loss the unigram entropy bounds


def draw_curves(metrics, path):
    """Draws losses, accuracies, the regime and the speed over the steps; returns the file's `Path`.

    The losses are those of tokens, beside the unigram entropy as a level line.
    """
    history = metrics["history"]
    outputs = [name for name in _NAMES if f"{name}_loss" in metrics["train"]]

    def draw(canvas):
        losses, accuracies, regime, speed = panels = list(canvas.subplots(2, 2).flat)
        for axis in panels:
            axis.spines[["top", "right"]].set_visible(False)
            axis.set_xlabel("steps")
            axis.locator_params("x", integer=True)
        _draw_losses(losses, metrics, [name for name in outputs if name in _OF_TOKENS])
        _draw_outputs(accuracies, history, outputs, "accuracy")
        accuracies.set_ylim(0, 1)
        accuracies.legend(frameon=False, fontsize=8)
        _draw_pair(regime, history, "learning_rate", "gradient_norm")
        _draw_pair(speed, history, "tokens_per_second", "input_wait")
        fractions = [e["mfu"] for e in history if "mfu" in e]
        if fractions:
            fraction = percent(statistics.median(fractions), decimals=0)
            speed.set_xlabel(f"steps; {fraction} of the matrix rate")
        canvas.tight_layout(w_pad=3, h_pad=2)

    return save_picture(draw, path, size=(10, 7))


def _draw_losses(axis, metrics, outputs):
    entropy, tokens = metrics["unigram_entropy"], metrics["history"][-1].get("tokens")
    _draw_outputs(axis, metrics["history"], outputs, "loss")
    if entropy is not None:
        label = f"word frequencies {entropy:.2f}"
        axis.axhline(entropy, color=GREY, linewidth=1, linestyle="--", label=label)
    if tokens is not None:
        axis.set_xlabel(f"steps; {tokens:,} tokens")
    axis.legend(frameon=False, fontsize=8)


def _draw_outputs(axis, history, outputs, figure):
    """Of each output a figure in training and on held-out rows."""
    for style, output in zip(_STYLES, outputs, strict=False):
        for part, said, colour, mark in (
            ("train", "training", _PRETRAINED, None),
            ("eval", "held out", _HELD_OUT, "o"),
        ):
            points = _points(
                [e.get(part, {}) | {"step": e["step"]} for e in history], f"{output}_{figure}"
            )
            label = f"{_NAMES[output]}, {said}"
            axis.plot(
                *points, color=colour, linestyle=style, marker=mark, ms=3, lw=1.4, label=label
            )
    axis.set_title(f"{figure}{' (nats)' if figure == 'loss' else ''}", loc="left", fontsize=11)


def _draw_pair(axis, history, first, second):
    """One figure by the left axis and one by the right, each in the colour of its name."""
    right = axis.twinx()
    right.spines[["top", "left"]].set_visible(False)
    for side, place, name, colour in (
        (axis, "left", first, _PRETRAINED),
        (right, "right", second, _HELD_OUT),
    ):
        steps, values = _points(history, name)
        side.set_visible(bool(steps))
        side.plot(steps, values, color=colour, linewidth=1.4)
        side.set_title(name.replace("_", " "), loc=place, fontsize=11, color=colour)
        side.set_ylim(bottom=0, top=max(side.get_ylim()[1], _LEAST_TOP.get(name, 0)))
        if name in _FORMATS:
            side.yaxis.set_major_formatter(_FORMATS[name])


def _points(entries, name):
    """(steps, values) of the entries that have a value of a name."""
    found = [entry for entry in entries if entry.get(name) is not None]
    return [entry["step"] for entry in found], [entry[name] for entry in found]


_TRAINED, _DEV = COLOURS[0], COLOURS[1]
_LIGHT = "#e5e7eb"
_LONGEST_NAME = 24


def draw_run(run: str | PathLike[str]) -> list[Path]:
    """Draws what a run's metrics.json holds.

    Of a pre-training run that is RUN/curves.png: losses beside the unigram entropy, accuracies, the
    learning rate and the norm of the gradients, and the speed. Of a run on labelled examples they
    are in RUN/pictures: `learning_curve.png` (the loss and the figure by which the best epoch is
    kept), and where the task's figures have them `confusion.png` (how often each label was taken
    for which), `labels.png` (precision, recall and F1 of each label), `reliability.png` (how often
    the model is right when it is so sure).

    Args:
        run: the output folder of a finished run.

    Returns the list of the files' paths.

    Raises:
        InputError: there are no results of such a run, or see
            `keras_bert.pictures.canvas.save_picture`.
    """
    path = Path(run) / "metrics.json"
    if not path.is_file():
        raise InputError(f"There is no {path}: the run is not finished, or it is none.")
    metrics = json.loads(path.read_text(encoding="utf-8"))
    if "unigram_entropy" in metrics:
        return [draw_curves(metrics, Path(run) / "curves.png")]
    if "best_metric" not in metrics:
        raise InputError(f"{path} is of no training run, which this draws.")
    folder = Path(run) / "pictures"
    folder.mkdir(exist_ok=True)
    dev = metrics["dev"]
    drawn = [_learning_curve(metrics, folder / "learning_curve.png")]
    if dev.get("confusion"):
        counts = np.array(dev["confusion"])
        draw = draw_confusion if counts.ndim == 2 else draw_tables
        drawn.append(draw(counts, _names_of(counts, metrics), folder / "confusion.png"))
    if isinstance(dev.get("labels"), dict) and dev["labels"]:
        drawn.append(_labels(dev["labels"], folder / "labels.png"))
    if any(one["examples"] for one in dev.get("calibration", ())):
        drawn.append(_reliability(dev["calibration"], folder / "reliability.png"))
    return drawn


def _learning_curve(metrics, path):
    history, kept, figure = metrics["history"], metrics["kept"]["step"], metrics["best_metric"]

    def points(part, name):
        entries = [entry for entry in history if name in entry.get(part, {})]
        return [entry["step"] for entry in entries], [entry[part][name] for entry in entries]

    def draw(canvas):
        panels = canvas.subplots(1, 2)
        for axis, name in zip(panels, ("loss", figure), strict=True):
            axis.axvline(kept, color=_LIGHT, linewidth=5, zorder=0)
            axis.plot(*points("train", name), color=_TRAINED, linewidth=1.2, label="training")
            axis.plot(*points("eval", name), "o-", color=_DEV, linewidth=1.6, ms=4, label="dev")
            axis.set_title(name.replace("_", " "), loc="left", fontsize=11)
            axis.set_xlabel("steps")
            axis.locator_params("x", integer=True)
            _plain(axis)
        panels[0].set_ylim(bottom=0)
        panels[0].legend(frameon=False)
        steps, values = points("eval", figure)
        value = values[steps.index(kept)]
        panels[1].set_xlabel(f"steps; kept is step {kept}, {value:.3f} on dev")
        canvas.tight_layout(w_pad=3)

    return save_picture(draw, path, size=(9, 3.4))


def _names_of(counts, metrics):
    """The names of the rows of a confusion matrix: those that are as many."""
    dev = metrics["dev"]
    for names in (dev.get("confusion_labels"), dev.get("labels"), metrics.get("labels")):
        if names is not None and len(names) == len(counts):
            return [_short(name) for name in names]
    return [str(number) for number in range(1, len(counts) + 1)]


def _labels(labels, path):
    """labels: {label: {precision, recall, f1, examples}}."""
    names = list(labels)
    places = np.arange(len(names))[::-1]  # the first one on top
    columns = {"precision": ("o", COLOURS[5]), "recall": ("o", COLOURS[2]), "f1": ("D", INK)}

    def draw(canvas):
        axis = canvas.subplots()
        ends = [sorted((labels[name]["precision"], labels[name]["recall"])) for name in names]
        axis.hlines(places, *np.transpose(ends), color=_LIGHT, linewidth=3, zorder=1)
        for number, (key, (marker, colour)) in enumerate(columns.items()):
            values = [labels[name][key] for name in names]
            size = 20 if key == "f1" else 34
            axis.scatter(values, places, s=size, marker=marker, color=colour, zorder=2 + number)
            _column(axis, 1.06 + 0.13 * number, key, [f"{v:.3f}" for v in values], places, colour)
        examples = [f"{labels[name]['examples']:,}" for name in names]
        _column(axis, 1.11 + 0.13 * len(columns), "examples", examples, places, GREY)
        axis.set_yticks(places, [_short(name) for name in names])
        axis.set_ylim(-0.7, len(names) - 0.3)
        axis.set_xlim(-0.02, 1.02)
        axis.set_xticks(np.linspace(0, 1, 6))
        _plain(axis)
        axis.grid(axis="x", color=_LIGHT, linewidth=0.6, zorder=0)

    return save_picture(draw, path, size=(5.2, 0.9 + 0.28 * len(names)))


def _column(axis, x, title, texts, places, colour):
    """A column of a table on the right of the axes, from `x` on in widths of them."""
    place = axis.get_yaxis_transform()
    shown = {"ha": "right", "va": "center", "transform": place, "fontsize": 8}
    axis.text(x + 0.1, max(places) + 0.9, title.replace("f1", "F1"), color=colour, **shown)
    for y, text in zip(places, texts, strict=True):
        axis.text(x + 0.1, y, text, color=INK, **shown)


def _reliability(bins, path):
    """bins: {confidence, accuracy, examples} from 0 to 1; those without examples are left out."""
    width = 1 / len(bins)
    middles = [(number + 0.5) * width for number, one in enumerate(bins) if one["examples"]]
    bins = [one for one in bins if one["examples"]]
    sure = np.array([one["confidence"] for one in bins])
    right = np.array([one["accuracy"] for one in bins])
    examples = np.array([one["examples"] for one in bins])
    gap = float(np.sum(examples * np.abs(sure - right)) / examples.sum())

    def draw(canvas):
        above, below = canvas.subplots(
            2, 1, sharex=True, gridspec_kw={"height_ratios": [4, 1], "hspace": 0.12}
        )
        above.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=(0, (4, 3)))
        above.vlines(sure, sure, right, color=_DEV, linewidth=2, alpha=0.35)
        above.plot(sure, right, "o-", color=_TRAINED, linewidth=1.4, ms=5)
        above.set_ylabel("share that is right")
        above.set_ylim(-0.03, 1.03)
        above.set_title(
            f"How right it is when it is so sure: {gap:.3f} off on average", loc="left", fontsize=11
        )
        below.bar(middles, examples, width=0.9 * width, color=_TRAINED)
        below.set_ylabel("how many")
        below.set_xlabel("how sure the model is")
        below.set_xlim(-0.03, 1.03)
        for axis in (above, below):
            _plain(axis)

    return save_picture(draw, path, size=(4.8, 5.2))


def _plain(axis):
    """Two axes of four, and nothing that is not read."""
    axis.spines[["top", "right"]].set_visible(False)


def _short(name):
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
