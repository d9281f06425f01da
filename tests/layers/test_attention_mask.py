import keras
import numpy as np
import pytest
from keras_bert.layers.attention_mask import AttentionMask, check_attention_mask

from tests.layer_checks import check_layer

INPUT_MASK = np.array([[1, 1, 0], [1, 1, 1]], "int32")


def test_padding_is_seen_by_nobody(tmp_path):
    check_layer(
        lambda **options: AttentionMask(causal=False, **options),
        inputs={"input_mask": INPUT_MASK},
        output_shape=(2, 1, 1, 3),
        tmp_path=tmp_path,
        integer_output=True,
        trains=False,
    )
    mask = np.asarray(AttentionMask(causal=False)(INPUT_MASK))
    np.testing.assert_array_equal(mask[:, 0, 0], INPUT_MASK.astype(bool))


def test_causal_also_hides_what_comes_after(tmp_path):
    check_layer(
        lambda **options: AttentionMask(causal=True, **options),
        inputs={"input_mask": INPUT_MASK},
        output_shape=(2, 1, 3, 3),
        tmp_path=tmp_path,
        integer_output=True,
        trains=False,
    )
    mask = np.asarray(AttentionMask(causal=True)(INPUT_MASK))[:, 0]
    np.testing.assert_array_equal(mask[0], [[1, 0, 0], [1, 1, 0], [1, 1, 0]])
    np.testing.assert_array_equal(mask[1], [[1, 0, 0], [1, 1, 0], [1, 1, 1]])


@pytest.mark.parametrize(
    "shape, dtype",
    [
        ((3, 3, 3), "bool"),  # broadcasts its batch over the heads
        ((2, 3), "bool"),
        ((2, 4, 3, 3), "bool"),
        ((2, 1, 2, 3), "bool"),
        ((2, 1, 1, 4), "bool"),
        ((2, 1, 1, 3), "int32"),  # would be added, not chosen by
    ],
)
def test_a_mask_of_another_form_is_refused(shape, dtype):
    with pytest.raises(ValueError, match="attention_mask.*Received: shape="):
        check_attention_mask(keras.ops.ones(shape, dtype=dtype), length=3)


@pytest.mark.parametrize("shape", [(2, 1, 1, 3), (2, 1, 3, 3), (None, 1, None, None)])
def test_the_right_forms_pass(shape):
    check_attention_mask(keras.KerasTensor(shape, dtype="bool"), length=3)
