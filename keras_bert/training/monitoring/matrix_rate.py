"""What this machine makes of a large matrix product: the rate that no model goes beyond."""

import functools
import time

import tensorflow as tf

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
