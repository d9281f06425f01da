"""Docs, help texts, messages and notebooks are in the words of the field."""

import ast
import functools
import json
import re

import pytest

import keras_bert
from keras_bert.cli.main import make_parser
from keras_bert.tasks import finetuned_task_types
from tests.docs.pages import PAGES, REPOSITORY

# What is not written, and what is written instead.
WORDS = {
    r"figures?": "metric",
    r"(the|a|an|its|their|own|no|what) shares?|shares? of": "fraction",
    r"pieces?": "token",
    r"blocks?": "layer",
    r"chances (of|for)|likeliest|surest": "probability, most probable, most confident",
    r"mistakes?": "error",
    r"oddit(y|ies)|amiss": "warning, problem",
    r"parted|thaw(s|ed|ing)?|salvaged?": "split, unfreeze, recover",
    r"unbroken": "uninterrupted",
    r"(goes|go|went|going) on|(begins?|began|start) anew": "resume, start over",
    r"by hand|in turns|laws?": "one-off, interleaved, invariant",
    r"aside": "temporary",
    r"(stands?|lies|lie) (in|at|on|there|beside|below|above|for|as)": "is",
    r"(is|are) none|(is|are) no \w+|that cannot be|of ours": "what is expected, in a sentence",
    r"beside": "with, in addition to, compared with",
    r"(tokens|rows|examples|texts|lines|records|requests|steps|labels?|tags?|words?|images) an? "
    r"(second|row|text|line|word|sentence|example|label|batch|step|document)": "per",
    r"told by": "detected from",
    r"refus(e|es|ed|al|als)": "reject, raise an error",
    r"company|dear|surely": "plain words",
    r"(a|the) wish": "request",
    r"random fields?": "CRF",
    r"word frequencies": "unigram baseline",
}
PATTERN = re.compile(
    "|".join(rf"(?P<w{n}>\b(?:{words})\b)" for n, words in enumerate(WORDS)), re.IGNORECASE
)
# What the words above also are.
ALLOWED = re.compile(
    r"conditional random fields?|TransformerBlock|code blocks?|building blocks?|Figure \d|"
    r"connection refused|is no longer|are no longer|is no more than|figure caption|"
    r"figure fraction|sentencepiece|"
    r"there is no (model |data |settings )?(file|folder|checkpoint|relation|release)\b",
    re.IGNORECASE,
)
NO_PAGES = ("CHANGELOG.md",)
# The folders of Python files of which somebody reads the docstrings and comments.
SOURCES = ("keras_bert", "data_gen", "tests", "benchmarks", "notebooks", "docs")


def avoided(text):
    """The words of a text that are on the list, each with what to write."""
    text = ALLOWED.sub("", " ".join(text.split()))
    return [
        f"{m[0]!r}: {list(WORDS.values())[int(m.lastgroup[1:])]}" for m in PATTERN.finditer(text)
    ]


def prose(text):
    """Markdown without code."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>", "", text)


def test_words_are_found():
    assert avoided("the share of tokens a second") == [
        "'the share': fraction",
        "'tokens a second': per",
    ]
    assert avoided("a conditional random field") == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in NO_PAGES], ids=lambda page: page.name
)
def test_pages(page):
    lines = prose(page.read_text(encoding="utf-8")).split("\n\n")
    assert [(word, " ".join(line.split())[:90]) for line in lines for word in avoided(line)] == []


@pytest.mark.parametrize("path", sorted(REPOSITORY.glob("notebooks/*.ipynb")), ids=lambda p: p.name)
def test_notebooks(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert [(word, text[:90]) for text in texts for word in avoided(prose(text))] == []


def test_help_texts():
    parsers = dict(make_parser([])[1])
    for kind in finetuned_task_types():
        parsers[kind] = make_parser(["finetune", "--task", kind])[1]["finetune"]
    texts = {
        (name, parser.prog, action.dest, action.help or "")
        for name, parser in parsers.items()
        for action in parser._actions
    } | {(name, "", "", parser.description or "") for name, parser in parsers.items()}
    assert [(word, *text) for text in sorted(texts) for word in avoided(text[-1])] == []


@functools.cache
def messages():
    """The texts in the source that a user may read: strings of several words, no docstrings."""
    texts = []
    for root in ("keras_bert", "data_gen"):
        for path in sorted((REPOSITORY / root).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            docstrings = {
                node.body[0].value
                for node in ast.walk(tree)
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
                and node.body
                and isinstance(node.body[0], ast.Expr)
            }
            for node in ast.walk(tree):
                if isinstance(node, ast.JoinedStr):
                    parts = [p.value if isinstance(p, ast.Constant) else "…" for p in node.values]
                    texts.append((path, node.lineno, "".join(map(str, parts))))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    if node not in docstrings:
                        texts.append((path, node.lineno, node.value))
    return [
        (f"{path.relative_to(REPOSITORY)}:{line}", text)
        for path, line, text in texts
        if " " in text
    ]


def test_messages():
    assert [
        (place, word, text[:90]) for place, text in messages() for word in avoided(prose(text))
    ] == []


def test_docstrings_of_public_names():
    functions = [getattr(keras_bert, name) for name in keras_bert.__all__]
    texts = [function.__doc__ for function in functions if not isinstance(function, type)]
    assert [(word, text[:90]) for text in texts for word in avoided(prose(text))] == []


def test_where_is_a_place():
    """A result or an error depends on a condition: "None if …", "InputError when …"."""
    condition = re.compile(r"(?:None|NaN|Missing|Error)`?\s+where\b")
    sources = [path for root in SOURCES for path in (REPOSITORY / root).rglob("*.py")]
    assert [
        f"{path.relative_to(REPOSITORY)}: {text[match.start() :][:60]}"
        for path in [*sources, *PAGES]
        for text in [path.read_text(encoding="utf-8")]
        for match in condition.finditer(text)
    ] == []


def test_docstrings_begin_with_a_verb_or_a_noun():
    """Not with a clause such as "What …" or "Those of …", whose subject comes late or never."""
    clauses = {"What", "As", "Where", "Those", "Of", "That"}
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef
    found = [
        f"{path.relative_to(REPOSITORY)}: {docstring.splitlines()[0]}"
        for root in SOURCES
        for path in sorted((REPOSITORY / root).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, kinds) and (docstring := ast.get_docstring(node))
        if re.split(r"\W", docstring)[0] in clauses
    ]
    assert found == []
