"""gelu, dropout and LayerNorm, with gradients written out.

A derived gradient passes over the tensor about twice as often as necessary if a backend does not
fuse element-wise operations. For a GPU or TPU, gelu and LayerNorm keep their input alone for the
gradient, in its own type, and compute the rest again: memory is what takes time there.
"""

import math

import keras
from keras import ops

from keras_bert.layers.kernels.private import custom_gradient
from keras_bert.layers.kernels.program import compiled_by_xla, is_for_accelerator, is_for_litert

# gelu (Hendrycks and Gimpel 2016). Outside training it has the form that TensorFlow's graph
# optimiser fuses with the product and the bias before it on a CPU, one of several forms (the tests
# check it). In training the value before the activation is needed again, and nothing is fused.

_CUBIC = 0.044715  # of the tanh form
_TANH_SCALE = math.sqrt(2 / math.pi)


def gelu(x, training=None):
    """x Φ(x), with Φ(x) = (1 + erf(x / √2)) / 2."""
    if training:
        return _from_its_input(_gelu_with_gradient, x)
    erf = _erf_by_exp if is_for_litert() else ops.erf
    return x * (0.5 * (1 + erf(x * math.sqrt(0.5))))


def gelu_tanh(x, training=None):
    """x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2."""
    if training:
        return _from_its_input(_gelu_tanh_with_gradient, x)
    return (0.5 * x) * (1 + ops.tanh(_TANH_SCALE * (x + x * (_CUBIC * ops.square(x)))))


def _erf_by_exp(x):
    """The error function to 2e-7 (Abramowitz & Stegun 1964, 7.1.26), for LiteRT, which has none."""
    t = 1 / (1 + 0.3275911 * ops.abs(x))
    factors = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    total = 0.0
    for factor in factors:
        total = (total + factor) * t
    return ops.sign(x) * (1 - total * ops.exp(-ops.square(x)))


def _from_its_input(activation, x):
    """An activation in training: the functions below return it with its gradient.

    For a GPU or TPU it is computed in float32 at least, a second time for the gradient.
    """
    if not is_for_accelerator():
        return custom_gradient(activation)(x)
    dtype = keras.backend.result_type(x.dtype, "float32")

    @custom_gradient
    def recomputed(x):
        def gradient(upstream):
            # The barrier keeps XLA from computing both at once, and storing what lies between.
            again, upstream = _barrier(x, upstream)
            _, gradient = activation(ops.cast(again, dtype))
            return ops.cast(gradient(ops.cast(upstream, dtype)), x.dtype)

        y, _ = activation(ops.cast(x, dtype))
        return ops.cast(y, x.dtype), gradient

    return recomputed(x)


def _barrier(*tensors):
    """The tensors, for computations that XLA does not merge with others of the same; on JAX."""
    if keras.backend.backend() != "jax":
        return tensors
    import jax

    return jax.lax.optimization_barrier(tensors)


def _gelu_with_gradient(x):
    below = 0.5 + 0.5 * ops.erf(x * math.sqrt(0.5))  # Φ(x)

    def gradient(upstream):
        density = ops.exp(ops.square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))  # φ(x)
        return upstream * (below + x * density)

    return x * below, gradient


def _gelu_tanh_with_gradient(x):
    """x σ(2u), since 0.5 (1 + tanh u) = σ(2u), with u = √(2/π) (x + 0.044715 x³)."""
    squared = ops.square(x)
    gate = ops.sigmoid(x * (2 * _TANH_SCALE + 2 * _TANH_SCALE * _CUBIC * squared))

    def gradient(upstream):
        slope = 2 * _TANH_SCALE + 6 * _TANH_SCALE * _CUBIC * squared  # of 2u
        return upstream * (gate + x * slope * (gate - ops.square(gate)))

    return x * gate, gradient


# Dropout (Srivastava et al. 2014).

_STEPS = 1 << 16
_PHILOX = 1  # as TensorFlow's operations number generators


def dropout(x, *, rate, seed_generator):
    """x / (1 - p) where a uniform number from [0, 1) is at least the rate p, and 0 elsewhere.

    Drawing a 32-bit number for every element is most of the cost of Keras's dropout on a CPU; two
    neighbours share one here. With 16 bits the rate is a multiple of 1/65536; the scale is that of
    the rate that is used, so that the expectation is exact.

    Shapes: any -> the same, of x's type. `seed_generator` is a `keras.random.SeedGenerator`.
    """
    dropped = round(rate * _STEPS)
    keep = _uniform_uint16(x, seed_generator) >= ops.cast(dropped, "uint16")
    scale = _STEPS / (_STEPS - dropped)

    def drop(x):
        return ops.where(keep, x * ops.cast(scale, x.dtype), ops.zeros((), x.dtype))

    if keras.backend.backend() == "jax":
        return drop(x)  # whose gradient keeps `keep` alone
    return custom_gradient(lambda x: (drop(x), drop))(x)  # as this one does


