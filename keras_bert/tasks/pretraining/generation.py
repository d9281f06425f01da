"""Text from a causal language model, one token at a time, in the graph.

Shapes: B sequences, S tokens of the longest prompt, M positions of the cache, T new tokens, D
hidden size, V vocabulary.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.tasks.signatures import in_chunks, input_specs

# Predictions whose probabilities, V numbers each, are computed at once.
_PREDICTIONS_TOGETHER = 256
NO_TOKEN = -1  # after the end of a sequence


class Sampling(NamedTuple):
    """How the next token of each sequence is chosen; each is a tensor (B,).

    The logits are divided by the temperature. Of the tokens, the `top_k` most probable ones are
    kept (0 keeps all; 1 is greedy decoding), and of these as few of the most probable ones as have
    together a probability of `top_p` (Holtzman et al. 2020). One of them is drawn by a seed, which
    with the number of the token alone decides it, whatever the other sequences.
    """

    max_tokens: Any  # int32, at least 1: a sequence ends after as many
    temperature: Any  # float32, above 0
    top_k: Any  # int32
    top_p: Any  # float32, above 0 and at most 1
    seed: Any  # int32

    @classmethod
    def of(cls, batch_size, *, max_tokens, temperature=1.0, top_k=0, top_p=1.0, seed=0):
        """The same for all sequences, but for the seed: the first has `seed`, the next one more."""
        options = (max_tokens, temperature, top_k, top_p)
        same = [
            tf.fill([batch_size], tf.constant(value, spec.dtype))
            for value, spec in zip(options, SAMPLING_SPECS, strict=False)
        ]
        seed = (seed + 2**31) % 2**32 - 2**31  # as int32, which goes on after its largest
        return cls(*same, seed + tf.range(batch_size))


SAMPLING_SPECS = Sampling(
    max_tokens=tf.TensorSpec([None], tf.int32, name="max_tokens"),
    temperature=tf.TensorSpec([None], tf.float32, name="temperature"),
    top_k=tf.TensorSpec([None], tf.int32, name="top_k"),
    top_p=tf.TensorSpec([None], tf.float32, name="top_p"),
    seed=tf.TensorSpec([None], tf.int32, name="seed"),
)


class Prompts(NamedTuple):
    """Sequences that have been read.

    A log-probability is the sum over a text's tokens, each after those before it. Without a special
    token before the text its first token counts as given.
    """

    log_probability: Any  # float32 (B,), nats
    last: Any  # (B, D): the vectors of the last tokens
    lengths: Any  # int32 (B,)
    max_length: Any  # int32 (): M
    cache: Any


class State(NamedTuple):
    """Sequences between two tokens."""

    token: Any  # int32 (B,): the last one, which the cache lacks
    index: Any  # int32 (B,): its position
    has_ended: Any  # bool (B,)
    log_probability: Any  # float32 (B,): the sum over the new tokens, nats
    number: Any  # int32 (): the number of new tokens
    max_length: Any  # int32 (): M
    cache: Any


class Generator:
    """The functions by which a `CausalLM` generates text: `read`, `begin` and `proceed`.

    If it is compiled, there is also `proceed_with_xla`, the same as `proceed`, which is compiled
    again for each number of sequences, M, count and `top_k`.

    Args:
        task: the `CausalLM`. Its tokenizer, if it has one, says which token ends a text.
        compiled: whether each function is traced by itself, once for any number and length of
            prompts; False for what is traced as a part of others.

    Raises:
        InputError: the encoder has no step of one token, or the task mixes its layers.
    """

    def __init__(self, task, *, compiled=True):
        task.encoder.require("generate")
        if task.reader.mix is not None:
            raise InputError(
                "A causal LM with a learned mix of layers cannot generate text. Pre-train one "
                "without `layer_mix`."
            )
        self.task = task
        self.end_id = NO_TOKEN if task.tokenizer is None else _end_id(task.tokenizer)
        if compiled:
            self._compile()

    def _compile(self):
        inputs = {spec.name: spec for spec in input_specs(self.task.encoder)}
        scalar = tf.TensorSpec([], tf.int32)
        self.read = tf.function(self.read, input_signature=[inputs, scalar], autograph=False)
        reading = _specs(self.read.get_concrete_function().structured_outputs)
        self.begin = tf.function(
            self.begin, input_signature=[reading, SAMPLING_SPECS], autograph=False
        )
        state = _specs(self.begin.get_concrete_function().structured_outputs)
        self.proceed, self.proceed_with_xla = (
            tf.function(
                self.proceed,
                input_signature=[state, SAMPLING_SPECS, scalar],
                autograph=False,
                jit_compile=with_xla,
            )
            for with_xla in (False, True)
        )

    def read(self, inputs, max_length):
        """Reads prompts, all positions at once if the encoder can.

        Args:
            inputs: the encoder's inputs by name, int32 (B, S), with padding at the end.
            max_length: int32 (), M: the most tokens of a prompt and the text after it.

        Returns:
            The `Prompts`.
        """
        hidden, cache = self.task.encoder.prefill(inputs, max_length)
        lengths = tf.reduce_sum(inputs["input_mask"], axis=1)
        last = tf.gather(hidden, lengths - 1, batch_dims=1)
        return Prompts(self._log_probability(hidden, inputs), last, lengths, max_length, cache)

    def begin(self, prompts, sampling):
        """The `State` with the first new token, chosen by a `Sampling`."""
        token, log_probability = self._choose(prompts.last, sampling, number=0)
        has_ended = token == self.end_id
        token = tf.where(has_ended, NO_TOKEN, token)
        return State(
            token=token,
            index=prompts.lengths,
            has_ended=has_ended | self._is_last(prompts.lengths, 0, prompts.max_length, sampling),
            log_probability=log_probability,
            number=tf.constant(1),
            max_length=prompts.max_length,
            cache=prompts.cache,
        )

    def proceed(self, state, sampling, count):
        """`count` further tokens, or fewer if all sequences end before.

        A sequence ends with the token that ends a text, and when it has `max_tokens` new ones or M
        in all.

        Returns:
            The tokens, int32 (`count`, B), NO_TOKEN after the end of a sequence, and the `State`.
        """
        first = state.number

        def goes_on(state, tokens):
            return (state.number < first + count) & ~tf.reduce_all(state.has_ended)

        def next_token(state, tokens):
            token = tf.maximum(state.token, 0)  # of an ended sequence any
            hidden, cache = self.task.encoder.step(token, state.cache, state.index)
            token, log_probability = self._choose(hidden, sampling, number=state.number)
            had_ended, has_ended = state.has_ended, state.has_ended | (token == self.end_id)
            token = tf.where(has_ended, NO_TOKEN, token)
            index = tf.where(has_ended, state.index, state.index + 1)
            is_last = self._is_last(index, state.number, state.max_length, sampling)
            log_probability = tf.where(had_ended, 0.0, log_probability)
            new = State(
                token=token,
                index=index,
                has_ended=has_ended | is_last,
                log_probability=state.log_probability + log_probability,
                number=state.number + 1,
                max_length=state.max_length,
                cache=cache,
            )
            row = [[state.number - first]]
            return new, tf.tensor_scatter_nd_update(tokens, row, token[None])

        tokens = tf.fill([count, tf.shape(state.token)[0]], NO_TOKEN)
        state, tokens = tf.while_loop(goes_on, next_token, (state, tokens), parallel_iterations=1)
        return tokens, state

    @staticmethod
    def _is_last(index, number, max_length, sampling):
        """Whether the new token of that number, at an index, is the last of its sequence: (B,)."""
        return (index + 1 >= max_length) | (number + 1 >= sampling.max_tokens)

    def _choose(self, hidden, sampling, *, number):
        """The next tokens (B,) from vectors (B, D), and their log-probabilities (B,)."""
        logits = self.logits(hidden)

        def most_probable():
            return tf.argmax(logits, axis=-1, output_type=tf.int32)

        def drawn():
            return _drawn(logits, sampling, number)

        token = tf.cond(tf.reduce_all(sampling.top_k == 1), most_probable, drawn)
        chosen = tf.gather(logits, token, batch_dims=1)
        return token, chosen - tf.reduce_logsumexp(logits, axis=-1)

    def logits(self, hidden):
        """Vectors (N, D) -> the float32 logits of the tokens that come next, (N, V)."""
        return _logits(self.task, hidden)

    def _log_probability(self, hidden, inputs):
        """The `log_probability` of `Prompts`, from vectors (B, S, D)."""
        ids, mask = inputs["input_ids"], inputs["input_mask"]
        special = 0 if self.task.tokenizer is None else len(special_before(self.task.tokenizer))
        positions = tf.range(1, tf.shape(ids)[1])
        counts = (mask[:, 1:] > 0) & (positions >= special)  # (B, S - 1)
        nats = next_token_nats(self.task, hidden, ids, counts)
        rows = tf.where(counts)[:, 0]
        return -tf.math.unsorted_segment_sum(nats, rows, tf.shape(ids)[0])


def next_token_nats(task, hidden, ids, counts):
    """The surprisals of tokens, in nats, each from the vector of the token before it.

    Shapes: hidden (B, S, D); ids int32 (B, S); counts bool (B, S - 1), which of the tokens from the
    second one on are wanted -> float32 (T,), those tokens in order.
    """

    def token_values(some):
        logits = _logits(task, some["hidden"])
        chosen = tf.gather(logits, some["ids"], batch_dims=1)
        return {"nats": tf.reduce_logsumexp(logits, axis=-1) - chosen}

    return in_chunks(
        token_values,
        {
            "hidden": tf.boolean_mask(hidden[:, :-1], counts),
            "ids": tf.boolean_mask(ids[:, 1:], counts),
        },
        size=_PREDICTIONS_TOGETHER,
        specs={"nats": tf.TensorSpec([None])},
    )["nats"]


def _logits(task, hidden):
    """Vectors (N, D) -> the float32 logits of the tokens that come next, (N, V)."""
    logits = task.lm_head(hidden[:, None], tf.zeros([tf.shape(hidden)[0], 1], tf.int32))
    # An embedding may have more rows than the vocabulary has tokens.
    size = task.config.vocab_size if task.tokenizer is None else len(task.tokenizer)
    return tf.cast(logits[:, 0, :size], tf.float32)


def _specs(structure):
    return tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), structure)


def _drawn(logits, sampling, number):
    """Ids (B,) drawn as a `Sampling` says, from logits (B, V)."""
    size = tf.shape(logits)[1]
    most = tf.where(sampling.top_k == 0, size, tf.minimum(sampling.top_k, size))  # (B,)
    logits, ids = tf.math.top_k(logits, k=tf.reduce_max(most))  # (B, K), falling
    # From the largest, which is the first: quotients of a low temperature would be infinite.
    logits = (logits - logits[:, :1]) / sampling.temperature[:, None]
    is_kept = tf.range(tf.shape(ids)[1]) < most[:, None]
    probabilities = tf.nn.softmax(tf.where(is_kept, logits, -1e9))
    up_to = tf.cumsum(probabilities, axis=1)
    is_kept &= up_to - probabilities < sampling.top_p[:, None]  # always the first
    total = tf.reduce_sum(tf.where(is_kept, probabilities, 0.0), axis=1)

    def bits_of(seed):
        seeds = tf.stack([seed, number])
        return tf.random.stateless_uniform([], seeds, None, None, tf.uint32, alg="philox")

    # XLA makes other fractions of the same bits.
    bits = tf.map_fn(bits_of, sampling.seed, fn_output_signature=tf.uint32) & 0x7FFFFF
    uniform = tf.cast(bits, tf.float32) / 2**23  # in [0, 1)
    below = tf.reduce_sum(tf.cast(is_kept & (up_to <= (uniform * total)[:, None]), tf.int32), 1)
    count = tf.reduce_sum(tf.cast(is_kept, tf.int32), axis=1)
    return tf.gather(
        ids, tf.minimum(below, count - 1), batch_dims=1
    )  # rounding may exceed the last


def special_before(tokenizer):
    """The ids of the special tokens before a text."""
    template = tokenizer.template
    parts = template.parts(1)[: template.before(0, texts=1)]
    return [tokenizer.vocabulary.id(token) for token, _ in parts]


def _end_id(tokenizer):
    """The id of the token that ends a text, or NO_TOKEN."""
    _, end = tokenizer.ends_of_texts
    return NO_TOKEN if end is None else tokenizer.vocabulary.id(end)


def prompt_inputs(ids, *, task):
    """The encoder's inputs by name, int32 (B, S), of prompts: ragged ids (B, None).

    The special tokens before a text are added, and none after it. A sequence without any token has
    nothing to continue: callers check it.
    """
    special = tf.constant(special_before(task.tokenizer), tf.int32)
    special = tf.tile(special[None], [ids.nrows(), 1])
    ids = tf.concat([tf.RaggedTensor.from_tensor(special), ids], axis=1)
    mask = tf.ones_like(ids).to_tensor()
    inputs = {
        "input_ids": ids.to_tensor(task.tokenizer.vocabulary.pad_id),
        "input_mask": mask,
        "segment_ids": tf.zeros_like(mask),
    }
    return {name: inputs[name] for name in task.encoder.input_names}
