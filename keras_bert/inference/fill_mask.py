"""Which words a masked language model would put in the place of [MASK]."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import softmax

from keras_bert.base.errors import InputError
from keras_bert.base.settings import takes
from keras_bert.checkpoints import find_model_folder, load_task
from keras_bert.inference.answers import check_numbers
from keras_bert.inference.settings import FillMaskSettings
from keras_bert.inputs.framing import frame
from keras_bert.tasks.pretraining.causal_lm import CausalLM
from keras_bert.tasks.pretraining.fill_mask import FillMask
from keras_bert.tasks.pretraining.pretrainer import Pretrainer
from keras_bert.text.vocabulary import MASK


class Candidate(NamedTuple):
    """A piece that may stand at a [MASK] (its `Vocabulary.token_name`), and its probability."""

    token: str
    probability: float


@takes(FillMaskSettings)
def fill_mask(**settings) -> list[list[Candidate]]:
    """The likeliest pieces at each [MASK] of a text.

    Each place is predicted for itself: with several, the candidates of one do not know which was
    taken at another. A piece that begins with ## continues the word before it; of byte-pair
    encoding, one that ends in @@ is continued by the next.

    Args:
        {settings}

    `model` may also be a `FillMask` or a `Pretrainer`. Nothing else in the text is special: only
    here is a literal [MASK] more than seven characters of text.

    Returns:
        A list with a list of `Candidate` for each [MASK], in the order of the text; the likeliest
        candidate first.

    Raises:
        InputError: the model has no masked-LM head, or the text has no [MASK] or is too long.
    """
    settings = FillMaskSettings.of(settings)
    text, top_k = settings.text, settings.top_k
    task = load_masked_lm(settings.model)
    vocabulary = task.tokenizer.vocabulary
    ids = _ids(text, task.tokenizer)
    template = task.tokenizer.template
    max_length = task.encoder.default_max_length(len(ids) + template.num_special(1))
    room = template.room(max_length)
    if len(ids) > room:
        raise InputError(
            f"The text has {len(ids)} tokens, more than the {room} that the model has room for; "
            f"give a shorter part of it around {MASK}."
        )
    masks = np.flatnonzero(ids == vocabulary.mask_id)
    if not masks.size:
        raise InputError(f"The text has no {MASK}; write it where the model shall find a word.")
    positions = template.before(0, texts=1) + masks[None]  # (1, P)
    row = tf.RaggedTensor.from_row_lengths(ids, [len(ids)])
    inputs = frame(
        [row], tokenizer=task.tokenizer, names=task.encoder.input_names, max_length=max_length
    )
    inputs = {name: x.numpy() for name, x in inputs.items()}
    # Not the whole task: a `SpanPretrainer` would also want to know of spans.
    hidden = task.encoded(inputs, training=False)["sequence_output"]
    logits = task.lm_head(hidden, positions.astype(np.int32), training=False)
    logits = np.asarray(logits, np.float32)[0]  # (P, V)
    check_numbers({"masked_lm": logits})
    return [most_probable(row, vocabulary, top_k) for row in logits]


def load_masked_lm(model):
    """The `FillMask` or `Pretrainer` of a folder, which must have its tokenizer; or the given one.

    Raises InputError where the folder holds something else.
    """
    task = model
    if not isinstance(model, FillMask | Pretrainer):
        task = load_task(find_model_folder(model))
    if isinstance(task, CausalLM):
        raise InputError(
            f"{model} holds a causal LM, which predicts the next token and fills no {MASK}; give a "
            "model that was pre-trained with masked tokens."
        )
    if not isinstance(task, FillMask | Pretrainer):
        raise InputError(
            f"{model} holds a model of the task {task.KIND}, whose head for {MASK} is gone; give a "
            "model that was pre-trained and not fine-tuned since."
        )
    if task.tokenizer is None:
        raise InputError(f"{model} has no tokenizer of ours, so no text can be given to it.")
    if task.tokenizer.vocabulary.mask_id is None:
        raise InputError(f"The tokenizer of {model} has no mask token, so {MASK} is not predicted.")
    return task


def _ids(text, tokenizer):
    """The ids of a text in which a literal [MASK] is the special piece, int32 (T,)."""
    parts = [row.numpy() for row in tokenizer.tokenize(text.split(MASK))]
    mask = np.array([tokenizer.vocabulary.mask_id], np.int32)
    between = [token for part in parts[1:] for token in (mask, part)]
    return np.concatenate([parts[0], *between])


def most_probable(logits, vocabulary, top_k):
    """Logits (V,) of a place -> its `top_k` candidates, the likeliest first."""
    probabilities = softmax(logits.astype(np.float64))
    # An embedding may have more rows than the vocabulary has pieces.
    order = np.argsort(-probabilities[: len(vocabulary)], kind="stable")[:top_k]
    return [Candidate(vocabulary.token_name(int(id)), float(probabilities[id])) for id in order]
