"""Signatures of exported taggers: texts, and predicates, in; words with their tags out."""

import functools

import tensorflow as tf

from keras_bert.inputs.framing import windows
from keras_bert.inputs.words import TokenizedWords, cut, ends_word, words_of_texts
from keras_bert.tasks.signatures import (
    framed,
    in_windows,
    outputs_in_chunks,
    standard_signatures,
    traced_on_ids,
    traced_on_texts,
    warmup_at,
    warmup_texts,
)
from keras_bert.tasks.span_classification.signatures import whole_words
from keras_bert.tasks.tagging import FIRST, LAST, MEAN
from keras_bert.tasks.tagging.features import marked_inputs, repeated_tokens
from keras_bert.text.ragged import select


def tagger_signatures(task, *, max_length):
    """The signatures of a `Tagger`; the first is the default one.

    * `serving_default`: `text`, string (B,).
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `text`.
    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize.

    The first two split texts into the tokenizer's words and return, for up to W words per text,
    `words` and `tags`, string (B, W); `scores`, float32 (B, W), their probabilities; `starts` and
    `ends`, int32 (B, W), characters of the text; and `lengths`, int32 (B,), the numbers of words.
    Padding is "" and 0. A text of any length is split into windows, as in `predict`.

    `ids` returns `tags` and `scores` (B, S) at the first token of each word (by the vocabulary),
    and "" and 0 at other tokens.
    """
    labels = tf.constant(task.labels)  # (C,)
    vocabulary = task.tokenizer.vocabulary

    @functools.partial(traced_on_ids, encoder=task.encoder)
    def logits_of(**inputs):
        return outputs_in_chunks(task, inputs)["logits"]  # (B, S, C)

    @functools.partial(traced_on_texts, names=["text"])
    def from_text(text):
        words, starts, ends = words_of_texts(text, task.tokenizer)
        _, inputs, in_core = in_windows(task, words.ids, max_length=max_length)
        logits = logits_of(**inputs)  # (R, S, C)
        return tagged_words(task, text, words, (starts, ends), tf.boolean_mask(logits, in_core))

    marks = tf.constant(vocabulary.starts_word), tf.constant(vocabulary.ends_word)
    alone = tf.constant(vocabulary.stands_alone)

    @functools.partial(traced_on_ids, encoder=task.encoder)
    def from_ids(**inputs):
        logits = logits_of(**inputs)  # (B, S, C)
        input_ids = inputs["input_ids"]
        is_text = (inputs["input_mask"] > 0) & ~tf.gather(
            alone, tf.minimum(input_ids, len(vocabulary) - 1)
        )
        ids = tf.ragged.boolean_mask(input_ids, is_text)
        # As `Vocabulary.word_starts`: also what begins a sequence or follows the end of a word.
        starts = tf.gather(marks[0], ids.values)
        before = tf.concat([[True], tf.gather(marks[1], ids.values)[:-1]], axis=0)
        position = tf.ragged.range(ids.row_lengths()).values
        starts |= before[: tf.size(starts)]
        if vocabulary.OWN_SPACES:
            starts &= ~tf.gather(tf.constant(vocabulary.is_space), ids.values)
        starts |= position == 0
        words = TokenizedWords.of(
            ids, select(ids.with_values(tf.cast(position, tf.int32)), starts), task.tokenizer
        )
        is_read, is_first = words.read_tokens()
        lengths = tf.cast(words.firsts.row_lengths(), tf.int32)
        tokens = tf.boolean_mask(logits, is_text)
        numbers, scores = _predict_words(
            task, tf.boolean_mask(tokens, is_read), tf.boolean_mask(is_first, is_read), lengths
        )
        at = tf.boolean_mask(tf.where(is_text), is_first)  # (W, 2)
        shape = tf.shape(input_ids, out_type=tf.int64)
        tags = tf.tensor_scatter_nd_update(
            tf.fill(shape, ""), at, tf.gather(labels, numbers.values)
        )
        return {"tags": tags, "scores": tf.scatter_nd(at, scores.values, shape)}

    warmup = [{"text": batch} for batch in warmup_texts(max_length)]
    return standard_signatures(from_text, task=task, warmup=warmup, from_ids=from_ids)


def tagged_words(task, text, words, offsets, logits):
    """The outputs of `serving_default`.

    Args:
        task: a `Tagger`.
        text: string (B,).
        words, offsets: the `TokenizedWords` of the texts, and the (starts, ends) of their words in
            characters, ragged int32 (B, W) each.
        logits: (T, C), of all tokens of all texts.
    """
    starts, ends = offsets
    lengths = tf.cast(words.firsts.row_lengths(), tf.int32)
    is_read, is_first = words.read_tokens()
    numbers, scores = _predict_words(
        task, tf.boolean_mask(logits, is_read), tf.boolean_mask(is_first, is_read), lengths
    )
    tags = tf.gather(tf.constant(task.labels), numbers.values)
    return {
        "words": cut(text, starts, ends).to_tensor(""),
        "tags": numbers.with_values(tags).to_tensor(""),
        "scores": scores.to_tensor(),
        "starts": starts.to_tensor(),
        "ends": ends.to_tensor(),
        "lengths": lengths,
    }


