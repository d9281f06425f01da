"""A checkpoint brings everything back; a broken or foreign one is refused, never half loaded."""

import errno
import json
import os
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.training.checkpoint import Checkpoint, named_variables
from tests.messages import raises_input_error
from tests.seeds import make_rng, shifted


def small_model(seed, units=4, name="dense", scales_loss=False, **options):
    keras.utils.set_random_seed(shifted(seed))
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(units, name=name),
            keras.layers.Dropout(0.5),
            keras.layers.BatchNormalization(name="norm"),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1, name="out"),
        ],
        name="small",
    )
    model.encoder = SimpleNamespace(layer_groups=[[], model.layers[:-1]])
    optimizer = make_optimizer(
        model, learning_rate=0.1, warmup=0.5, weight_decay=0.1, steps=20, **options
    )
    if scales_loss:  # as of a task that computes in float16
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, name="loss_scale")
        optimizer.build(model.trainable_variables)
    model.compile(optimizer, loss="mse")
    return model


def train(model, steps):
    generator = make_rng(0)
    x = generator.normal(size=(8, 3)).astype("float32")
    model.fit(x, x[:, :1], batch_size=8, epochs=steps, verbose=0, shuffle=False)


def arrays_of(model):
    return {name: np.array(variable) for name, variable in named_variables(model).items()}


# Three batches are a step and a half: the gradients so far are brought back, too.
_LAMB = {"optimizer": "lamb", "gradient_accumulation": 2, "schedule": "one-cycle"}


@pytest.mark.parametrize(
    "options",
    [{}, _LAMB, {**_LAMB, "optimizer": "muon"}, {"scales_loss": True}],
    ids=["adamw", "lamb", "muon", "scaled"],
)
def test_a_restored_model_trains_on_as_if_it_had_never_stopped(tmp_path, options):
    model = small_model(seed=1, **options)
    train(model, 3)
    Checkpoint(tmp_path, model).save(3, {"seconds": 1.5})
    train(model, 4)

    other = small_model(seed=2, **options)  # a second model of the process: automatic names differ
    assert Checkpoint(tmp_path, other).restore() == (3, {"seconds": 1.5})
    assert int(other.optimizer.iterations) == 3 // options.get("gradient_accumulation", 1)
    train(other, 4)
    expected, arrays = arrays_of(model), arrays_of(other)
    assert expected.keys() == arrays.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(arrays[name], value, err_msg=name)


def test_the_state_is_not_in_the_header_whose_size_is_bounded(tmp_path):
    """safetensors reads no header of more than 100 MB, and a long run's history has more."""
    model = small_model(seed=1)
    checkpoint = Checkpoint(tmp_path, model)
    state = [{"step": 1, "train": {"loss": 0.1}, "examples": ["ä\u2028" * 30]}] * 1000
    checkpoint.save(1, state)
    content = checkpoint.latest.read_bytes()
    assert int.from_bytes(content[:8], "little") < 10_000 < len(json.dumps(state))
    assert checkpoint.restore() == (1, state)
    flipped = bytearray(content)
    flipped[content.index(b'"loss"')] ^= 1
    checkpoint.latest.write_bytes(flipped)
    with raises_input_error("its checksum does not match"):
        checkpoint.restore()


def test_a_checkpoint_of_an_earlier_version_has_its_state_in_the_header(tmp_path):
    model = small_model(seed=1)
    checkpoint = Checkpoint(tmp_path, model)
    checkpoint.save(7, {})
    expected, path = arrays_of(model), checkpoint.latest
    tensors = {name: value for name, value in load_file(path).items() if name != "state"}
    save_file(tensors, path, metadata={"step": "7", "state": '{"seconds": 1.5}'})
    other = small_model(seed=2)
    assert Checkpoint(tmp_path, other).restore() == (7, {"seconds": 1.5})
    for name, value in arrays_of(other).items():
        np.testing.assert_array_equal(expected[name], value, err_msg=name)


