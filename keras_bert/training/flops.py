"""Floating-point operations of training by the model's own formula, and of the device.

The formula counts a multiplication and an addition for each product of the matrix multiplications,
as Chowdhery et al. 2022 (PaLM), appendix B. It leaves out everything else (gelu, LayerNorm,
softmax, dropout, the optimizer) and padding: it is what the model needs, not what a program spends.
"""

import functools
import time

import numpy as np
import tensorflow as tf

from keras_bert.records.masking import most_predictions

# The outputs whose heads are counted.
_PREDICTED = {"causal_lm", "masked_lm"}
_FORWARD_AND_BACKWARD = 3  # the backward pass has two products for each one of the forward pass


def flops_per_token(task, *, examples_by_length, masked_rate, max_predictions, causal_fraction):
    """Training FLOPs per token, the mean over examples.

    None where their lengths are not known, and for static vectors, which look up more than they
    multiply.

    Args:
        task: a pre-training task.
        examples_by_length: (S + 1,), the number of examples of each length in tokens.
        masked_rate, max_predictions: the tokens of an example that are predicted (see `Masker`).
        causal_fraction: the fraction of examples that are read from left to right, where the task
            has both kinds.
    """
    config, outputs = task.config, task.output
    counts = np.asarray(examples_by_length, np.float64)
    length = np.arange(len(counts))
    if not counts @ length or not (outputs.keys() & _PREDICTED):
        return None
    masked = most_predictions(length, rate=masked_rate, max_predictions=max_predictions)
    forward = config.forward_flops(length)
    if "causal_lm" in outputs:
        fraction = causal_fraction if "masked_lm" in outputs else 1.0
        forward = forward + fraction * task.lm_head.forward_flops(length - 1)
        masked = (1 - fraction) * masked
    if "forward_lm" in outputs:
        forward = forward + 2 * task.lm_head.forward_flops(length - 1)
    if "masked_lm" in outputs:
        forward = forward + task.lm_head.forward_flops(masked)
    if "span_boundary" in outputs:
        forward = forward + task.span_boundary.forward_flops(masked)
    if "next_sentence" in outputs or "sentence_order" in outputs:
        transform = 0 if task.transform is None else 2 * config.hidden_size**2
        forward = forward + transform + 4 * config.hidden_size
    return float(_FORWARD_AND_BACKWARD * (counts @ forward) / (counts @ length))


_SIZES = {"CPU": 1024, "GPU": 8192}  # larger matrices are no faster
_TRIALS = 5


@functools.cache
def matrix_rate(dtype):
    """FLOP/s of one device (a GPU where there is one) in matrix products, measured once.

    The best of some products of two large square matrices of a `dtype` ("float32", "bfloat16"), in
    less than a tenth of a second at 200 GFLOP/s.
    """
    size = _SIZES["GPU" if tf.config.list_logical_devices("GPU") else "CPU"]
    matrix = tf.cast(tf.random.stateless_uniform((size, size), seed=[0, 0]), dtype)
    return 2 * size**3 / min(_seconds(matrix) for _ in range(_TRIALS))


def _seconds(matrix):
    begun = time.perf_counter()
    product = tf.matmul(matrix, matrix)
    product[0, 0].numpy()  # waits until the product is computed
    return time.perf_counter() - begun
