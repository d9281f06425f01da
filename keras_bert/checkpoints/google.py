"""Google's TF1 checkpoints: `bert_config.json`, `bert_model.ckpt.*`, `vocab.txt`, in and out.

The names are those that google-research/bert's modelling code gives its variables.
"""

import functools
import glob
import json
import re
import warnings
from pathlib import Path

import numpy as np

from keras_bert.base import rename
from keras_bert.base.errors import InputError, InputWarning, input_errors, reason_of
from keras_bert.base.files import check_regular, new_folder, read_json
from keras_bert.base.formatting import counted, listed
from keras_bert.base.ownership import check_output_folder, held_names
from keras_bert.base.version import __version__
from keras_bert.checkpoints.config_json import MARK, labels_from_config, labels_to_config, stored
from keras_bert.checkpoints.pretrained_checkpoint import check_vocabulary
from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.tensor_names import (
    dense,
    embeddings,
    layer_norm,
    lm_head,
    sizes_of,
    transformer_layer,
)
from keras_bert.encoders.transformer_config import ACTIVATIONS
from keras_bert.heads import LAST
from keras_bert.tasks import task_class
from keras_bert.text.template import BERT_TEMPLATE
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import BERT_TOKENS

CONFIG = "bert_config.json"
CHECKPOINT = "bert_model.ckpt"
VOCABULARY = "vocab.txt"

_dense = functools.partial(dense, ends=("/kernel", "/bias"), transposed=False)
_layer_norm = functools.partial(layer_norm, ends=("/LayerNorm/gamma", "/LayerNorm/beta"))
# Its heads multiply by the transpose of their weights.
_output = functools.partial(dense, ends=("output_weights", "output_bias"))

_LAYER = "bert/encoder/layer_{i}"
_ENCODER = [
    *embeddings(
        "bert/embeddings/word_embeddings",
        positions="bert/embeddings/position_embeddings",
        segments="bert/embeddings/token_type_embeddings",
        norm="bert/embeddings",
        layer_norm=_layer_norm,
    ),
    *transformer_layer(
        query_key_value=[f"{_LAYER}/attention/self/{part}" for part in ("query", "key", "value")],
        projection=f"{_LAYER}/attention/output/dense",
        attention_norm=f"{_LAYER}/attention/output",
        dense_in=f"{_LAYER}/intermediate/dense",
        dense_out=f"{_LAYER}/output/dense",
        feed_forward_norm=f"{_LAYER}/output",
        dense=_dense,
        layer_norm=_layer_norm,
    ),
]
# Of the layer `pooler`.
_POOLER = _dense("dense", "bert/pooler/dense", "D D")
# By the attribute of the task.
_HEADS = {
    "lm_head": lm_head(
        "cls/predictions/transform/dense",
        "cls/predictions/transform",
        "cls/predictions/output_bias",
        dense=_dense,
        layer_norm=_layer_norm,
    ),
    "next_sentence_head": _output("next_sentence_head.dense", "cls/seq_relationship/", "D 2"),
    "classifier": _output("classifier", "", "D C"),
    "qa_outputs": _output("qa_outputs", "cls/squad/", "D 2"),
}

# The keys of its config, which have Hugging Face's names.
_CONFIG_KEYS = (
    "attention_probs_dropout_prob",
    "hidden_act",
    "hidden_dropout_prob",
    "hidden_size",
    "initializer_range",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_hidden_layers",
    "type_vocab_size",
    "vocab_size",
)

# The epsilon of its LayerNorm is a constant in the code.
_EPSILON = 1e-12

# Its optimizer and training loop store these in a checkpoint in addition to the weights.
_SLOTS = re.compile(r"(/adam_[mv]|/(Adam|LAMB|lamb)[^/]*)$|^global_step$|^beta[12]_power$")

# The task type of a checkpoint with these heads.
_TASK_TYPES = {
    ("lm_head", "next_sentence_head"): "pretrainer",
    ("lm_head",): "fill-mask",
    ("classifier",): "classifier",
    ("qa_outputs",): "question-answering",
}

# Its run_pretraining.py, run_classifier.py and run_squad.py. It has no tagger, whose `classifier`
# would be taken for that of a whole text.
_ARCHITECTURES = (
    "BertForPreTraining",
    "BertForMaskedLM",
    "BertForSequenceClassification",
    "BertForQuestionAnswering",
)


def is_google(path):
    """Whether a path is a folder with `bert_config.json`, or the prefix of a checkpoint."""
    if Path(path).is_dir():
        return (Path(path) / CONFIG).exists()
    return Path(f"{path}.index").exists()


