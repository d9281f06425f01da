"""How many floating-point operations training takes by the model's own formula.

Counted are the matrix products, a multiplication and an addition apiece, as in Chowdhery et al.
2022 (PaLM), appendix B. What is not one (gelu, LayerNorm, softmax, dropout, the optimizer) is left
out, and so is padding: it is what the model needs, not what a program spends. The encoder and each
head count their own forward pass (`forward_flops`); training takes three times that, since the
backward pass has two products for each.
"""

import numpy as np

from keras_bert.records.masking import most_predictions

_FORWARD_AND_BACKWARD = 3


def flops_a_token(task, *, rows_by_length, masked_rate, max_predictions, causal_share):
    """Training FLOPs per token, the mean over rows; None where the rows' lengths are not known.

    Args:
        task: a pre-training task.
        rows_by_length: (S + 1,), how many rows have so many tokens.
        masked_rate, max_predictions: how many tokens of a row are predicted (see `Masker`).
        causal_share: the fraction of rows that are read from left to right, where the task has both
            kinds.
    """
    config, outputs = task.config, task.output
    rows = np.asarray(rows_by_length, np.float64)
    length = np.arange(len(rows))
    if not rows @ length:
        return None
    masked = most_predictions(length, rate=masked_rate, max_predictions=max_predictions)
    forward = config.forward_flops(length)
    if "causal_lm" in outputs:
        share = causal_share if "masked_lm" in outputs else 1.0
        forward = forward + share * task.lm_head.forward_flops(length - 1)
        masked = (1 - share) * masked
    if "masked_lm" in outputs:
        forward = forward + task.lm_head.forward_flops(masked)
    if "span_boundary" in outputs:
        forward = forward + task.span_boundary.forward_flops(masked)
    if "next_sentence" in outputs or "sentence_order" in outputs:
        transform = 0 if task.transform is None else 2 * config.hidden_size**2
        forward = forward + transform + 4 * config.hidden_size
    return float(_FORWARD_AND_BACKWARD * (rows @ forward) / (rows @ length))
