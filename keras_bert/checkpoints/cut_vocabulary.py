"""Models with a smaller vocabulary: the tokens that some texts need, and their rows of the tables.

A text whose tokens are all kept has the same tokens, and the model gives it the same answer. What
else has to be kept for that depends on the algorithm (`Vocabulary.needed_with`).
"""

import dataclasses
from collections.abc import Iterable
from itertools import islice

import keras
import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent
from keras_bert.encoders.encoder import Encoder
from keras_bert.layers.dense import without_random_weights
from keras_bert.readers.examples import report_notes, report_source
from keras_bert.readers.sources import files_of, is_file
from keras_bert.readers.texts import TextSource

_BATCH = 1024  # texts that are tokenized together


class CutVocabulary:
    """The tokens of a model's vocabulary that texts need.

    Args:
        model: an encoder or a task.
        tokenizer: its `Tokenizer`.
        texts: the texts, an iterable of str.

    Attributes: `ids`, of the tokens that are kept, rising, and `count`, of the texts.

    Raises:
        InputError: there is no text, or the model has no tokenizer.
    """

    def __init__(self, model, tokenizer, texts: Iterable[str]):
        if tokenizer is None:
            raise InputError.naming(
                "The model has no tokenizer, so that {vocab_from} cannot say which tokens it needs."
            )
        self._model, self._tokenizer = model, tokenizer
        vocabulary = tokenizer.vocabulary
        used, self.count = set(), 0
        for batch in _batches(texts):
            self.count += len(batch)
            for prompted in self._prompted(batch):
                used.update(np.unique(tokenizer.tokenize(prompted).values.numpy()).tolist())
                if vocabulary.unk_id in used and vocabulary.HAS_UNKNOWN_TEXT:
                    used |= vocabulary.tried_on(tokenizer.unknown_words(prompted))
        if not self.count:
            raise InputError.naming("{vocab_from} has no text, so that no token would be left.")
        used.update(_ids_in(_encoder_of(model).config, len(vocabulary)))
        self.ids = sorted(vocabulary.needed_with(used))

    def _prompted(self, texts):
        """The texts as the model reads them: behind each of its prompts, if it has some."""
        import tensorflow as tf  # as the tokenizer does; the module runs without

        settings = getattr(self._model, "settings", None)
        prompts = getattr(settings, "prompt_texts", None) or {}
        for prompt in dict.fromkeys(("", *prompts.values())):
            prompted = [prompt + text for text in texts]
            if getattr(settings, "lowercase", False) is True:
                encoded = [text.encode("utf-8", "replace") for text in prompted]
                prompted = tf.strings.lower(tf.constant(encoded, tf.string), encoding="utf-8")
            yield prompted

    def apply(self):
        """-> (the model with these tokens alone, its tokenizer)."""
        vocabulary = self._tokenizer.vocabulary.cut_to(self.ids)
        tokenizer = self._tokenizer.with_vocabulary(vocabulary)
        return cut_model(self._model, tokenizer, self.ids), tokenizer

    def describe(self):
        """A line on what is kept."""
        kept, total = len(self.ids), len(self._tokenizer)
        return (
            f"Kept {kept:,} of {total:,} tokens ({percent(kept / total)}): those of "
            f"{counted(self.count, 'text')}, what these are made of, and the special ones."
        )

    def lost(self, tokenizer, texts: Iterable[str]) -> dict[str, int]:
        """Tokens that other texts lose by the cut.

        Args:
            tokenizer: the one that `apply` returned.
            texts: an iterable of str.

        Returns {"texts", "tokens": how many there are; "dropped_tokens": how many of these tokens
        are not kept; "changed_texts": how many texts have other tokens now}.
        """
        new_ids = np.full(len(self._tokenizer), -1, np.int64)
        new_ids[self.ids] = np.arange(len(self.ids))
        lost = dict.fromkeys(("texts", "tokens", "dropped_tokens", "changed_texts"), 0)
        for batch in _batches(texts):
            before, after = (one.tokenize(batch) for one in (self._tokenizer, tokenizer))
            mapped = new_ids[before.values.numpy()]
            lost["texts"] += len(batch)
            lost["tokens"] += len(mapped)
            lost["dropped_tokens"] += int(np.count_nonzero(mapped < 0))
            mapped = before.with_values(mapped).to_list()
            pairs = zip(mapped, after.to_list(), strict=True)
            lost["changed_texts"] += sum(old != new for old, new in pairs)
        return lost


