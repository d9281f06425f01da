"""What a layer of several parts says in its config about those that were quantized."""

import keras


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
