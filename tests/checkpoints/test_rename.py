"""A line of a rename table moves a weight there and back, whole or in parts."""

import keras
import numpy as np
import pytest

from keras_bert.base import rename
from keras_bert.base.rename import Rename, transposed
from tests.messages import raises_input_error
from tests.seeds import make_rng

SIZES = {"D": 3, "I": 4, "N": 2, "H": 2, "C": 6}  # I = N H
RNG = make_rng(4)


class Model:
    """Variables by dotted paths, as an encoder or a task has them."""

    def __init__(self, **shapes):
        for name, shape in shapes.items():
            setattr(self, name, keras.Variable(RNG.normal(size=shape).astype("float32")))


def there_and_back(table, **shapes):
    """-> the model's arrays and the foreign tensors, after the checks that hold of any table."""
    model, other = Model(**shapes), Model(**shapes)
    tensors = rename.gather(model, table, sizes=SIZES)
    rename.check_shapes(
        {name: x.shape for name, x in tensors.items()}, table, sizes=SIZES, source="a file"
    )
    assert all(x.flags["C_CONTIGUOUS"] and x.dtype == np.float32 for x in tensors.values())
    rename.assign(other, table, tensors.__getitem__)
    for name in shapes:
        np.testing.assert_array_equal(
            np.array(getattr(other, name)), np.array(getattr(model, name))
        )
    assert rename.gather(other, table, sizes=SIZES).keys() == tensors.keys()
    return {name: np.array(getattr(model, name)) for name in shapes}, tensors


def test_a_line_is_one_tensor():
    ours, theirs = there_and_back([Rename("kernel", "weight", "D I")], kernel=(3, 4))
    np.testing.assert_array_equal(theirs["weight"], ours["kernel"])


def test_their_tensor_is_transposed():
    ours, theirs = there_and_back([transposed("kernel", "weight", "D I")], kernel=(3, 4))
    np.testing.assert_array_equal(theirs["weight"], ours["kernel"].T)


def test_a_square_one_is_transposed_too_and_written_as_such():
    """The bytes behind a transposed view are those of the untransposed array."""
    ours, theirs = there_and_back([transposed("kernel", "weight", "D D")], kernel=(3, 3))
    np.testing.assert_array_equal(theirs["weight"], ours["kernel"].T)
    assert theirs["weight"].tobytes() == ours["kernel"].T.tobytes()


def test_their_tensor_has_other_axes():
    table = [Rename("kernel", "weight", "D I", folded="D N H")]
    ours, theirs = there_and_back(table, kernel=(3, 4))
    np.testing.assert_array_equal(theirs["weight"], ours["kernel"].reshape(3, 2, 2))


@pytest.mark.parametrize("line", [Rename, transposed])
def test_one_of_ours_is_split_into_several_of_theirs(line):
    """Query, key and value are one kernel here, and three in `transformers`."""
    table = [line("kernel", name, "D I", part=(k, 3)) for k, name in enumerate("qkv")]
    table += [Rename("bias", f"{name}.bias", "I", part=(k, 3)) for k, name in enumerate("qkv")]
    ours, theirs = there_and_back(table, kernel=(3, 12), bias=(12,))
    for k, name in enumerate("qkv"):
        kernel = ours["kernel"][:, 4 * k : 4 * k + 4]
        np.testing.assert_array_equal(theirs[name], kernel.T if line is transposed else kernel)
        np.testing.assert_array_equal(theirs[f"{name}.bias"], ours["bias"][4 * k : 4 * k + 4])


@pytest.mark.parametrize("line", [Rename, transposed])
def test_several_of_ours_are_joined_in_one_of_theirs(line):
    """ModernBERT's gate and input of the feed-forward layer are one tensor in `transformers`."""
    names = ("gate", "up")
    table = [line(name, "Wi", "D I", their_part=(k, 2)) for k, name in enumerate(names)]
    table += [
        Rename(f"{name}_bias", "bias", "I", their_part=(k, 2)) for k, name in enumerate(names)
    ]
    shapes = {"gate": (3, 4), "up": (3, 4), "gate_bias": (4,), "up_bias": (4,)}
    ours, theirs = there_and_back(table, **shapes)
    assert set(theirs) == {"Wi", "bias"}
    whole = np.hstack([ours["gate"], ours["up"]])
    np.testing.assert_array_equal(theirs["Wi"], whole.T if line is transposed else whole)
    np.testing.assert_array_equal(theirs["bias"], np.hstack([ours["gate_bias"], ours["up_bias"]]))


@pytest.mark.parametrize("line", [Rename, transposed])
def test_parts_of_ours_are_parts_of_theirs_in_another_order(line):
    order = {0: 2, 1: 0, 2: 1}
    table = [
        line("kernel", "weight", "D I", part=(k, 3), their_part=(n, 3)) for k, n in order.items()
    ]
    ours, theirs = there_and_back(table, kernel=(3, 12))
    parts = np.split(ours["kernel"], 3, axis=1)
    whole = np.hstack([parts[1], parts[2], parts[0]])
    np.testing.assert_array_equal(theirs["weight"], whole.T if line is transposed else whole)


