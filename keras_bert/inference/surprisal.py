"""How surprising the tokens of a text are to a language model, and (pseudo-)perplexity."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.settings import takes
from keras_bert.inference.embed import ANY_LENGTH, open_texts
from keras_bert.inference.fill_mask import language_model
from keras_bert.inference.settings import SurprisalSettings
from keras_bert.inputs.batches import sorted_batches
from keras_bert.programs.process import under_tensorflow_only
from keras_bert.tasks.outputs import check_finite
from keras_bert.tasks.pretraining.signatures import (
    given_tokens,
    left_to_right_surprisals,
    masked_surprisals,
)
from keras_bert.text.vocabulary import note_on_unknown

# Texts that are sorted by length together, and those that are padded to one length.
_TEXTS_TOGETHER, _TEXTS_OF_A_BATCH = 512, 8


@dataclass(frozen=True, kw_only=True)
class TextSurprisal:
    """The surprisals of one text of T subword tokens.

    Attributes:
        line: the line of the text in its file, or its position in a sequence, from 1.
        text: the text.
        tokens: the names of its tokens (see `Vocabulary.token_name`), a list of T strings.
        starts, ends: int32 (T,), the characters of each token: `text[start:end]`.
        surprisals: float32 (T,), the negative log-probability of each token, in nats.
    """

    line: int
    text: str
    tokens: list[str]
    starts: np.ndarray
    ends: np.ndarray
    surprisals: np.ndarray

    @property
    def log_probability(self) -> float:
        """The sum of the tokens' log-probabilities, in nats.

        By a causal model it is that of the text; by a masked one it is called the
        pseudo-log-likelihood (Salazar et al. 2020).
        """
        return -float(self.surprisals.sum(dtype=np.float64))

    @property
    def perplexity(self) -> float:
        """exp of the mean surprisal; NaN without tokens."""
        return _perplexity([self])


@takes(SurprisalSettings)
@under_tensorflow_only
def surprisal(*, report=None, **settings) -> Iterator[TextSurprisal]:
    """Yields one `TextSurprisal` per text, in order: -log p of each of its tokens.

    A masked language model predicts each token from all others: it is replaced by [MASK] in a copy
    of the text (Salazar et al. 2020), so that a text of T tokens takes T sequences. A causal model
    predicts it from those before it, all of a text in one sequence; if its sequences begin with no
    special token, the first token of a text is given and left out. A text longer than the model's
    positions is split into overlapping windows, and each token is read in the one in which it has
    most context.

        for found in kb.surprisal(model="folder", text=["The bank of the river."]):
            found.tokens, found.surprisals, found.log_probability, found.perplexity

    Args:
        **settings: the fields of `SurprisalSettings`.
        report: a function that is called with a line on how the file was read, and at the end with
            another one if the vocabulary does not fit the text.

    `model` may also be a `FillMask`, a `Pretrainer` or a `CausalLM`, and `text` a single string.

    Raises:
        InputError: the model has no language-model head, `mask_rest_of_word` is given to a causal
            one, or on bad input, at the latest when its line is reached.
    """
    settings = SurprisalSettings.of(settings)
    task = language_model(settings.model)
    if settings.mask_rest_of_word and "generate" in task.OFFERS:
        raise InputError.naming(
            "{mask_rest_of_word} is for masked language models. A causal one never sees the "
            "tokens that follow: leave it out."
        )
    data = settings.text if settings.data is None else settings.data
    texts = open_texts(data, settings, report=report)
    return _surprisals(task, texts, mask_rest_of_word=settings.mask_rest_of_word, report=report)


@takes(SurprisalSettings)
def pseudo_perplexity(*, report=None, **settings) -> float:
    """Returns the pseudo-perplexity of texts: exp of the mean surprisal of all their tokens.

        kb.pseudo_perplexity(model="folder", data="texts.txt")

    By a causal model it is the perplexity. It depends on the vocabulary: only models with the same
    one can be compared (Salazar et al. 2020, section 2.3).

    Args:
        **settings: the fields of `SurprisalSettings`.
        report: see `surprisal`.

    `model` and `text` may also be what `surprisal` takes.

    Returns:
        A number, 1 or more; NaN if the texts have no tokens.

    Raises:
        InputError: as for `surprisal`.
    """
    return _perplexity(surprisal(**settings, report=report))


def _perplexity(texts):
    nats = tokens = 0
    for text in texts:
        nats -= text.log_probability
        tokens += len(text.tokens)
    return float(np.exp(nats / tokens)) if tokens else float("nan")


def _surprisals(task, texts, *, mask_rest_of_word, report):
    vocabulary, unknown, count = task.tokenizer.vocabulary, 0, 0
    is_causal = "generate" in task.OFFERS
    nats_of = _left_to_right(task) if is_causal else _masked(task)
    given = given_tokens(task) if is_causal else 0
    texts_per_batch = _TEXTS_TOGETHER
    if texts.kind == "lines" and texts.name == "standard input":
        texts_per_batch = 1  # a pipe is answered line by line
    rest = iter(texts)
    while examples := list(islice(rest, texts_per_batch)):
        tokens = task.tokenizer.tokenize_with_offsets([example.text for example in examples])
        ids, splits = tokens.ids.values.numpy(), tokens.ids.row_splits.numpy()
        firsts = np.minimum(splits[:-1] + given, splits[1:])
        masked = np.ones_like(ids)
        if mask_rest_of_word:
            masked = _left_in_word(tokens.word_starts.values.numpy())
        nats = np.empty(len(ids), np.float32)
        for batch in sorted_batches(np.diff(splits), batch_size=_TEXTS_OF_A_BATCH):
            numbers = _ranges(splits[:-1][batch], splits[1:][batch])
            nats_of_batch = nats_of(ids[numbers], np.diff(splits)[batch], masked[numbers]).numpy()
            check_finite({"surprisals": nats_of_batch})
            nats[_ranges(firsts[batch], splits[1:][batch])] = nats_of_batch
        unknown, count = unknown + int(np.sum(ids == vocabulary.unk_id)), count + len(ids)
        starts, ends = tokens.starts.values.numpy(), tokens.ends.values.numpy()
        for example, first, last in zip(examples, firsts, splits[1:], strict=True):
            yield TextSurprisal(
                line=example.line,
                text=example.text,
                tokens=[vocabulary.token_name(id) for id in ids[first:last].tolist()],
                starts=starts[first:last],
                ends=ends[first:last],
                surprisals=nats[first:last],
            )
    note = note_on_unknown(unknown, count)
    if note and report is not None:
        report(f"Note: {note}")


def _ranges(starts, ends):
    """The integers from each start to before its end, one after another."""
    return np.concatenate([np.arange(*pair) for pair in zip(starts, ends, strict=True)])


# Ids (T,) and lengths (B,) of texts, and the number of tokens to mask from each on (T,).
_SPECS = (
    tf.TensorSpec([None], tf.int32),
    tf.TensorSpec([None], tf.int64),
    tf.TensorSpec([None], tf.int32),
)


def _masked(task):
    """`masked_surprisals` of a task, as a function of what _SPECS describe."""
    max_length = task.encoder.default_max_length(ANY_LENGTH)

    @tf.function(input_signature=_SPECS, autograph=False)  # which writes files outside the output
    def nats_of(ids, lengths, masked):
        ids = tf.RaggedTensor.from_row_lengths(ids, lengths)
        return masked_surprisals(task, ids, masked, max_length=max_length)

    return nats_of


def _left_to_right(task):
    """`left_to_right_surprisals` of a task, as a function of what _SPECS describe."""
    max_length = task.encoder.default_max_length(ANY_LENGTH)

    @tf.function(input_signature=_SPECS[:2], autograph=False)
    def nats_of(ids, lengths):
        ids = tf.RaggedTensor.from_row_lengths(ids, lengths)
        return left_to_right_surprisals(task, ids, max_length=max_length)

    return lambda ids, lengths, masked: nats_of(ids, lengths)


def _left_in_word(word_starts):
    """How many tokens of its word are left from each token on: bool (T,) -> int32 (T,)."""
    first = np.flatnonzero(word_starts)
    sizes = np.diff(first, append=len(word_starts))
    ends = np.repeat(first + sizes, sizes)
    return (ends - np.arange(len(word_starts))).astype(np.int32)
