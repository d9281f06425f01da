"""Dense layers and LoRA, activations by Hugging Face's names, int8 weights."""

import contextlib
import contextvars
import gc
import warnings

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.layers.kernels.elementwise import gelu, gelu_tanh

_DRAWS_WEIGHTS = contextvars.ContextVar("draws_weights", default=True)


@contextlib.contextmanager
def without_random_weights():
    """Within it new layers have zeros where they would have random weights, for a file's weights.

    Drawing the weights of a large model takes longer than reading them.
    """
    token = _DRAWS_WEIGHTS.set(False)
    try:
        yield
    finally:
        _DRAWS_WEIGHTS.reset(token)


def or_zeros(initializer):
    """An initializer, which has its seed, or zeros in its place `without_random_weights`."""
    return initializer if _DRAWS_WEIGHTS.get() else keras.initializers.Zeros()


def initializer(standard_deviation):
    """A new truncated normal (Keras's are cut at two deviations, as BERT's are)."""
    return or_zeros(keras.initializers.TruncatedNormal(stddev=standard_deviation))


@keras.saving.register_keras_serializable(package="keras_bert")
class Dense(keras.layers.Dense):
    """Keras's dense layer, x W + b, in which LoRA is two thin products (Hu et al. 2021).

    With LoRA it is x W + b + s (x A) B, of which A and B alone are trained. Keras computes
    x (W + s A B), whose gradient takes as long as that of W.

    The kernel W (D, U) may be n kernels side by side, such as those of query, key and value. Then
    each of the m parts that are adapted has an A and a B of its own.

    Shapes: x (…, D) -> (…, U). Weights of LoRA with the rank r: `lora_kernel_a` (D, m r) and
    `lora_kernel_b` (r, m U / n), those of the parts side by side.
    """

    def enable_lora(self, rank, lora_alpha=None, *, parts=((0, 1),)):
        """Holds the kernel, and adds A and B, whose product is zero at first.

        Args:
            rank: r.
            lora_alpha: r s; None is r.
            parts: (k, n) of each adapted part, the k-th of n, from 0.
        """
        if self.lora_enabled or self.quantization_mode:
            raise ValueError("LoRA needs a dense layer without LoRA, and not quantized.")
        inputs, units = self._kernel.shape
        # Uniform within 1 / √D, as in `peft`.
        uniform = keras.initializers.VarianceScaling(1 / 3, mode="fan_in", distribution="uniform")
        self._tracker.unlock()
        self.lora_kernel_a = self.add_weight(
            name="lora_kernel_a", shape=(inputs, len(parts) * rank), initializer=uniform
        )
        self.lora_kernel_b = self.add_weight(
            name="lora_kernel_b",
            shape=(rank, len(parts) * units // parts[0][1]),
            initializer="zeros",
        )
        self._tracker.lock()
        self._kernel.trainable = False
        self._lora_parts = tuple(parts)
        self.lora_enabled, self.lora_rank = True, rank
        self.lora_alpha = rank if lora_alpha is None else lora_alpha

    def call(self, inputs, training=None):
        if not self.lora_enabled:
            return super().call(inputs, training=training)
        x = ops.matmul(inputs, self._kernel)
        x = x + ops.matmul(ops.matmul(inputs, self.lora_kernel_a), self._scaled_b())
        return self.activation(x if self.bias is None else x + self.bias)

    @property
    def kernel(self):
        """W, or with LoRA the merged W + s A B, a tensor."""
        if not self.lora_enabled:
            return super().kernel
        return self._kernel + ops.matmul(self.lora_kernel_a, self._scaled_b())

    def _scaled_b(self):
        """s B, each part in its own rows and its own columns of the kernel: (m r, U)."""
        blocks = ops.split(self.lora_kernel_b, len(self._lora_parts), axis=-1)  # (r, U / n) each
        rows = [
            ops.pad(block, [[0, 0], [k * block.shape[-1], (n - k - 1) * block.shape[-1]]])
            for (k, n), block in zip(self._lora_parts, blocks, strict=True)
        ]
        return (self.lora_alpha / self.lora_rank) * ops.concatenate(rows, axis=0)

    def quantize(self, mode=None, type_check=True, config=None):
        if self.lora_enabled:
            raise ValueError("A layer with LoRA is not quantized. Merge it first.")
        super().quantize(mode, type_check=False, config=config)  # Keras's is for no subclass


def dense(units, *, initializer_range, name, dtype, use_bias=True):
    """A dense layer over the last axis: kernel (D, units), bias (units,)."""
    return Dense(
        units,
        use_bias=use_bias,
        kernel_initializer=initializer(initializer_range),
        name=name,
        dtype=dtype,
    )


def logits_layer(units, *, initializer_range, name, dtype, use_bias=True):
    """A dense layer that gives logits: as `dense`, but in float32 if `dtype` is a shorter type.

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
    "silu": lambda x, training=None: ops.silu(x),
    "tanh": lambda x, training=None: ops.tanh(x),
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
        `policy` if no part is quantized, otherwise a `DTypePolicyMap` by the parts' paths.
    """
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return policy  # parts made with it add themselves
    parts = [part for layer in layers for part in layer._flatten_layers(include_self=False)]
    quantized = {part.path: part.dtype_policy for part in parts if part.quantization_mode}
    if not quantized:
        return policy
    return keras.dtype_policies.DTypePolicyMap(policy.name, quantized)
