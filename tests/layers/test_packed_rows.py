import numpy as np
from keras_bert.layers.packed_rows import PackedRows

from tests.layer_checks import check_layer

TEXT_NUMBERS = np.array([[1, 1, 2, 2, 2, 0], [5, 3, 3, 0, 0, 0]], "int32")


def test_each_text_sees_itself_and_counts_from_zero(tmp_path):
    check_layer(
        lambda **options: PackedRows(causal=False, **options),
        inputs={"text_numbers": TEXT_NUMBERS},
        output_shape=[(2, 1, 6, 6), (2, 6)],
        tmp_path=tmp_path,
        integer_output=True,
        trains=False,
    )
    mask, positions = (np.asarray(y) for y in PackedRows(causal=False)(TEXT_NUMBERS))
    tokens = TEXT_NUMBERS != 0
    np.testing.assert_array_equal(positions[tokens], [0, 1, 0, 1, 2, 0, 0, 1])
    for row, numbers in enumerate(TEXT_NUMBERS):
        for i in range(6):
            for j in range(6):
                seen = numbers[i] == numbers[j] != 0
                assert mask[row, 0, i, j] == seen


def test_causal_sees_only_back():
    mask, _ = PackedRows(causal=False)(TEXT_NUMBERS)
    causal, _ = PackedRows(causal=True)(TEXT_NUMBERS)
    np.testing.assert_array_equal(np.asarray(causal), np.tril(np.asarray(mask)))
