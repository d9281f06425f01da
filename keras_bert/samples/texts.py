"""English text that is in every installation: Python's manual, and docstrings.

`pydoc_data.topics`, Python's manual, is a dict of name -> text that Sphinx rendered for the
terminal: prose with hard line breaks, headings, signatures, grammar, tables and examples, of which
the prose is kept. The docstrings of Python, Keras and NumPy are ten times as much prose.
"""

import ast
import importlib.util
import re
import sysconfig
import textwrap
from collections.abc import Mapping
from pathlib import Path

from keras_bert.base.errors import InputError

_WIDTH = 72
_MIN_WORDS = 5
# Of the characters of a paragraph, this many must be letters or spaces; code and tables have fewer.
_MIN_LETTERS = 0.8
_BULLET = re.compile(r"(?:[*\-•]|\d+\.|\[\d+\])\s+")
_FOOTNOTE_MARK = re.compile(r"\s\[\d+\](?=[\s.,;:)]|$)")
# *emphasis* and **strong** around words, but neither `*args` nor the operators "*" and "**".
_EMPHASIS = re.compile(r"(?<![\w\"'*])(\*\*?)(?=[A-Za-z])([^*\"]*[\w.:])\1(?![\w*])")
_SENTENCE_END = re.compile(r"[.:?!][\"'”’)\]]*$")


def write_manual(folder) -> list[Path]:
    """Writes the manual into `folder`, one file per topic, and returns the paths, sorted.

    The files are UTF-8, with paragraphs separated by blank lines and lines of at most 72 characters
    (unless one word is longer). Raises InputError if Python was installed without its manual.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise InputError(
            "This Python was installed without its manual (the module pydoc_data.topics). "
            "Install the whole standard library."
        ) from None
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, paragraphs in documents(topics).items():
        path = folder / f"{name}.txt"
        text = "\n\n".join(
            textwrap.fill(paragraph, _WIDTH, break_long_words=False, break_on_hyphens=False)
            for paragraph in paragraphs
        )
        path.write_text(text + "\n", encoding="utf-8")
        paths.append(path)
    return sorted(paths)


def documents(topics: Mapping[str, str]) -> dict[str, list[str]]:
    """The prose of each topic as a list of paragraphs, without line breaks.

    Many topics are a section of a longer one, word for word. A paragraph is kept once, in the
    longest topic that has it, so that no held-out text is training text; empty topics are left out.
    """
    seen = set()
    distinct = {}
    for name in sorted(topics, key=lambda name: (-len(topics[name]), name)):
        paragraphs = []
        for paragraph in prose(topics[name]):
            if paragraph not in seen:
                seen.add(paragraph)
                paragraphs.append(paragraph)
        if paragraphs:
            distinct[name] = paragraphs
    return distinct


def prose(text: str) -> list[str]:
    """The paragraphs of running English in a topic, without decoration and line breaks.

    Left out are headings, signatures, tables, grammar and examples (an indented block after a
    paragraph that ends in a colon).
    """
    paragraphs = []
    example_under = None  # the indent of the paragraph that announced an example
    for block in re.split(r"\n\s*\n", text.expandtabs()):
        lines = block.strip("\n").splitlines()
        if not lines:
            continue
        indent = _indent(lines[0])
        is_item = _BULLET.match(lines[0].lstrip()) is not None
        if example_under is not None and indent > example_under and not is_item:
            continue
        paragraph = _clean(_without_term(lines))
        announces = paragraph.endswith(":") and len(paragraph.split()) > 2  # more than "See also:"
        example_under = indent if announces else None
        if _is_prose(paragraph):
            paragraphs.append(paragraph)
    return paragraphs


def _without_term(lines):
    """The lines of a block without the term above an indented definition."""
    item = _BULLET.match(lines[0].lstrip())
    if len(lines) > 1 and item is None and _indent(lines[1]) > _indent(lines[0]):
        return lines[1:]
    return lines


def _clean(lines):
    text = "\n".join(line.strip() for line in lines)
    text = _BULLET.sub("", text, count=1) if _BULLET.match(text) else text
    text = re.sub(r"(?<=\w)-\n(?=\w)", "-", text)  # a compound word split at the end of a line
    text = re.sub(r"\s+", " ", text)
    return _FOOTNOTE_MARK.sub("", _EMPHASIS.sub(r"\2", text))


def _is_prose(paragraph):
    if len(paragraph.split()) < _MIN_WORDS or not _SENTENCE_END.search(paragraph):
        return False
    if "::=" in paragraph or paragraph.startswith((">>>", "|", "+-")):
        return False
    letters = sum(character.isalpha() or character == " " for character in paragraph)
    return letters >= _MIN_LETTERS * len(paragraph)


def _indent(line):
    return len(line) - len(line.lstrip())


PACKAGES = ("python", "keras", "numpy")

_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NOT_READ = {"site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo"}


def write_docstrings(folder, packages=PACKAGES) -> list[Path]:
    """Writes the prose of docstrings into `folder`, one file per module; returns the paths, sorted.

    The files are UTF-8 with paragraphs separated by blank lines, and called `PACKAGE.MODULE.txt`. A
    paragraph is kept only where it is first found. "python" is the standard library. Nothing is
    imported; the tests of packages are left out. Raises InputError for a package that is not
    installed.
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
            texts = [text for docstring in _docstrings(source) for text in prose(docstring)]
            paragraphs = [text for text in dict.fromkeys(texts) if text not in seen]
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
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"The package {package} is not installed. Its docstrings were to be read.")
    return Path(spec.submodule_search_locations[0])


def _docstrings(source):
    """The docstrings of a module and of what it defines; none if it does not parse."""
    try:
        defined = [ast.parse(source.read_bytes())]
    except (SyntaxError, ValueError):
        return
    while defined:
        node = defined.pop()
        docstring = ast.get_docstring(node)
        if docstring:
            yield docstring
        # Not `ast.walk`, which visits every name and number and takes longer than parsing.
        defined += [child for child in reversed(node.body) if isinstance(child, _DEFINITIONS)]