def load_google(path):
    """Loads a checkpoint of google-research/bert.

    Its "gelu" is the tanh form, so the config has `gelu_new`, unless this library wrote the
    checkpoint and stored the activation. The tokenizer is cased if a token has a capital.

    Args:
        path: the folder, or the checkpoint's prefix (`…/bert_model.ckpt`) in the config's folder.

    Returns:
        (model, `Tokenizer`). The model is the task with the checkpoint's heads, or a `BertEncoder`
        if it has none.

    Raises:
        InputError: a file is missing or broken, or a tensor is missing, unknown or of another
            shape.
    """
    import tensorflow as tf

    folder, prefix = _find(Path(path))
    source = str(folder / CONFIG)

    def message(error):
        if isinstance(error, tf.errors.OpError | ValueError | IndexError):  # IndexError: cut off
            return f"{prefix} is not a whole TensorFlow checkpoint: {reason_of(error)}."
        return None

    for file in folder.glob(f"{glob.escape(prefix.name)}.*"):
        check_regular(file)
    config_json = read_json(folder / CONFIG)
    if isinstance(config_json, dict) and config_json.get("hidden_act") == "gelu":
        activation = stored(config_json, source=source).get("hidden_act")
        config_json = {
            **config_json,
            "hidden_act": activation if activation in ACTIVATIONS else "gelu_new",
        }
    config = BertConfig.from_dict(config_json, source=source)
    with input_errors(message):
        reader = tf.train.load_checkpoint(str(prefix))
    shapes = {
        name: tuple(shape)
        for name, shape in reader.get_variable_to_shape_map().items()
        if not _SLOTS.search(name)
    }
    has_pooler = any(name.startswith("bert/pooler/") for name in shapes)
    heads = [name for name, lines in _HEADS.items() if any(line.theirs in shapes for line in lines)]
    labels = None
    if "classifier" in heads:
        count = (*shapes.get("output_weights", ()), 0)[0]
        labels = [f"LABEL_{i}" for i in range(count)]
        if "id2label" in config_json:
            labels = labels_from_config(config_json, source=source)
    encoder_table = rename.expand(_ENCODER, config.num_hidden_layers)
    pooler_table = _POOLER if has_pooler else []
    head_table = [line for head in heads for line in _HEADS[head]]
    sizes = {**sizes_of(config), "C": len(labels or ())}
    table = encoder_table + pooler_table + head_table
    rename.check_shapes(shapes, table, sizes=sizes, source=str(prefix))
    if labels is not None and len(labels) < 2:
        raise InputError(
            f"{prefix} has a classifier (output_weights) of {counted(len(labels), 'label')}. "
            "Expected two or more."
        )
    tokenizer = _tokenizer(folder, config)
    config.report_extra_keys(source=folder / CONFIG)
    encoder = BertEncoder(config)
    encoder.came_with_pooler = has_pooler

    def read(name):
        with input_errors(message):
            tensor = reader.get_tensor(name)
        return rename.numbers(tensor, name, source=prefix)

    rename.assign(encoder, encoder_table, read)
    if has_pooler:
        rename.assign(encoder.new_pooler(), pooler_table, read)
    model = _model(encoder, tokenizer, heads, labels=labels)
    rename.assign(model, head_table, read)
    return model, tokenizer


def _find(path):
    """-> (folder, prefix of the checkpoint)."""
    if not path.is_dir():
        if not Path(f"{path}.index").exists():
            raise InputError(f"There is no checkpoint {path}.")
        return path.parent, path
    indices = sorted(path.glob("*.ckpt.index")) or sorted(path.glob("*.index"))
    if len(indices) != 1:
        names = listed(index.name for index in indices) or "none"
        raise InputError(
            f"{path} should contain one TensorFlow checkpoint (bert_model.ckpt.index). "
            f"Found: {names}."
        )
    return path, indices[0].with_suffix("")


def _tokenizer(folder, config):
    from keras_bert.text.tokenizer import Tokenizer
    from keras_bert.text.vocabulary_files import load_vocabulary

    vocabulary = load_vocabulary(folder / VOCABULARY)
    check_vocabulary(vocabulary, config, source=folder / VOCABULARY)
    special = set(np.asarray(vocabulary.special_ids).tolist())
    cased = any(
        token != token.lower() for i, token in enumerate(vocabulary.tokens) if i not in special
    )
    return Tokenizer.from_vocab(vocabulary, lowercase=not cased)


def _model(encoder, tokenizer, heads, *, labels):
    if not heads:
        return encoder
    if tuple(heads) not in _TASK_TYPES:
        raise InputError(f"No task has the heads {' and '.join(heads)} together.")
    task = task_class(_TASK_TYPES[tuple(heads)])
    options = {"labels": labels} if task.MIN_LABELS else {}
    return task(encoder, tokenizer, **options)


