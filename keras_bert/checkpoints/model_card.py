"""The model card: the README.md of a model folder, which the hub shows.

The metadata between the two `---` is YAML, written as one line of JSON (which is YAML) per key. The
hub's documentation of model cards lists the keys.
"""

import html
import json
import re
from pathlib import Path

from keras_bert.base.files import read_json, read_small, write_text
from keras_bert.base.formatting import counted
from keras_bert.base.terminal import escaped
from keras_bert.base.version import __version__
from keras_bert.checkpoints.config_json import CONFIG, stored
from keras_bert.checkpoints.model_folder import CARD
from keras_bert.checkpoints.sentence_transformers import MODULES
from keras_bert.tasks import TASKS

FILE = CARD
NAME = "owner/name"  # a placeholder, which `push` replaces

# What has a meaning in Markdown and not in HTML. An underscore in a word has none.
_MARKDOWN = re.compile(r"[\\`*\[\]|~]|(?<!\w)_|_(?!\w)")

# The end of an architecture's name -> (the hub's name of the task, the class of transformers).
_TASKS = {
    "ElectraForPreTraining": ("feature-extraction", "AutoModelForPreTraining"),
    "ForPreTraining": ("fill-mask", "AutoModelForMaskedLM"),
    "ForMaskedLM": ("fill-mask", "AutoModelForMaskedLM"),
    "LMHeadModel": ("text-generation", "AutoModelForCausalLM"),
    "ForSequenceClassification": ("text-classification", "AutoModelForSequenceClassification"),
    "ForMultipleChoice": ("multiple-choice", "AutoModelForMultipleChoice"),
    "ForTokenClassification": ("token-classification", "AutoModelForTokenClassification"),
    "ForQuestionAnswering": ("question-answering", "AutoModelForQuestionAnswering"),
    "Model": ("feature-extraction", "AutoModel"),
}


# Task type -> the hub's name of its task, whatever class the folder names.
_PIPELINES = {
    **dict.fromkeys(
        ("classifier", "pair-classifier", "regression", "relation-classifier"),
        "text-classification",
    ),
    **dict.fromkeys(
        ("tagger", "semantic-roles", "span-classifier", "coreference"), "token-classification"
    ),
    "multiple-choice": "multiple-choice",
    "question-answering": "question-answering",
    "text-embedding": "sentence-similarity",
    "causal-lm": "text-generation",
    **dict.fromkeys(
        (
            *("pretrainer", "sentence-order-pretrainer", "span-pretrainer"),
            *("fill-mask", "masked-causal-lm"),
        ),
        "fill-mask",
    ),
}
_BASE_MODEL = re.compile(r'^base_model: "?([^"\n]+)"?$', re.MULTILINE)


def model_card(config, *, name=None, settings=None, metrics=None, opens_there=False):
    """The text of a card.

    Files are named without their folders, which are private.

    Args:
        config: the dictionary of the model's `config.json`.
        name: the model's name; None is its task type.
        settings: the settings of the run that made it, as in run.json; None if no run is known.
        metrics: the contents of metrics.json of that run.
        opens_there: whether the folder is one of sentence-transformers, too.
    """
    settings, metrics = settings or {}, metrics or {}
    stored_keys = stored(config, source=CONFIG)
    task_type = stored_keys.get("task")
    name = name or str(task_type or "encoder").replace("-", " ")
    task = _PIPELINES.get(task_type) or _hub_names(config)[0]
    base = _base_model(settings.get("model"))
    shown = _metrics(metrics)
    metadata = _metadata(name, task, base, settings, shown, opens_there=opens_there)
    lines = [
        "---",
        *(f"{key}: {_yaml(value)}" for key, value in metadata),
        "---",
        "",
        f"# {_markdown(name)}",
        "",
        f"{_markdown(_described(task_type, base, settings))} Made with keras-bert "
        f"{_markdown(stored_keys.get('version', __version__))}.",
        "",
        *_table("Training", _training(config, base, settings, metrics)),
        *_table(f"Metrics on {_held_out(metrics)}", [(n, f"{v:.4f}") for n, v in shown.items()]),
        *_loading(config, task_type, task, name, opens_there=opens_there),
    ]
    return "\n".join(lines) + "\n"


def write_card(folder, *, settings, metrics):
    """Writes the `model_card` of the model that a run has trained, named like the run."""
    path = Path(folder).resolve()
    name = path.parent.name if path.name == "model" else path.name
    card = model_card(
        read_json(path / CONFIG),
        name=name,
        settings=settings,
        metrics=metrics,
        opens_there=(path / MODULES).exists(),
    )
    write_text(path / FILE, card)


def _markdown(value):
    """A value as one line of Markdown, whatever a label or the name of a file contains."""
    text = html.escape(escaped(" ".join(str(value).split())), quote=False)
    return _MARKDOWN.sub(r"\\\g<0>", text)


def _yaml(value):
    """A value as JSON without a character that a page or a terminal could interpret."""
    return json.dumps(value).replace("<", "\\u003c")


def _metadata(name, task, base, settings, shown, *, opens_there):
    yield "library_name", "sentence-transformers" if opens_there else "transformers"
    tags = ["sentence-transformers", "sentence-similarity", "feature-extraction", "dense"]
    yield "tags", [*(tags if opens_there else []), "keras-bert"]
    if task is not None:
        yield "pipeline_tag", task
    if base:
        yield "base_model", base
    if shown and task is not None:
        data = _file_name(settings.get("dev") or settings.get("data"))
        result = {
            "task": {"type": task},
            "dataset": {"name": data, "type": data},
            "metrics": [{"type": name, "value": value} for name, value in shown.items()],
        }
        yield "model-index", [{"name": name, "results": [result]}]


