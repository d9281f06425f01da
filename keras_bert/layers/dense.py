"""Dense layers: how they are made, activations by Hugging Face's names, int8 weights."""

import contextlib
import gc
import warnings

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.layers.kernels.elementwise import gelu, gelu_tanh


def initializer(standard_deviation):
    """A new truncated normal (Keras's are cut at two deviations, as BERT's are)."""
    return keras.initializers.TruncatedNormal(stddev=standard_deviation)


def dense(units, *, initializer_range, name, dtype, use_bias=True):
    """A dense layer over the last axis: kernel (D, units), bias (units,)."""
    return keras.layers.Dense(
        units,
        use_bias=use_bias,
        kernel_initializer=initializer(initializer_range),
        name=name,
        dtype=dtype,
    )


def logits_layer(units, *, initializer_range, name, dtype, use_bias=True):
    """A dense layer that gives logits: as `dense`, but in float32 where `dtype` is a shorter type.

    A bfloat16 has 8 bits: logits of about 10 would be rounded to steps of 1/16, and probabilities
    by up to 3 %.
    """
    policy = keras.dtype_policies.get(dtype)
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        policy = keras.dtype_policies.DTypePolicyMap(logits_dtype(policy), dict(policy))
    elif logits_dtype(policy) != policy.compute_dtype:
        policy = logits_dtype(policy)
    return dense(
        units, initializer_range=initializer_range, name=name, dtype=policy, use_bias=use_bias
    )


def logits_dtype(policy):
    """The type of logits under a policy: the one it computes in, or float32 if that is shorter."""
    return keras.backend.result_type(policy.compute_dtype, "float32")


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
    """The function (x, training) -> x that `hidden_act` names; ValueError for another name."""
    if name not in ACTIVATIONS:
        raise ValueError(
            f"`hidden_act` must be one of {', '.join(ACTIVATIONS)}. Received: {name!r}."
        )
    return ACTIVATIONS[name]


def quantize_weights(model):
    """Stores each `Dense` and `Embedding` of a model in int8, with float32 scales; in place.

    They compute in float32, in which TensorFlow multiplies faster than in integers.
    """
    with warnings.catch_warnings(), _only_new_garbage():
        # Of each layer without a matrix, in which there is nothing to quantize.
        warnings.filterwarnings("ignore", message=".*does not have a `quantize`")
        model.quantize(config=keras.quantizers.Int8QuantizationConfig(activation_quantizer=None))


@contextlib.contextmanager
def _only_new_garbage():
    """Keras collects garbage for each layer that it quantizes: half a second for all objects.

    Older objects are frozen meanwhile; those that somebody else has frozen stay frozen.
    """
    was_frozen = gc.get_freeze_count() > 0
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


def check_float_weights(model):
    """Raises InputError for a model with layers that Keras's `quantize` has changed.

    A model folder holds float weights, and Keras does not load its own file of such a task.
    """
    if any(layer.quantization_mode for layer in model._flatten_layers()):
        raise InputError(
            "The model was quantized with `quantize`, and a saved model holds float weights. Save "
            "it before, and use `keras-bert export --precision int8` for a SavedModel in int8."
        )


def with_quantized_parts(policy, *layers):
    """The dtype policy that makes layers or models, built with `policy`, again as they are now.

    `quantize` gives each `Dense` and `Embedding` a policy of its own; a layer that makes its parts
    with its own policy needs the map of all of them.

    Returns:
        `policy` where no part is quantized, otherwise a `DTypePolicyMap` by the parts' paths.
    """
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return policy  # parts made with it add themselves
    parts = [part for layer in layers for part in layer._flatten_layers(include_self=False)]
    quantized = {part.path: part.dtype_policy for part in parts if part.quantization_mode}
    if not quantized:
        return policy
    return keras.dtype_policies.DTypePolicyMap(policy.name, quantized)
