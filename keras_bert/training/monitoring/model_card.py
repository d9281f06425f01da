"""The model card: the README.md of a model folder, which the hub shows.

The metadata between the two `---` is YAML, written as one line of JSON (which is YAML) per key. The
hub's documentation of model cards lists the keys.
"""

import html
import json
import re
from pathlib import Path

import keras_bert
from keras_bert.base.files import read_json, write_text
from keras_bert.base.formatting import counted
from keras_bert.base.terminal import escaped
from keras_bert.checkpoints.pretrained_checkpoint import CONFIG, stored
from keras_bert.checkpoints.saving import CARD
from keras_bert.encoders import encoder_class, read_config
from keras_bert.tasks import KINDS

FILE = CARD
NAME = "owner/name"  # a placeholder, which `push` replaces

# What has a meaning in Markdown and not in HTML. An underscore in a word has none.
_MARKDOWN = re.compile(r"[\\`*\[\]|~]|(?<!\w)_|_(?!\w)")

# The end of an architecture's name -> (the hub's name of the task, the class of transformers).
_TASKS = {
    "ForPreTraining": ("fill-mask", "AutoModelForMaskedLM"),
    "ForMaskedLM": ("fill-mask", "AutoModelForMaskedLM"),
    "LMHeadModel": ("text-generation", "AutoModelForCausalLM"),
    "ForSequenceClassification": ("text-classification", "AutoModelForSequenceClassification"),
    "ForMultipleChoice": ("multiple-choice", "AutoModelForMultipleChoice"),
    "ForTokenClassification": ("token-classification", "AutoModelForTokenClassification"),
    "ForQuestionAnswering": ("question-answering", "AutoModelForQuestionAnswering"),
    "Model": ("feature-extraction", "AutoModel"),
}


def model_card(values, *, settings=None, metrics=None):
    """The text of a card.

    Files are named without their folders, which are private.

    Args:
        values: the dictionary of the model's `config.json`.
        settings: the settings of the run that made it, as in run.json; None where no run is known.
        metrics: the contents of metrics.json of that run.
    """
    settings, metrics = settings or {}, metrics or {}
    kept = stored(values, source=CONFIG)
    kind = kept.get("task")
    shown = _metrics(metrics)
    lines = [
        "---",
        *(f"{key}: {_yaml(value)}" for key, value in _metadata(values, settings, shown)),
        "---",
        "",
        f"# {_markdown(_title(kind, settings))}",
        "",
        f"Trained with keras-bert {_markdown(kept.get('version', keras_bert.__version__))} "
        "(`pip install keras-bert-toolkit`).",
        "",
        *_table("Training", _training(values, settings, metrics)),
        *_table(f"Metrics on {_held_out(metrics)}", [(n, f"{v:.4f}") for n, v in shown.items()]),
        *_loading(values, kind),
    ]
    return "\n".join(lines) + "\n"


def write_card(folder, *, settings, metrics):
    """Writes the `model_card` of the model that a run has trained."""
    values = read_json(Path(folder, CONFIG))
    write_text(Path(folder, FILE), model_card(values, settings=settings, metrics=metrics))


def _markdown(value):
    """A value as one line of Markdown, whatever a label or the name of a file contains."""
    text = html.escape(escaped(" ".join(str(value).split())), quote=False)
    return _MARKDOWN.sub(r"\\\g<0>", text)


def _yaml(value):
    """A value as JSON without a character that a page or a terminal could interpret."""
    return json.dumps(value).replace("<", "\\u003c")


def _metadata(values, settings, shown):
    task, _ = _of_the_hub(values)
    yield "library_name", "transformers"
    yield "tags", ["keras-bert"]
    if task is not None:
        yield "pipeline_tag", task
    base = _hub_name(settings.get("model"))
    if base:
        yield "base_model", base
    if shown and task is not None:
        data = _file_name(settings.get("dev") or settings.get("data"))
        result = {
            "task": {"type": task},
            "dataset": {"name": data, "type": data},
            "metrics": [{"type": name, "value": value} for name, value in shown.items()],
        }
        yield "model-index", [{"name": "keras-bert", "results": [result]}]


def _title(kind, settings):
    name = str(kind or "encoder").replace("-", " ")
    data = settings.get("train") or settings.get("data")
    return f"A {name}" + (f", trained on {_file_name(data)}" if data else "")


