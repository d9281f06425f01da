"""How many floating-point operations training takes by the model's own formula.

Counted are the matrix products, a multiplication and an addition apiece, as in Chowdhery et al.
2022 (PaLM), appendix B. What is not one (gelu, LayerNorm, softmax, dropout, the optimizer) is left
out, and so is padding: it is what the model needs, not what a program spends.

L layers, D width, F feed-forward width, V vocabulary; a row of n tokens with p predictions takes,
forward,

    L (n (8 D² + 4 D F) + 4 n² D)     the blocks: query, key, value, output; feed-forward; attention
    + p (2 D² + 2 D V)                the masked-LM head, or that of the next token, where p = n - 1
    + p (2 (2 D + E) D + 2 D² + 2 D V)  the span-boundary head, whose offsets have E numbers
    + 2 D² + 4 D                      the pooler and the head for two sentences

and three times that with the backward pass, which has two products for each. A causal row is
counted like any other, though half of its attention is masked.
"""

import numpy as np

from keras_bert.heads.span_boundary import OFFSET_WIDTH
from keras_bert.masking import most_predictions

_FORWARD_AND_BACKWARD = 3


def flops_a_token(config, *, outputs, rows_by_length, masked_rate, max_predictions, causal_share):
    """Training FLOPs of a token, the mean over rows; None where the rows' lengths are not known.

    Args:
        config: the encoder's `BertConfig`.
        outputs: names of the pre-training task's outputs.
        rows_by_length: (S + 1,), how many rows have so many tokens.
        masked_rate, max_predictions: how many tokens of a row are predicted (see `Masker`).
        causal_share: the share of rows that are read from left to right, where the task has both
            kinds.
    """
    rows = np.asarray(rows_by_length, np.float64)
    length = np.arange(len(rows))
    if not rows @ length:
        return None
    masked = most_predictions(length, rate=masked_rate, max_predictions=max_predictions)
    forward = _blocks(config, length)
    if "causal_lm" in outputs:
        share = causal_share if "masked_lm" in outputs else 1.0
        forward = forward + share * _vocabulary(config, length - 1)
        masked = (1 - share) * masked
    if "masked_lm" in outputs:
        forward = forward + _vocabulary(config, masked)
    if "span_boundary" in outputs:
        forward = forward + _vocabulary(config, masked) + _span(config, masked)
    if "next_sentence" in outputs or "sentence_order" in outputs:
        forward = forward + 2 * config.hidden_size**2 + 4 * config.hidden_size
    return float(_FORWARD_AND_BACKWARD * (rows @ forward) / (rows @ length))


def _blocks(config, length):
    width, wide = config.hidden_size, config.intermediate_size
    dense = length * (8 * width**2 + 4 * width * wide)
    return config.num_hidden_layers * (dense + 4 * width * length**2)


def _vocabulary(config, predictions):
    width = config.hidden_size
    return predictions * (2 * width**2 + 2 * width * config.vocab_size)


def _span(config, predictions):
    """The first of the two layers of the span-boundary head; the second is `_vocabulary`'s."""
    width = config.hidden_size
    return predictions * 2 * (2 * width + OFFSET_WIDTH) * width
