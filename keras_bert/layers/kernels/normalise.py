"""LayerNorm's formula (Ba et al. 2016) with its gradient written out."""

from keras import ops

from keras_bert.layers.kernels.program import compiled_by_xla


def normalise(x, gamma, beta, *, epsilon):
    """γ (x - μ) / √(σ² + ε) + β, with mean μ and variance σ² over the last axis.

    Where a backend does not fuse element-wise operations, the derived gradient goes over the tensor
    about twice as often as it has to.

    Shapes: x (…, D), gamma (D,), beta (D,) -> (…, D), of x's type.
    """
    return _with_gradient(epsilon)(x, gamma, beta)


def _with_gradient(epsilon):
    @ops.custom_gradient
    def normalise(x, gamma, beta):
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        inverse = ops.rsqrt(variance + epsilon)
        unit = centred * inverse  # (…, D), mean 0 and variance 1

        def gradient(upstream):
            d_gamma, d_beta = _column_sums(upstream * unit), _column_sums(upstream)
            d_unit = upstream * gamma
            along_mean = ops.mean(d_unit, axis=-1, keepdims=True)
            along_unit = ops.mean(d_unit * unit, axis=-1, keepdims=True)
            d_x = (d_unit - along_mean - unit * along_unit) * inverse
            return d_x, d_gamma, d_beta

        return unit * gamma + beta, gradient

    return normalise


def _column_sums(x):
    """(…, D) -> (D,)."""
    flat = ops.reshape(x, (-1, x.shape[-1]))
    if compiled_by_xla():
        # As a product it made the time of a compiled step grow faster than the number of blocks.
        return ops.sum(flat, axis=0)
    # As a matrix product: TensorFlow's own sum over rows is several times slower.
    return ops.matmul(ops.ones((1, ops.shape(flat)[0]), dtype=x.dtype), flat)[0]
