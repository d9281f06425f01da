"""An LSTM layer in one direction (Hochreiter and Schmidhuber 1997; projected, Sak et al. 2014)."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.dense import or_zeros
from keras_bert.layers.kernels import recurrence


@keras.saving.register_keras_serializable(package="keras_bert")
class Lstm(Layer):
    """A recurrent layer with a cell of U units, whose output may be projected to R < U.

    With x the input and r the output of each step, [a; b] a concatenation, and r and c zero before
    the first step:

        i, f, g, o = x[t] kernel + r[t-1] recurrent_kernel + bias
        c[t] = σ(i) tanh(g) + σ(f) c[t-1], clipped to ±cell_clip
        r[t] = σ(o) tanh(c[t]) projection, clipped to ±projection_clip

    It is `torch.nn.LSTM(D, U, proj_size=R)`, with one bias instead of two, and without projection
    `keras.layers.LSTM(U)`.

    Shapes: x (B, S, D), input_mask int (B, S) -> (B, S, R), R = U without a projection. Values at
    padding, which is at the end of a sequence, are undefined.

    Weights: `kernel` (D, 4 U), `recurrent_kernel` (R, 4 U), `bias` (4 U,) with i, f, g, o in this
    order, `projection` (U, R). New kernels are Glorot uniform, the bias of f is 1 (Jozefowicz et
    al. 2015) and the others are 0.

    Args:
        units: U.
        projection_size: R, or None.
        cell_clip: limit of the cell's absolute values, or None.
        projection_clip: limit of the projected output's absolute values, or None.
        backward: read each sequence from its last token to its first; the output at a token is
            that of its own step. This needs `input_mask`.
    """

    def __init__(self, *, units, projection_size, cell_clip, projection_clip, backward, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.output_size = units if projection_size is None else projection_size
        self.projection_size = projection_size
        self.clips = {"cell_clip": cell_clip, "projection_clip": projection_clip}
        self.backward = backward

    def build(self, x_shape, input_mask_shape=None):
        def kernel(rows, name, initializer):
            """One kernel per gate, side by side.

            Drawn as one matrix its fan-out would be four times as large, and the smaller weights
            leave two layers at the unigram entropy for hundreds of steps.
            """

            def draw_gates(shape, dtype=None):
                drawn = [or_zeros(initializer()) for _ in range(4)]
                parts = [draw((rows, self.units), dtype="float32") for draw in drawn]
                return ops.cast(ops.concatenate(parts, axis=1), dtype)  # no QR in bfloat16

            return self.add_weight(shape=(rows, 4 * self.units), initializer=draw_gates, name=name)

        def forget_gate_of_one(shape, dtype=None):
            parts = ops.array([0.0, 1.0, 0.0, 0.0], dtype=dtype)
            return ops.repeat(parts, self.units)

        self.kernel = kernel(x_shape[-1], "kernel", keras.initializers.GlorotUniform)
        self.recurrent_kernel = kernel(
            self.output_size, "recurrent_kernel", keras.initializers.Orthogonal
        )
        self.bias = self.add_weight(
            shape=(4 * self.units,), initializer=forget_gate_of_one, name="bias"
        )
        self.projection = None
        if self.projection_size is not None:
            self.projection = self.add_weight(
                shape=(self.units, self.projection_size),
                initializer="glorot_uniform",
                name="projection",
            )
        self.built = True

    def call(
        self,
        x,
        input_mask=None,
        *,
        state=None,
        recurrent_kernel=None,
        return_state=False,
        training=None,
    ):
        """Runs over whole sequences.

        Args:
            x: (B, S, D).
            input_mask: (B, S), 1 at tokens and 0 at padding; read only by a backward layer.
            state: r (B, R) and c (B, U) before the first step; None is zero.
            recurrent_kernel: (R, 4 U), in place of the layer's own, such as one with some weights
                dropped (Merity et al. 2017).
            return_state: whether to return also the state after the last step, that of the last
                column of `x`.

        Returns:
            (B, S, R), or (that, (r (B, R), c (B, U))).
        """
        if self.backward and input_mask is None:
            raise ValueError("A backward LSTM needs `input_mask`, to begin at the last token.")
        x = ops.transpose(x, (1, 0, 2))  # (S, B, D)
        if self.backward:
            lengths = ops.sum(ops.cast(input_mask, "int32"), axis=1)  # (B,)
            x = recurrence.reversed_sequences(x, lengths)
        gates = ops.matmul(x, self.kernel) + self.bias  # (S, B, 4 U)
        if state is None:
            batch = ops.shape(x)[1]
            sizes = (self.output_size, self.units)
            state = [ops.zeros((batch, size), dtype=gates.dtype) for size in sizes]
        outputs, state = recurrence.lstm(
            gates,
            self.recurrent_kernel if recurrent_kernel is None else recurrent_kernel,
            self.projection,
            state,
            training=training,
            **self.clips,
        )  # (S, B, R)
        if self.backward:
            outputs = recurrence.reversed_sequences(outputs, lengths)
        outputs = ops.transpose(outputs, (1, 0, 2))
        return (outputs, state) if return_state else outputs

    def compute_output_spec(self, x, input_mask=None, *, return_state=False, **options):
        # Otherwise Keras would trace the recurrence for it.
        batch, length, _ = x.shape
        dtype = self.compute_dtype
        outputs = keras.KerasTensor((batch, length, self.output_size), dtype=dtype)
        if not return_state:
            return outputs
        sizes = (self.output_size, self.units)
        return outputs, tuple(keras.KerasTensor((batch, size), dtype=dtype) for size in sizes)
