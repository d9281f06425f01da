"""Pages that docs/generated_pages.py makes: tutorials with links to Colab, and commands."""

import importlib.util
import logging
import re

import pytest

from tests.docs.pages import REPOSITORY

NOTEBOOKS = sorted(REPOSITORY.glob("notebooks/*.ipynb"))


@pytest.fixture(scope="module")
def generated_pages():
    pytest.importorskip("mkdocs", reason="NOT TESTED without mkdocs")
    path = REPOSITORY / "docs" / "generated_pages.py"
    spec = importlib.util.spec_from_file_location("generated_pages", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tutorial(generated_pages):
    """A function from a notebook and the repository's address to the text of the page."""
    return lambda notebook, address: dict(generated_pages._tutorial(notebook, address))[
        f"{notebook.stem}.md"
    ]


@pytest.mark.parametrize("ending", ["", "/", ".git"])
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_opens_in_colab(tutorial, notebook, ending):
    page = tutorial(notebook, f"https://github.com/someone/keras-bert{ending}")
    address = "https://colab.research.google.com/github/someone/keras-bert/blob/main/notebooks"
    assert f"[Open in Colab]({address}/{notebook.name})" in page
    assert "It has not been run there yet." in page
    assert "OWNER" not in page and "NAME are" not in page
    assert re.search(r"\[[\w,]+\] @ git\+https://github\.com/someone/keras-bert'`", page)


@pytest.mark.parametrize("address", ["", None, "https://example.org/someone/keras-bert"])
def test_without_an_address_on_github_nothing_is_linked(tutorial, address):
    page = tutorial(NOTEBOOKS[0], address)
    assert "colab.research" not in page and "OWNER/NAME" in page


def test_a_wide_table_of_a_tutorial_scrolls_by_itself(tutorial):
    page = tutorial(REPOSITORY / "notebooks" / "03_tag_words.ipynb", "")
    assert page.count('class="dataframe"') == page.count('<div class="output"><div>') > 1
    styles = (REPOSITORY / "docs" / "columns.css").read_text()
    assert re.search(r"\.output \{\s+overflow-x: auto;", styles)


def test_the_commands_of_a_description_are_a_block(generated_pages, caplog):
    text = (
        "It trains.\n\nkeras-bert pretrain --data a --output b\ntensorboard --logdir b\n\nIt ends."
    )
    assert generated_pages._described("pretrain", text) == [
        *("It trains.", "", "```bash"),
        *("keras-bert pretrain --data a --output b\ntensorboard --logdir b", "```", ""),
        *("It ends.", ""),
    ]
    for command in generated_pages._all_commands():
        generated_pages._command(command)
    assert caplog.messages == []


@pytest.mark.parametrize("wrong", ["pretrain --datum a", "train --data a", "finetune --task x"])
def test_a_command_that_is_none_is_a_warning(generated_pages, caplog, wrong):
    with caplog.at_level(logging.WARNING):
        generated_pages._described("pretrain", f"keras-bert {wrong}")
    assert caplog.messages == [f"commands/pretrain.md: not a command: keras-bert {wrong}"]
    assert caplog.records[0].name.startswith("mkdocs.")  # whose warnings `--strict` counts
