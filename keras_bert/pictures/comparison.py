"""The picture of two models that were compared: differences with intervals, and F1 by label."""

from os import PathLike
from pathlib import Path
from typing import Any

from keras_bert.base.formatting import counted
from keras_bert.pictures import COLOURS, GREY, INK, LIGHT, hide_box, save_picture

_OLD, _NEW = COLOURS[5], COLOURS[0]
_LOSSES = ("cross_entropy", "mse")
_MOST_LABELS = 30  # those of which the difference is largest


def draw_comparison(compared: dict[str, Any], output: str | PathLike[str]) -> Path:
    """Draws what `compare` returned: the differences of the metrics, and F1 by label.

    Only metrics with an interval are drawn, without losses, which have no common scale; a line is
    the 95 % interval of a difference.

    Args:
        compared: the result of `keras_bert.compare`.
        output: the file, NAME.png.

    Returns the `Path` of the file.

    Raises:
        InputError: see `keras_bert.pictures.save_picture`.
    """
    metrics = compared["metrics"].items()
    metrics = {name: m for name, m in metrics if "low" in m and name not in _LOSSES}
    labels = compared.get("labels", {})
    largest = sorted(labels, key=lambda label: -abs(labels[label]["difference"]))[:_MOST_LABELS]
    labels = {label: labels[label] for label in labels if label in largest}
    rows = max(len(metrics), len(labels))

    def draw(canvas):
        panels = canvas.subplots(1, 2 if labels else 1, squeeze=False)[0]
        _draw_differences(panels[0], metrics, examples=compared["examples"])
        if labels:
            _draw_by_label(panels[1], labels)
        canvas.tight_layout(w_pad=3)

    return save_picture(draw, output, size=(9 if labels else 5, 1.4 + 0.32 * rows))


def _draw_differences(axis, metrics, *, examples):
    heights = range(len(metrics))[::-1]  # the first one on top
    axis.axvline(0, color=GREY, linewidth=1, linestyle="--", zorder=1)
    for height, metric in zip(heights, metrics.values(), strict=True):
        axis.hlines(height, metric["low"], metric["high"], color=_NEW, linewidth=2, zorder=2)
    differences = [metric["difference"] for metric in metrics.values()]
    axis.scatter(differences, heights, color=INK, s=26, zorder=3)
    axis.set_yticks(heights, [name.replace("_", " ") for name in metrics])
    axis.set_ylim(-0.7, len(metrics) - 0.3)
    axis.set_xlabel("new minus old, with its 95 % interval")
    axis.set_title(f"Differences on {counted(examples, 'example')}", loc="left", fontsize=11)
    hide_box(axis)


def _draw_by_label(axis, labels):
    heights = range(len(labels))[::-1]
    old, new = ([label[side] for label in labels.values()] for side in ("old", "new"))
    axis.hlines(heights, old, new, color=LIGHT, linewidth=3, zorder=1)
    axis.scatter(old, heights, color=_OLD, s=34, label="old", zorder=2)
    axis.scatter(new, heights, color=_NEW, s=34, marker="D", label="new", zorder=3)
    shown = [f"{name if len(name) <= 24 else name[:23] + '…'}" for name in labels]
    axis.set_yticks(heights, shown)
    axis.set_ylim(-0.7, len(labels) - 0.3)
    axis.set_xlim(-0.02, 1.02)
    axis.set_xlabel("F1")
    axis.set_title("By label", loc="left", fontsize=11)
    axis.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.6, 1), ncols=2, borderpad=0)
    hide_box(axis)
    axis.grid(axis="x", color=LIGHT, linewidth=0.6, zorder=0)
