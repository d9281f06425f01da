"""Signatures of exported language models.

A masked one takes texts with [MASK] and gives words for it; a causal one continues texts. Both give
the surprisal of each token of a text; a pre-trained pair of heads, whether a text follows another.

Shapes: B texts, R windows of all texts, S tokens of a window, M masks of all texts, T tokens of all
texts, D hidden size, V vocabulary, K candidates.
"""

import functools

import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inputs.framing import windows
from keras_bert.tasks.pretraining.generation import (
    SAMPLING_SPECS,
    Generator,
    Sampling,
    next_token_nats,
    prompt_inputs,
    special_before,
)
from keras_bert.tasks.signatures import (
    Signature,
    chunk_size,
    framed,
    in_chunks,
    in_windows,
    standard_signatures,
    text_specs,
    traced_on_ids,
    traced_on_texts,
    warmup_texts,
)
from keras_bert.text.vocabulary import MASK

# Masks whose probabilities, V numbers each, are computed at once.
_MASKS_TOGETHER = 256
_NEW_TOKENS = 32  # of the default signature of a causal language model


def fill_mask_signatures(task, *, max_length, top_k):
    """The signatures of a `FillMask` or a `Pretrainer`; the first is the default one.

    * `serving_default`: `text`, string (B,), with any number of [MASK]. A long text is split into
      overlapping windows, and each mask is predicted in the one in which it has most context.
    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `text`.
    * `span_boundary`: `text` as above. A run of [MASK] is one span, whose tokens are predicted from
      the tokens next to it; only of a `SpanPretrainer`. One longer than its `max_span_length` is an
      error.
    * `surprisal`: see `surprisal_signature`.

    All but the last return for up to n masks per text `pieces`, string (B, n, K), the names of
    tokens (see `Vocabulary.token_name`), the most probable first; `probabilities`, float32 (B, n,
    K); and `lengths`, int32 (B,), the numbers of masks. Padding is "" and 0.
    """
    vocabulary = task.tokenizer.vocabulary
    if vocabulary.mask_id is None:
        raise InputError(f"The tokenizer has no mask token, so {MASK} has no meaning.")
    names = token_names(vocabulary)
    top_k = min(top_k, len(vocabulary))

    def outputs(inputs, is_mask, text, texts, *, vectors_of=_at_masks, head=_masked_lm):
        """The outputs for windows of `inputs`, masks bool (R, S), and texts (R,), rising."""
        vectors = _vectors(task, {**inputs, "is_mask": is_mask}, vectors_of)
        probabilities, tokens = _most_probable(task, vectors, head, top_k=top_k)  # (M, K) each
        text_of_mask = tf.gather(text, tf.where(is_mask)[:, 0])  # (M,)
        number = tf.RaggedTensor.from_value_rowids(
            tf.range(tf.size(text_of_mask)), text_of_mask, texts
        )

        def padded(x):
            x = tf.RaggedTensor.from_row_splits(x, number.row_splits)
            return tf.ensure_shape(x.to_tensor(), [None, None, top_k])

        return {
            "pieces": padded(tf.gather(names, tokens)),
            "probabilities": padded(probabilities),
            "lengths": tf.cast(number.row_lengths(), tf.int32),
        }

    def outputs_of_texts(text, **head):
        ids = task.tokenizer.tokenize_masked(text)  # ragged (B, None)
        parts, inputs, is_core = in_windows(task, ids, max_length=max_length)
        is_mask = is_core & (inputs["input_ids"] == vocabulary.mask_id)
        return outputs(inputs, is_mask, parts.sequence, tf.size(text), **head)

    from_text = traced_on_texts(outputs_of_texts, names=["text"])

    @functools.partial(traced_on_ids, encoder=task.encoder)
    def from_ids(**inputs):
        input_ids = inputs["input_ids"]
        is_mask = (input_ids == vocabulary.mask_id) & (inputs["input_mask"] > 0)
        count = tf.shape(input_ids)[0]
        return outputs(inputs, is_mask, tf.range(count), count)

    warmup = [{"text": [f"{text} {MASK}" for text in batch]} for batch in warmup_texts(max_length)]
    signatures = standard_signatures(from_text, task=task, warmup=warmup, from_ids=from_ids)
    if "span_boundary" in task.HEADS:
        signatures["span_boundary"] = Signature(
            lambda text: outputs_of_texts(text, vectors_of=_at_boundaries, head=_span_boundary),
            text_specs(["text"]),
        )

    def surprisals(ids):
        return masked_surprisals(task, ids, tf.ones_like(ids.values), max_length=max_length)

    return {**signatures, "surprisal": surprisal_signature(task, surprisals)}


