"""The predictions of the heads of a pre-trained encoder.

They are the most probable tokens at each [MASK] of a text, and whether a text follows another.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import softmax

from keras_bert.base.errors import InputError
from keras_bert.base.settings import takes
from keras_bert.inference.embed import ANY_LENGTH
from keras_bert.inference.predict import as_task, check_task
from keras_bert.inference.settings import FillMaskSettings, FollowsSettings
from keras_bert.inputs.framing import frame
from keras_bert.programs.process import under_tensorflow_only
from keras_bert.tasks.outputs import check_finite
from keras_bert.tasks.pretraining.signatures import follows_probability
from keras_bert.text.vocabulary import MASK

_PAIRS_TOGETHER = 256


class Candidate(NamedTuple):
    """A token for a [MASK] (its `Vocabulary.token_name`), and its probability."""

    token: str
    probability: float


@takes(FillMaskSettings)
def fill_mask(**settings) -> list[list[Candidate]]:
    """Returns the most probable tokens at each [MASK] of a text.

    Several masks are predicted independently of one another. A token that begins with ## continues
    the word before it; in byte-pair encoding, one that ends in @@ is continued by the next.

    Args:
        **settings: the fields of `FillMaskSettings`.

    `model` may also be a `FillMask` or a `Pretrainer`. With the head "span-boundary" of a
    `SpanPretrainer`, a run of [MASK] is one span, whose tokens are predicted from the two tokens
    next to it and from their offsets in it (Joshi et al. 2020). [MASK] is the only special token
    that a text may contain, and only here: for every other function it is seven characters of text.

    Returns:
        One list of `Candidate` per [MASK], in the order of the text, the most probable first.

    Raises:
        InputError: the model does not have the head, the text has no [MASK] or is too long, or a
            span is longer than those that the span-boundary head was made for.
    """
    settings = FillMaskSettings.of(settings)
    task = masked_lm(settings.model)
    if settings.head == "span-boundary" and "span-boundary" not in task.OFFERS:
        raise InputError(
            f"{settings.model} contains a model of the task {task.TASK_TYPE}, which has no "
            "span-boundary head. Use a model that was pre-trained with the objective span."
        )
    vocabulary, template = task.tokenizer.vocabulary, task.tokenizer.template
    ids = task.tokenizer.tokenize_masked([settings.text])[0].numpy()
    max_length = task.encoder.default_max_length(len(ids) + template.num_special(1))
    room = template.room(max_length)
    if len(ids) > room:
        raise InputError(
            f"The text has {len(ids)} tokens, more than the {room} that fit into the model. Pass a "
            f"shorter part of it around {MASK}."
        )
    masks = np.flatnonzero(ids == vocabulary.mask_id)
    if not masks.size:
        raise InputError(f"The text has no {MASK}. Write {MASK} where a word is to be predicted.")
    positions = template.before(0, texts=1) + masks[None]  # (1, P)
    inputs = frame(
        [tf.RaggedTensor.from_row_lengths(ids, [len(ids)])],
        tokenizer=task.tokenizer,
        names=task.encoder.input_names,
        max_length=max_length,
    )
    inputs = {name: x.numpy() for name, x in inputs.items()}
    # Encoder and head instead of the whole task: a `SpanPretrainer` would need spans as well.
    hidden = task.encoded(inputs, training=False)["sequence_output"]
    positions = positions.astype(np.int32)
    if settings.head == "span-boundary":
        spans = _span_boundaries(positions[0], longest=task.settings.max_span_length)
        logits = task.span_boundary(hidden, *(boundary[None] for boundary in spans), training=False)
    else:
        logits = task.lm_head(hidden, positions, training=False)
    logits = np.asarray(logits, np.float32)[0]  # (P, V)
    check_finite({"masked_lm": logits})
    return [most_probable(row, vocabulary, settings.top_k) for row in logits]


def _span_boundaries(positions, *, longest):
    """The tokens next to the span of each masked position, and its offset in the span, from 1.

    Shapes: positions int32 (P,), rising -> left, right, offset, int32 (P,) each.
    """
    is_first = np.diff(positions, prepend=-1) != 1
    first = np.flatnonzero(is_first)
    sizes = np.diff(first, append=len(positions))
    if sizes.max() > longest:
        raise InputError(
            f"The text has a span of {sizes.max()} {MASK}. The span-boundary head of the model was "
            f"made for at most {longest}. Write fewer of them in a row."
        )
    start = np.repeat(positions[first], sizes)
    return start - 1, start + np.repeat(sizes, sizes).astype(np.int32), positions - start + 1


def masked_lm(model):
    """The `FillMask` or `Pretrainer` of a folder, or the given one, which has a tokenizer.

    Raises InputError if it is another task, or has no mask token.
    """
    task = language_model(model)
    if "fill-mask" not in task.OFFERS:
        raise InputError(
            f"{model} contains a causal LM, which predicts the next token and cannot fill {MASK}. "
            "Use a model that was pre-trained with masked tokens."
        )
    return task


def language_model(model):
    """Returns `masked_lm`'s model, or a `CausalLM`."""
    task = as_task(model)
    check_task(
        task,
        *("fill-mask", "generate"),
        model=model,
        lacks="masked-LM head",
        advice="Use a model that was pre-trained and not fine-tuned.",
    )
    if "fill-mask" in task.OFFERS and task.tokenizer.vocabulary.mask_id is None:
        raise InputError(f"The tokenizer of {model} has no mask token, so {MASK} has no meaning.")
    return task


