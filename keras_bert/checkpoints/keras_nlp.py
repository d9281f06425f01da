"""keras-nlp's `BertBackbone`, from an object or a preset folder, and to one."""

import functools
import json
from pathlib import Path

from keras_bert.base import rename
from keras_bert.base.errors import InputError, input_errors, reason_of
from keras_bert.base.files import check_regular, new_folder, parse_json, read_small
from keras_bert.base.ownership import check_output_folder, held_names
from keras_bert.base.rename import Rename
from keras_bert.base.version import __version__
from keras_bert.checkpoints.config_json import MARK
from keras_bert.checkpoints.google import check_wordpiece, fields_of
from keras_bert.checkpoints.pretrained_checkpoint import check_vocabulary
from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.tensor_names import dense, embeddings, layer_norm, sizes_of

# Fixed in its code: gelu in the tanh form, and this epsilon.
_ACTIVATIONS = ("gelu_new", "gelu_pytorch_tanh")
_EPSILON = 1e-12
# The fields of a config that have one value there.
_LIMITED = ("model_type", "hidden_act", "layer_norm_eps", "is_decoder")

# The fields of a config, and the arguments of a backbone that are the same numbers.
_SIZES = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}
# Arguments that a preset's config may leave out.
_DEFAULTS = {"dropout": 0.1, "max_sequence_length": 512, "num_segments": 2}

_dense = functools.partial(dense, ends=(".kernel", ".bias"), transposed=False)
_layer_norm = functools.partial(layer_norm, ends=(".gamma", ".beta"))

_OURS, _LAYER = "blocks.{i}", "transformer_layers.{i}"
_ATTENTION = f"{_LAYER}._self_attention_layer"


def _part(number, name):
    """A projection to the heads, whose size D is there as N heads of size H."""
    own_name, their_name = f"{_OURS}.attention.query_key_value", f"{_ATTENTION}.{name}_dense"
    part = (number, 3)
    return [
        Rename(f"{own_name}.kernel", f"{their_name}.kernel", "D D", folded="D N H", part=part),
        Rename(f"{own_name}.bias", f"{their_name}.bias", "D", folded="N H", part=part),
    ]


# Attributes of the backbone, whose variables have no other stable names.
_BACKBONE = [
    *embeddings(
        "token_embedding.embeddings",
        positions="position_embedding.position_embeddings",
        segments="segment_embedding.embeddings",
        norm="embeddings_layer_norm",
        layer_norm=_layer_norm,
    ),
    *(
        line
        for number, name in enumerate(("query", "key", "value"))
        for line in _part(number, name)
    ),
    Rename(
        f"{_OURS}.attention.projection.kernel",
        f"{_ATTENTION}.output_dense.kernel",
        "D D",
        folded="N H D",
    ),
    Rename(f"{_OURS}.attention.projection.bias", f"{_ATTENTION}.output_dense.bias", "D"),
    *_layer_norm(f"{_OURS}.attention_norm", f"{_LAYER}._self_attention_layer_norm"),
    *_dense(f"{_OURS}.feed_forward.dense_in", f"{_LAYER}._feedforward_intermediate_dense", "D I"),
    *_dense(f"{_OURS}.feed_forward.dense_out", f"{_LAYER}._feedforward_output_dense", "I D"),
    *_layer_norm(f"{_OURS}.feed_forward_norm", f"{_LAYER}._feedforward_layer_norm"),
    *_dense("pooler.dense", "pooled_dense", "D D"),
]

_CONFIG = "config.json"
_METADATA = "metadata.json"


def is_keras_nlp(path):
    """Whether a path is a preset folder of a keras-nlp (now keras-hub) `BertBackbone`."""
    return _object(Path(path) / _CONFIG).get("class_name") == "BertBackbone"


def load_keras_nlp(path):
    """Loads a preset folder -> (`BertEncoder`, `Tokenizer`).

    Raises InputError if keras-nlp is not installed or the folder is not a whole preset.
    """
    from keras_bert.text.tokenizer import Tokenizer
    from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary

    def message(error):
        # A RuntimeError is TensorFlow Text's, of a vocabulary that it does not take.
        expected = OSError | ValueError | KeyError | TypeError | AttributeError | RuntimeError
        expected |= ArithmeticError  # of 0 heads
        if isinstance(error, expected):
            return f"{path} is not a whole keras-nlp preset: {reason_of(error)}."
        return None

    keras_nlp = _keras_nlp()
    for file in Path(path).rglob("*"):
        check_regular(file)
    with input_errors(message):
        _check_size(path)
        backbone = keras_nlp.models.BertBackbone.from_preset(str(path))
        their_tokenizer = keras_nlp.models.BertTokenizer.from_preset(str(path))
        vocabulary = their_tokenizer.get_vocabulary()
        config = _config_of(backbone)
    encoder = _encoder(backbone, config, source=path)
    vocabulary = WordPieceVocabulary(vocabulary)
    check_vocabulary(vocabulary, config, source=path)
    return encoder, Tokenizer.from_vocab(vocabulary, lowercase=their_tokenizer.lowercase)


