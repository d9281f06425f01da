"""The operations that no training step goes without, alone: what a step could be at the least.

The products of the dense layers, forward and for the gradients of rows and of kernels; with gelu
and its gradient; and with AdamW, clipping and decay, over all weights. Attention, LayerNorm,
dropout, embeddings and losses are left out, so that no program of TensorFlow's operations is as
fast.
"""

RATE, DECAY, NORM = 5e-5, 0.01, 1.0


class Kernels:
    """The kernels of a step, on random numbers of its shapes.

    Args:
        products: (rows, into, out) of each dense layer.
        weights: the variables that are trained.
        gelus: (rows, width) of what goes through gelu.
        dtype: that products are computed in.
    """

    def __init__(self, products, weights, *, gelus, dtype="float32"):
        import keras

        from keras_bert.optimizers.update_rules import AdamW

        self._products = [
            [_random(*shape, dtype=dtype) for shape in ((rows, into), (into, out), (rows, out))]
            for rows, into, out in products
        ]
        self._wide = [_random(*shape, dtype=dtype) for shape in gelus]
        self._weights = [keras.Variable(weight) for weight in weights]
        self._gradients = [_random(*weight.shape) for weight in self._weights]
        self._optimizer = AdamW(RATE, weight_decay=DECAY, global_clipnorm=NORM)
        self._optimizer.build(self._weights)

    def step(self, *, gelu=False, adamw=False):
        import tensorflow as tf

        from keras_bert.layers.dense import activation

        gelu_of = activation("gelu")

        @tf.function(autograph=False)
        def kernels():
            made = []
            for x, kernel, upstream in self._products:
                made.append(tf.matmul(x, kernel))
                made.append(tf.matmul(upstream, kernel, transpose_b=True))
                made.append(tf.matmul(x, upstream, transpose_a=True))
            for x in self._wide if gelu else ():
                with tf.GradientTape() as tape:
                    x = tf.convert_to_tensor(x)
                    tape.watch(x)
                    y = gelu_of(x, training=True)
                made += [y, tape.gradient(y, x)]
            if adamw:
                gradients = [tf.convert_to_tensor(g) for g in self._gradients]
                self._optimizer.apply(gradients, self._weights)
            return made

        return kernels


def _random(*shape, dtype="float32"):
    import tensorflow as tf

    return tf.Variable(tf.cast(tf.random.normal(shape, stddev=0.1), dtype))
