"""A word's vector from its characters (Kim et al. 2015), with highways (Srivastava et al. 2015)."""

import keras
from keras import ops

from keras_bert.layers import Layer
from keras_bert.layers.dense import Dense
from keras_bert.layers.embeddings import embedded


@keras.saving.register_keras_serializable(package="keras_bert")
class CharacterCnn(Layer):
    """Embedded characters, filters with their maximum over the word, highways, and a projection.

    Shapes: characters int (N, C), C characters of each of N words -> (N, P). F filters in all.

    Args:
        num_characters: rows of the embedding.
        embedding_size: size of a character's embedding.
        filters: (width, number) of each kind of filter; widths are at most C.
        activation: "relu" or "tanh", after the maximum.
        num_highway_layers: number of `Highway`s over the filters.
        output_size: P.
    """

    def __init__(
        self,
        *,
        num_characters,
        embedding_size,
        filters,
        activation,
        num_highway_layers,
        output_size,
        **kwargs,
    ):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.embedding = keras.layers.Embedding(
            num_characters,
            embedding_size,
            embeddings_initializer=keras.initializers.RandomUniform(-1.0, 1.0),
            name="embedding",
            dtype=policy,
        )
        self.convolutions = [
            keras.layers.Conv1D(number, width, name=f"convolution_{i}", dtype=policy)
            for i, (width, number) in enumerate(filters)
        ]
        self.activation = {"relu": ops.relu, "tanh": ops.tanh}[activation]
        self.highways = [
            Highway(name=f"highway_{i}", dtype=policy) for i in range(num_highway_layers)
        ]
        self.projection = Dense(output_size, name="projection", dtype=policy)
        self.num_filters = sum(number for _, number in filters)

    def build(self, characters_shape=None):
        self.embedding.build()
        for convolution in self.convolutions:
            convolution.build((None, None, self.embedding.output_dim))
        for highway in self.highways:
            highway.build((None, self.num_filters))
        self.projection.build((None, self.num_filters))
        self.built = True

    def call(self, characters):
        x = embedded(self.embedding, characters, dtype=self.compute_dtype)  # (N, C, E)
        pooled = [
            self.activation(ops.max(convolution(x), axis=1)) for convolution in self.convolutions
        ]
        x = ops.concatenate(pooled, axis=-1)  # (N, F)
        for highway in self.highways:
            x = highway(x)
        return self.projection(x)


@keras.saving.register_keras_serializable(package="keras_bert")
class Highway(Layer):
    """g relu(x A + a) + (1 - g) x, where g = σ(x B + b). Shapes: x (N, F) -> (N, F).

    New gates are mostly closed (b = -2), so that a new layer passes on its input.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.transform, self.gate = None, None

    def build(self, x_shape):
        size = x_shape[-1]
        self.transform = Dense(size, name="transform", dtype=self.dtype_policy)
        self.gate = Dense(
            size,
            bias_initializer=keras.initializers.Constant(-2.0),
            name="gate",
            dtype=self.dtype_policy,
        )
        self.transform.build((None, size))
        self.gate.build((None, size))
        self.built = True

    def call(self, x):
        gate = ops.sigmoid(self.gate(x))
        return gate * ops.relu(self.transform(x)) + (1 - gate) * x
