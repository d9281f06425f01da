"""The direction of imports that docs/decisions.md fixes, read from the source."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent

# Every module of keras_bert belongs to one of these layers; a layer imports itself and lower ones.
LAYERS = [
    {"errors", "files"},
    {"config", "records", "masking", "text"},
    {"layers"},
    {"heads", "encoder"},
    {"tasks"},
    {"input_pipeline", "train", "export", "checkpoints", "embeddings", "pictures"},
    {"samples", "quickstart", "cli"},
]
WITHOUT_TENSORFLOW = {
    "errors", "files", "config", "masking", "layers", "heads", "encoder", "tasks", "cli"
}  # fmt: skip
TENSORFLOW = {"tensorflow", "tensorflow_text", "keras_nlp", "keras_hub"}
DATA_GEN_MAY_IMPORT = {"errors", "files", "records", "masking", "text"}

# Conveniences that look down the way: (module, imported) inside a function. None at module level.
LATE_IMPORTS = {
    ("tasks.task", "export"),
    ("tasks.task", "checkpoints"),
    ("tasks.classifier", "input_pipeline"),
    ("tasks.pretrainer", "input_pipeline"),
    ("tasks.fill_mask", "input_pipeline"),
    ("tasks.fill_mask", "train"),
}


def modules(package):
    for path in sorted((REPOSITORY / package).rglob("*.py")):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), path


def imports(path):
    """Yields (dotted name, whether at module level) for every import in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield name, id(node) not in inside


def part(dotted):
    """`keras_bert.text.tokenizer` -> `text`."""
    pieces = dotted.split(".")
    return pieces[1] if len(pieces) > 1 else ""


def rank(name):
    return next((i for i, layer in enumerate(LAYERS) if name in layer), None)


KERAS_BERT = [(name, path) for name, path in modules("keras_bert") if name != "keras_bert"]


@pytest.mark.parametrize("name, path", KERAS_BERT, ids=[name for name, _ in KERAS_BERT])
def test_keras_bert_imports_downwards_only(name, path):
    own = rank(part(name))
    assert own is not None, f"{name} is in no layer of LAYERS"
    for imported, at_module_level in imports(path):
        top = imported.split(".")[0]
        if top in {"data_gen", "apache_beam"}:
            assert part(name) in {"cli", "quickstart"} and not at_module_level, (name, imported)
        if top in TENSORFLOW and at_module_level:
            assert part(name) not in WITHOUT_TENSORFLOW, (name, imported)
            assert name != "keras_bert.text.vocabulary", (name, imported)
        if top == "keras_bert" and part(imported) in {p for layer in LAYERS for p in layer}:
            upward = rank(part(imported)) > own
            late = (name.removeprefix("keras_bert."), part(imported)) in LATE_IMPORTS
            assert not upward or (late and not at_module_level), (name, imported)


@pytest.mark.parametrize("name, path", list(modules("data_gen")), ids=lambda value: str(value))
def test_data_gen_imports_only_what_the_jobs_share_with_training(name, path):
    for imported, _ in imports(path):
        if imported.startswith("keras_bert."):
            assert part(imported) in DATA_GEN_MAY_IMPORT, (name, imported)


def loaded_after(statement):
    """The modules that a fresh process has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*sorted(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    return set(result.stdout.split())


def test_importing_the_package_and_parsing_a_command_line_load_nothing_heavy():
    loaded = loaded_after(
        "import keras_bert\n"
        "from keras_bert.cli.main import parse\n"
        "parse(['vocab', '--input', 'x', '--output', 'y', '--size', '9'])"
    )
    assert not loaded & {"tensorflow", "keras", "apache_beam", "numpy"}