def _training(values, settings, metrics):
    start = settings.get("model")
    if start is None and settings:
        start = f"random weights ({settings.get('architecture') or 'tiny'})"
    labels = values.get("id2label")
    labels = labels if isinstance(labels, dict) else {}
    rows = [
        ("starting from", _hub_name(start) or _file_name(start)),
        ("training data", _file_name(settings.get("train") or settings.get("data"))),
        ("labels", ", ".join(map(str, labels.values()))),
        ("architecture", _sizes(values)),
        ("steps", metrics.get("steps") and f"{metrics['steps']:,}"),
        ("batch size", _phases(settings.get("batch_size"))),
        ("learning rate", settings.get("learning_rate")),
        ("max length", settings.get("max_length")),
        ("seed", settings.get("seed")),
    ]
    return [(name, value) for name, value in rows if value not in (None, "")]


def _phases(values):
    """The values of all phases, or the one value of a run."""
    return ", then ".join(map(str, values)) if isinstance(values, list) else values


def _sizes(values):
    names = ("num_hidden_layers", "hidden_size", "vocab_size")
    layers, size, tokens = (values.get(name) for name in names)
    return f"{layers} layers, hidden size {size}, {tokens:,} tokens" if tokens else ""


def _metrics(metrics):
    """The metrics of the run on held-out data, those that are numbers."""
    held_out = metrics.get("dev") or metrics.get("eval") or {}
    return {name: value for name, value in held_out.items() if isinstance(value, float)}


def _held_out(metrics):
    dev = metrics.get("dev") or {}
    if "examples" in dev:
        return f"the {counted(dev['examples'], 'dev example')}"
    return "held-out examples"


def _table(title, rows):
    if not rows:
        return []
    cells = [f"| {_markdown(name)} | {_markdown(value)} |" for name, value in rows]
    return [f"## {_markdown(title)}", "", "| | |", "|---|---|", *cells, ""]


def _loading(values, kind):
    """How to load the model with three libraries."""
    _, auto = _of_the_hub(values)
    yield from ["## How to load it", "", "With keras-bert, also from the path of a folder:", ""]
    yield from ["```python", "import keras_bert as kb", ""]
    yield f'encoder, tokenizer = kb.load("hf://{NAME}")'
    if kind in KINDS and KINDS[kind].settings is not None:
        yield f'predictions = kb.predict(model="hf://{NAME}", data="FILE")'
    yield from ["```", "", "With transformers:", "", "```python"]
    yield from [f"from transformers import {auto}, AutoTokenizer", ""]
    yield f'tokenizer = AutoTokenizer.from_pretrained("{NAME}")'
    yield from [f'model = {auto}.from_pretrained("{NAME}")', "```", ""]
    if _keras_hub_reads(values):
        yield from ["With keras-hub (the encoder):", "", "```python", "import keras_hub", ""]
        yield f'backbone = keras_hub.models.BertBackbone.from_preset("hf://{NAME}")'
    else:
        yield from ["As arrays by name, in a clone of it:", "", "```python"]
        yield from ["from safetensors.numpy import load_file", ""]
        yield 'tensors = load_file("model.safetensors")'
    yield "```"


def _keras_hub_reads(values):
    """Whether keras-hub loads the encoder: it expects a BERT's pooler within the encoder."""
    if values.get("model_type") != "bert" or not values.get("add_pooling_layer", True):
        return False
    config = read_config(values, source="config.json")
    names = encoder_class("bert").tensor_names(config)
    return names.names(_architecture(values)).transform == "pooler"


def _of_the_hub(values):
    name = _architecture(values)
    found = (task for end, task in _TASKS.items() if name.endswith(end))
    return next(found, (None, "AutoModel"))


def _architecture(values):
    return str((values.get("architectures") or ["BertModel"])[0])


def _hub_name(model):
    """`hf://owner/name@revision` -> "owner/name"; None for anything else."""
    if not isinstance(model, str) or not model.startswith("hf://"):
        return None
    return model.removeprefix("hf://").partition("@")[0]


def _file_name(path):
    """The name of a file without its folder; of several phases, all of them."""
    if isinstance(path, list):
        return ", then ".join(map(_file_name, path))
    return None if path is None else Path(str(path)).name