def save_google(model, tokenizer, folder, *, overwrite=False):
    """Writes an encoder or task for google-research/bert; arguments as in `save_folder`.

    A model with the erf form of gelu is written with a warning: that code computes the tanh form.

    Raises:
        InputError: that code cannot compute the model (RoBERTa, causal, another epsilon, another
            task), the vocabulary is not WordPiece, or the folder is in use.
    """
    config = model.config
    if config.model_type != "bert" or config.is_decoder or config.layer_norm_eps != _EPSILON:
        raise InputError(
            "google-research/bert computes only bidirectional BERT with a LayerNorm epsilon of "
            f"1e-12. Received: {fields_of(config, 'model_type', 'is_decoder', 'layer_norm_eps')}."
        )
    check_wordpiece(tokenizer, needed_by="google-research/bert")
    if config.hidden_act == "gelu":
        warnings.warn(
            "google-research/bert computes gelu in its tanh form, this model by erf: the outputs "
            "there will differ in about the third decimal.",
            InputWarning,
            stacklevel=2,
        )
    import tensorflow as tf

    is_task = not isinstance(model, BertEncoder)
    if is_task and model.architecture not in _ARCHITECTURES:
        raise InputError(
            f"google-research/bert has no task like {model.TASK_TYPE}. Convert its encoder instead."
        )
    if is_task and model.reader.layers != LAST:
        raise InputError(
            "google-research/bert has heads over the last layer only. This task reads the layers "
            f"{model.reader.layers}."
        )
    encoder = model.encoder if is_task else model
    heads = [name for name in _HEADS if is_task and hasattr(model, name)]
    _warn_of_changes(model, heads)
    labels = list(getattr(model, "labels", None) or ())
    sizes = {**sizes_of(config), "C": len(labels)}
    table = rename.expand(_ENCODER, config.num_hidden_layers)
    tensors = rename.gather(encoder, table, sizes=sizes)
    if (pooler := (model.transform if is_task else None) or encoder.pooler) is not None:
        tensors |= rename.gather(pooler, _POOLER, sizes=sizes)
    tensors |= rename.gather(model, [line for h in heads for line in _HEADS[h]], sizes=sizes)
    check_output_folder(folder, is_ours=_is_own, force=overwrite)
    with new_folder(folder) as temporary:
        names = sorted(tensors)
        tf.raw_ops.SaveV2(
            prefix=str(temporary / CHECKPOINT),
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.constant(tensors[name]) for name in names],
        )
        tokenizer.vocabulary.save(temporary / VOCABULARY)
        text = json.dumps(_config_values(config, labels), indent=2)
        (temporary / CONFIG).write_text(text + "\n", encoding="utf-8")


def fields_of(config, *names):
    """The fields of an encoder's config with these names, for messages; some configs lack some."""
    present = (name for name in names if hasattr(config, name))
    return ", ".join(f"{name} {getattr(config, name)!r}" for name in present)


def check_wordpiece(tokenizer, *, needed_by):
    """Raises InputError unless the tokenizer is a WordPiece with BERT's special tokens."""
    vocabulary = None if tokenizer is None else tokenizer.vocabulary
    if not isinstance(vocabulary, WordPieceVocabulary):
        received = "no supported tokenizer" if vocabulary is None else vocabulary.DESCRIPTION
        raise InputError(
            f"{needed_by} needs a WordPiece vocabulary, but this model has {received}."
        )
    if (tokenizer.template, tokenizer.special_tokens) != (BERT_TEMPLATE, BERT_TOKENS):
        raise InputError(
            f"{needed_by} needs BERT's special tokens, {BERT_TEMPLATE}, but this model's tokenizer "
            f"has the template {tokenizer.template}."
        )


def _warn_of_changes(model, heads):
    """Warns of heads that the format lacks, or has no name of their own for."""
    left_out = [head for head in getattr(model, "HEADS", ()) if head not in heads]
    if left_out:
        warnings.warn(
            f"google-research/bert has no head like {' and '.join(left_out)}. It was left out.",
            InputWarning,
            stacklevel=3,
        )
    if getattr(model, "SENTENCES", "next_sentence") != "next_sentence":
        warnings.warn(
            "google-research/bert has no head for sentence order. It is written as the next "
            "sentence head, which also answers 0 if the second segment follows the first.",
            InputWarning,
            stacklevel=3,
        )


def _config_values(config, labels):
    config_json = {name: getattr(config, name) for name in _CONFIG_KEYS}
    if config.hidden_act in ("gelu_new", "gelu_pytorch_tanh"):
        config_json["hidden_act"] = "gelu"
    # That code ignores unknown keys; `load_google` reads these and the labels back.
    config_json |= config.extra_keys
    config_json[MARK] = {"version": __version__, "hidden_act": config.hidden_act}
    return config_json | labels_to_config(labels) if labels else config_json


def _is_own(folder):
    """Whether a folder contains a checkpoint that `save_google` wrote, and nothing else."""
    names = {CONFIG, VOCABULARY, f"{CHECKPOINT}.index", f"{CHECKPOINT}.data-00000-of-00001"}
    return set(held_names(folder)) == names and MARK in read_json(Path(folder) / CONFIG)
