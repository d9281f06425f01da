"""Every error message in the source is whole sentences: a capital first, a full stop last."""

import ast
import re
import string

from tests.docs.pages import REPOSITORY

ERRORS = ("InputError", "ValueError", "TypeError", "RuntimeError", "ServerError")
# A method that puts the file and the line before a message.
LOCATED = "error"
# What is last in a message and ends with a full stop itself, or is empty after one.
SENTENCES = (
    "Naming(advice)",
    "_AGAIN",
    "_NEEDS_NAMES",
    "_PACK",
    "''.join(sorted(hints))",
    "'' if may_count else advice",
    "_suggestion(value, action.choices)",
    "_why_nothing_is_left(card.counters)",
    "advice",
    "hint",
    "message",
    "reason",
    "received",
    "run.how_far()",
)
# Of an error in a handler of these: a message of ours, which ends so.
OURS = ("InputError", "ValueError")
# What a sentence may begin with besides a capital, a quotation mark, a digit and a placeholder.
BEGINNING = re.compile(r"[A-Z0-9`'\"“{]|--[a-z]|(gRPC|google-research/bert|keras-nlp)\b")
# Its answers have TensorFlow Serving's own words, which clients may look for.
TENSORFLOW_SERVING = ("model_version.py",)
# Python's own words, for a name that a module does not have.
PYTHON = ("keras_bert/base/__init__.py",)


class Messages(ast.NodeVisitor):
    """`messages`: (line, text, whether the file is before it) of each message in a module.

    A placeholder is its expression in braces.
    """

    def __init__(self):
        self.messages = []
        self._errors = []

    def visit_ExceptHandler(self, node):
        is_ours = node.type is not None and ast.unparse(node.type) in OURS
        self._errors.append(node.name if is_ours else None)
        self.generic_visit(node)
        self._errors.pop()

    def visit_Call(self, node):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if name == "naming":  # `InputError.naming(template, *values)`
            name, node = node.func.value.id, self._filled(node)
        if name in (*ERRORS, LOCATED) and node.args:
            self._add(node.args[-1 if name == LOCATED else 0], is_located=name == LOCATED)
        if name == "naming":
            self._add(node, is_located=False)
        self.generic_visit(node)

    def _filled(self, node):
        """A call with the values of its template in it, as an f-string has them."""
        template, *replacements = node.args
        if not isinstance(template, ast.Constant):
            return node
        parts = []
        for text, name, _, _ in string.Formatter().parse(template.value):
            parts.append(text)
            if name is not None:  # an argument of the library has a name
                parts.append(f"{{{name or self._shown(replacements.pop(0))}}}")
        filled = ast.copy_location(ast.Constant("".join(parts)), template)
        return ast.copy_location(ast.Call(node.func, [filled], []), node)

    def visit_FunctionDef(self, node):
        """`message` in it is a function that `input_errors` takes."""
        if node.name == "message":
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return):
                    self._add(inner.value, is_located=False)
        self.generic_visit(node)

    def _add(self, node, *, is_located):
        for branch in (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,):
            if text := self._text(branch):
                self.messages.append((branch.lineno, text, is_located))

    def _text(self, node):
        """A literal, an f-string or a sum of them; None for anything else."""
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("naming", "Naming")):
            return self._named(*node.args)
        if isinstance(node, ast.BinOp):
            return "".join(self._text(side) or "{…}" for side in (node.left, node.right))
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if not isinstance(node, ast.JoinedStr):
            return None
        return "".join(
            part.value if isinstance(part, ast.Constant) else f"{{{self._shown(part.value)}}}"
            for part in node.values
        )

    def _named(self, template, *replacements):
        """The template of a `Naming`, with the expression of the value in each `{}`."""
        if not isinstance(template, ast.Constant):
            return None
        texts = iter(f"{{{self._shown(value)}}}" for value in replacements)
        return re.sub(r"\{([!:][^{}]*)?\}", lambda field: next(texts), template.value)

    def _shown(self, node):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Naming":
            (node,) = node.args
        expression = ast.unparse(node)
        return "message" if expression in self._errors else expression


def wrong(source):
    """[(line, message)] of a module's source."""
    visitor = Messages()
    visitor.visit(ast.parse(source))
    return [
        (line, text)
        for line, text, is_located in visitor.messages
        if not (is_located or BEGINNING.match(text)) or not ends(text)
    ]


def ends(text):
    for sentence in SENTENCES:
        if text.endswith(f"{{{sentence}}}"):
            before = text.removesuffix(f"{{{sentence}}}").rstrip()
            return before.endswith((".", "?", ":", "}"))
    return text.endswith((".", "…", "?"))


def test_what_is_wrong_is_found():
    source = """
raise InputError("no file.")
raise InputError(f"There is no file {path}")
raise ValueError("One." if one else "Two")
raise self.error(3, f"no text{hint}")
try:
    open(path)
except OSError as error:
    raise InputError(f"{path}: {error}") from None
raise InputError.naming("{steps} is {!r}", steps)
raise InputError.naming("no {steps} in {}.", path)
raise InputError.naming("{} is: {}", path, advice)
raise self.error(3, Naming("no {text_column} in {}", path))
"""
    assert [line for line, _ in wrong(source)] == [2, 3, 4, 5, 9, 10, 11, 13]


def test_what_is_right_is_not():
    source = """
raise InputError(f"{path} is not JSON. {_AGAIN}")
raise InputError("`steps` must be " + "positive" + ".")
raise self.error(3, f"no text.{hint}")
try:
    read(path)
except InputError as error:
    raise InputError(f"{path}: {error}") from None
raise InputError.naming("{steps} is {!r}. {}", steps, _AGAIN)
raise self.error(3, Naming("no {text_column} in {}.", path))
"""
    assert wrong(source) == []


def test_messages():
    incomplete = []
    for root in ("keras_bert", "data_gen"):
        for path in sorted((REPOSITORY / root).rglob("*.py")):
            place = path.relative_to(REPOSITORY)
            if path.name not in TENSORFLOW_SERVING and str(place) not in PYTHON:
                lines = wrong(path.read_text("utf-8"))
                incomplete += [(f"{place}:{n}", text) for n, text in lines]
    assert incomplete == []
