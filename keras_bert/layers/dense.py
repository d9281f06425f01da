"""How every dense layer of a BERT is made, and the activations by name."""

import math

import keras
from keras import ops


@ops.custom_gradient
def gelu(x):
    """The Gaussian error linear unit by the error function, x Φ(x) (Hendrycks & Gimpel 2016).

    With its gradient, Φ(x) + x φ(x), written out: the forward pass's Φ is kept, which a derived
    gradient computes anew on a backend that does not fuse.
    """
    below = 0.5 + 0.5 * ops.erf(x * math.sqrt(0.5))  # Φ(x)

    def gradient(upstream):
        density = ops.exp(ops.square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))  # φ(x)
        return upstream * (below + x * density)

    return x * below, gradient


def gelu_tanh(x):
    """Its tanh form, 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), as google-research/bert has it."""
    return ops.gelu(x, approximate=True)


# By Hugging Face's names.
ACTIVATIONS = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": ops.relu,
}


def activation(name):
    """The function that `hidden_act` names.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in ACTIVATIONS:
        raise ValueError(
            "`hidden_act` must be one of " + ", ".join(ACTIVATIONS) + f". Received: {name!r}"
        )
    return ACTIVATIONS[name]


def initializer(standard_deviation):
    """A new truncated normal (Keras's are cut at two deviations, as BERT's are)."""
    return keras.initializers.TruncatedNormal(stddev=standard_deviation)


def dense(units, *, initializer_range, name, dtype):
    """A dense layer over the last axis: kernel (D, units), bias (units,)."""
    return keras.layers.Dense(
        units, kernel_initializer=initializer(initializer_range), name=name, dtype=dtype
    )
