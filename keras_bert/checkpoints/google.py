"""Google's TF1 checkpoints: `bert_config.json`, `bert_model.ckpt.*`, `vocab.txt`, in and out.

Names are those that google-research/bert's modelling code gives its variables.
"""

import dataclasses
import glob
import json
import re
import warnings
from pathlib import Path

import numpy as np

import keras_bert
from keras_bert.base import rename
from keras_bert.base.errors import InputError
from keras_bert.base.files import (
    check_output_folder,
    check_regular,
    held_names,
    new_folder,
    read_json,
)
from keras_bert.base.formatting import counted, listed
from keras_bert.checkpoints import labels as labels_format
from keras_bert.checkpoints.kinds import MARK, stored
from keras_bert.encoders.bert.config import ACTIVATIONS, BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.bert.tensor_names import (
    GOOGLE_ENCODER,
    GOOGLE_HEADS,
    GOOGLE_POOLER,
    sizes_of,
)
from keras_bert.tasks import task_class
from keras_bert.text.template import BERT_TEMPLATE
from keras_bert.text.vocabulary import BERT_TOKENS


def check_wordpiece(tokenizer, *, needed_by):
    """Raises `InputError` unless the tokenizer (or None) has a WordPiece vocabulary as BERT's.

    `needed_by` is who reads the format, for the message.
    """
    if tokenizer is None or tokenizer.vocabulary.algorithm != "wordpiece":
        found = "no tokenizer of ours" if tokenizer is None else "one of byte-pair encoding"
        raise InputError(f"{needed_by} needs a WordPiece vocabulary, and this model has {found}.")
    own = tokenizer.template, tokenizer.special_tokens
    if own != (BERT_TEMPLATE, BERT_TOKENS):
        raise InputError(
            f"{needed_by} needs BERT's special tokens, {BERT_TEMPLATE}, and this model's tokenizer "
            f"has the template {tokenizer.template}."
        )


CONFIG = "bert_config.json"
CHECKPOINT = "bert_model.ckpt"
VOCABULARY = "vocab.txt"

# Its LayerNorm's epsilon is written in the code, not in the config.
_EPSILON = 1e-12

# What its optimizer and training loop leave in a checkpoint beside the weights.
_SLOTS = re.compile(r"(/adam_[mv]|/(Adam|LAMB|lamb)[^/]*)$|^global_step$|^beta[12]_power$")


# What a checkpoint with these heads is.
_KINDS = {
    ("lm_head", "next_sentence_head"): "pretrainer",
    ("lm_head",): "fill-mask",
    ("classifier",): "classifier",
    ("qa_outputs",): "question-answering",
}

# Its run_pretraining.py, run_classifier.py and run_squad.py; it has no tagger, whose `classifier`
# would be taken for that of a whole text.
_ARCHITECTURES = (
    "BertForPreTraining",
    "BertForMaskedLM",
    "BertForSequenceClassification",
    "BertForQuestionAnswering",
)


def is_google(path):
    """Whether a path is a folder with `bert_config.json`, or the prefix of a checkpoint."""
    return (Path(path) / CONFIG).exists() or Path(f"{path}.index").exists()


