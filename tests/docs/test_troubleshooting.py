"""The messages of the troubleshooting page are messages of the program."""

import ast
import re

import pytest

from tests.docs.pages import REPOSITORY

PAGE = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
# The first cell of a row, if it quotes a message; TensorFlow's and others' have a name before.
QUOTED = re.findall(r"^\| (`.+?`)(?: in step …)? \|", PAGE, flags=re.MULTILINE)
MESSAGES = sorted(
    {
        message.strip("` ")
        for cell in QUOTED
        for message in re.split(r"`, `", cell.replace("`` ", "`").replace(" ``", "`"))
    }
)


def strings():
    """All text of the program, with U+2026 where a value is put in, and `name` for an argument."""
    for source in (*REPOSITORY.glob("keras_bert/**/*.py"), *REPOSITORY.glob("data_gen/**/*.py")):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield "".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield re.sub(r"\{(\w+)\}", r"`\1`", re.sub(r"\{(:[^}]*)?\}", "…", node.value))
    yield (REPOSITORY / "Makefile").read_text()


@pytest.fixture(scope="module")
def program_text():
    return "\n".join(strings())


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_one_of_the_program(message, program_text):
    parts = [part.strip(" \"'`") for part in message.split("…")]
    missing = [part for part in parts if part and part not in program_text]
    assert not missing


def test_there_are_messages():
    assert len(MESSAGES) > 20