def most_probable(logits, vocabulary, top_k):
    """Logits (V,) -> the `top_k` candidates, the most probable first."""
    probabilities = softmax(logits.astype(np.float64))
    # An embedding may have more rows than the vocabulary has tokens.
    order = np.argsort(-probabilities[: len(vocabulary)], kind="stable")[:top_k]
    return [Candidate(vocabulary.token_name(int(id)), float(probabilities[id])) for id in order]


class FollowingText(NamedTuple):
    """Two texts, and the probability that the second follows the first."""

    text_a: str
    text_b: str
    probability: float


@takes(FollowsSettings)
@under_tensorflow_only
def follows(**settings) -> list[FollowingText]:
    """Returns the probabilities that texts follow others, by the second head of pre-training.

    A model that was pre-trained on next sentences was shown second texts of other documents (Devlin
    et al. 2018, section 3.1); one that was pre-trained on the order of sentences, the same two
    texts swapped (Lan et al. 2020), so that its probability is that of their order. The loss of a
    pair that is in order is the negative logarithm of its probability.

    Args:
        **settings: the fields of `FollowsSettings`.

    `model` may also be a `Pretrainer`. Of a pair that is too long for the model, the longer text is
    cut at its end, as in pre-training.

    Returns:
        One `FollowingText` per pair, in order.

    Raises:
        InputError: the model has neither head, or there are not as many second texts as first ones.
    """
    settings = FollowsSettings.of(settings)
    task = sentence_task(settings.model)
    max_length = task.encoder.default_max_length(ANY_LENGTH)
    probabilities = []
    for start in range(0, len(settings.text_a), _PAIRS_TOGETHER):
        texts = [x[start : start + _PAIRS_TOGETHER] for x in (settings.text_a, settings.text_b)]
        probabilities += follows_probability(task, texts, max_length=max_length).numpy().tolist()
    check_finite({task.SENTENCES: np.array(probabilities)})
    texts = zip(settings.text_a, settings.text_b, strict=True)
    return [
        FollowingText(*pair, probability)
        for pair, probability in zip(texts, probabilities, strict=True)
    ]


def sentence_task(model):
    """The `Pretrainer` of a folder, or the given one, which has a tokenizer.

    Raises InputError if it is another task.
    """
    task = as_task(model)
    check_task(
        task,
        "next-sentence",
        model=model,
        lacks="next-sentence or sentence-order head",
        advice="Use a model that was pre-trained with the objective mlm-nsp or mlm-sop.",
    )
    return task