def sentence_signature(task, *, max_length):
    """The `Signature` of a `Pretrainer` for whether a text follows another.

    It takes `text_a` and `text_b`, string (B,), and returns `probability`, float32 (B,): that the
    second follows the first, or, by a sentence-order head, that they are in order. Of a pair that
    is too long, the longer text is cut.
    """

    def probability(text_a, text_b):
        return {"probability": follows_probability(task, (text_a, text_b), max_length=max_length)}

    return Signature(probability, text_specs(["text_a", "text_b"]))


def follows_probability(task, texts, *, max_length):
    """Two batches of texts, string (B,) each -> float32 (B,): that the second follows the first."""
    segments = [task.tokenizer.tokenize(text) for text in texts]
    inputs = framed(task, segments, max_length=max_length)

    def logits(some):
        positions = tf.zeros_like(some["input_ids"][:, :1])
        outputs = task({**some, "masked_lm_positions": positions}, training=False)
        return {"logits": outputs[task.SENTENCES]}

    specs = {"logits": tf.TensorSpec([None, 2])}
    logits_of_pairs = in_chunks(logits, inputs, size=chunk_size(inputs["input_ids"]), specs=specs)[
        "logits"
    ]
    return tf.nn.softmax(logits_of_pairs)[:, 0]


def surprisal_signature(task, surprisals, *, given=0):
    """The `Signature` for the surprisal of every token of a text.

    It takes `text`, string (B,), and returns for up to n tokens per text `pieces`, string (B, n),
    their names; `starts` and `ends`, int32 (B, n), their characters in the text; `surprisals`,
    float32 (B, n), their negative log-probabilities in nats; and `lengths`, int32 (B,). Padding is
    "" and 0.

    Args:
        surprisals: a function of ragged ids, int32 (B, None), to the surprisals of all tokens.
        given: the number of first tokens that have none.
    """
    names = token_names(task.tokenizer.vocabulary)

    def outputs(text):
        tokens = task.tokenizer.tokenize_with_offsets(text)
        ids = tokens.ids[:, given:]
        return {
            "pieces": ids.with_values(tf.gather(names, ids.values)).to_tensor(),
            "starts": tokens.starts[:, given:].to_tensor(),
            "ends": tokens.ends[:, given:].to_tensor(),
            "surprisals": ids.with_values(surprisals(tokens.ids)).to_tensor(),
            "lengths": tf.cast(ids.row_lengths(), tf.int32),
        }

    return Signature(outputs, text_specs(["text"]))


def token_names(vocabulary):
    """The names of all tokens, string (V,)."""
    return tf.constant([vocabulary.token_name(id) for id in range(len(vocabulary))])


def masked_surprisals(task, ids, masked, *, max_length):
    """The surprisal of every token, in nats, each masked in a copy of its text.

    In a text with more tokens than `max_length` leaves room for, each token is read in the window
    in which it has most context.

    Shapes: ids ragged int32 (B, None); masked int32 (T,), how many tokens are masked from each
    token on, itself included -> float32 (T,).
    """
    parts, inputs, is_core = in_windows(task, _with_an_empty_text(ids), max_length=max_length)
    places = tf.cast(tf.where(is_core), tf.int32)  # (T, 2)
    row, position = places[:, 0], places[:, 1]
    before = task.tokenizer.template.before(0, texts=1)
    end = tf.minimum(position + masked, before + tf.gather(parts.sizes, row))  # (T,)

    def surprisals(some):
        row, position, end = some["row"], some["position"], some["end"]
        sequences = {name: tf.gather(rows, row) for name, rows in inputs.items()}  # (t, S)
        tokens = tf.gather(sequences["input_ids"], position, batch_dims=1)
        column = tf.range(tf.shape(sequences["input_ids"])[1])
        is_masked = (column >= position[:, None]) & (column < end[:, None])
        mask_id = task.tokenizer.vocabulary.mask_id
        sequences["input_ids"] = tf.where(is_masked, mask_id, sequences["input_ids"])
        hidden = task.encoded(sequences, training=False)["sequence_output"]
        logits = task.lm_head(hidden, position[:, None])[:, 0]  # (t, V)
        logits = tf.cast(logits, tf.float32)
        nats = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tokens, logits=logits)
        return {"nats": nats}

    count = tf.size(row)
    # The encoder takes no empty batch.
    filler = tf.zeros([tf.cast(count == 0, tf.int32)], tf.int32)
    predictions = {"row": row, "position": position, "end": end}
    predictions = {name: tf.concat([x, filler], axis=0) for name, x in predictions.items()}
    size = tf.minimum(chunk_size(inputs["input_ids"]), _MASKS_TOGETHER)
    specs = {"nats": tf.TensorSpec([None])}
    return in_chunks(surprisals, predictions, size=size, specs=specs)["nats"][:count]


