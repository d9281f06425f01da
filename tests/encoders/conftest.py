"""Data of a family's tests: a folder to pre-train on, and a labelled file of every task type.

Some tests of this folder run without TensorFlow, which only these fixtures import.
"""

import pytest

from tests.seeds import make_rng

DEFAULT_ROWS = {"TRAIN": 48, "EVAL": 8}


@pytest.fixture(scope="module")
def data(request, tmp_path_factory):
    """A data folder of TRAIN_ROWS and EVAL_ROWS of the module, by default of a few."""
    from tests.pretraining_folder import make_data_folder

    folder = tmp_path_factory.mktemp("pretraining") / "data"
    train, evaluated = (getattr(request.module, f"{n}_ROWS", m) for n, m in DEFAULT_ROWS.items())
    return make_data_folder(folder, rows=train, eval_examples=evaluated, objective="mlm-nsp")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The labelled file of each task type, by kind."""
    from tests.encoders.every_kind import LINES, write_examples

    folder, rng = tmp_path_factory.mktemp("labelled"), make_rng(3)
    words = [f"w{i}" for i in range(8)]
    texts = [" ".join(rng.permutation(words)[: rng.integers(4, 7)]) for _ in range(12)]
    return {kind: write_examples(folder / kind, kind, texts) for kind in LINES}
