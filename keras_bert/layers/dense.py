"""How every dense layer is made, and the activations, by Hugging Face's names."""

import keras
from keras import ops

from keras_bert.layers.kernels import gelu as kernels


def initializer(standard_deviation):
    """A new truncated normal (Keras's are cut at two deviations, as BERT's are)."""
    return keras.initializers.TruncatedNormal(stddev=standard_deviation)


def dense(units, *, initializer_range, name, dtype):
    """A dense layer over the last axis: kernel (D, units), bias (units,)."""
    return keras.layers.Dense(
        units, kernel_initializer=initializer(initializer_range), name=name, dtype=dtype
    )


def logits_layer(units, *, initializer_range, name, dtype):
    """A dense layer that gives logits: as `dense`, but in float32 where `dtype` is a shorter type.

    A bfloat16 has 8 bits: logits of about 10 would be rounded to steps of 1/16, and probabilities
    by up to 3 %.
    """
    policy = keras.dtype_policies.get(dtype)
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        policy = keras.dtype_policies.DTypePolicyMap(logits_dtype(policy), dict(policy))
    elif logits_dtype(policy) != policy.compute_dtype:
        policy = logits_dtype(policy)
    return dense(units, initializer_range=initializer_range, name=name, dtype=policy)


def logits_dtype(policy):
    """The type of logits under a policy: the one it computes in, or float32 if that is shorter."""
    return keras.backend.result_type(policy.compute_dtype, "float32")


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
