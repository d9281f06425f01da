"""A trained run of a task, from the module's FAMILY (see `tests.tasks.family`)."""

import pytest


@pytest.fixture(scope="module")
def files(request, tmp_path_factory):
    """`encoder`, `train`, `dev`, and the `folder` that has them."""
    return request.module.FAMILY.write_files(tmp_path_factory.mktemp("family"))


@pytest.fixture(scope="module")
def run(request, files):
    """The output of a finished run."""
    output = files["folder"] / "run"
    assert request.module.FAMILY.train(files, output) == 0
    return output
