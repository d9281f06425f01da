"""The picture of surprisal: the loss of each token of a text, as a bar."""

from os import PathLike
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.inference.surprisal import TextSurprisal, surprisal
from keras_bert.pictures.canvas import COLOURS, GREY, hide_box, save_picture

# More tokens than this are too small to read.
_MOST_TOKENS = 60


def draw_surprisal(
    *,
    output: str | PathLike[str],
    model: object = None,
    text: str | None = None,
    found: TextSurprisal | None = None,
) -> Path:
    """Draws how surprising each token of a text is to a language model.

    Under each bar is a token, and its height is -log p of the token in nats: the loss of
    pre-training when this token is masked or, of a causal model, the next one. The dashed line is
    the mean, whose exp is the (pseudo-)perplexity.

    Args:
        output: the PNG file to write.
        model: what `surprisal` takes, such as a model folder.
        text: a text of up to 60 tokens.
        found: in place of both, what `kb.surprisal` yielded for a text.

    Returns the `Path` of the file.

    Raises:
        InputError: the text has no tokens or too many, the model has no language-model head, the
            name does not end in .png, or matplotlib is not installed.
    """
    if (found is None) == (model is None) or (model is None) != (text is None):
        raise InputError("Pass either `model` and `text`, or `found`.")
    if found is None:
        (found,) = surprisal(model=model, text=text)
    count = len(found.tokens)
    if not 1 <= count <= _MOST_TOKENS:
        raise InputError(
            f"The text has {count} tokens. A picture of surprisal shows 1 to {_MOST_TOKENS}."
        )
    return save_picture(lambda figure: _draw(figure, found), output, size=(2 + 0.5 * count, 3.2))


def _draw(figure, found):
    axis = figure.subplots()
    mean = found.surprisals.mean()
    bars = axis.bar(range(len(found.tokens)), found.surprisals, width=0.7, color=COLOURS[0])
    axis.bar_label(bars, [f"{nats:.2f}" for nats in found.surprisals], fontsize=7.5, padding=2)
    axis.axhline(mean, color=GREY, linewidth=1, linestyle="--")
    axis.annotate(
        f"mean {mean:.2f}",
        (1, mean),
        (3, 0),
        xycoords=axis.get_yaxis_transform(),
        textcoords="offset points",
        color=GREY,
        fontsize=8,
        va="center",
    )
    axis.set_xticks(range(len(found.tokens)), found.tokens, rotation=45, ha="right")
    axis.set_xlim(-0.6, len(found.tokens) - 0.4)
    axis.margins(y=0.15)
    axis.set_ylabel("-log p (nats)")
    axis.set_title(
        f"Loss of each token (perplexity {found.perplexity:,.1f})",
        loc="left",
        fontsize=11,
    )
    hide_box(axis)
