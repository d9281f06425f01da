"""Activations that are computed again: the same losses, weights and random numbers."""

import keras
import numpy as np
import pytest

from keras_bert.encoders.lstm import AwdLstmConfig
from keras_bert.encoders.lstm.encoder import AwdLstmEncoder
from keras_bert.training.finetuning_settings import finetune_settings
from keras_bert.training.pretrain import pretrain
from tests.messages import raises_input_error
from tests.pretraining_folder import make_data_folder
from tests.seeds import shifted
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied

LENGTHS = np.array([6, 4, 3, 5])


def trained(*, recomputes, lora=False, dtype=None, **sizes):
    """-> (the losses of three steps with dropout, all variables by path)."""
    encoder = make_encoder(make_tokenizer(), num_hidden_layers=2, **sizes)
    if dtype is not None:
        encoder = encoder.rebuilt(dtype=dtype)
    keras.utils.set_random_seed(shifted(3))
    if lora:
        encoder.enable_lora(2)
    encoder.recomputes = recomputes
    inputs = encoder.symbolic_inputs()
    outputs = encoder(inputs, outputs=("first_output", "sequence_output"))
    model = keras.Model(inputs, keras.layers.Dense(3, name="head")(outputs["first_output"]))
    states = [v for v in model.variables if "seed_generator" in v.path]
    for number, state in enumerate(states):
        state.assign([number, 0])
    model.compile(keras.optimizers.SGD(0.1), loss="mse", jit_compile=False)
    ids = np.arange(24, dtype="int32").reshape(4, 6)
    mask = (np.arange(6) < LENGTHS[:, None]).astype("int32")
    arrays = {"input_ids": ids, "input_mask": mask, "segment_ids": np.zeros_like(ids)}
    arrays = {name: arrays[name] for name in inputs}
    history = model.fit(arrays, np.ones((4, 3)), batch_size=4, epochs=3, verbose=0)
    assert len(states) >= 6 and all(np.array(state)[1] == 3 for state in states)
    weights = {v.path: np.array(v, "float64") for v in model.weights}
    return history.history["loss"], weights


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"lora": True}, marks=pytest.mark.slow),
        pytest.param({"model_type": "mpnet"}, marks=pytest.mark.slow),
    ],
)
def test_losses_and_weights_are_the_same(options):
    check_the_same(options)


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimized_graphs")
def test_losses_and_weights_in_bfloat16_are_the_same():
    check_the_same({"dtype": "mixed_bfloat16", "lora": True})


def check_the_same(options):
    (losses, weights), (expected, stored_weights) = (
        trained(recomputes=recomputes, **options) for recomputes in (True, False)
    )
    assert len(set(losses)) == 3
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    for path, weight in weights.items():
        np.testing.assert_allclose(weight, stored_weights[path], atol=1e-6, err_msg=path)


@pytest.mark.slow
def test_a_run_ends_with_the_same_losses_and_the_same_after_a_stop(tmp_path):
    make_data_folder(tmp_path / "data", rows=90, eval_examples=5)
    given = {
        "data": tmp_path / "data",
        "vocab": tmp_path / "data" / "vocab.txt",
        "architecture": "tiny",
        "steps": 4,
        "batch_size": 8,
        "checkpoint_every": 2,
        "deterministic": True,
    }
    whole, part = tmp_path / "whole", tmp_path / "part"
    with copied(whole, part, after_step=2):
        metrics = pretrain(**given, recompute=True, output=whole)
    stored = pretrain(**given, output=tmp_path / "stored")
    assert metrics["train"]["loss"] == pytest.approx(stored["train"]["loss"], rel=1e-5)
    pretrain(**given, recompute=True, output=part)
    assert_same_weights(whole, part)


def test_what_has_nothing_to_compute_again():
    sizes = {"vocab_size": 9, "hidden_size": 4, "lstm_size": 4, "num_hidden_layers": 1}
    encoder = AwdLstmEncoder(AwdLstmConfig(**sizes))
    with raises_input_error(
        "`recompute` is for Transformer layers. A awd-lstm encoder has none: leave it"
    ):
        encoder.require("recompute")
    given = {"train": "a", "dev": "b", "output": "o", "model": "m", "recompute": True}
    with raises_input_error(
        "`recompute` is for the gradients of the encoder, and `freeze_encoder` needs none"
    ):
        finetune_settings("classifier").of({**given, "freeze_encoder": True})