def _predict_words(task, logits, is_first, lengths):
    """The label of each word and its probability, as in `decode`.

    Shapes: for all tokens logits (T, C) and whether they are the first of a word, bool (T,); the
    numbers of words int32 (B,) -> ragged int32 and float32 (B, None).
    """
    if task.crf is not None:
        chosen = tf.boolean_mask(logits, _chosen(task.word_tokens[1], is_first))  # (W, C)
        emissions = tf.RaggedTensor.from_row_lengths(chosen, lengths)
        # At least one position, as the CRF begins with the first word.
        width = tf.maximum(1, tf.reduce_max(tf.concat([lengths, [0]], axis=0)))
        shape = tf.stack([tf.size(lengths), width, len(task.labels)])
        emissions = tf.ensure_shape(
            emissions.to_tensor(shape=shape), [None, None, len(task.labels)]
        )
        is_word = tf.sequence_mask(lengths, width)
        numbers, scores = task.crf.decode(emissions, is_word)
        numbers, scores = tf.boolean_mask(numbers, is_word), tf.boolean_mask(scores, is_word)
    else:
        probabilities = distributions(task.word_tokens[1], logits, is_first)
        numbers = tf.argmax(probabilities, axis=-1, output_type=tf.int32)
        scores = tf.gather(probabilities, numbers, batch_dims=1)
    return tuple(tf.RaggedTensor.from_row_lengths(x, lengths) for x in (numbers, scores))


def distributions(aggregation, logits, is_first):
    """Computes `word_distributions`: float32 (T, C), bool (T,) at first tokens -> (W, C)."""
    if aggregation in (FIRST, LAST):
        return tf.nn.softmax(tf.boolean_mask(logits, _chosen(aggregation, is_first)))
    word = tf.cumsum(tf.cast(is_first, tf.int32)) - 1  # (T,)
    if aggregation == MEAN:
        return tf.math.segment_mean(tf.nn.softmax(logits), word)
    return tf.nn.softmax(tf.math.segment_sum(tf.nn.log_softmax(logits), word))


def _chosen(aggregation, is_first):
    """bool (T,): the first token of each word, or the last one."""
    return is_first if aggregation == FIRST else ends_word(is_first)


def role_signatures(task, *, max_length):
    """The signatures of a `SemanticRoleTagger`; the first is the default one.

    * `serving_default`: `text`, string (B,), and `predicate_start` and `predicate_end`, int32 (B,),
      in characters of the text. The predicate is widened to whole words; without one it is an
      error.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with a string under `text` and a
      number under each of the other names.

    Each returns what a `Tagger` does: `words` and `tags`, string (B, W); `scores`, float32 (B, W);
    `starts` and `ends`, int32 (B, W); and `lengths`, int32 (B,). A text of any length is split into
    windows, as in `predict`. There is no signature for ids, which do not show where words end.
    """
    names = ("predicate_start", "predicate_end")
    template = task.tokenizer.template
    room, before = template.room(max_length, texts=2), template.before(0, texts=2)

    @functools.partial(traced_on_texts, names=["text"], numbers=names)
    def from_text(text, predicate_start, predicate_end):
        words, starts, ends = words_of_texts(text, task.tokenizer)
        first, after = whole_words(starts, ends, from_=[predicate_start], to=[predicate_end])
        counts = tf.cast(words.ids.row_lengths(), tf.int32)
        # The first token of each word, and after the last one.
        edges = tf.concat([words.firsts, counts[:, None]], axis=1)
        marked = tf.gather(edges, tf.concat([first, after], axis=1), batch_dims=1)  # (B, 2)
        repeated = repeated_tokens(marked, room)
        parts = windows(counts, room - repeated, stride=tf.maximum(1, (room - repeated) // 2))
        second = tf.cast(words.ids.row_starts(), tf.int32) + marked[:, 0]
        second = tf.ragged.range(second, second + repeated)
        second = tf.gather(
            second.with_values(tf.gather(words.ids.values, second.values)), parts.sequence
        )
        inputs = framed(task, [parts.rows(words.ids), second], max_length=max_length)
        inputs |= marked_inputs(parts, marked, repeated, template=template)
        logits = outputs_in_chunks(task, inputs)["logits"]  # (R, S, C)
        in_core = parts.core_of(tf.shape(logits)[1], offset=before)
        return tagged_words(task, text, words, (starts, ends), tf.boolean_mask(logits, in_core))

    warmup = warmup_at(dict(zip(names, (0, 1), strict=True)), max_length)
    return standard_signatures(from_text, task=task, warmup=warmup, numbers=names)
