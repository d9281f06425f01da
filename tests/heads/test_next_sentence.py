import numpy as np

from keras_bert.heads.next_sentence import NextSentenceHead
from tests.layer_checks import check_layer

POOLED = np.random.default_rng(8).normal(size=(3, 8)).astype("float32")


def test_gives_two_logits_a_row(tmp_path):
    check_layer(
        lambda **options: NextSentenceHead(initializer_range=0.5, **options),
        inputs={"pooled": POOLED},
        output_shape=(3, 2),
        tmp_path=tmp_path,
    )