def left_to_right_surprisals(task, ids, *, max_length):
    """The surprisal of every token, in nats, each after those before it, by a causal model.

    If the model's sequences begin with no special token, the first token of a text is given, and
    has none (see `given_tokens`). In a text with more tokens than `max_length` leaves room for,
    each token is read in the window in which it has most context.

    Shapes: ids ragged int32 (B, None) -> float32 (T,).
    """
    ids = _with_an_empty_text(ids)
    special = len(special_before(task.tokenizer))
    room = max_length - special
    lengths = tf.cast(ids.row_lengths(), tf.int32)
    parts = windows(lengths, room, stride=max(1, room // 2), cores="first")
    inputs = prompt_inputs(parts.rows(ids), task=task)  # (R, S)
    no_column = tf.cast(tf.shape(inputs["input_ids"])[1] == 0, tf.int32)  # of empty texts alone
    inputs = {name: tf.pad(x, [[0, 0], [0, no_column]]) for name, x in inputs.items()}
    is_core = parts.core_of(tf.shape(inputs["input_ids"])[1], offset=special)

    def surprisals(some):
        counts = some.pop("is_core")[:, 1:]
        hidden = task.encoded(some, training=False)["sequence_output"]
        return {"nats": next_token_nats(task, hidden, some["input_ids"], counts)}

    size = chunk_size(inputs["input_ids"])
    specs = {"nats": tf.TensorSpec([None])}
    return in_chunks(surprisals, {**inputs, "is_core": is_core}, size=size, specs=specs)["nats"]


def _with_an_empty_text(ids):
    """Ragged ids with one row more: the encoder takes no batch of none."""
    lengths = tf.concat([ids.row_lengths(), tf.zeros([1], tf.int64)], axis=0)
    return tf.RaggedTensor.from_row_lengths(ids.values, lengths)


def given_tokens(task):
    """How many first tokens of a text have no surprisal by a `CausalLM`: 1 or 0."""
    return int(not special_before(task.tokenizer))


def _vectors(task, inputs, vectors_of):
    """The result of `vectors_of` at `inputs["is_mask"]`, in chunks: a dictionary with `vectors`.

    Windows without a mask are left out, as a long text may have thousands of them. The first one
    stays, because the encoder takes no empty batch.
    """
    is_read = tf.reduce_any(inputs["is_mask"], axis=1)  # (R,)
    is_read |= tf.range(tf.size(is_read)) == 0
    inputs = {name: tf.boolean_mask(rows, is_read) for name, rows in inputs.items()}

    def at_masks(some):
        is_mask = some.pop("is_mask")
        hidden = task.encoded(some, training=False)["sequence_output"]
        return vectors_of(task, hidden, some["input_ids"], is_mask)

    specs = {"vectors": tf.TensorSpec([None, None, task.config.hidden_size])}
    if vectors_of is _at_boundaries:
        specs["offsets"] = tf.TensorSpec([None], tf.int32)
    return in_chunks(at_masks, inputs, size=chunk_size(inputs["input_ids"]), specs=specs)


def _at_masks(task, hidden, ids, is_mask):
    """The `vectors` (M, 1, D) of the masks themselves."""
    return {"vectors": tf.boolean_mask(hidden, is_mask)[:, None]}


def _masked_lm(task, some):
    """Logits (m, 1, V) from what `_at_masks` reads."""
    return task.lm_head(some["vectors"], tf.zeros(tf.shape(some["vectors"])[:2], tf.int32))


def _at_boundaries(task, hidden, ids, is_mask):
    """The `vectors` (M, 2, D) next to the span of each mask, and its `offsets` (M,) in it."""
    is_masked = ids == task.tokenizer.vocabulary.mask_id  # (R, S), those outside the core, too
    is_first = is_masked & ~tf.pad(is_masked, [[0, 0], [1, 0]])[:, :-1]
    is_last = is_masked & ~tf.pad(is_masked, [[0, 0], [0, 1]])[:, 1:]
    span = tf.cumsum(tf.reshape(tf.cast(is_first, tf.int32), [-1])) - 1
    span = tf.boolean_mask(tf.reshape(span, tf.shape(ids)), is_mask)  # (M,)
    first, last = (tf.gather(tf.where(x)[:, 1], span) for x in (is_first, is_last))  # (M,)
    check = tf.debugging.assert_less(
        last - first,
        tf.constant(task.settings.max_span_length, tf.int64),
        message=f"A span may have at most {task.settings.max_span_length} {MASK}.",
    )
    with tf.control_dependencies([check]):
        row, position = tf.unstack(tf.where(is_mask), axis=1)
    both = tf.stack([first - 1, last + 1], axis=1)  # (M, 2)
    return {
        "vectors": tf.gather_nd(hidden, tf.stack([tf.stack([row, row], axis=1), both], axis=2)),
        "offsets": tf.cast(position - first + 1, tf.int32),
    }


def _span_boundary(task, some):
    """Logits (m, 1, V) from what `_at_boundaries` reads."""
    left = tf.zeros_like(some["offsets"][:, None])  # (m, 1): of the two vectors, the first
    return task.span_boundary(some["vectors"], left, left + 1, some["offsets"][:, None])


def _most_probable(task, vectors, head, *, top_k):
    """The result of `_vectors` -> probabilities and ids of the best tokens, (M, K) each."""
    size = len(task.tokenizer.vocabulary)  # an embedding may have more rows

    def best(some):
        probabilities = tf.nn.softmax(tf.cast(head(task, some)[:, 0], tf.float32))  # (m, V)
        largest, ids = tf.math.top_k(probabilities[:, :size], k=top_k)
        return {"values": largest, "ids": ids}

    chosen = in_chunks(
        best,
        vectors,
        size=_MASKS_TOGETHER,
        specs={
            "values": tf.TensorSpec([None, top_k]),
            "ids": tf.TensorSpec([None, top_k], tf.int32),
        },
    )
    return chosen["values"], chosen["ids"]


def language_model_signatures(task, *, max_length, top_k):
    """The signatures of a `CausalLM`; the first is the default one.

    * `serving_default`: `prompt`, string (B,).
    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), of prompts with the special
      tokens before a text and none after it, for clients that tokenize.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `prompt`.
    * `generate`: `prompt`, `max_tokens`, `temperature`, `top_k`, `top_p` and `seed`, (B,) each (see
      `Sampling`).
    * `surprisal`: see `surprisal_signature`.

    The first three return `text`, string (B,), the most probable next token over and over, up to 32
    of them; `candidates`, string (B, K), the names of the tokens that may come next (see
    `Vocabulary.token_name`), the most probable first; `probabilities`, float32 (B, K); and
    `log_probability`, float32 (B,), of the prompt in nats. `generate` returns `text` and
    `log_probability`, that of the text. A text goes on at its prompt: it begins with a space, or
    with the rest of the prompt's last word.

    A prompt of `max_length` tokens or more is an error, and so is one without any token.
    """
    generator = Generator(task, compiled=False)
    vocabulary, names = task.tokenizer.vocabulary, task.encoder.input_names
    names_of_tokens = token_names(vocabulary)
    top_k = min(top_k, len(vocabulary))

    def continued(prompts, inputs, sampling):
        """-> the text after each prompt, string (B,), and its log-probability."""
        state = generator.begin(prompts, sampling)
        tokens, last = generator.proceed(state, sampling, tf.reduce_max(sampling.max_tokens))
        tokens = tf.transpose(tf.concat([state.token[None], tokens], axis=0))  # (B, T)
        text = continuation(inputs, tokens, vocabulary=vocabulary)
        return {"text": text, "log_probability": last.log_probability}

    def read(inputs):
        lengths = tf.reduce_sum(inputs["input_mask"], axis=1)
        checks = [
            tf.debugging.assert_less(
                lengths, max_length, message=f"A prompt may have at most {max_length - 1} tokens."
            ),
            tf.debugging.assert_positive(lengths, message="A prompt has no token."),
        ]
        with tf.control_dependencies(checks):
            inputs = {name: tf.identity(inputs[name]) for name in names}
        return generator.read(inputs, max_length)

    def chunked(compute, inputs, *, more=()):
        """`compute` of some inputs by name at a time: a cache takes memory for each prompt."""
        specs = {"text": tf.TensorSpec([None], tf.string), "log_probability": tf.TensorSpec([None])}
        specs |= dict(more)
        size = max(1, 8192 // max_length)
        return in_chunks(compute, inputs, size=size, specs=specs)

    @functools.partial(traced_on_ids, encoder=task.encoder)
    def from_ids(**inputs):
        def outputs(some):
            prompts = read(some)
            count = tf.shape(prompts.lengths)[0]
            sampling = Sampling.of(count, max_tokens=_NEW_TOKENS, top_k=1)
            probabilities = tf.nn.softmax(generator.logits(prompts.last))  # (B, V)
            most_probable, ids = tf.math.top_k(probabilities, k=top_k)
            return {
                "text": continued(prompts, some, sampling)["text"],
                "candidates": tf.gather(names_of_tokens, ids),
                "probabilities": most_probable,
                "log_probability": prompts.log_probability,
            }

        next_inputs = {
            "candidates": tf.TensorSpec([None, top_k], tf.string),
            "probabilities": tf.TensorSpec([None, top_k]),
        }
        return chunked(outputs, inputs, more=next_inputs)

    @functools.partial(traced_on_texts, names=["prompt"])
    def from_prompt(prompt):
        return from_ids(**prompt_inputs(task.tokenizer.tokenize(prompt), task=task))

    def generate(prompt, max_tokens, temperature, top_k, top_p, seed):
        sampling = Sampling(max_tokens, temperature, top_k, top_p, seed)
        inputs = prompt_inputs(task.tokenizer.tokenize(prompt), task=task)

        def outputs(some):
            sampling = Sampling(*(some[name] for name in Sampling._fields))
            some = {name: some[name] for name in names}
            return continued(read(some), some, sampling)

        with tf.control_dependencies(_checks(sampling)):
            sampling = Sampling(*map(tf.identity, sampling))
        return chunked(outputs, inputs | sampling._asdict())

    warmup = [{"prompt": batch} for batch in warmup_texts(max_length // 4)]
    signatures = standard_signatures(
        from_prompt, task=task, warmup=warmup, texts=("prompt",), from_ids=from_ids
    )
    specs = [*text_specs(["prompt"]), *SAMPLING_SPECS]

    def surprisals(ids):
        return left_to_right_surprisals(task, ids, max_length=max_length)

    return {
        **signatures,
        "generate": Signature(generate, specs),
        "surprisal": surprisal_signature(task, surprisals, given=given_tokens(task)),
    }


def _checks(sampling):
    """The assertions on a client's `Sampling`."""
    yield tf.debugging.assert_positive(sampling.max_tokens, message="max_tokens must be above 0.")
    yield tf.debugging.assert_positive(sampling.temperature, message="temperature must be above 0.")
    yield tf.debugging.assert_non_negative(sampling.top_k, message="top_k must be 0 or more.")
    yield tf.debugging.assert_positive(sampling.top_p, message="top_p must be above 0.")
    yield tf.debugging.assert_less_equal(sampling.top_p, 1.0, message="top_p must be at most 1.")


def continuation(inputs, tokens, *, vocabulary):
    """The text that new tokens, int32 (B, T), add to that of their prompts: string (B,)."""
    joinable = tf.constant(vocabulary.joinable)
    prompts = tf.ragged.boolean_mask(inputs["input_ids"], inputs["input_mask"] > 0)
    tokens = tf.ragged.boolean_mask(tokens, tokens >= 0)

    def text(ids):
        parts = tf.ragged.map_flat_values(lambda ids: tf.gather(joinable, ids), ids)
        text = tf.strings.reduce_join(parts, axis=1)
        if vocabulary.OWN_SPACES:
            return text
        # A space after the last word is the beginning of what comes next.
        return tf.strings.regex_replace(text, " $", "")

    before, whole = text(prompts), text(tf.concat([prompts, tokens], axis=1))
    length = tf.strings.length(before)
    new = tf.strings.substr(whole, length, tf.strings.length(whole) - length)
    # Of a character of several tokens the last ones may be missing.
    return tf.strings.unicode_transcode(new, "UTF-8", "UTF-8")
