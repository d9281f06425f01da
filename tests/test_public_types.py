"""What the public names say of their types is what they are."""

import importlib.util
import subprocess
import sys

import pytest

import keras_bert
from tests.public_types import STUB, stub


def test_the_types_are_those_of_the_functions(tmp_path):
    """`make types` makes them anew."""
    made = tmp_path / "__init__.pyi"
    made.write_text(stub())
    ruff = [sys.executable, "-m", "ruff"]
    settings = ["--config", str(STUB.parent.parent / "ruff.toml")]
    subprocess.run([*ruff, "check", "-q", "--fix", *settings, made], capture_output=True)
    subprocess.run([*ruff, "format", "-q", *settings, made], check=True)
    assert made.read_text() == STUB.read_text()


def test_every_public_name_has_its_type():
    text = STUB.read_text()
    assert all(f"def {name}(" in text or f" as {name}" in text for name in keras_bert.__all__)
    assert (STUB.parent / "py.typed").exists()


def test_every_public_name_is_on_one_page_of_the_api(monkeypatch):
    pytest.importorskip("mkdocs", reason="NOT TESTED without mkdocs")
    monkeypatch.setenv("COLUMNS", "100")  # which the module sets
    path = STUB.parent.parent / "docs" / "generated_pages.py"
    spec = importlib.util.spec_from_file_location("generated_pages", path)
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    names = [name for _, names in pages.API.values() for name in names.split()]
    assert sorted(names) == keras_bert.__all__
