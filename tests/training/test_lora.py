"""LoRA: what is trained, what is written, and the same after a stop."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.convert import convert
from keras_bert.inference.evaluate import evaluate
from keras_bert.layers.dense import Dense
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.training.finetune import finetune
from keras_bert.training.finetuning_settings import finetune_settings
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied

TEXTS = ["good film", "bad plot", "a good plot"]


def randomized(encoder):
    """The encoder, with random numbers in A and B."""
    rng = make_rng(4)
    for weight in encoder.trainable_weights:
        weight.assign(rng.normal(size=weight.shape, scale=0.3))
    return encoder


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(["good", "bad", "film", "plot"])


def test_a_layer_adds_the_products_of_its_parts():
    rng = make_rng(1)
    x, layer = rng.normal(size=(5, 4)).astype("float32"), Dense(9, name="layer")
    layer.build((None, 4))
    kernel = np.array(layer.kernel)
    layer.enable_lora(2, 6, parts=[(0, 3), (2, 3)])
    np.testing.assert_array_equal(layer(x), x @ kernel)  # B is 0
    assert [w.shape for w in layer.trainable_weights] == [(9,), (4, 4), (2, 6)]
    a, b = (rng.normal(size=shape).astype("float32") for shape in ((4, 4), (2, 6)))
    layer.lora_kernel_a.assign(a)
    layer.lora_kernel_b.assign(b)
    added = np.zeros((4, 9), "float32")
    added[:, :3] = 3 * a[:, :2] @ b[:, :3]
    added[:, 6:] = 3 * a[:, 2:] @ b[:, 3:]
    # Each number is the sum of a weight and of 2 products, of at most this size.
    size = np.abs(kernel).max() + 3 * 2 * np.abs(a).max() * np.abs(b).max()
    bound = 4 * np.finfo("float32").eps * size
    np.testing.assert_allclose(layer.kernel, kernel + added, rtol=0, atol=bound)
    np.testing.assert_allclose(layer(x), x @ (kernel + added), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="without LoRA"):
        layer.enable_lora(2)
    with pytest.raises(ValueError, match="not quantized"):
        layer.quantize("int8")


@pytest.mark.parametrize(
    "model_type, layers, default",
    [
        ("bert", ["key", "intermediate.dense"], ("query", "value")),
        ("distilbert", ["ffn.lin1"], ("q_lin", "v_lin")),
        ("mpnet", ["attn.o"], ("q", "v")),
        ("electra", ["dense", "key"], ("query", "value")),
    ],
)
def test_what_is_copied_and_saved_is_merged(model_type, layers, default, tokenizer, tmp_path):
    encoder = make_encoder(tokenizer, model_type=model_type)
    ids = np.arange(12, dtype="int32").reshape(2, 6)
    inputs = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    inputs = {name: inputs[name] for name in encoder.input_names}
    before = np.array(encoder(inputs)["sequence_output"])
    assert encoder.default_lora_layers == default
    encoder.enable_lora(3, layers=layers)
    np.testing.assert_array_equal(encoder(inputs)["sequence_output"], before)
    assert {w.name for w in encoder.trainable_weights} == {"lora_kernel_a", "lora_kernel_b"}
    outputs = np.array(randomized(encoder)(inputs)["sequence_output"])
    assert np.abs(outputs - before).max() > 0.01
    save_folder(encoder, tokenizer, tmp_path / "model")
    for merged in (encoder.rebuilt(), load(tmp_path / "model")[0]):
        assert merged.lora is None
        np.testing.assert_allclose(merged(inputs)["sequence_output"], outputs, atol=1e-5)
    with raises_input_error("has LoRA of rank 3 already"):
        encoder.enable_lora(3)


def test_an_adapter_opens_as_the_model(tokenizer, tmp_path):
    save_folder(make_encoder(tokenizer), tokenizer, tmp_path / "base")
    encoder, tokenizer = load(tmp_path / "base")
    encoder.enable_lora(2, alpha=4)
    task = Classifier(randomized(encoder), tokenizer, labels=["a", "b"], max_length=12)
    expected = task.predict(TEXTS, verbose=0)["logits"]
    task.save_adapter(tmp_path / "adapter", base=tmp_path / "base")
    task.save(tmp_path / "model")
    for folder in ("model", "adapter"):
        again = load_task(tmp_path / folder).predict(TEXTS, verbose=0)["logits"]
        np.testing.assert_allclose(again, expected, atol=1e-5)
    convert(tmp_path / "adapter", tmp_path / "merged")
    merged, whole = (load_file(tmp_path / n / "model.safetensors") for n in ("merged", "model"))
    assert merged.keys() == whole.keys()
    for name, tensor in whole.items():
        np.testing.assert_allclose(merged[name], tensor, atol=1e-6, err_msg=name)
    names = set(load_file(tmp_path / "adapter" / "adapter_model.safetensors"))
    assert names == {
        *(f"base_model.model.{name}" for name in ("classifier.weight", "classifier.bias")),
        *(f"base_model.model.bert.pooler.dense.{end}" for end in ("weight", "bias")),
        *(
            f"base_model.model.bert.encoder.layer.0.attention.self.{part}.lora_{factor}.weight"
            for part in ("query", "value")
            for factor in "AB"
        ),
    }
    with raises_input_error("is an adapter, and the base of another one is a whole model"):
        task.save_adapter(tmp_path / "second", base=tmp_path / "adapter")
    with raises_input_error("is an adapter, and `lora_rank` makes adapters of whole models"):
        finetune(model=tmp_path / "adapter", train=["a"], output=tmp_path / "run", lora_rank=1)
    config = tmp_path / "adapter" / "adapter_config.json"
    written = json.loads(config.read_text())
    for changes, message in (
        ({"use_qalora": True}, "`use_qalora` is True, which is not supported"),
        (
            {"base_model_name_or_path": "gone"},
            "base model gone is not a model folder. Write the path",
        ),
    ):
        config.write_text(json.dumps({**written, **changes}))
        with raises_input_error(message):
            load_task(tmp_path / "adapter")


@pytest.mark.parametrize(
    "model_type, layers, message",
    [
        ("static", None, "LoRA trains updates of dense layers, and a static encoder has none"),
        ("bert", ["nothing"], "has no dense layer 'nothing'. Choose from query, key, value, dense"),
    ],
)
def test_layers_that_are_not_there(model_type, layers, message, tokenizer):
    if model_type == "static":
        from keras_bert.encoders.static import StaticConfig
        from keras_bert.encoders.static.encoder import StaticEncoder

        encoder = StaticEncoder(StaticConfig(vocab_size=9, hidden_size=4))
    else:
        encoder = make_encoder(tokenizer)
    with raises_input_error(message):
        encoder.enable_lora(2, layers=layers)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"freeze_encoder": True, "lora_rank": 1, "model": "m"}, "`lora_rank` trains layers"),
        ({"lora_layers": ["query"]}, "`lora_layers` needs `lora_rank`"),
        ({"lora_alpha": 2.0}, "`lora_alpha` needs `lora_rank`"),
        ({"lora_rank": 1, "architecture": "tiny"}, "Leave it out for random weights"),
        ({"lora_rank": 1, "model": "m", "baseline": "random"}, "`baseline` random has none"),
    ],
)
def test_settings_that_do_not_go_together(settings, message):
    with raises_input_error(message):
        finetune_settings("classifier").of({"train": "a", "dev": "b", "output": "o", **settings})


# Whole runs.


@pytest.fixture(scope="module")
def given(tmp_path_factory, tokenizer):
    """A model of two layers, and reviews of a few words."""
    folder = tmp_path_factory.mktemp("lora")
    encoder = make_encoder(tokenizer, num_hidden_layers=2, hidden_dropout_prob=0.1)
    save_folder(encoder, tokenizer, folder / "model")
    for name, count in (("train", 22), ("dev", 7)):
        lines = [
            f"{'film plot ' * (i % 3)}{w}\t{w}\n" for i in range(count) for w in ("good", "bad")
        ]
        (folder / f"{name}.tsv").write_text("".join(["text\tlabel\n", *lines]))
    return {
        "model": folder / "model",
        "train": folder / "train.tsv",
        "dev": folder / "dev.tsv",
        "batch_size": 16,
        "epochs": 2,
        "learning_rate": 0.01,
        "checkpoint_every": 1,
        "lora_rank": 2,
        "keep": "last",
    }


def frozen(name):
    return "self.query.weight" not in name and "self.value.weight" not in name


@pytest.mark.usefixtures("eager")
def test_a_run_trains_adapter_and_head_alone_and_ends_the_same_after_a_stop(given, tmp_path):
    whole, part, lines = tmp_path / "whole", tmp_path / "part", []
    with copied(whole, part, after_step=3):
        metrics = finetune(**given, deterministic=True, output=whole, report=lines.append)
    lora_parameters, head_parameters = 2 * 2 * 2 * (16 * 2), 16 * 16 + 16 + 2 * 16 + 2
    assert metrics["trainable_parameters"] == lora_parameters + head_parameters
    assert any(line.startswith("Training 562 parameters: the head, and LoRA") for line in lines)
    base, model = (load_file(f / "model.safetensors") for f in (given["model"], whole / "model"))
    for name, tensor in base.items():
        if name.startswith("pooler"):
            continue
        assert np.array_equal(tensor, model[f"bert.{name}"]) == frozen(name), name
    checkpoint = max((part / "checkpoints").glob("step-*.safetensors"))
    stored = {n: x for n, x in load_file(checkpoint).items() if n.startswith("model/")}
    trained = sum(x.size for name, x in stored.items() if "seed_generators" not in name)
    assert trained == metrics["trainable_parameters"]  # frozen weights come from the model
    finetune(**given, deterministic=True, output=part)
    assert_same_weights(whole, part)
    adapters = [load_file(f / "adapter" / "adapter_model.safetensors") for f in (whole, part)]
    for name, tensor in adapters[0].items():
        np.testing.assert_array_equal(tensor, adapters[1][name], err_msg=name)
    model_metrics, adapter_metrics = (
        evaluate(model=whole / name, data=given["dev"]) for name in ("model", "adapter")
    )
    assert model_metrics["cross_entropy"] == pytest.approx(
        metrics["dev"]["cross_entropy"], rel=1e-5
    )
    assert adapter_metrics["cross_entropy"] == pytest.approx(
        model_metrics["cross_entropy"], rel=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "mixed_bfloat16"},
        {"train_layers": 1, "layer_decay": 0.9},
        {"gradual_unfreezing": True},
        {"num_seeds": 2},
        {"keep": "best"},
        {"recompute": True, "lora_layers": ["dense", "query"], "lora_alpha": 2.0},
    ],
)
def test_other_settings_beside_it(options, given, tmp_path):
    metrics = finetune(**{**given, **options}, output=tmp_path / "run")
    tensors = load_file(tmp_path / "run" / "adapter" / "adapter_model.safetensors")
    products = [name for name in tensors if name.endswith("lora_B.weight")]
    moved = {name for name in products if np.any(tensors[name])}
    # The last layer alone; of two epochs of gradual unfreezing the first trains only the head.
    trained = "layer.1." if {"train_layers", "gradual_unfreezing"} & {*options} else "layer."
    assert moved == {name for name in products if trained in name}
    adapter_metrics = evaluate(model=tmp_path / "run" / "adapter", data=given["dev"])
    assert adapter_metrics["cross_entropy"] == pytest.approx(
        metrics["dev"]["cross_entropy"], rel=1e-5
    )
    if "num_seeds" in options:
        assert not list((tmp_path / "run" / "runs").glob("*/adapter"))


@pytest.mark.slow
def test_an_export_has_merged_weights(tokenizer, tmp_path):
    import tensorflow as tf

    encoder = make_encoder(tokenizer)
    encoder.enable_lora(2)
    task = Classifier(randomized(encoder), tokenizer, labels=["a", "b"], max_length=12)
    path = task.export(tmp_path / "exports")
    exported = tf.saved_model.load(str(path))
    outputs = exported.signatures["serving_default"](text=tf.constant(TEXTS))
    expected = keras.ops.softmax(task.predict(TEXTS, verbose=0)["logits"])
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-5)
    names = [name for name, _ in tf.train.list_variables(str(path / "variables/variables"))]
    assert len(names) < 30
    assert encoder.lora is not None  # the task goes on training


def test_training_goes_on_after_a_file_of_keras(tokenizer, tmp_path):
    encoder = make_encoder(tokenizer)
    encoder.enable_lora(2)
    task = Classifier(randomized(encoder), tokenizer, labels=["a", "b"], max_length=12)
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    logits, loaded_logits = (model.predict(TEXTS, verbose=0)["logits"] for model in (task, again))
    np.testing.assert_allclose(logits, loaded_logits, atol=1e-5)
    with pytest.raises(InputError, match="has no LoRA"):
        again.save_adapter(tmp_path / "adapter", base=tmp_path)
