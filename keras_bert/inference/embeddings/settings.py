"""What can be said of embeddings: how vectors are made, of which texts, into which file."""

import dataclasses

from keras_bert.base.errors import InputError
from keras_bert.base.settings import Settings, setting
from keras_bert.readers.settings import TextFileSettings

# Name -> (how many layers from the end, how they are joined). The six choices of the BERT paper's
# feature-based approach (Devlin et al. 2018, section 5.3 and table 7; there the two sums are
# weighted: `ScalarMix` learns such weights) and one that is much used since.
_LAYERS = {
    "last": (1, "sum"),
    "second-to-last": (2, "lowest"),
    "sum-last-4": (4, "sum"),
    "concat-last-4": (4, "concat"),
    "sum-all": (None, "sum"),
    "mean-last-4": (4, "mean"),
    "first": (0, "embeddings"),
}
LAYERS = tuple(_LAYERS)
# Tokens of a row where an encoder takes sequences of any length.
ANY_LENGTH = 512
TOKENS = ("words-mean", "words-first", "subwords", "none")


def check_layers(name, *, config):
    """Raises `InputError` where the model has too few layers for a choice."""
    needed, _ = _LAYERS[name]
    layers = config.num_hidden_states - 1
    if (needed or 0) > layers:
        raise InputError(
            f"{name} needs a model of at least {needed} layers, and this one has {layers}; give "
            "another choice of layers."
        )


def layers_model(encoder, name):
    """A `keras.Model` from an encoder's inputs to the vectors of a choice, float32 (B, S, D).

    In a graph the layers above those chosen are not computed.
    """
    import keras  # late: a command line is parsed with the names above, and is fast

    inputs = encoder.symbolic_inputs()
    states = encoder(inputs, outputs=("hidden_states",))["hidden_states"]
    return keras.Model(inputs, keras.ops.cast(choose_layers(states, name), "float32"))


def choose_layers(states, name):
    """The vectors of a choice, from an encoder's hidden states.

    * `last`, `second-to-last`: the output of that block;
    * `sum-last-4`, `mean-last-4`, `concat-last-4` (the last block's first): of four blocks;
    * `sum-all`: the sum of all blocks' outputs, without the embeddings (the paper's "all 12");
    * `first`: the embeddings, before any block (the paper's "Embeddings"): no context in them.

    Shapes: `states` are L + 1 tensors (B, S, D), the embeddings first -> (B, S, D), or (B, S, 4 D)
    for `concat-last-4`.
    """
    from keras import ops  # late: a command line is parsed with the names above, and is fast

    count, how = _LAYERS[name]
    if how == "embeddings":
        return states[0]
    blocks = states[1:] if count is None else states[-count:]
    if how == "lowest":
        return blocks[0]
    if how == "concat":
        return ops.concatenate(blocks[::-1], axis=-1)
    total = blocks[0]
    for block in blocks[1:]:
        total = total + block
    return total / len(blocks) if how == "mean" else total


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedderSettings(Settings):
    """How a text becomes vectors."""

    layers: str = setting(
        "last",
        help='the layers that make a vector; "first" is the embeddings below all blocks, "sum-all" '
        "the sum of all blocks",
        choices=LAYERS,
    )
    tokens: str = setting(
        "words-mean",
        help="what has a vector beside the text itself: words, as the mean of their pieces or by "
        "their first piece; pieces; or nothing",
        choices=TOKENS,
    )
    max_length: int | None = setting(
        None,
        help="tokens in a row, [CLS] and [SEP] counted in; a longer text is read in rows that "
        "overlap",
        unit="TOKENS",
        default_help="as many as the model has positions",
        at_least=3,
    )
    batch_size: int = setting(32, help="rows in a step, at most", unit="ROWS", at_least=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextsSettings(TextFileSettings):
    """Which texts, and for which model."""

    model: object = setting(
        help="a model folder, the output of a run, or hf://owner/name",
        unit="FOLDER",
        is_path=True,
    )
    data: object = setting(
        help="one text a line, TSV or JSON Lines, told by content; - is standard input",
        unit="FILE",
        is_path=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedSettings(EmbedderSettings, TextsSettings):
    """Settings of `keras_bert.embed`."""

    data: object = setting(
        None,
        help="a file: one text a line, TSV or JSON Lines, told by content; - is standard input",
        default_help="give `text`",
        is_path=True,
    )
    text: list[str] | None = setting(None, help="the texts", default_help="give `data`")

    def check(self):
        if (self.data is None) == (self.text is None):
            raise InputError("Give either `data`, a file of texts, or `text`, and not both.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedToFileSettings(EmbedderSettings, TextsSettings):
    """Settings of `keras_bert.embed_to_file`."""

    output: object = setting(
        help="NAME.parquet or NAME.npz, which says the format", unit="FILE", is_path=True
    )
    force: bool = setting(
        False, help="replace an output that this command wrote before", recorded=False
    )
