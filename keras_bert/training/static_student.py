"""Static students: one vector per token of a text embedder (van Dongen and Tulkens, model2vec).

A token's vector is the mean of the encoder's outputs for a sequence of that token alone, with its
special tokens. All vectors are turned to their principal components, of which the first are kept,
and weighted by how rare a token is: the tokens of a vocabulary are in the order of their
frequencies, which are taken to follow Zipf's law. The vector of a text is the mean of those of its
tokens, without special ones, divided by its norm.
"""

import keras
import numpy as np

from keras_bert import tasks
from keras_bert.base.errors import InputError
from keras_bert.base.progress import ProgressBar
from keras_bert.encoders.static import StaticConfig
from keras_bert.encoders.static.encoder import StaticEncoder
from keras_bert.layers.dense import without_random_weights
from keras_bert.programs import compiled
from keras_bert.tasks.text_embedding import LONGEST_STATIC
from keras_bert.text.template import PLAIN_TEMPLATE
from keras_bert.training.distillation_settings import DIMENSIONS, SIF


def static_student(teacher, *, dimensions=DIMENSIONS, sif=SIF, batch_size=256):
    """The static student of a `TextEmbedder`, itself one.

    Args:
        teacher: the `TextEmbedder`.
        dimensions: the numbers of a vector; None keeps the teacher's own axes, whose mean vector
            is subtracted, so that the student's vectors are in the space of the teacher's.
        sif: see `sif_weights`; None weights all tokens alike.
        batch_size: tokens per step of the teacher.

    Raises InputError: the teacher has no tokenizer, or `dimensions` are more than it has.
    """
    config, tokenizer = teacher.config, teacher.tokenizer
    if tokenizer is None:
        raise InputError("The teacher has no tokenizer, so that its tokens have no texts.")
    if config.num_hidden_states == 1:
        raise InputError.naming(
            "{teacher} is a static embedding already. Give a model with layers, or finetune this."
        )
    if dimensions is not None and dimensions > config.hidden_size:
        raise InputError.naming(
            "{dimensions} is {}, and the vectors of the teacher's tokens have {} numbers. A "
            "student may not be wider than its teacher.",
            dimensions,
            config.hidden_size,
        )
    vocabulary = tokenizer.vocabulary
    special = {*vocabulary.special_ids.tolist()}
    unused = special - vocabulary.needed_with(())
    kept = [id for id in range(len(vocabulary)) if id not in unused]
    # As model2vec has it, those that no text comes to have no part in components and ranks.
    ids = [id for id in kept if id not in special - {vocabulary.pad_id, vocabulary.unk_id}]
    if dimensions is not None and len(ids) < dimensions:
        raise InputError.naming(
            "{dimensions} is {}, and the vocabulary has {} tokens.", dimensions, len(ids)
        )
    vectors = token_vectors(teacher.encoder, tokenizer, ids, batch_size=batch_size)
    vectors = components(vectors, dimensions) * sif_weights(len(ids), sif)[:, None]
    table = np.zeros((len(kept), vectors.shape[1]))
    table[np.searchsorted(kept, ids)] = vectors
    student = tokenizer.with_vocabulary(vocabulary.cut_to(kept), template=PLAIN_TEMPLATE)
    if vocabulary.HAS_UNKNOWN_TEXT:  # which says nothing of a text
        table[student.vocabulary.unk_id] = 0.0
    with without_random_weights():
        encoder = StaticEncoder(StaticConfig(vocab_size=len(kept), hidden_size=table.shape[1]))
    encoder.embedding.embeddings.assign(table.astype(np.float32))
    encoder.is_pretrained = True
    settings = {
        name: getattr(teacher.settings, name)
        for name in ("prompts", "default_prompt", "similarity", "lowercase")
    }
    return tasks.task_class("text-embedding")(
        encoder, student, pooling="mean", normalize=True, max_length=LONGEST_STATIC, **settings
    )


def token_vectors(encoder, tokenizer, ids, *, batch_size):
    """The vector of each token: float64 (V, D), the mean of the outputs for it and special tokens.

    Args:
        encoder: an `Encoder`.
        tokenizer: its `Tokenizer`, whose template has the special tokens.
        ids: the tokens, V numbers.
        batch_size: tokens per step.
    """
    import tensorflow as tf

    vocabulary, parts = tokenizer.vocabulary, tokenizer.template.parts(1)
    own = [part for part, _ in parts].index(0)
    special = [vocabulary.id(part) if isinstance(part, str) else 0 for part, _ in parts]
    segments = np.array([segment for _, segment in parts], np.int32)

    def inputs_of(column):
        count = tf.shape(column)[0]
        rows = tf.tile(tf.constant([special], tf.int32), [count, 1])
        rows = tf.concat([rows[:, :own], column[:, None], rows[:, own + 1 :]], axis=1)
        rows = tf.ensure_shape(rows, [None, len(parts)])
        inputs = {
            "input_ids": rows,
            "input_mask": tf.ones_like(rows),
            "segment_ids": tf.zeros_like(rows) + segments,
        }
        return ({name: inputs[name] for name in encoder.input_names},)

    def means(inputs):
        outputs = keras.ops.cast(encoder(inputs)["sequence_output"], "float32")
        return keras.ops.mean(outputs, axis=1)

    means = compiled(means, prepared=inputs_of, reads=[encoder])
    ids = np.asarray(ids, np.int32)
    vectors = np.empty((len(ids), encoder.config.hidden_size), np.float64)
    with ProgressBar(
        "vectors of tokens", unit="tokens", total=len(ids), line_seconds=10
    ) as progress:
        for start in range(0, len(ids), batch_size):
            batch = ids[start : start + batch_size]
            vectors[start : start + len(batch)] = np.asarray(means(tf.constant(batch)))
            progress.update(advance=len(batch))
    return vectors


def components(vectors, count):
    """The first principal components of vectors, float64 (N, D) -> (N, count).

    The signs are such that the entry of a component with the largest absolute value is positive.
    Without a `count` they are the vectors without their mean: (N, D).
    """
    centred = vectors - vectors.mean(axis=0)
    if count is None:
        return centred
    _, axes = np.linalg.eigh(centred.T @ centred)  # with rising variances
    scores = centred @ axes[:, ::-1][:, :count]
    largest = scores[np.abs(scores).argmax(axis=0), np.arange(count)]
    return scores * np.where(largest < 0, -1.0, 1.0)


def sif_weights(count, sif):
    """The weight a / (a + p) of each of V tokens (Arora et al. 2017): float64 (V,).

    p is the probability of a token, the most frequent one first, by Zipf's law: proportional to
    1 / (r + 1) for the rank r, from 1. `sif` is a; None is a weight of 1.
    """
    if sif is None:
        return np.ones(count)
    inverse = 1.0 / np.arange(2, count + 2)
    return sif / (sif + inverse / inverse.sum())
