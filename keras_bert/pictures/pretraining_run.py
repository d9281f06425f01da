"""The curves of a pre-training run, drawn from its metrics.json alone."""

from keras_bert.pictures.canvas import COLOURS, GREY, save_picture

_TRAINED, _HELD_OUT, _SECOND = COLOURS[0], COLOURS[1], COLOURS[2]
_STYLES = ("-", (0, (4, 1.5)), (0, (1, 1)))  # of a task's outputs, in their order
_NAMES = {
    "masked_lm": "masked tokens",
    "causal_lm": "next tokens",
    "span_boundary": "from the boundaries",
    "next_sentence": "next sentences",
    "sentence_order": "order of sentences",
}


def draw_curves(metrics, path):
    """Draws losses, accuracies, the regime and the speed over the steps; returns the file's `Path`.

    The loss's panel has the tokens on its upper edge, and the unigram entropy as a level line.
    """
    curve = metrics["curve"]
    outputs = [name for name in _NAMES if f"{name}_loss" in metrics["train"]]

    def draw(canvas):
        losses, accuracies, regime, speed = canvas.subplots(2, 2).flat
        _draw_outputs(losses, curve, outputs, "loss")
        losses.axhline(metrics["unigram_entropy"], color=GREY, linewidth=1, linestyle="--")
        losses.annotate(
            f"word frequencies {metrics['unigram_entropy']:.2f}",
            (1, metrics["unigram_entropy"]),
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
            color=GREY,
        )
        losses.legend(frameon=False, fontsize=8)
        _add_tokens(losses, curve)
        _draw_outputs(accuracies, curve, outputs, "accuracy")
        accuracies.set_ylim(0, 1)
        _draw_pair(regime, curve, "learning_rate", "gradient_norm")
        _draw_pair(speed, curve, "tokens_per_second", "flops_utilisation", "input_wait")
        for axis in (losses, accuracies, regime, speed):
            axis.set_xlabel("steps")
            axis.locator_params("x", integer=True)
            axis.spines["right"].set_visible(False)
        canvas.tight_layout(w_pad=3, h_pad=2)

    return save_picture(draw, path, size=(10, 7))


def _points(curve, value):
    """(steps, values) of the entries in which a function of them finds a value."""
    found = [(entry["step"], value(entry)) for entry in curve]
    return tuple(zip(*((step, x) for step, x in found if x is not None), strict=True)) or ((), ())


def _draw_outputs(axis, curve, outputs, figure):
    for style, output in zip(_STYLES, outputs, strict=False):
        name = f"{output}_{figure}"
        for part, said, colour, mark in (
            ("train", "training", _TRAINED, None),
            ("eval", "held out", _HELD_OUT, "o"),
        ):
            steps, values = _points(curve, lambda e, p=part, n=name: e.get(p, {}).get(n))
            label = f"{_NAMES[output]}, {said}"
            axis.plot(
                steps, values, color=colour, linestyle=style, marker=mark, ms=3, lw=1.4, label=label
            )
    axis.set_title(f"{figure}{' (nats)' if figure == 'loss' else ''}", loc="left", fontsize=11)
    axis.spines["top"].set_visible(False)


def _add_tokens(axis, curve):
    """The tokens of some entries on the upper edge."""
    known = [(entry["step"], entry["tokens"]) for entry in curve if entry.get("tokens") is not None]
    if len(known) < 2:
        return
    chosen = known[:: max(1, len(known) // 4)]
    upper = axis.secondary_xaxis("top")
    upper.set_xticks([step for step, _ in chosen], [_short(tokens) for _, tokens in chosen])
    upper.tick_params(length=0, labelcolor=GREY, labelsize=8)
    upper.spines["top"].set_visible(False)
    upper.set_xlabel("tokens", color=GREY, fontsize=8)
    axis.set_title(axis.get_title(loc="left"), loc="left", fontsize=11, pad=12)


def _draw_pair(axis, curve, first, *others):
    """One figure by the left axis, and others by the right one, each in the colour of its name."""
    axis.plot(*_points(curve, lambda entry: entry.get(first)), color=_TRAINED, linewidth=1.4)
    axis.set_title(first.replace("_", " "), loc="left", fontsize=11, color=_TRAINED)
    axis.set_ylim(bottom=0)
    axis.spines["top"].set_visible(False)
    right = axis.twinx()
    right.spines[["top", "left"]].set_visible(False)
    shown = []
    for name, colour in zip(others, (_HELD_OUT, _SECOND), strict=False):
        steps, values = _points(curve, lambda entry, name=name: entry.get(name))
        if steps:
            right.plot(steps, values, color=colour, linewidth=1.4, label=name.replace("_", " "))
            shown.append(name)
    if len(shown) == 1:
        right.set_title(shown[0].replace("_", " "), loc="right", fontsize=11, color=colour)
    elif shown:
        right.legend(frameon=False, fontsize=8)
    if shown:
        right.set_ylim(bottom=0)
    else:
        right.set_visible(False)


def _short(tokens):
    """13_107_200 as `13.1 M`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if tokens >= size:
            return f"{tokens / size:.3g} {unit}"
    return str(tokens)
