"""Whatever the tests' runs leave, finished or interrupted, is what `--force` knows as theirs."""

import json

import pytest

from keras_bert.base.ownership import files_below
from keras_bert.training.run_files import RECORDS, is_of_run

# The tests' own names of files that no run wrote.
_TEST_FILES = ("mine", "notes.txt")


@pytest.fixture(scope="module", autouse=True)
def _every_file_of_a_run_is_known(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    before = {*base.iterdir()}
    yield
    new_folders = {*base.iterdir()} - before
    folders = [path.parent for folder in new_folders for path in folder.rglob("run.json")]
    unknown = [
        path
        for folder in filter(_is_run, folders)
        for path in files_below(folder, RECORDS)
        if not is_of_run(path.relative_to(folder).as_posix())
        and not path.name.startswith(_TEST_FILES)
    ]
    assert not unknown, "\n".join(map(str, unknown))


def _is_run(folder):
    try:
        return "command" in json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (ValueError, TypeError):  # broken by a test
        return False
