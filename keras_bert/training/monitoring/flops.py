"""How many floating-point operations training takes by the model's own formula.

Counted are the matrix products, a multiplication and an addition apiece, as in Chowdhery et al.
2022 (PaLM), appendix B. What is not one (gelu, LayerNorm, softmax, dropout, the optimizer) is left
out, and so is padding: it is what the model needs, not what a program spends. The encoder and each
head count their own forward pass (`forward_flops`); training takes three times that, since the
backward pass has two products for each.
"""

import functools
import time

import numpy as np
import tensorflow as tf

from keras_bert.records.masking import most_predictions

_FORWARD_AND_BACKWARD = 3


def flops_a_token(task, *, examples_by_length, masked_rate, max_predictions, causal_fraction):
    """Training FLOPs per token, the mean over rows; None where the rows' lengths are not known.

    Args:
        task: a pre-training task.
        examples_by_length: (S + 1,), how many rows have so many tokens.
        masked_rate, max_predictions: how many tokens of a row are predicted (see `Masker`).
        causal_fraction: the fraction of rows that are read from left to right, where the task has
            both kinds.
    """
    config, outputs = task.config, task.output
    rows = np.asarray(examples_by_length, np.float64)
    length = np.arange(len(rows))
    if not rows @ length:
        return None
    masked = most_predictions(length, rate=masked_rate, max_predictions=max_predictions)
    forward = config.forward_flops(length)
    if "causal_lm" in outputs:
        fraction = causal_fraction if "masked_lm" in outputs else 1.0
        forward = forward + fraction * task.lm_head.forward_flops(length - 1)
        masked = (1 - fraction) * masked
    if "masked_lm" in outputs:
        forward = forward + task.lm_head.forward_flops(masked)
    if "span_boundary" in outputs:
        forward = forward + task.span_boundary.forward_flops(masked)
    if "next_sentence" in outputs or "sentence_order" in outputs:
        transform = 0 if task.transform is None else 2 * config.hidden_size**2
        forward = forward + transform + 4 * config.hidden_size
    return float(_FORWARD_AND_BACKWARD * (rows @ forward) / (rows @ length))


_SIZES = {"CPU": 1024, "GPU": 8192}
_TURNS = 5


@functools.cache
def matrix_rate(dtype):
    """Floating-point operations a second of one device (a GPU where there is one), measured.

    The best of some products of two square matrices of a `dtype` ("float32", "bfloat16"), large
    enough that more is no faster; once a process, in less than a tenth of a second at 200 GFLOP/s.
    """
    size = _SIZES["GPU" if tf.config.list_logical_devices("GPU") else "CPU"]
    matrix = tf.cast(tf.random.stateless_uniform((size, size), seed=[0, 0]), dtype)
    return 2 * size**3 / min(_seconds(matrix) for _ in range(_TURNS))


def _seconds(matrix):
    begun = time.perf_counter()
    product = tf.matmul(matrix, matrix)
    product[0, 0].numpy()  # when it is there, the work is done
    return time.perf_counter() - begun
