"""What every notebook keeps to, whether it is run or not."""

import ast
import re

from notebooks.figures import unbound

MOST_BYTES = 200_000
_MOST_LINES = 24  # of a cell

# Packages that a user of the library has, and the parts of ours that are for them.
_OURS = ("keras_bert", "data_gen")
_OPEN = re.compile(r"keras_bert|keras_bert\.samples(\.\w+)*|data_gen\.\w+")
_PROGRAMS = ("subprocess", "multiprocessing", "pty")
_CALLS = ("system", "popen", "Popen", "get_ipython")

# What a path of somebody's machine begins with.
_PLACES = re.compile(r"(?<![\w.])/(?:home|root|Users|tmp|usr|opt|var|private|mnt|work)/[^\s\"'<]*")


def offences(notebook):
    """Sentences on what is wrong with a notebook as it lies there."""
    found = []
    for number, cell in enumerate(notebook.cells, start=1):
        said = _of_text(cell.source) if cell.cell_type == "markdown" else _of_code(cell.source)
        found += [f"cell {number}: {sentence}" for sentence in said]
    return found


def offences_of_outputs(notebook):
    """Sentences on outputs that were kept and name a place on the machine that made them."""
    found = []
    for number, cell in enumerate(notebook.cells, start=1):
        for text in _texts(cell.get("outputs", ())):
            found += [
                f"cell {number}: the output names {place}." for place in _PLACES.findall(text)
            ]
    return found


def offence_of_size(path, size):
    """A list of a sentence, where a notebook is too large to be kept."""
    if size <= MOST_BYTES:
        return []
    return [f"{path.name} has {size:,} bytes; {MOST_BYTES:,} are allowed: draw less, or smaller."]


def _of_text(markdown):
    for figure in unbound(markdown):
        yield f'nothing checks the figure "{figure}"; bind it as notebooks/figures.py says.'


def _of_code(source):
    lines = source.splitlines()
    magic = [line.strip() for line in lines if line.lstrip().startswith(("!", "%"))]
    for line in magic:
        yield f"{line!r} is no Python; a notebook here works wherever Python does."
    if magic:
        return
    if len(lines) > _MOST_LINES:
        yield f"{len(lines)} lines are many for a cell; part it."
    for node in ast.walk(ast.parse(source)):
        yield from _of_node(node)


def _of_node(node):
    if isinstance(node, ast.Import):
        for name in node.names:
            yield from _of_import(name.name)
    elif isinstance(node, ast.ImportFrom):
        yield from _of_import(node.module)
        for name in node.names:
            if name.name.startswith("_"):
                yield f"{name.name} is a private name."
    elif isinstance(node, ast.Attribute):
        if node.attr.startswith("_") and not node.attr.endswith("__"):
            yield f"{node.attr} is a private name."
        if node.attr in _CALLS:
            yield f"{node.attr} starts a program; there is a call in Python."


def _of_import(module):
    package = module.split(".")[0]
    if package in _PROGRAMS:
        yield f"{module} starts programs; there is a call in Python."
    if any(part.startswith("_") for part in module.split(".")):
        yield f"{module} is a private module."
    elif package in _OURS and not _OPEN.fullmatch(module):
        yield f"{module} is none of the public names: those are kb.NAME."


def _texts(outputs):
    for output in outputs:
        if "text" in output:
            yield output.text
        for kind, data in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield data
