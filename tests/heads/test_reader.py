"""The layer between encoder and head."""

import numpy as np
import pytest

from keras_bert.base.errors import InputError
from keras_bert.encoders.static import StaticConfig
from keras_bert.encoders.static.encoder import StaticEncoder
from keras_bert.heads.reader import TokenReader, choose_layers

B, S, D, E, U = 2, 3, 4, 5, 6
STATES = [np.full((B, S, D), float(number), "float32") for number in range(5)]
INPUTS = {"input_ids": np.ones((B, S), "int32"), "input_mask": np.ones((B, S), "int32")}


def make(**options):
    return TokenReader(num_layers=4, hidden_size=D, **options)


@pytest.mark.parametrize(
    ("layers", "numbers", "requested", "first"),
    [
        ("last", [4], ("first_output",), None),
        ("layer-2", [2], ("hidden_states",), [2] * D),
        ("sum-last-4", [1, 2, 3, 4], ("hidden_states",), [10] * D),
        ("concat-last-4", [4, 3, 2, 1], ("hidden_states",), np.repeat([4, 3, 2, 1], D)),
    ],
)
def test_a_choice_of_layers_has_no_weights(layers, numbers, requested, first):
    reader = make(layers=layers)
    assert (reader.numbers, reader.weights, reader.head_layers) == (numbers, [], {})
    assert reader.requested(("first_output",)) == requested
    assert reader.keeps_size == (layers != "concat-last-4")
    assert reader.combines_layers == (layers == "sum-last-4")
    selected = reader.select({"hidden_states": STATES})
    if first is not None:
        np.testing.assert_array_equal(selected["first_output"], [first] * B)
        np.testing.assert_array_equal(selected["sequence_output"], choose_layers(STATES, layers))


def test_a_mix_beside_static_vectors_under_a_bilstm():
    static = StaticEncoder(StaticConfig(vocab_size=9, hidden_size=E), name="static_vectors")
    reader = make(mix={"l2": 0.5}, static_vectors=static, bilstm=U)
    assert list(reader.head_layers) == ["scalar_mix", "static_vectors", "bilstm"]
    assert reader.mix == {"layer_norm_eps": None, "l2": 0.5} and reader.layers == "mix-all"
    assert reader.input_names == ("input_ids", "input_mask") and not reader.keeps_size
    # The paths of the weights do not depend on the reader: checkpoints name them.
    assert {weight.path.split("/")[0] for weight in reader.scalar_mix.weights} == {"scalar_mix"}
    kernel, *_ = reader.bilstm.weights
    assert kernel.path.startswith("bilstm/") and kernel.shape == (D + E, 4 * U)
    outputs = reader(reader.select({"hidden_states": STATES}), INPUTS)
    assert outputs["sequence_output"].shape == (B, S, 2 * U)
    np.testing.assert_array_equal(outputs["first_output"], outputs["sequence_output"][:, 0])
    groups = [["embeddings"], *(["block"] for _ in range(4))]
    assert reader.groups_read(groups) == groups
    assert make(layers="layer-2").groups_read(groups) == groups[:3]


def test_what_the_encoder_lacks_or_does_not_mix_is_an_error():
    with pytest.raises(InputError, match="needs a model of at least 7 layers"):
        make(layers="layer-7")
    with pytest.raises(ValueError, match="is for a learned mix"):
        make(layers="first", mix={"l2": 0.5})
