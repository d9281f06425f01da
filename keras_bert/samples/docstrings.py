"""Docstrings that every installation carries, as plain text: Python's, Keras's and NumPy's.

The manual alone is too little to learn a language from. These are ten times as much, of English
that is written for people, in files that are there wherever this package is.
"""

import ast
import importlib.util
import sysconfig
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.samples.manual import prose

PACKAGES = ("python", "keras", "numpy")

_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NOT_READ = {"site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo"}


def write_docstrings(folder, packages=PACKAGES) -> list[Path]:
    """Writes the prose of docstrings into `folder`, a module a file; returns the paths, sorted.

    The files are UTF-8 with paragraphs parted by blank lines, and called `PACKAGE.MODULE.txt`. A
    paragraph is kept where it stands first, and left out wherever else it stands. "python" is the
    standard library. Nothing is imported; the tests of packages are left out. Raises InputError for
    a package that is not installed.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    seen, paths = set(), []
    for package in packages:
        root = _root(package)
        for source in sorted(root.rglob("*.py")):
            module = source.relative_to(root).with_suffix("").parts
            if not _NOT_READ.isdisjoint(module) or module[-1].endswith("_test"):
                continue
            found = [text for text in _docstrings(source) for text in prose(text)]
            # In order, each once, and none that stands elsewhere.
            paragraphs = [text for text in dict.fromkeys(found) if text not in seen]
            seen.update(paragraphs)
            if paragraphs:
                path = folder / f"{'.'.join((package, *module))}.txt"
                path.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
                paths.append(path)
    return sorted(paths)


def _root(package):
    """The folder of a package's modules."""
    if package == "python":
        return Path(sysconfig.get_paths()["stdlib"])
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise InputError(f"There is no package {package} here, whose docstrings to read.")
    return Path(found.submodule_search_locations[0])


def _docstrings(source):
    """The docstrings of a module and of what it defines; none where it does not parse."""
    try:
        defined = [ast.parse(source.read_bytes())]
    except (SyntaxError, ValueError):
        return
    while defined:
        node = defined.pop()
        docstring = ast.get_docstring(node)
        if docstring:
            yield docstring
        # Not `ast.walk`, which looks at every name and number: it takes longer than to parse.
        defined += [child for child in reversed(node.body) if isinstance(child, _DEFINITIONS)]
