"""The direction of imports that docs/architecture.md fixes, read from the source."""

import ast
import fnmatch
import functools
import subprocess
import sys
from importlib import import_module
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

# Every module of keras_bert is of the first of these ranks that has a pattern of it; a module
# imports its own rank and lower ones. What a family of tasks needs of TensorFlow, its features and
# signatures, has a rank above the input pipeline; the rest of the family is below.
ABOVE_TASKS = (
    *("tasks.*.features", "tasks.*.generation", "tasks.*.records", "tasks.*.signatures"),
    *("tasks.signatures", "tasks.outputs"),
)
RANKS = [
    ("base", "base.*"),
    ("text", "text.*"),
    ("records", "records.*", "readers", "readers.*"),
    ("layers", "layers.*"),
    ("heads", "heads.*"),
    ("encoders", "encoders.*"),
    ("programs", "programs.*"),
    # With the search that ranks documents.
    ("tasks", "tasks.*", "optimizers", "optimizers.*", "search.vectors"),
    ("checkpoints", "checkpoints.*", "inputs", "inputs.*"),
    ABOVE_TASKS,
    ("inference", "inference.*"),
    ("search", "search.*"),
    ("training", "training.*", "sklearn", "diagnosis"),
    ("exports", "exports.*"),
    ("pictures", "pictures.*", "samples", "samples.*", "serving", "serving.*"),
    ("cli", "cli.*", "__main__"),
]

# What builds, trains, saves and loads under JAX if no TensorFlow is installed.
WITHOUT_TENSORFLOW = {
    "base",
    "layers",
    "heads",
    "encoders",
    "tasks",
    "optimizers",
    "checkpoints",
    "cli",
}
# Single modules of parts that may import it.
LIGHT = {
    *("text.vocabulary", "text.vocabularies.*", "text.hugging_face", "text.tokenizer_json"),
    *("text.template", "text.steps", "text.sentencepiece_model", "text.sentencepiece_files"),
    *("text.vocabulary_files", "text.learners", "text.unigram_learner", "records.masking"),
    "training.costs",
}
TENSORFLOW = {"tensorflow", "tensorflow_text", "keras_nlp", "keras_hub"}
DATA_GEN_MAY_IMPORT = {"base", "records", "text"}
# A job that predicts or embeds: what its workers compute with, imported inside functions.
INFERENCE_JOB = "data_gen.inference"

# Conveniences that look up the way: (module, what is imported), one line inside a function.
LATE_IMPORTS = {
    ("text.tokenizer", "inputs.framing"),
    ("tasks.storing", "checkpoints.model_folder"),
    ("tasks.storing", "exports.saved_model"),
    ("tasks.text_embedding.text_embedder", "inference.encode"),
    ("tasks.pretraining.pretrainer", "inference.fill_mask"),
    ("tasks.pretraining.language_models", "tasks.pretraining.generation"),
    ("tasks.pretraining.language_models", "inference.generate"),
}
# The class attributes of tasks that name what `Task` calls as "module:function".
NAMED_BY_TASKS = {"FEATURES", "SIGNATURES", "SENTENCE_SIGNATURE", "INFERENCE"}


def modules(package):
    """{dotted name: path} of a package; a package itself has its folder's name."""
    paths = {}
    for path in sorted((REPOSITORY / package).rglob("*.py")):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        paths[".".join(part for part in parts if part != "__init__")] = path
    return paths


KERAS_BERT = modules("keras_bert")
DATA_GEN = modules("data_gen")
EVERY = {**KERAS_BERT, **DATA_GEN}