def load_google(path):
    """Loads a checkpoint of google-research/bert.

    Its "gelu" is the tanh form, and the config that comes back says so (`gelu_new`), unless the
    checkpoint is one of ours, which notes what the model had. Whether the model is cased is in no
    file of its: it is, where a piece of the vocabulary has a capital.

    Args:
        path: the folder, or the checkpoint's prefix (`…/bert_model.ckpt`) beside its config.

    Returns:
        (model, `Tokenizer`). The model is a `Pretrainer`, `FillMask`, `Classifier` or
        `QuestionAnswerer` where the checkpoint has those heads whole, and a `BertEncoder` where it
        has none.

    Raises:
        InputError: a file is missing or broken, or a tensor is missing, unknown or of another
            shape.
    """
    folder, prefix = _find(Path(path))
    for file in folder.glob(f"{glob.escape(prefix.name)}.*"):
        check_regular(file)
    values = read_json(folder / CONFIG)
    if isinstance(values, dict) and values.get("hidden_act") == "gelu":
        values = {**values, "hidden_act": _gelu(values, source=folder / CONFIG)}
    config = BertConfig.from_dict(values, source=str(folder / CONFIG))
    reader = _open(prefix)
    shapes = {
        name: tuple(shape)
        for name, shape in reader.get_variable_to_shape_map().items()
        if not _SLOTS.search(name)
    }
    pooler = any(name.startswith("bert/pooler/") for name in shapes)
    config = dataclasses.replace(config, add_pooling_layer=pooler)
    heads = [
        name for name, lines in GOOGLE_HEADS.items() if any(line.theirs in shapes for line in lines)
    ]
    labels = None
    if "classifier" in heads:
        labels = _labels(values, shapes, source=str(folder / CONFIG))
    rename.check_layers(shapes, config.num_hidden_layers, source=str(prefix))
    table = _table(config, heads)
    sizes = {**sizes_of(config), "C": len(labels or ())}
    rename.check_shapes(shapes, table, sizes=sizes, source=str(prefix))
    if labels is not None and len(labels) < 2:
        raise InputError(
            f"{prefix} has a classifier (output_weights) of {counted(len(labels), 'label')}; a "
            "classifier has two or more."
        )
    tokenizer = _tokenizer(folder, config)
    config.report_extra_keys(source=folder / CONFIG)
    encoder = BertEncoder(config)
    model = _model(encoder, tokenizer, heads, labels=labels)

    def read(name):
        tensor = _guarded(prefix, lambda: reader.get_tensor(name))
        return rename.numbers(tensor, name, source=prefix)

    rename.assign(encoder, _table(config, []), read)
    rename.assign(model, [line for head in heads for line in GOOGLE_HEADS[head]], read)
    return model, tokenizer


def save_google(model, tokenizer, folder, *, overwrite=False):
    """Writes an encoder or task as google-research/bert reads it.

    Args:
        model: a BERT `BertEncoder`, `Pretrainer`, `FillMask`, `Classifier` or `QuestionAnswerer`.
        tokenizer: its `Tokenizer`.
        folder: the folder to write; it may not exist, or be empty.
        overwrite: replace a checkpoint that this library wrote.

    Raises:
        InputError: that code cannot compute the model (RoBERTa, causal, another epsilon, another
            task), the vocabulary is not WordPiece, or the folder is in use. A model with the erf
            form of gelu is written with a warning: there it is computed in the tanh form, whose
            outputs differ a little.
    """
    config = model.config
    if config.model_type != "bert" or config.is_decoder or config.layer_norm_eps != _EPSILON:
        raise InputError(
            "google-research/bert computes BERT alone, not causal, with a LayerNorm epsilon of "
            f"1e-12; this model has model_type {config.model_type!r}, is_decoder "
            f"{config.is_decoder} and layer_norm_eps {config.layer_norm_eps}."
        )
    check_wordpiece(tokenizer, needed_by="google-research/bert")
    if config.hidden_act == "gelu":
        warnings.warn(
            "google-research/bert computes gelu in its tanh form, this model by erf: the outputs "
            "there will differ in the third decimal or so.",
            stacklevel=2,
        )
    import tensorflow as tf

    is_task = not isinstance(model, BertEncoder)
    if is_task and model.architecture not in _ARCHITECTURES:
        raise InputError(
            f"google-research/bert has no task like {model.KIND}; convert its encoder."
        )
    encoder = model.encoder if is_task else model
    if is_task and model.layer_mix is not None:
        raise InputError("google-research/bert has no mix of layers; this task is built on one.")
    heads = [name for name in GOOGLE_HEADS if is_task and hasattr(model, name)]
    _say_what_changes(model, heads)
    labels = list(getattr(model, "labels", None) or ())
    sizes = {**sizes_of(config), "C": len(labels)}
    tensors = rename.gather(encoder, _table(config, []), sizes=sizes)
    tensors |= rename.gather(model, [line for h in heads for line in GOOGLE_HEADS[h]], sizes=sizes)
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
        values = _config(config, labels)
        (temporary / CONFIG).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _say_what_changes(model, heads):
    """Warns of heads that the format has no place for, or no name of their own."""
    left_out = [head for head in getattr(model, "HEADS", ()) if head not in heads]
    if left_out:
        warnings.warn(
            f"google-research/bert has no head like {' and '.join(left_out)}: it is left out.",
            stacklevel=3,
        )
    if getattr(model, "SENTENCES", "next_sentence") != "next_sentence":
        warnings.warn(
            "google-research/bert has no head for the order of sentences: it is written as that "
            "for next sentences, which answers 0 where the second segment follows the first, too.",
            stacklevel=3,
        )