def test_parts_of_ours_have_other_axes_there():
    """A projection in keras-nlp goes to N heads of size H."""
    table = [Rename("kernel", n, "D I", folded="D N H", part=(k, 3)) for k, n in enumerate("qkv")]
    ours, theirs = there_and_back(table, kernel=(3, 12))
    for k, name in enumerate("qkv"):
        kernel = ours["kernel"][:, 4 * k : 4 * k + 4]
        np.testing.assert_array_equal(theirs[name], kernel.reshape(3, 2, 2))


def test_square_parts_are_told_apart():
    table = [transposed("kernel", name, "D D", part=(k, 3)) for k, name in enumerate("qkv")]
    ours, theirs = there_and_back(table, kernel=(3, 9))
    for k, name in enumerate("qkv"):
        np.testing.assert_array_equal(theirs[name], ours["kernel"][:, 3 * k : 3 * k + 3].T)


def test_tensors_of_shorter_types_are_read_as_float32():
    table = [transposed("kernel", name, "D I", part=(k, 2)) for k, name in enumerate("ab")]
    model, halves = Model(kernel=(3, 8)), RNG.normal(size=(2, 4, 3)).astype("float16")
    rename.assign(model, table, dict(zip("ab", halves, strict=True)).__getitem__)
    expected = np.hstack([half.T for half in halves]).astype("float32")
    np.testing.assert_array_equal(np.array(model.kernel), expected)


class Layers:
    """A model of three layers, of which the first has no norm."""

    def __init__(self):
        self.layers = [Model(kernel=(3, 4), **({"norm": (3,)} if i else {})) for i in range(3)]


def test_a_layer_without_a_weight_is_skipped_both_ways():
    """ModernBERT's first layer has no norm before its attention."""
    table = rename.expand(
        [
            transposed("layers.{i}.kernel", "layer.{i}.weight", "D I"),
            Rename("layers.{i}.norm", "layer.{i}.norm", "D", not_in=(0,)),
        ],
        3,
    )
    model, other = Layers(), Layers()
    tensors = rename.gather(model, table, sizes=SIZES)
    expected = {f"layer.{i}.weight" for i in range(3)} | {"layer.1.norm", "layer.2.norm"}
    assert set(tensors) == expected
    shapes = {name: x.shape for name, x in tensors.items()}
    rename.check_shapes(shapes, table, sizes=SIZES, source="a file")
    rename.assign(other, table, tensors.__getitem__)
    for one, two in zip(model.layers, other.layers, strict=True):
        np.testing.assert_array_equal(np.array(one.kernel), np.array(two.kernel))
    for one, two in zip(model.layers[1:], other.layers[1:], strict=True):
        np.testing.assert_array_equal(np.array(one.norm), np.array(two.norm))
    with raises_input_error("has the tensor layer.0.norm of shape ...no place"):
        rename.check_shapes({**shapes, "layer.0.norm": (3,)}, table, sizes=SIZES, source="a file")


def test_a_table_is_written_out_for_every_layer():
    table = [Rename("table", "embeddings", "D"), Rename("layers.{i}.w", "h.{i}.w", "D")]
    assert [line.theirs for line in rename.expand(table, 2)] == ["embeddings", "h.0.w", "h.1.w"]
    assert [line.ours for line in rename.expand(table, 2)][1:] == ["layers.0.w", "layers.1.w"]
    prefixed = rename.under(table, theirs="bert.")
    assert (prefixed[0].ours, prefixed[0].theirs) == ("table", "bert.embeddings")


@pytest.mark.parametrize(
    "shapes, message",
    [
        ({"q": (4, 3)}, "a file lacks the tensor Wi of shape [8, 3]"),
        ({"q": (4, 3), "Wi": (8, 3), "x": (1,)}, "has the tensor x of shape [1]"),
        ({"q": (3, 4), "Wi": (8, 3)}, "tensor q has the shape [3, 4]. Its config asks for [4, 3]."),
        (
            {"q": (4, 3), "Wi": (4, 3)},
            "tensor Wi has the shape [4, 3]. Its config asks for [8, 3].",
        ),
    ],
)
def test_missing_unknown_and_misshapen_tensors_are_named(shapes, message):
    table = [
        transposed("kernel", "q", "D I", part=(0, 3)),
        transposed("gate", "Wi", "D I", their_part=(0, 2)),
        transposed("up", "Wi", "D I", their_part=(1, 2)),
    ]
    with raises_input_error(message):
        rename.check_shapes(shapes, table, sizes=SIZES, source="a file")


def test_a_variable_is_found_by_attributes_or_by_its_path():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="dense")])
    kernel = model.layers[0].kernel
    assert rename.variable(model, "layers.0.kernel") is kernel
    assert rename.variable(model, kernel.path) is kernel and "/" in kernel.path
