"""How surprising the tokens of a text are to a masked language model, and pseudo-perplexity."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import batched

import numpy as np
import tensorflow as tf

from keras_bert.base.settings import takes
from keras_bert.inference.embed import open_texts
from keras_bert.inference.fill_mask import masked_lm
from keras_bert.inference.predict import check_finite
from keras_bert.inference.settings import SurprisalSettings
from keras_bert.inputs.batches import sorted_batches
from keras_bert.tasks.pretraining.signatures import token_surprisals
from keras_bert.text.tokenizer import note_on_unknown

_USUAL_LENGTH = 512  # the longest sequence of a model without a limit
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
    def pseudo_log_likelihood(self) -> float:
        """The sum of the tokens' log-probabilities, in nats (Salazar et al. 2020)."""
        return -float(self.surprisals.sum(dtype=np.float64))

    @property
    def pseudo_perplexity(self) -> float:
        """exp of the mean surprisal; NaN without tokens."""
        return pseudo_perplexity([self])


def pseudo_perplexity(surprisals: Iterable[TextSurprisal]) -> float:
    """Returns the pseudo-perplexity of texts: exp of the mean surprisal of all their tokens.

        kb.pseudo_perplexity(kb.surprisal(model="folder", data="texts.txt"))

    It depends on the vocabulary: only models with the same one can be compared (Salazar et al.
    2020, section 2.3).

    Args:
        surprisals: what `kb.surprisal` yields.

    Returns:
        A number, 1 or more; NaN if the texts have no tokens.
    """
    nats = tokens = 0
    for each in surprisals:
        nats -= each.pseudo_log_likelihood
        tokens += len(each.tokens)
    return float(np.exp(nats / tokens)) if tokens else float("nan")


@takes(SurprisalSettings)
def surprisal(
    *, report: Callable[[str], None] | None = None, **settings
) -> Iterator[TextSurprisal]:
    """Yields one `TextSurprisal` per text, in order: the loss of each token, masked by itself.

    Each token is replaced by [MASK] in a copy of the text and predicted from all others (Salazar et
    al. 2020); a text of T tokens takes T sequences. A text longer than the model's positions is
    split into overlapping windows, and each token is read in the one in which it has most context.

        for found in kb.surprisal(model="folder", text=["The bank of the river."]):
            found.tokens, found.surprisals, found.pseudo_perplexity

    Args:
        {settings}
        report: a function that is called with a line on how the file was read, and at the end with
            another one if the vocabulary does not fit the text.

    `model` may also be a `FillMask` or a `Pretrainer`, and `text` a single string.

    Raises:
        InputError: the model has no masked-LM head, or on bad input, at the latest when its line is
            reached.
    """
    settings = SurprisalSettings.of(settings)
    task = masked_lm(settings.model)
    data = settings.text if settings.data is None else settings.data
    texts = open_texts(data, settings, report=report)
    return _surprisals(task, texts, within_word_l2r=settings.within_word_l2r, report=report)


def _surprisals(task, texts, *, within_word_l2r, report):
    vocabulary, unknown, count = task.tokenizer.vocabulary, 0, 0
    nats_of = _traced(task)
    together = _TEXTS_TOGETHER
    if texts.kind == "lines" and texts.name == "standard input":
        together = 1  # a pipe is answered line by line
    for examples in batched(texts, together):
        tokens = task.tokenizer.tokenize_with_offsets([example.text for example in examples])
        ids, splits = tokens.ids.values.numpy(), tokens.ids.row_splits.numpy()
        masked = np.ones_like(ids)
        if within_word_l2r:
            masked = _left_in_word(tokens.word_starts.values.numpy())
        nats = np.empty(len(ids), np.float32)
        for batch in sorted_batches(np.diff(splits), batch_size=_TEXTS_OF_A_BATCH):
            own = np.concatenate([np.arange(splits[n], splits[n + 1]) for n in batch])
            nats[own] = nats_of(ids[own], np.diff(splits)[batch], masked[own]).numpy()
        check_finite({"masked_lm": nats})
        unknown, count = unknown + int(np.sum(ids == vocabulary.unk_id)), count + len(ids)
        starts, ends = tokens.starts.values.numpy(), tokens.ends.values.numpy()
        for example, first, last in zip(examples, splits[:-1], splits[1:], strict=True):
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


def _traced(task):
    """`token_surprisals` of a task, as a function of ids (T,), texts' lengths (B,), masked (T,)."""
    max_length = task.encoder.default_max_length(_USUAL_LENGTH)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None], tf.int64),
            tf.TensorSpec([None], tf.int32),
        ],
        autograph=False,  # it writes Python files outside the output
    )
    def nats_of(ids, lengths, masked):
        ids = tf.RaggedTensor.from_row_lengths(ids, lengths)
        return token_surprisals(task, ids, masked, max_length=max_length)

    return nats_of


def _left_in_word(word_starts):
    """How many tokens of its word are left from each token on: bool (T,) -> int32 (T,)."""
    first = np.flatnonzero(word_starts)
    sizes = np.diff(first, append=len(word_starts))
    ends = np.repeat(first + sizes, sizes)
    return (ends - np.arange(len(word_starts))).astype(np.int32)
