"""The site's tutorials have links to Colab where mkdocs.yml has the repository's address."""

import importlib.util
import re

import pytest

from tests.docs.pages import REPOSITORY

NOTEBOOKS = sorted(REPOSITORY.glob("notebooks/*.ipynb"))


@pytest.fixture(scope="module")
def tutorial():
    """A function from a notebook and the repository's address to the text of the page."""
    pytest.importorskip("mkdocs", reason="NOT TESTED without mkdocs")
    path = REPOSITORY / "docs" / "generated_pages.py"
    spec = importlib.util.spec_from_file_location("generated_pages", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda notebook, address: dict(module._tutorial(notebook, address))[
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
