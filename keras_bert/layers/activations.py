"""The activations of a BERT's dense layers, by Hugging Face's names."""

from keras import ops

from keras_bert.layers.kernels import gelu as kernels


def gelu(x, training=None):
    """The Gaussian error linear unit by the error function, x Φ(x) (Hendrycks & Gimpel 2016)."""
    return kernels.gelu(x, training)


def gelu_tanh(x, training=None):
    """Its tanh form, 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), as google-research/bert has it."""
    return kernels.gelu_tanh(x, training)


def relu(x, training=None):
    """max(x, 0)."""
    return ops.relu(x)


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": relu,
}


def activation(name):
    """The function (x, training) -> x that `hidden_act` names.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in ACTIVATIONS:
        raise ValueError(
            "`hidden_act` must be one of " + ", ".join(ACTIVATIONS) + f". Received: {name!r}"
        )
    return ACTIVATIONS[name]
