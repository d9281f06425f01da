"""The two forms of gelu (Hendrycks & Gimpel 2016).

Outside training they are written in the form that TensorFlow's graph optimiser knows: on a CPU it
joins product, bias and gelu into one operation, from one of several forms of the formula only (the
tests ask it). In training the value before the activation is wanted again, nothing can be joined,
and the gradient is written out instead: the forward pass's part is kept, which a derived gradient
computes anew on a backend that does not fuse.
"""

import math

from keras import ops

from keras_bert.layers.kernels.program import is_for_litert

_CUBIC = 0.044715  # of the tanh form
_TANH_SCALE = math.sqrt(2 / math.pi)


def gelu(x, training=None):
    """x Φ(x), with Φ(x) = (1 + erf(x / √2)) / 2."""
    if training:
        return _gelu_with_gradient(x)
    erf = _erf_by_exp if is_for_litert() else ops.erf
    return x * (0.5 * (1 + erf(x * math.sqrt(0.5))))


def gelu_tanh(x, training=None):
    """x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2."""
    if training:
        return _gelu_tanh_with_gradient(x)
    return (0.5 * x) * (1 + ops.tanh(_TANH_SCALE * (x + x * (_CUBIC * ops.square(x)))))


def _erf_by_exp(x):
    """The error function to 2e-7 (Abramowitz & Stegun 1964, 7.1.26), for LiteRT, which has none."""
    t = 1 / (1 + 0.3275911 * ops.abs(x))
    factors = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    total = 0.0
    for factor in factors:
        total = (total + factor) * t
    return ops.sign(x) * (1 - total * ops.exp(-ops.square(x)))


@ops.custom_gradient
def _gelu_with_gradient(x):
    below = 0.5 + 0.5 * ops.erf(x * math.sqrt(0.5))  # Φ(x)

    def gradient(upstream):
        density = ops.exp(ops.square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))  # φ(x)
        return upstream * (below + x * density)

    return x * below, gradient


@ops.custom_gradient
def _gelu_tanh_with_gradient(x):
    """x σ(2u), since 0.5 (1 + tanh u) = σ(2u), with u = √(2/π) (x + 0.044715 x³)."""
    squared = ops.square(x)
    gate = ops.sigmoid(x * (2 * _TANH_SCALE + 2 * _TANH_SCALE * _CUBIC * squared))

    def gradient(upstream):
        slope = 2 * _TANH_SCALE + 6 * _TANH_SCALE * _CUBIC * squared  # of 2u
        return upstream * (gate + x * slope * (gate - ops.square(gate)))

    return x * gate, gradient
