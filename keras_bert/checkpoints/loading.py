"""Loads encoders and tasks: from folders, by name (`hf://…`) and from files of word vectors."""

import dataclasses
from os import PathLike
from typing import TYPE_CHECKING, Any

from keras_bert.checkpoints.locations import find_model_folder
from keras_bert.text.template import gpt_template

if TYPE_CHECKING:
    from keras_bert.encoders.encoder import Encoder
    from keras_bert.tasks.task import Task
    from keras_bert.text.tokenizer import Tokenizer


def load(
    folder: str | PathLike[str], *, dtype: Any = None, tokenizer: bool = True
) -> "tuple[Encoder, Tokenizer | None]":
    """Loads the encoder and tokenizer of a model folder.

    Heads that the folder contains too are left out (`load_task` loads them).

    Args:
        folder: a path with `config.json`, `model.safetensors` (or its shards) and a vocabulary
            (`vocab.txt`, `vocab.json` and `merges.txt`, or `tokenizer.json`), or the output
            of a run, which contains such a folder. Or a name, `hf://owner/name[@revision]`, the
            folder of a Google checkpoint, of a keras-hub preset, of AllenNLP's ELMo or of static
            embeddings of sentence-transformers or model2vec, or a file of word vectors.
        dtype: a dtype or policy for the encoder's layers, such as "mixed_bfloat16"; None is Keras's
            own setting.
        tokenizer: False does not read the tokenizer's files, and returns None in its place.

    Returns:
        (`Encoder`, `Tokenizer`), such as a `BertEncoder`. The tokenizer is None, with a warning,
        if the folder of a model that is not BERT's has none.

    Raises:
        InputError: a file is missing or broken, the config asks for what the encoder cannot
            compute, a tensor is missing, unknown or of another shape, or the vocabulary is longer
            than the embedding.
    """
    from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint

    checkpoint = PretrainedCheckpoint(find_model_folder(folder), tokenizer=tokenizer)
    return checkpoint.encoder(dtype=dtype), checkpoint.tokenizer


def load_task(
    folder: str | PathLike[str], *, task: str | None = None, one_text: bool | None = None
) -> "Task":
    """Loads the task in a folder, with its head; `config.json` names its type.

    Args:
        folder: a model folder, the output of a run or a name, as `load` takes them.
        task: the task type, if the class that a folder of another program names serves several:
            "pair-classifier" for a classifier of pairs. None is the folder's own, else the first.
        one_text: whether a regression scores single texts, if a folder of another program, with
            `num_labels: 1`, does not say so. None is as the folder says, else pairs.

    Returns:
        The task, such as a `Classifier`, with its tokenizer: ready for `predict`, `fit` after a
        `compile_defaults`, and `export`.

    Raises:
        InputError: as `load`, or the folder contains no supported task.
    """
    from keras_bert.checkpoints.model_folder import build_task
    from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint

    checkpoint = PretrainedCheckpoint(find_model_folder(folder))
    settings = {} if one_text is None else {"one_text": one_text}
    return build_task(checkpoint, task_type=task, **settings)


def with_task_tokens(encoder: "Encoder", tokenizer: "Tokenizer") -> "tuple[Encoder, Tokenizer]":
    """Gives a causal language model the special tokens that a task reads its texts with.

    A model whose sequences have no special tokens, such as `openai-gpt` and `gpt2`, gets `start`,
    `delimiter` and `extract` (Radford et al. 2018, section 3.3): `<start> a <delimiter> b
    <extract>`, and a task reads the state of the last. A model without a token for padding gets
    one; its config names it, since `transformers` reads the last token that is not padding, and so
    no text may end with it. New tokens are appended to the vocabulary, and rows with random weights
    to the embedding.

    Args:
        encoder: an `Encoder`.
        tokenizer: its `Tokenizer`.

    Returns:
        (encoder, tokenizer): the same two, if nothing is missing or the encoder is not causal.
    """
    config, template = encoder.config, tokenizer.template
    if not config.is_causal:
        return encoder, tokenizer
    special, roles = tokenizer.special_tokens, []
    if not template.special_tokens:
        roles += [role for role in ("start", "delimiter", "extract") if not getattr(special, role)]
    if special.pad is None or special.pad in (special.eos, special.extract):
        roles.append("pad")
    names = {role: _unused(f"<{role}>", tokenizer.vocabulary) for role in roles}
    if names:
        vocabulary = tokenizer.vocabulary.with_special_tokens(**names)
        if not template.special_tokens:
            template = gpt_template(vocabulary.special_tokens)
        tokenizer = tokenizer.with_vocabulary(vocabulary, template=template)
    changes = {"vocab_size": max(config.vocab_size, len(tokenizer))}
    if "pad_token_id" in {field.name for field in dataclasses.fields(config)}:
        changes["pad_token_id"] = tokenizer.vocabulary.pad_id
    if dataclasses.replace(config, **changes) != config:
        encoder = encoder.rebuilt(**changes)
    return encoder, tokenizer


def _unused(name, vocabulary):
    """The name, in more brackets if the vocabulary has such a token."""
    while name in vocabulary:
        name = f"<{name}>"
    return name