def from_keras_nlp(backbone):
    """The `BertEncoder` that computes what a `keras_nlp.models.BertBackbone` computes.

    Raises ValueError for an invalid size, and InputError for a weight that is not finite.
    """
    return _encoder(backbone, _config_of(backbone), source="the keras-nlp backbone")


def _check_size(path):
    """Raises InputError if the config asks for a model that the files of weights cannot hold.

    keras-nlp would build it first, of any number of layers.
    """
    config = _config(_DEFAULTS | _object(Path(path) / _CONFIG)["config"])
    size = sum(file.stat().st_size for file in Path(path).glob("*.h5"))
    if 0 < size < config.parameter_count():  # a parameter has 2 bytes or more
        raise InputError(
            f"{path}: {_CONFIG} asks for {config.parameter_count():,} parameters, but the files of "
            f"weights have {size:,} bytes."
        )


def _config_of(backbone):
    return _config({name: getattr(backbone, name) for name in _SIZES.values()})


def _config(sizes):
    return BertConfig(
        **{own_name: sizes[their_name] for own_name, their_name in _SIZES.items()},
        hidden_act="gelu_new",
        attention_probs_dropout_prob=sizes["dropout"],
        layer_norm_eps=_EPSILON,
    )


def _encoder(backbone, config, *, source):
    encoder = BertEncoder(config)
    encoder.new_pooler()

    def read(name):
        tensor = rename.to_numpy(rename.variable(backbone, name))
        return rename.numbers(tensor, name, source=source)

    rename.assign(encoder, rename.expand(_BACKBONE, config.num_hidden_layers), read)
    return encoder


def to_keras_nlp(encoder):
    """The `keras_nlp.models.BertBackbone` that computes what a `BertEncoder` computes.

    Raises:
        InputError: the encoder has another activation than the tanh form of gelu, another epsilon
            or no pooler, is a RoBERTa or causal; or keras-nlp is not installed.
    """
    keras_nlp = _keras_nlp()
    config = encoder.config
    if (
        config.model_type != "bert"
        or config.is_decoder
        or encoder.pooler is None
        or config.hidden_act not in _ACTIVATIONS
        or config.layer_norm_eps != _EPSILON
    ):
        raise InputError(
            "keras-nlp's BertBackbone is a bidirectional BERT with a pooler, gelu in its tanh form "
            "(gelu_new) and a LayerNorm epsilon of 1e-12. "
            f"Received: {fields_of(config, *_LIMITED)}"
            f"{', without a pooler' if encoder.pooler is None else ''}."
        )
    sizes = {their_name: getattr(config, own_name) for own_name, their_name in _SIZES.items()}
    backbone = keras_nlp.models.BertBackbone(**sizes)
    table = rename.expand(_BACKBONE, config.num_hidden_layers)
    tensors = rename.gather(encoder, table, sizes=sizes_of(config))
    for name, tensor in tensors.items():
        rename.variable(backbone, name).assign(tensor)
    return backbone


def save_keras_nlp(encoder, tokenizer, folder, *, overwrite=False):
    """Writes an encoder and its tokenizer as a preset folder; arguments as in `save_folder`."""
    keras_nlp = _keras_nlp()
    backbone = to_keras_nlp(encoder)
    check_wordpiece(tokenizer, needed_by="keras-nlp's BertTokenizer")
    their_tokenizer = keras_nlp.models.BertTokenizer(
        vocabulary=list(tokenizer.vocabulary.tokens), lowercase=tokenizer.lowercase
    )
    check_output_folder(folder, is_ours=_is_own, force=overwrite)
    with new_folder(folder) as temporary:
        backbone.save_to_preset(str(temporary))
        their_tokenizer.save_to_preset(str(temporary))
        metadata = _object(temporary / _METADATA)  # keras-nlp ignores unknown keys
        metadata[MARK] = {"version": __version__, "holds": held_names(temporary)}
        (temporary / _METADATA).write_text(json.dumps(metadata, indent=4), encoding="utf-8")


def _is_own(folder):
    """Whether a folder contains a preset that `save_keras_nlp` wrote, and nothing else."""
    stored = _object(Path(folder) / _METADATA).get(MARK)
    return isinstance(stored, dict) and stored.get("holds") == held_names(folder)


def _object(path):
    """The object in a JSON file of a preset; {} if there is none."""
    try:
        value = parse_json(read_small(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _keras_nlp():
    try:
        import keras_nlp
    except ImportError as error:
        raise InputError("This needs keras-nlp: pip install keras-nlp.") from error
    return keras_nlp
