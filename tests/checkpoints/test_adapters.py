"""Adapters of `peft`: each side reads what the other writes, and computes the same."""

import numpy as np
import pytest
from safetensors import safe_open

from keras_bert.checkpoints import load, load_task
from keras_bert.tasks.classification.classifier import Classifier
from tests.encoders.test_families import FAMILIES, LABELS, batch, their_inputs
from tests.peers import peft, torch, transformers
from tests.seeds import make_rng, shifted

GPT2 = {"vocab_size": 31, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 20}
CONFIGS = {"gpt2": ("GPT2", GPT2)} | {n: (f.name, f.config) for n, f in FAMILIES.items()}
MORE = {
    "gpt2": "c_proj",
    "distilbert": "ffn.lin2",
    "albert": "ffn_output",
    "modernbert": "mlp.Wo",
}
OPTIONS = {"id2label": dict(enumerate(LABELS)), "pad_token_id": 1}


def reference(model_type):
    """A classifier of `transformers` with large random weights."""
    name, config = CONFIGS[model_type]
    torch.manual_seed(shifted(5))
    config = getattr(transformers, f"{name}Config")(**{**config, **OPTIONS})
    return randomized(getattr(transformers, f"{name}ForSequenceClassification")(config))


def saved_reference(model_type, folder):
    model = reference(model_type)
    model.save_pretrained(folder)
    if model_type == "bert":
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(26))]
        (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    return model


def randomized(model):
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def logits(model, task):
    """The logits of both, of the same batch."""
    inputs = batch(task.config)
    with torch.no_grad():
        expected = model(**their_inputs(inputs, names=task.encoder.input_names)).logits.numpy()
    return expected, np.asarray(task({name: inputs[name] for name in task.input})["logits"])


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model_type", CONFIGS)
@pytest.mark.parametrize("layers", [None, "more"])
def test_both_ways(model_type, layers, tmp_path):
    model = saved_reference(model_type, tmp_path / "base")
    encoder, tokenizer = load(tmp_path / "base")
    if layers is not None:
        more = MORE.get(model_type, "output.dense")
        layers = [*encoder.default_lora_layers, more]

    # Theirs, read here.
    names = layers or list(encoder.default_lora_layers)
    mapped = model_type in peft.utils.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
    config = peft.LoraConfig(
        task_type="SEQ_CLS",
        r=4,
        lora_alpha=6,
        target_modules=None if layers is None and mapped else names,
    )
    adapted = peft.get_peft_model(type(model).from_pretrained(tmp_path / "base"), config)
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.3)
    adapted.eval().save_pretrained(tmp_path / "theirs")
    expected, ours = logits(adapted, load_task(tmp_path / "theirs"))
    np.testing.assert_allclose(ours, expected, atol=3e-5, rtol=1e-4)
    assert np.abs(logits(model, load_task(tmp_path / "base"))[0] - expected).max() > 0.1

    # Ours, read there.
    encoder.enable_lora(4, alpha=6.0, layers=layers)
    rng = make_rng(2)
    task = Classifier(encoder, tokenizer, labels=LABELS, **standard(encoder))
    for weight in task.trainable_weights:
        weight.assign(rng.normal(size=weight.shape, scale=0.3))
    task.save_adapter(tmp_path / "ours", base=tmp_path / "base")
    again = peft.PeftModel.from_pretrained(
        type(model).from_pretrained(tmp_path / "base"), tmp_path / "ours"
    )
    expected, outputs = logits(again.eval(), task)
    np.testing.assert_allclose(outputs, expected, atol=3e-5, rtol=1e-4)
    their_names, our_names = (
        {name for name in tensor_names(tmp_path / folder) if "lora" in name}
        for folder in ("theirs", "ours")
    )
    assert our_names == their_names


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model_type", ["bert", "distilbert", "gpt2", "modernbert"])
@pytest.mark.parametrize(
    "options",
    [
        {"use_dora": True},
        {"bias": "all"},
        {"bias": "lora_only"},
        {"alpha_pattern": "first"},
        {"use_dora": True, "bias": "lora_only", "use_rslora": True},
    ],
    ids=str,
)
def test_further_options_are_those_of_peft(model_type, options, tmp_path):
    model = saved_reference(model_type, tmp_path / "base")
    encoder, _ = load(tmp_path / "base")
    names = list(encoder.default_lora_layers)
    if "alpha_pattern" in options:
        options = {"alpha_pattern": {names[0]: 11}}
    config = peft.LoraConfig(
        task_type="SEQ_CLS", r=4, lora_alpha=6, target_modules=names, **options
    )
    adapted = peft.get_peft_model(type(model).from_pretrained(tmp_path / "base"), config)
    for parameter in adapted.parameters():
        if parameter.requires_grad:  # magnitudes of DoRA about those of the columns of the weights
            torch.nn.init.normal_(parameter, mean=float(parameter.mean()), std=0.3)
    adapted.eval().save_pretrained(tmp_path / "theirs")
    expected, ours = logits(adapted, load_task(tmp_path / "theirs"))
    np.testing.assert_allclose(ours, expected, atol=3e-5, rtol=1e-4)
    assert np.abs(logits(model, load_task(tmp_path / "base"))[0] - expected).max() > 0.1


def standard(encoder):
    """The settings of a classifier that computes what the class of `transformers` does."""
    names = encoder.tensor_names(encoder.config).names_for("classifier")
    return {"pooling": names.pooling, "max_length": 16}


def tensor_names(folder):
    with safe_open(folder / "adapter_model.safetensors", framework="numpy") as file:
        return list(file.keys())
