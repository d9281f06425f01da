"""The curves of a pre-training run, drawn from its metrics.json alone."""

import statistics

from keras_bert.base.formatting import percent
from keras_bert.pictures.canvas import COLOURS, GREY, save_picture

_TRAINED, _HELD_OUT = COLOURS[0], COLOURS[1]
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
    "input_wait": lambda share, _: percent(share),
}
_LEAST_TOP = {"input_wait": 0.05}  # what is too much (see `keras_bert.training.monitoring.health`)
_OF_TOKENS = ("masked_lm", "causal_lm", "span_boundary")  # whose loss the unigram entropy bounds


def draw_curves(metrics, path):
    """Draws losses, accuracies, the regime and the speed over the steps; returns the file's `Path`.

    The losses are those of tokens, beside the unigram entropy as a level line.
    """
    curve = metrics["curve"]
    outputs = [name for name in _NAMES if f"{name}_loss" in metrics["train"]]

    def draw(canvas):
        losses, accuracies, regime, speed = panels = list(canvas.subplots(2, 2).flat)
        for axis in panels:
            axis.spines[["top", "right"]].set_visible(False)
            axis.set_xlabel("steps")
            axis.locator_params("x", integer=True)
        _draw_losses(losses, metrics, [name for name in outputs if name in _OF_TOKENS])
        _draw_outputs(accuracies, curve, outputs, "accuracy")
        accuracies.set_ylim(0, 1)
        accuracies.legend(frameon=False, fontsize=8)
        _draw_pair(regime, curve, "learning_rate", "gradient_norm")
        _draw_pair(speed, curve, "tokens_per_second", "input_wait")
        shares = [e["flops_utilisation"] for e in curve if "flops_utilisation" in e]
        if shares:
            share = percent(statistics.median(shares), decimals=0)
            speed.set_xlabel(f"steps; {share} of the matrix rate")
        canvas.tight_layout(w_pad=3, h_pad=2)

    return save_picture(draw, path, size=(10, 7))


def _draw_losses(axis, metrics, outputs):
    entropy, tokens = metrics["unigram_entropy"], metrics["curve"][-1].get("tokens")
    _draw_outputs(axis, metrics["curve"], outputs, "loss")
    if entropy is not None:
        label = f"word frequencies {entropy:.2f}"
        axis.axhline(entropy, color=GREY, linewidth=1, linestyle="--", label=label)
    if tokens is not None:
        axis.set_xlabel(f"steps; {tokens:,} tokens")
    axis.legend(frameon=False, fontsize=8)


def _draw_outputs(axis, curve, outputs, figure):
    """Of each output a figure in training and on held-out rows."""
    for style, output in zip(_STYLES, outputs, strict=False):
        for part, said, colour, mark in (
            ("train", "training", _TRAINED, None),
            ("eval", "held out", _HELD_OUT, "o"),
        ):
            points = _points(
                [e.get(part, {}) | {"step": e["step"]} for e in curve], f"{output}_{figure}"
            )
            label = f"{_NAMES[output]}, {said}"
            axis.plot(
                *points, color=colour, linestyle=style, marker=mark, ms=3, lw=1.4, label=label
            )
    axis.set_title(f"{figure}{' (nats)' if figure == 'loss' else ''}", loc="left", fontsize=11)


def _draw_pair(axis, curve, first, second):
    """One figure by the left axis and one by the right, each in the colour of its name."""
    right = axis.twinx()
    right.spines[["top", "left"]].set_visible(False)
    for side, place, name, colour in (
        (axis, "left", first, _TRAINED),
        (right, "right", second, _HELD_OUT),
    ):
        steps, values = _points(curve, name)
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