def test_frozen_weights_are_not_stored_and_ignored_in_a_file_of_an_earlier_version(tmp_path):
    model, other = small_model(seed=1), small_model(seed=2)
    first, second = (Checkpoint(tmp_path, m, frozen=[m.layers[0].kernel]) for m in (model, other))
    first.save(2, {})
    names = {*named_variables(model)} - {"model/small/dense/kernel"}
    assert load_file(first.latest).keys() == {*names, "state"}
    for step in (2, 3):
        kernel = np.array(other.layers[0].kernel)
        assert second.restore() == (step, {})
        np.testing.assert_array_equal(other.layers[0].kernel, kernel)
        for name in names:
            np.testing.assert_array_equal(
                arrays_of(other)[name], arrays_of(model)[name], err_msg=name
            )
        train(other, 1)
        Checkpoint(tmp_path, model).save(3, {})  # with all weights


def test_seed_generators_moments_and_statistics_are_among_the_variables():
    names = set(named_variables(small_model(seed=1)))
    assert {"model/seed_generators/0", "model/seed_generators/1"} <= names
    assert {"model/small/norm/moving_mean", "optimizer/adamw/iteration"} <= names
    assert sum("momentum" in name for name in names) == 6  # of 2 kernels, 2 biases, 2 of the norm


def test_only_the_latest_is_kept_and_a_kill_while_writing_leaves_the_one_before(tmp_path):
    model = small_model(seed=1)
    checkpoint = Checkpoint(tmp_path, model)
    assert checkpoint.latest is None
    checkpoint.save(5, {})
    temporary = tmp_path / ".step-000000009.safetensors.keras-bert-0123456789ab"
    temporary.mkdir()
    (temporary / "step-000000009.safetensors").write_bytes(b"half of it")
    (tmp_path / "notes.txt").write_text("not ours")
    checkpoint = Checkpoint(tmp_path, model)  # as the run that goes on does
    assert checkpoint.restore()[0] == 5
    checkpoint.save(10, {})
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["notes.txt", "step-000000010.safetensors"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"name": "other"}, "checkpoint of another model: it lacks model/small/other/bias"),
        ({"units": 5}, "model/small/dense/bias has the shape (4,), and (5,"),
    ],
)
def test_a_checkpoint_of_another_model_is_rejected(tmp_path, other, message):
    Checkpoint(tmp_path, small_model(seed=1)).save(1, {})
    model = small_model(seed=2, **other)
    before = arrays_of(model)
    with raises_input_error(message):
        Checkpoint(tmp_path, model).restore()
    for name, value in arrays_of(model).items():
        np.testing.assert_array_equal(value, before[name])


def test_a_cut_off_file_is_rejected(tmp_path):
    model = small_model(seed=1)
    checkpoint = Checkpoint(tmp_path, model)
    checkpoint.save(1, {})
    whole = checkpoint.latest.read_bytes()
    checkpoint.latest.write_bytes(whole[: len(whole) // 2])
    before = arrays_of(model)
    with raises_input_error("is damaged"):
        checkpoint.restore()
    for name, value in arrays_of(model).items():
        np.testing.assert_array_equal(value, before[name])


def test_no_checkpoint_is_deleted_before_the_one_after_it_is_known_to_be_whole(tmp_path):
    model = small_model(seed=1)
    for step in (1, 2, 3):
        Checkpoint(tmp_path, model, keep=3).save(step, {})
    checkpoint = Checkpoint(tmp_path, model, keep=1)  # or killed between two deletions
    checkpoint.latest.write_bytes(checkpoint.latest.read_bytes()[:-1])
    assert checkpoint.restore()[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000002.safetensors"]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EMFILE])
def test_one_that_cannot_be_read_now_is_neither_passed_over_nor_deleted(
    tmp_path, monkeypatch, number
):
    model = small_model(seed=1)
    checkpoint = Checkpoint(tmp_path, model, keep=2)
    for step in (1, 2):
        checkpoint.save(step, {})
    newest = checkpoint.latest

    def reject(path, **options):
        if path == newest:
            raise OSError(number, os.strerror(number), str(path))
        return safe_open(path, **options)

    monkeypatch.setattr("keras_bert.training.checkpoint.safe_open", reject)
    with raises_input_error(f"cannot be read: {os.strerror(number)}. Run the"):
        checkpoint.restore()
    assert newest.exists()
    monkeypatch.undo()
    assert checkpoint.restore()[0] == 2
