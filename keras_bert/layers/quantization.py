"""Weights in whole numbers: how a model gets them, and what its layers' configs say of them."""

import contextlib
import gc
import warnings

import keras


def quantize_weights(model):
    """Stores each `Dense` and `Embedding` of a model in int8, with float32 scales; in place.

    They compute in float32: TensorFlow multiplies whole numbers more slowly than these.
    """
    with warnings.catch_warnings(), _only_new_garbage():
        # Of each layer without a matrix: there is nothing in it to quantize.
        warnings.filterwarnings("ignore", message=".*does not have a `quantize`")
        model.quantize(config=keras.quantizers.Int8QuantizationConfig(activation_quantizer=None))


@contextlib.contextmanager
def _only_new_garbage():
    """Keras collects garbage for each layer that it quantizes: half a second to look through all.

    What was there before is out of the collector's sight meanwhile. What somebody else has put
    there stays there.
    """
    was_frozen = gc.get_freeze_count() > 0
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


def with_quantized_parts(policy, layer):
    """The dtype policy that makes `layer` anew as it is now.

    `quantize` (of a layer or a model) gives each `Dense` and `Embedding` a policy of its own; a
    layer that makes its parts with its own policy needs the map of all of them.

    Args:
        policy: the one that `layer` was made with.
        layer: a built layer or model.

    Returns:
        `policy` where no part is quantized, otherwise a `DTypePolicyMap` by the parts' paths.
    """
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return policy  # parts made with it enter themselves
    parts = layer._flatten_layers(include_self=False)
    quantized = {part.path: part.dtype_policy for part in parts if part.quantization_mode}
    if not quantized:
        return policy
    return keras.dtype_policies.DTypePolicyMap(policy.name, quantized)
