"""Pictures of the tokens of a text: what each attends to, and how surprising each is."""

from os import PathLike
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inference.embed import open_model
from keras_bert.inference.surprisal import TextSurprisal, surprisal
from keras_bert.inputs.framing import frame
from keras_bert.pictures import COLOURS, GREY, colour_bar, hide_box, save_picture

# More tokens than these are too small to read: of attention, and of surprisal.
_MOST_TOKENS = 48
_MOST_BARS = 60


def draw_attention(
    *,
    model: object,
    text: str,
    output: str | PathLike[str],
    layer: int | None = None,
    head: int | None = None,
) -> Path:
    """Draws the attention inside a text: of all heads, or of one head in large.

    Every row of a square is a token and the columns are the tokens that it attends to; a row sums
    to one. In the small squares the first token, [CLS], is at the top and on the left.

    Args:
        model: a model folder, or a pair of an encoder and its tokenizer.
        text: a text of up to 46 tokens.
        output: the PNG file to write.
        layer, head: which head to draw in large, both from 1; without them, a table of all layers
            by all heads.

    Returns the `Path` of the file.

    Raises:
        InputError: there is no such layer or head, the text has no tokens or too many, or see
            `save_picture`.
    """
    if (layer is None) != (head is None):
        raise InputError.naming(
            "Give both `layer` and {head} for one head, or neither for all heads."
        )
    encoder, tokenizer = open_model(model)
    tokens, probabilities = attention_of(encoder, tokenizer, text)
    layers, heads = probabilities.shape[:2]
    for name, number, count in (("layer", layer, layers), ("head", head, heads)):
        if number is not None and not 1 <= number <= count:
            raise InputError(f"There is no {name} {number}. The model has {name}s 1 to {count}.")
    if layer is None:
        size = (0.9 * heads, 0.9 * layers)
        return save_picture(lambda figure: _grid(figure, probabilities), output, size=size)
    edge = 1 + 0.32 * len(tokens)
    one = probabilities[layer - 1, head - 1]
    title = f"Layer {layer}, head {head}"
    return save_picture(
        lambda figure: _one_head(figure, one, tokens, title), output, size=(edge, edge)
    )


def attention_of(encoder, tokenizer, text):
    """-> the S tokens of [CLS] text [SEP], and float32 (L, N, S, S): layer, head, from, to."""
    return attention_reader(encoder, tokenizer)(text)


def attention_reader(encoder, tokenizer):
    """`attention_of` as a function of the text alone, for repeated calls."""
    vocabulary = tokenizer.vocabulary
    encoder.require("attention-probabilities")
    most = encoder.default_max_length(_MOST_TOKENS)

    def read(text):
        ids = tokenizer.tokenize([text])
        special = tokenizer.template.num_special(1)
        length = int(ids.row_lengths()[0]) + special
        if length == special:
            raise InputError("The text has no tokens. Give a text with at least one word.")
        if length > most:
            raise InputError(
                f"The text has {length} tokens with the special ones. A picture of attention shows "
                f"at most {most}. Give a shorter text."
            )
        inputs = frame(
            [tf.cast(ids, tf.int32)],
            tokenizer=tokenizer,
            names=encoder.input_names,
            max_length=length,
        )
        inputs = {name: x.numpy() for name, x in inputs.items()}
        outputs = encoder(inputs, outputs=("attention_probabilities",), training=False)
        probabilities = np.stack(
            [np.asarray(x, np.float32)[0] for x in outputs["attention_probabilities"]]
        )
        return [vocabulary.token_name(int(id)) for id in inputs["input_ids"][0]], probabilities

    return read


def _grid(figure, probabilities):
    layers, heads = probabilities.shape[:2]
    axes = figure.subplots(layers, heads, squeeze=False)
    figure.subplots_adjust(wspace=0.12, hspace=0.12)
    for layer, row in enumerate(axes):
        for head, axis in enumerate(row):
            _square(axis, probabilities[layer, head])
            axis.set_xticks([])
            axis.set_yticks([])
            if layer == 0:
                axis.set_title(f"head {head + 1}", fontsize=8, color=GREY, pad=4)
        row[0].set_ylabel(f"layer {layer + 1}", fontsize=8, rotation=0, ha="right", va="center")
    axes[0, 0].annotate(
        "Attention: from each token (row) to each token (column)",
        (0, 1),
        (-50, 26),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=11,
    )


def _one_head(figure, probabilities, tokens, title):
    axis = figure.subplots()
    image = _square(axis, probabilities)
    axis.set_xticks(range(len(tokens)), tokens, rotation=90)
    axis.set_yticks(range(len(tokens)), tokens)
    axis.xaxis.tick_top()
    axis.xaxis.set_label_position("top")
    axis.set_xlabel("attends to")
    axis.set_ylabel("token")
    axis.set_title(title, loc="left", fontsize=11)
    colour_bar(axis, image, label="attention", ticks=[0, 0.1, 0.25, 0.5, 1])


def _square(axis, probabilities):
    from matplotlib.colors import PowerNorm

    # By the square root: most probabilities are small, and their differences should be visible.
    norm = PowerNorm(0.5, vmin=0, vmax=1)
    image = axis.imshow(probabilities, cmap="Blues", norm=norm, interpolation="nearest")
    axis.spines[:].set_linewidth(0.6)
    return image


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
        raise InputError.naming("Pass either {model} and {text}, or `found`.")
    if found is None:
        (found,) = surprisal(model=model, text=text)
    count = len(found.tokens)
    if not 1 <= count <= _MOST_BARS:
        raise InputError(
            f"The text has {count} tokens. A picture of surprisal shows 1 to {_MOST_BARS}."
        )
    return save_picture(lambda figure: _bars(figure, found), output, size=(2 + 0.5 * count, 3.2))


def _bars(figure, measured):
    axis = figure.subplots()
    mean = measured.surprisals.mean()
    bars = axis.bar(range(len(measured.tokens)), measured.surprisals, width=0.7, color=COLOURS[0])
    axis.bar_label(bars, [f"{nats:.2f}" for nats in measured.surprisals], fontsize=7.5, padding=2)
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
    axis.set_xticks(range(len(measured.tokens)), measured.tokens, rotation=45, ha="right")
    axis.set_xlim(-0.6, len(measured.tokens) - 0.4)
    axis.margins(y=0.15)
    axis.set_ylabel("-log p (nats)")
    axis.set_title(
        f"Loss of each token (perplexity {measured.perplexity:,.1f})",
        loc="left",
        fontsize=11,
    )
    hide_box(axis)
