"""Adapters that are written by hand: what is read of them, and what is an error."""

import json
import math

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert.base import rename
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.pretrained_checkpoint import PretrainedCheckpoint
from keras_bert.tasks.classification.classifier import Classifier
from tests.messages import raises_input_error
from tests.seeds import make_rng

MODULE = "encoder.layer.0.attention.self.query"
WEIGHT = f"{MODULE}.weight"
D, RANK = 8, 2


@pytest.fixture
def base(tmp_path, make_encoder, tokenizer):
    save_folder(make_encoder(), tokenizer, tmp_path / "base")
    return tmp_path / "base"


def factors(rank=RANK, seed=3, **more):
    rng = make_rng(seed)
    arrays = {
        "lora_A.weight": rng.normal(size=(rank, D)),
        "lora_B.weight": rng.normal(size=(D, rank)),
        **more,
    }
    return {name: np.asarray(array, np.float32) for name, array in arrays.items()}


def write(folder, base, tensors, module=MODULE, whole=(), **config):
    """An adapter of the encoder in `base`, with these tensors of one module."""
    folder.mkdir(exist_ok=True)
    named = {f"base_model.model.{module}.{name}": array for name, array in tensors.items()}
    named |= {f"base_model.model.{name}": array for name, array in dict(whole).items()}
    save_file(named, folder / "adapter_model.safetensors")
    content = {"peft_type": "LORA", "base_model_name_or_path": str(base), "r": RANK}
    content |= {"lora_alpha": 3, "task_type": "FEATURE_EXTRACTION", **config}
    (folder / "adapter_config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def kernel(folder):
    """The weight of MODULE, (U, D), in the encoder that a folder opens as."""
    encoder, _ = load(folder)
    names = encoder.tensor_names(encoder.config)
    return rename.gather(encoder, names.table(), sizes=names.sizes)[WEIGHT]


@pytest.mark.parametrize(
    "config, rank, scale",
    [
        ({}, 2, 3 / 2),
        ({"use_rslora": True}, 2, 3 / math.sqrt(2)),
        ({"alpha_pattern": {"key": 9, "self.query": 5}}, 2, 5 / 2),
        ({"rank_pattern": {r"layer\.0\.attention\.self\.query": 4}}, 4, 3 / 4),
        ({"alpha_pattern": {"uery": 5}, "rank_pattern": {"1.*": 5}}, 2, 3 / 2),
        ({"init_lora_weights": "eva"}, 2, 3 / 2),
        ({"init_lora_weights": False, "bias": "lora_only"}, 2, 3 / 2),
    ],
)
def test_ranks_and_scales_are_those_of_the_config(tmp_path, base, config, rank, scale):
    tensors = factors(rank)
    adapted = kernel(write(tmp_path / "adapter", base, tensors, **config))
    product = scale * tensors["lora_B.weight"] @ tensors["lora_A.weight"]
    np.testing.assert_allclose(adapted, kernel(base) + product, atol=1e-6)


@pytest.mark.parametrize("end", ["", ".weight"])
def test_dora_scales_the_weights_of_each_output_to_a_norm(tmp_path, base, end):
    magnitude = np.linspace(0.5, 2, D)
    tensors = factors(**{f"lora_magnitude_vector{end}": magnitude})
    adapted = kernel(write(tmp_path / "adapter", base, tensors, use_dora=True))
    sums = kernel(base) + 1.5 * tensors["lora_B.weight"] @ tensors["lora_A.weight"]
    np.testing.assert_allclose(np.linalg.norm(adapted, axis=1), magnitude, rtol=1e-5)
    expected = sums / np.linalg.norm(sums, axis=1, keepdims=True) * magnitude[:, None]
    np.testing.assert_allclose(adapted, expected, atol=1e-6)


def test_trained_biases_replace_those_of_the_base(tmp_path, base):
    bias = np.arange(D, dtype=np.float32)
    whole = {f"{MODULE}.base_layer.bias": bias}
    encoder, _ = load(write(tmp_path / "adapter", base, factors(), whole=whole, bias="all"))
    names = encoder.tensor_names(encoder.config)
    tensors = rename.gather(encoder, names.table(), sizes=names.sizes)
    np.testing.assert_array_equal(tensors[f"{MODULE}.bias"], bias)


@pytest.mark.parametrize(
    "init", ["pissa", "pissa_niter_4", "olora", "corda", "lora_ga", "loftq", "new", 1.5, [], {}]
)
def test_an_initialization_that_changes_the_base_is_rejected(tmp_path, base, init):
    folder = write(tmp_path / "adapter", base, factors(), init_lora_weights=init)
    with raises_input_error("path_initial_model_for_weight_conversion"):
        PretrainedCheckpoint(folder, tokenizer=False)


SHAPES = {
    "A": [(RANK, 1), (RANK,), (RANK + 1, D), (1,), (1, RANK, D), (), (RANK, D + 1), (5, D)],
    "B": [(1, RANK), (RANK,), (D, RANK + 1), (D, 1), (1,), ()],
}


@pytest.mark.parametrize(
    "factor, shape", [(factor, shape) for factor, shapes in SHAPES.items() for shape in shapes]
)
def test_a_factor_of_another_shape_is_an_error(tmp_path, base, factor, shape):
    tensors = factors(**{f"lora_{factor}.weight": np.ones(shape)})
    folder = write(tmp_path / "adapter", base, tensors)
    with raises_input_error(f"lora_{factor}.weight has the shape {list(shape)}"):
        PretrainedCheckpoint(folder, tokenizer=False)


def test_a_rank_that_is_not_the_configs_is_an_error(tmp_path, base):
    folder = write(tmp_path / "adapter", base, factors(5))
    with raises_input_error("Expected [2, 8]"):
        load(folder)


def test_a_missing_factor_is_an_error(tmp_path, base):
    for name in ("lora_A.weight", "lora_B.weight"):
        tensors = factors()
        del tensors[name]
        with raises_input_error("has no lora_"):
            load(write(tmp_path / "adapter", base, tensors))
    with raises_input_error("has no lora_magnitude_vector"):
        load(write(tmp_path / "adapter", base, factors(), use_dora=True))
    tensors = factors(lora_magnitude_vector=np.ones(D))
    with raises_input_error("has a lora_magnitude_vector"):
        load(write(tmp_path / "adapter", base, tensors))


VALUES = [None, "3", [], {}, True, 0, -1, 1.5, 10**400, 1e400, [1], {"": 0}]


@pytest.mark.parametrize(
    "key",
    [
        *("r", "lora_alpha", "use_rslora", "use_dora", "fan_in_fan_out", "rank_pattern", "bias"),
        *("alpha_pattern", "auto_mapping", "task_type", "revision", "peft_type", "lora_bias"),
        *("init_lora_weights", "base_model_name_or_path", "layer_replication"),
    ],
)
def test_a_value_of_another_type_is_an_error_or_harmless(tmp_path, base, key):
    for value in VALUES:
        folder = write(tmp_path / "adapter", base, factors(), **{key: value})
        try:
            PretrainedCheckpoint(folder, tokenizer=False).read(WEIGHT)
        except InputError as error:
            assert key in str(error) or "lora_magnitude_vector" in str(error)


def test_a_base_that_has_changed_is_an_error(tmp_path, base, tokenizer):
    encoder, _ = load(base)
    encoder.enable_lora(2)
    task = Classifier(encoder, tokenizer, labels=["a", "b"])
    task.save_adapter(tmp_path / "adapter", base=base)
    load_task(tmp_path / "adapter")
    weights = base / "model.safetensors"
    tensors = load_file(weights)
    save_file({**tensors, WEIGHT: tensors[WEIGHT] + 1}, weights, metadata={"format": "pt"})
    with raises_input_error("has other weights than when the adapter"):
        load_task(tmp_path / "adapter")