def _uniform_uint16(like, seed_generator):
    """Uniform numbers from 0 to 65535, in the shape of `like`."""
    if keras.backend.backend() == "tensorflow":
        return _uniform_uint16_on_tensorflow(like, seed_generator)
    shape = ops.shape(like)
    size = math.prod(shape)
    if keras.backend.backend() == "jax":
        import jax

        # `randint` would draw twice as many numbers, for any range without a bias.
        key = seed_generator.next()
        draws = jax.random.bits(key, ((size + 1) // 2, 1), "uint32")
    else:
        draws = keras.random.randint(
            ((size + 1) // 2, 1), -(2**31), 2**31 - 1, dtype="int32", seed=seed_generator
        )
    return ops.reshape(ops.reshape(ops.view(draws, dtype="uint16"), (-1,))[:size], shape)


def _uniform_uint16_on_tensorflow(like, seed_generator):
    """In few operations: a layer has three dropouts, and each operation takes time to trace."""
    import tensorflow as tf

    size = tf.size(like)
    shape = [(size + 1) // 2]
    state = seed_generator.next()  # (2,): seed, and the number of draws before
    if tf.config.list_logical_devices("TPU"):
        seed = tf.cast(state % (2**31 - 1), tf.int32)
        draws = tf.random.stateless_uniform(shape, seed, None, None, tf.int32)
    else:
        # The generator that TensorFlow chooses is Philox on a CPU, but for XLA it is one that takes
        # a hundred times as long there.
        key = tf.bitcast(tf.cast(state, tf.uint32), tf.uint64)[None]
        draws = tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=shape, key=key, counter=tf.zeros(2, tf.uint64), alg=_PHILOX, dtype=tf.int32
        )
    bits = tf.reshape(tf.bitcast(draws, tf.uint16), [-1])
    return tf.reshape(bits[:size], tf.shape(like))


# LayerNorm (Ba et al. 2016).


def normalise(x, gamma, beta, *, epsilon):
    """γ (x - μ) / √(σ² + ε) + β, with mean μ and variance σ² over the last axis.

    Shapes: x (…, D), gamma (D,), beta (D,) -> (…, D), of gamma's type, float32 at least.
    """

    @custom_gradient
    def with_gradient(x, gamma, beta):
        unit, inverse = _standardized(x, epsilon=epsilon)  # of mean 0 and variance 1

        def gradient(upstream):
            return _gradients_of_norm(upstream, unit, inverse, gamma)

        return unit * gamma + beta, gradient

    @custom_gradient
    def recomputed(x, gamma, beta):
        def gradient(upstream):
            again, upstream = _barrier(x, upstream)
            unit, inverse = _standardized(ops.cast(again, gamma.dtype), epsilon=epsilon)
            d_x, d_gamma, d_beta = _gradients_of_norm(upstream, unit, inverse, gamma)
            return ops.cast(d_x, x.dtype), d_gamma, d_beta

        unit, _ = _standardized(ops.cast(x, gamma.dtype), epsilon=epsilon)
        return unit * gamma + beta, gradient

    if is_for_accelerator():
        return recomputed(x, gamma, beta)
    return with_gradient(ops.cast(x, gamma.dtype), gamma, beta)


def _standardized(x, *, epsilon):
    """(x - μ) / √(σ² + ε) (…, D), and 1 / √(σ² + ε) (…, 1)."""
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
    inverse = ops.rsqrt(variance + epsilon)
    return centred * inverse, inverse


def _gradients_of_norm(upstream, unit, inverse, gamma):
    """Returns the gradients of x (…, D), γ (D,), β (D,), from that of the norm's output (…, D)."""
    d_gamma, d_beta = _column_sums(upstream * unit), _column_sums(upstream)
    d_unit = upstream * gamma
    along_mean = ops.mean(d_unit, axis=-1, keepdims=True)
    along_unit = ops.mean(d_unit * unit, axis=-1, keepdims=True)
    d_x = (d_unit - along_mean - unit * along_unit) * inverse
    return d_x, d_gamma, d_beta


def _column_sums(x):
    """(…, D) -> (D,)."""
    flat = ops.reshape(x, (-1, x.shape[-1]))
    if compiled_by_xla():
        # As a product it made the time of a compiled step grow faster than the number of layers.
        return ops.sum(flat, axis=0)
    # As a matrix product: TensorFlow's own sum over rows is several times slower.
    return ops.matmul(ops.ones((1, ops.shape(flat)[0]), dtype=x.dtype), flat)[0]