@functools.cache
def imports(path):
    """A list of (dotted name of what is imported, whether at module level) of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    imported = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        imported += [(module_of(name), id(node) not in inside) for name in names]
    return imported


def module_of(name):
    """`keras_bert.text.tokenizer.Tokenizer`, or `keras_bert.text.Tokenizer`, whose package brings
    it in when it is used, -> `keras_bert.text.tokenizer`."""
    part = None
    while name not in EVERY and "." in name and name.split(".")[0] in ("keras_bert", "data_gen"):
        name, _, part = name.rpartition(".")
    return lazy_homes(name).get(part, name)


@functools.cache
def lazy_homes(package):
    """Name -> the module that defines it, of a package that brings it in when it is used."""
    if package not in EVERY or "lazy_names(" not in EVERY[package].read_text(encoding="utf-8"):
        return {}
    return getattr(import_module(package), "_HOMES", {})


def short(name):
    return name.removeprefix("keras_bert.")


def rank(name):
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in ABOVE_TASKS):
        return RANKS.index(ABOVE_TASKS)
    for number, patterns in enumerate(RANKS):
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            return number
    return None


MODULES = [name for name in KERAS_BERT if name != "keras_bert"]


def every_import(of):
    """Yields (name of the module, what it imports, whether at module level)."""
    for name, path in of.items():
        for imported, at_module_level in imports(path):
            yield name, imported, at_module_level


def test_every_module_has_a_rank():
    assert [name for name in MODULES if rank(short(name)) is None] == []


def test_imports_point_down_but_for_listed_conveniences():
    for name, imported, at_module_level in every_import(KERAS_BERT):
        if name == "keras_bert":
            continue
        if imported in ("data_gen", "apache_beam") or imported.startswith("data_gen."):
            assert short(name).split(".")[0] in {"cli", "samples"}, (name, imported)
            assert not at_module_level, (name, imported)
        if imported.startswith("keras_bert.") and rank(short(imported)) > rank(short(name)):
            assert (short(name), short(imported)) in LATE_IMPORTS, (name, imported)
            assert not at_module_level, (name, imported)


def test_the_listed_conveniences_are_there():
    upward = {
        (short(name), short(imported))
        for name in MODULES
        for imported, _ in imports(KERAS_BERT[name])
        if imported.startswith("keras_bert.") and rank(short(imported)) > rank(short(name))
    }
    assert upward == LATE_IMPORTS


def test_tasks_name_features_and_signatures_of_their_own_family():
    """A module that a task names as a text is loaded when first called, as a late import is."""
    named = set()
    for name, path in KERAS_BERT.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
                continue
            if NAMED_BY_TASKS.isdisjoint(getattr(target, "id", None) for target in node.targets):
                continue
            if isinstance(node.value.value, str):
                module, _, function = node.value.value.partition(":")
                family = name.rpartition(".")[0]
                assert rank(short(name)) == rank("tasks.task"), name
                assert module.startswith(f"{family}.") or short(module).startswith("inputs."), name
                assert function in defined_in(KERAS_BERT[module]), (name, function)
                named.add(node.value.value)
    assert len(named) > 10


def test_modules_above_tasks_ask_a_task_what_it_offers():
    """And not whether it is of the class of one kind, which a new kind would not be."""
    for name, path in KERAS_BERT.items():
        if name == "keras_bert" or rank(short(name)) <= rank("tasks.task"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        kinds = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("keras_bert.tasks.")
            for alias in node.names
        } - {"Task"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", 0) == "isinstance":
                asked = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
                assert not asked & kinds, (name, node.lineno, asked & kinds)


def test_what_runs_under_jax_imports_no_tensorflow():
    for name, imported, at_module_level in every_import(KERAS_BERT):
        part = short(name).split(".")[0]
        is_light = (
            any(fnmatch.fnmatchcase(short(name), pattern) for pattern in LIGHT)
            or part in WITHOUT_TENSORFLOW
        )
        if is_light and rank(short(name)) != RANKS.index(ABOVE_TASKS) and at_module_level:
            assert imported.split(".")[0] not in TENSORFLOW, (name, imported)


def test_data_gen_imports_only_what_the_jobs_share_with_training():
    for name, imported, at_module_level in every_import(DATA_GEN):
        if imported.startswith("keras_bert."):
            part = short(imported).split(".")[0]
            is_late = name == INFERENCE_JOB and not at_module_level
            may_import = part in DATA_GEN_MAY_IMPORT or (
                is_late and part in {"checkpoints", "inference", "search"}
            )
            assert may_import, (name, imported)


def test_no_module_imports_itself_through_others():
    """At module level, for types or inside a function."""
    needs = {
        name: {imported for imported, _ in imports(path) if imported in EVERY} - {name}
        for name, path in EVERY.items()
    }
    done, open_ = set(), []

    def visit(name):
        assert name not in open_, " -> ".join([*open_[open_.index(name) :], name])
        if name in done:
            return
        open_.append(name)
        for other in sorted(needs[name]):
            visit(other)
        open_.pop()
        done.add(name)

    for name in EVERY:
        visit(name)


# BERT, and the checkpoint formats that are its alone.
# RoBERTa is a BERT with other positions and heads.
KNOW_BERT = (
    *("encoders.bert", "encoders.bert.*", "encoders.roberta", "encoders.roberta.*"),
    *("checkpoints.google", "checkpoints.keras_nlp"),
)
TABLE_OF_BERT = "keras_bert.encoders.bert.tensor_names"  # has parts of its relatives' tables
# How a BERT calls its layers.
LAYERS_OF_BERT = {"embeddings", "blocks"}


def test_only_its_own_formats_know_of_bert():
    """Everybody else asks `keras_bert.encoders` for an encoder, and knows `Encoder` alone."""
    for name, path in KERAS_BERT.items():
        if any(fnmatch.fnmatchcase(short(name), pattern) for pattern in KNOW_BERT):
            continue
        is_encoder = short(name).startswith("encoders.")
        for imported, _ in () if name == "keras_bert" else imports(path):
            if not (is_encoder and imported == TABLE_OF_BERT):
                assert not f"{imported}.".startswith("keras_bert.encoders.bert."), (name, imported)
        if is_encoder or short(name).startswith("layers."):
            continue  # others have layers of these names, too, and layers do not reach encoders
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in LAYERS_OF_BERT:
                owner = ast.unparse(node.value).split(".")[-1]
                read = node.attr != "embeddings" or owner.endswith(("encoder", "model"))
                assert not read, (name, node.lineno, ast.unparse(node))


def test_only_kernels_ask_which_processor_they_are_for():
    """Exports say what a graph is for; an LSTM of Keras's has an argument for it.

    Fine-tuning asks where it chooses whether XLA compiles its steps.
    """
    program = "keras_bert.layers.kernels.program"
    for name, path in KERAS_BERT.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == program:
                asked = {alias.name for alias in node.names}
                asked -= {"for_litert", "for_servers", "use_cudnn"}
                asked -= {"device"} if short(name) == "training.finetuning_task" else set()
                assert short(name).startswith("layers.kernels.") or not asked, (name, asked)


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
    assert not loaded & {"tensorflow", "keras", "apache_beam", "numpy", "tokenizers"}


def test_the_parts_of_a_run_load_nothing_heavy():
    """The settings import them, and whoever asks for a command's help imports those."""
    parts = [name for name in MODULES if name.startswith("keras_bert.training.parts.")]
    loaded = loaded_after(f"import {', '.join(parts)}")
    assert len(parts) > 10 and not loaded & {"tensorflow", "keras", "numpy"}


def test_a_data_job_loads_tokenizers_only_to_write_a_file_of_theirs():
    assert "tokenizers" not in loaded_after("import data_gen.pretraining_data")


def test_a_public_name_is_the_same_whenever_it_is_asked_for():
    """A module of the same name would take its place once it is imported."""
    import keras_bert

    first = {name: getattr(keras_bert, name) for name in keras_bert.__all__}
    for name, value in first.items():
        assert getattr(keras_bert, name) is value and type(value) is not type(sys), name


def defined_in(path):
    """The names that a module has at its top, or whatever it is asked for if they are lazy."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and "lazy_names" in names:
            names.add(node.value)
    return names


def test_what_scripts_import_of_ours_is_there():
    """Benchmarks and the docs' pictures are run by hand: a module that moved would break them."""
    for path in [*REPOSITORY.glob("benchmarks/*.py"), *REPOSITORY.glob("docs/images/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in (
                "keras_bert",
                "data_gen",
            ):
                assert node.module in EVERY, (path.name, node.module)
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}" in EVERY
                    is_there = submodule or alias.name in defined_in(EVERY[node.module])
                    assert is_there, (path.name, node.module, alias.name)
