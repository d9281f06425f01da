import numpy as np

from keras_bert.heads.pooling import Pooler
from tests.layer_checks import check_layer
from tests.seeds import make_rng

FIRST = make_rng(5).normal(size=(3, 8)).astype("float32")


def test_is_a_dense_layer_with_tanh(tmp_path):
    def make(**options):
        return Pooler(hidden_size=8, activation="tanh", initializer_range=0.5, **options)

    check_layer(make, inputs={"first": FIRST}, output_shape=(3, 8), tmp_path=tmp_path)
    layer = make()
    layer.build()
    layer.dense.bias.assign(np.linspace(-1, 1, 8))
    kernel, bias = np.asarray(layer.dense.kernel.value), np.asarray(layer.dense.bias.value)
    np.testing.assert_allclose(np.asarray(layer(FIRST)), np.tanh(FIRST @ kernel + bias), atol=1e-6)
