"""The names of the weights of a bidirectional language model in a model folder."""

from keras_bert.base.rename import Rename
from keras_bert.encoders.bilm.config import NUM_CHARACTERS
from keras_bert.encoders.tensor_names import TensorNames

_LSTMS = [
    Rename(f"{way}_lstms.{{i}}.{weight}", f"{way}.{{i}}.{weight}", shape)
    for way in ("forward", "backward")
    for weight, shape in (
        ("kernel", "P G"),
        ("recurrent_kernel", "P G"),
        ("bias", "G"),
        ("projection", "U P"),
    )
]


def of(config):
    """The `TensorNames` of a `BilmConfig`; `transformers` has no such model."""
    return TensorNames(
        base_class="BilmEncoder",
        encoder=[*_representation(config), *_LSTMS],
        layers=config.num_hidden_layers,
        sizes={
            "V": config.vocab_size,
            "P": config.direction_size,
            "U": config.lstm_size,
            "G": 4 * config.lstm_size,
            "N": NUM_CHARACTERS,
            "E": config.character_embedding_size,
            "F": config.num_filters,
        },
    )


def _representation(config):
    """The lines of the token representation."""
    if config.character_filters is None:
        return [Rename("token_embedding.embeddings", "token_embedding.weight", "V P")]
    lines = [Rename("characters.embedding.embeddings", "characters.embedding.weight", "N E")]
    for i, (width, number) in enumerate(config.character_filters):
        layer = f"characters.convolutions.{i}"
        lines.append(Rename(f"{layer}.kernel", f"{layer}.kernel", f"{width} E {number}"))
        lines.append(Rename(f"{layer}.bias", f"{layer}.bias", f"{number}"))
    for i in range(config.num_highway_layers):
        for part in ("transform", "gate"):
            lines += _dense(f"characters.highways.{i}.{part}", "F F")
    return [*lines, *_dense("characters.projection", "F P")]


def _dense(layer, shape):
    return [
        Rename(f"{layer}.kernel", f"{layer}.kernel", shape),
        Rename(f"{layer}.bias", f"{layer}.bias", shape.split()[-1]),
    ]
