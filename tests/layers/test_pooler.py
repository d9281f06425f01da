import numpy as np

from keras_bert.layers.pooler import Pooler
from tests.layer_checks import check_layer

HIDDEN = np.random.default_rng(5).normal(size=(3, 4, 8)).astype("float32")


def test_reads_the_first_token_alone(tmp_path):
    def make(**options):
        return Pooler(hidden_size=8, initializer_range=0.5, **options)

    check_layer(make, inputs={"hidden": HIDDEN}, output_shape=(3, 8), tmp_path=tmp_path)
    layer = make()
    y = np.asarray(layer(HIDDEN))
    kernel = np.asarray(layer.dense.kernel.value)
    np.testing.assert_allclose(y, np.tanh(HIDDEN[:, 0] @ kernel), atol=1e-6)