def describe_lost(lost, name):
    """A line on the result of `CutVocabulary.lost`."""
    if not lost["changed_texts"]:
        return f"All {counted(lost['texts'], 'text')} of {name} have the same tokens as before."
    return (
        f"{lost['dropped_tokens']:,} of the {counted(lost['tokens'], 'token')} of {name} "
        f"({percent(lost['dropped_tokens'] / max(lost['tokens'], 1))}) were dropped, so that "
        f"{lost['changed_texts']:,} of its {counted(lost['texts'], 'text')} have other tokens, and "
        "may have other answers."
    )


def texts_of(data, *, columns, schema=None, report=None):
    """Yields the texts of a file, a glob, a table or a sequence.

    Args:
        data: see `ConvertSettings.vocab_from`.
        columns: the fields of `TextFileSettings`.
        schema: the columns that the model was trained on, or None.
        report: called with each line on how they are read, or None.
    """
    schema = {part: names for part, names in (schema or {}).items() if part == "text"}
    for source in files_of(data) if is_file(data) else [data]:
        examples = TextSource(source, need_labels=False, schema=schema, **columns)
        report_source(examples, report)
        yield from (example.text for example in examples)
        report_notes(examples, report)


def cut_model(model, tokenizer, ids):
    """A copy of an encoder or a task, whose token `i` is the token `ids[i]`.

    Args:
        model: the encoder or the task, in float32.
        tokenizer: the `Tokenizer` of the copy.
        ids: rising numbers of tokens.
    """
    encoder = _encoder_of(model)
    with without_random_weights():
        copy = _cut_encoder(encoder, tokenizer, ids)
        if isinstance(model, Encoder):
            if encoder.pooler is not None:
                copy.new_pooler()
        else:
            copy = _cut_task(model, copy, tokenizer, ids)
    _copy_rows(model.weights, copy.weights, ids)
    pooler = _encoder_of(copy).pooler
    if encoder.pooler is not None and pooler is not None:
        pooler.set_weights(encoder.pooler.get_weights())
    return copy


def _encoder_of(model):
    return model if isinstance(model, Encoder) else model.encoder


def _cut_encoder(encoder, tokenizer, ids):
    """A new encoder with other weights."""
    config = _cut_config(encoder.config, ids, tokenizer.vocabulary)
    copy = type(encoder)(config, dtype=encoder.layer_policy, name=encoder.name)
    copy.copy_origin_of(encoder)
    copy.is_pretrained = encoder.is_pretrained
    copy.set_vocabulary(tokenizer.vocabulary)
    tokenizer.input_names = copy.input_names
    return copy


def _cut_task(task, encoder, tokenizer, ids):
    """A new task of these settings over another encoder, with other weights."""
    config = {**task.get_config(), "encoder": encoder, "tokenizer": tokenizer}
    if task.reader.static_vectors is not None:
        config["static_vectors"] = _cut_encoder(task.reader.static_vectors, tokenizer, ids)
    copy = type(task).from_config(config)
    copy.tuned = task.tuned
    tokenizer.skips_spaces = task.tokenizer.skips_spaces
    if task.encoder.pooler is not None and encoder.pooler is None:
        encoder.new_pooler()
    return copy


def _copy_rows(weights, copies, ids):
    """Gives weights to those of a cut model; of axes that are shorter there those of `ids`."""
    for weight, copy in zip(weights, copies, strict=True):
        value = keras.ops.convert_to_numpy(weight)
        for axis, (size, cut) in enumerate(zip(weight.shape, copy.shape, strict=True)):
            if size != cut:
                value = np.take(value, ids, axis=axis)
        copy.assign(value)


def _ids_in(config, count):
    """The ids below `count` that a config names, or that it counts on to be the first."""
    named = [getattr(config, "pad_token_id", None)]
    for ids in config.generation_keys.values():
        named += ids if isinstance(ids, list) else [ids]
    first = range(getattr(config, "position_offset", 0))
    return {id for id in (*named, *first) if type(id) is int and id < count}


def _cut_config(config, ids, vocabulary):
    """The config of a model whose token `i` is the token `ids[i]`."""
    new_ids = {old: new for new, old in enumerate(ids)}

    def cut(value):
        if isinstance(value, list):
            return [new_ids[id] for id in value if id in new_ids]
        return new_ids.get(value)

    keys = {name: cut(value) for name, value in config.generation_keys.items()}
    changes = {"vocab_size": len(ids), "generation_keys": keys}
    if getattr(config, "pad_token_id", None) is not None:
        changes["pad_token_id"] = new_ids.get(config.pad_token_id, vocabulary.pad_id)
    return dataclasses.replace(config, **changes)


def _batches(texts):
    """Lists of up to _BATCH texts."""
    texts = iter(texts)
    while batch := [*islice(texts, _BATCH)]:
        yield batch