def _described(task_type, base, settings):
    """Says what the model is, in a sentence."""
    title = str(task_type or "encoder").replace("-", " ")
    data = _file_name(settings.get("train") or settings.get("data"))
    article = "An" if title[0] in "aeio" else "A"
    trained = f", trained on {data}" if data else ""
    return f"{article} {title}{trained}{f', from the base model {base}' if base else ''}."


def _base_model(model):
    """The name on the hub of the model that a run started from, or of that model's own base."""
    if not isinstance(model, str):
        return None
    if model.startswith("hf://"):
        return model.removeprefix("hf://").partition("@")[0]
    for card in (Path(model, FILE), Path(model, "model", FILE)):
        if card.is_file():
            match = _BASE_MODEL.search(read_small(card).decode("utf-8", errors="replace"))
            return match and match[1]
    return None


def _training(config, base, settings, metrics):
    labels = config.get("id2label")
    labels = labels if isinstance(labels, dict) else {}
    rows = [
        ("base model", base),
        ("starting from", _start(settings)),
        ("training data", _file_name(settings.get("train") or settings.get("data"))),
        ("labels", ", ".join(map(str, labels.values()))),
        ("architecture", _sizes(config)),
        ("steps", metrics.get("steps") and f"{metrics['steps']:,}"),
        ("batch size", _phases(settings.get("batch_size"))),
        ("learning rate", settings.get("learning_rate")),
        ("max length", settings.get("max_length")),
        ("seed", settings.get("seed")),
    ]
    return [(name, value) for name, value in rows if value not in (None, "")]


def _start(settings):
    """Names what a run started from, unless that is a model of the hub, the card's base model."""
    model = settings.get("model") or settings.get("student")
    if architecture := settings.get("architecture"):
        return f"random weights ({_file_name(architecture)})"
    if model is None and "model" in settings:
        return "random weights"
    return None if str(model).startswith("hf://") else _file_name(model)


def _phases(setting):
    """The values of all phases, or the one value of a run."""
    return ", then ".join(map(str, setting)) if isinstance(setting, list) else setting


def _sizes(config):
    """The sizes that the family's config.json has by BERT's names."""
    names = ("num_hidden_layers", "hidden_size", "vocab_size")
    layers, size, tokens = (config.get(name) for name in names)
    parts = [
        layers and counted(layers, "layer"),
        size and f"hidden size {size}",
        tokens and f"{tokens:,} tokens",
    ]
    return ", ".join(filter(None, parts)) if tokens else ""


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


def _loading(config, task_type, task, name, *, opens_there):
    """How to load the model with three libraries."""
    _, auto = _hub_names(config)
    is_finetuned = task_type in TASKS and TASKS[task_type].settings is not None
    yield from ["## How to load it", "", "With keras-bert, also from the path of a folder:", ""]
    yield from ["```python", "import keras_bert as kb", ""]
    if task_type == "text-embedding":
        yield f'embedder = kb.load_task("hf://{NAME}")'
        yield 'vectors = embedder.encode(["A text.", "Another one."])'
    else:
        yield f'encoder, tokenizer = kb.load("hf://{NAME}")'
    if is_finetuned and task_type != "text-embedding":
        yield f'predictions = kb.predict(model="hf://{NAME}", data="FILE")'
    if opens_there:
        yield from ["```", "", "With sentence-transformers, the same vectors:", "", "```python"]
        yield from ["from sentence_transformers import SentenceTransformer", ""]
        yield f'model = SentenceTransformer("{NAME}")'
        yield 'vectors = model.encode(["A text.", "Another one."])'
    alone = (
        ", the encoder without the head" if task_type is not None and auto == "AutoModel" else ""
    )
    yield from ["```", ""]
    if task_type != "text-embedding" or _architecture(config).endswith("Model"):
        yield from [f"With transformers{alone}:", "", "```python"]
        yield from [f"from transformers import {auto}, AutoTokenizer", ""]
        yield f'tokenizer = AutoTokenizer.from_pretrained("{NAME}")'
        yield from [f'model = {auto}.from_pretrained("{NAME}")', "```", ""]
    if is_finetuned or task == "fill-mask":
        folder = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "model"
        yield from ["With TensorFlow Serving, which takes strings:", "", "```bash"]
        yield f"keras-bert export --model hf://{NAME} --output savedmodels/{folder}"
        yield 'docker run --rm -p 8501:8501 -v "$PWD/savedmodels:/models" \\'
        yield "  tensorflow/serving:2.19.1 --model_config_file=/models/models.config"
    else:
        yield from ["With sentence-transformers, as the mean of the tokens:", "", "```python"]
        yield from ["from sentence_transformers import SentenceTransformer", ""]
        yield f'vectors = SentenceTransformer("{NAME}").encode(["A text."])'
    yield "```"


def _hub_names(config):
    name = _architecture(config)
    tasks = (task for end, task in _TASKS.items() if name.endswith(end))
    return next(tasks, (None, "AutoModel"))


def _architecture(config):
    return str((config.get("architectures") or ["BertModel"])[0])


def _file_name(path):
    """The name of a file without its folder; of several phases, all of them."""
    if isinstance(path, list):
        return ", then ".join(map(_file_name, path))
    return None if path is None else Path(str(path)).name
