"""Rules for every notebook, whether it is run or not."""

import ast
import re

MAX_BYTES = 200_000
_MAX_LINES = 24  # of a cell

# Packages that a user of the library has, and the parts of ours that are for them.
_OURS = ("keras_bert", "data_gen")
_OPEN = re.compile(r"keras_bert|keras_bert\.samples(\.\w+)*")
_PROGRAMS = ("subprocess", "multiprocessing", "pty")
_CALLS = ("system", "popen", "Popen", "get_ipython")

# What a path of somebody's machine begins with.
_PATHS = re.compile(r"(?<![\w.])/(?:home|root|Users|tmp|usr|opt|var|private|mnt|work)/[^\s\"'<]*")


def problems(notebook):
    """Sentences on what is wrong with a notebook as it is."""
    found = []
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "code":
            found += [f"cell {number}: {sentence}" for sentence in _code_errors(cell.source)]
    return found


def problems_of_outputs(notebook):
    """Sentences on outputs that were kept and name a path of the machine that made them."""
    found = []
    for number, cell in enumerate(notebook.cells, start=1):
        for text in _texts(cell.get("outputs", ())):
            found += [f"cell {number}: the output names {path}." for path in _PATHS.findall(text)]
    return found


def problem_of_size(path, size):
    """A list of a sentence, if a notebook is too large to be kept."""
    if size <= MAX_BYTES:
        return []
    return [f"{path.name} has {size:,} bytes; {MAX_BYTES:,} are allowed: draw less, or smaller."]


def _code_errors(source):
    lines = source.splitlines()
    magic = [line.strip() for line in lines if line.lstrip().startswith(("!", "%"))]
    for line in magic:
        yield f"{line!r} is not Python; a notebook here works wherever Python does."
    if magic:
        return
    if len(lines) > _MAX_LINES:
        yield f"{len(lines)} lines are too many for a cell; split it."
    for node in ast.walk(ast.parse(source)):
        yield from _node_errors(node)


def _node_errors(node):
    if isinstance(node, ast.Import):
        for name in node.names:
            yield from _import_errors(name.name)
    elif isinstance(node, ast.ImportFrom):
        yield from _import_errors(node.module)
        for name in node.names:
            if name.name.startswith("_"):
                yield f"{name.name} is a private name."
    elif isinstance(node, ast.Attribute):
        if node.attr.startswith("_") and not node.attr.endswith("__"):
            yield f"{node.attr} is a private name."
        if node.attr in _CALLS:
            yield f"{node.attr} starts a program; there is a call in Python."


def _import_errors(module):
    package = module.split(".")[0]
    if package in _PROGRAMS:
        yield f"{module} starts programs; there is a call in Python."
    if any(part.startswith("_") for part in module.split(".")):
        yield f"{module} is a private module."
    elif package in _OURS and not _OPEN.fullmatch(module):
        yield f"{module} is not public; public names are kb.NAME."


def _texts(outputs):
    for output in outputs:
        if "text" in output:
            yield output.text
        for kind, data in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield data