def _gelu(values, *, source):
    """Which of the three names of `gelu` a config means."""
    noted = stored(values, source=str(source)).get("hidden_act")
    return noted if noted in ACTIVATIONS else "gelu_new"


def _config(config, labels):
    act = "gelu" if config.hidden_act in ("gelu_new", "gelu_pytorch_tanh") else config.hidden_act
    values = {
        "attention_probs_dropout_prob": config.attention_probs_dropout_prob,
        "hidden_act": act,
        "hidden_dropout_prob": config.hidden_dropout_prob,
        "hidden_size": config.hidden_size,
        "initializer_range": config.initializer_range,
        "intermediate_size": config.intermediate_size,
        "max_position_embeddings": config.max_position_embeddings,
        "num_attention_heads": config.num_attention_heads,
        "num_hidden_layers": config.num_hidden_layers,
        "type_vocab_size": config.type_vocab_size,
        "vocab_size": config.vocab_size,
        # That code takes any key; ours reads these and the labels back.
        **config.extra_keys,
        MARK: {"version": keras_bert.__version__, "hidden_act": config.hidden_act},
    }
    return {**values, **labels_format.to_config(labels)} if labels else values


def _is_own(folder):
    """Whether a folder holds a checkpoint that `save_google` wrote, and nothing else."""
    own = {CONFIG, VOCABULARY, f"{CHECKPOINT}.index", f"{CHECKPOINT}.data-00000-of-00001"}
    return set(held_names(folder)) == own and MARK in read_json(Path(folder) / CONFIG)


def _find(path):
    """-> (folder, prefix of the checkpoint)."""
    if Path(f"{path}.index").exists():
        return path.parent, path
    if not path.is_dir():
        raise InputError(f"There is no checkpoint {path}.")
    indices = sorted(path.glob("*.ckpt.index")) or sorted(path.glob("*.index"))
    if len(indices) != 1:
        found = listed(index.name for index in indices) or "none"
        raise InputError(
            f"{path} should hold one TensorFlow checkpoint (bert_model.ckpt.index); found: {found}."
        )
    return path, indices[0].with_suffix("")


def _open(prefix):
    import tensorflow as tf

    return _guarded(prefix, lambda: tf.train.load_checkpoint(str(prefix)))


def _guarded(prefix, read):
    """What `read` gives; TensorFlow's errors become one sentence."""
    import tensorflow as tf

    try:
        return read()
    except (tf.errors.OpError, ValueError, IndexError) as error:  # a cut file is an IndexError
        message = str(error).splitlines()[0]
        raise InputError(f"{prefix} is not a whole TensorFlow checkpoint: {message}") from error


def _labels(values, shapes, *, source):
    """Of a classifier: those that the config names, or as many as there are rows of weights."""
    if "id2label" in values:
        return labels_format.from_config(values, source=source)
    rows = (*shapes.get("output_weights", ()), 0)[0]
    return [f"LABEL_{i}" for i in range(rows)]


def _table(config, heads):
    table = GOOGLE_ENCODER + (GOOGLE_POOLER if config.add_pooling_layer else [])
    table = table + [line for head in heads for line in GOOGLE_HEADS[head]]
    return rename.expand(table, config.num_hidden_layers)


def _tokenizer(folder, config):
    from keras_bert.text.tokenizer import Tokenizer
    from keras_bert.text.vocabulary_files import load_vocabulary

    vocabulary = load_vocabulary(folder / VOCABULARY)
    if len(vocabulary) > config.vocab_size:
        raise InputError(
            f"{folder / VOCABULARY} has {len(vocabulary)} pieces, more than the "
            f"{config.vocab_size} rows of the model's token embedding."
        )
    special = set(np.asarray(vocabulary.special_ids).tolist())
    cased = any(
        token != token.lower() for i, token in enumerate(vocabulary.tokens) if i not in special
    )
    return Tokenizer.from_vocab(vocabulary, lowercase=not cased)


def _model(encoder, tokenizer, heads, *, labels):
    if not heads:
        return encoder
    if tuple(heads) not in _KINDS:
        raise InputError(f"There is no task here with the heads {' and '.join(heads)} together.")
    task = task_class(_KINDS[tuple(heads)])
    options = {"labels": labels} if task.MIN_LABELS else {}
    return task(encoder, tokenizer, **options)
