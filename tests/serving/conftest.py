"""A server with models, for the tests of this folder.

The conformance test can be run against another server, such as TensorFlow Serving:

    python -m tests.serving.served_models MODELS        # writes models; have the server serve them
    KERAS_BERT_SERVED=MODELS KERAS_BERT_REST=http://HOST:8501 KERAS_BERT_GRPC=grpc://HOST:8500 \\
        python -m pytest tests/serving/test_conformance.py
"""

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.serving.running import running
from tests.serving.served_models import write_models


class Served(NamedTuple):
    """A server to be asked, and the folder of its models."""

    rest: str
    grpc: str
    models: Path


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """The server that the environment names, else one of ours."""
    given = [os.environ.get(f"KERAS_BERT_{name}") for name in ("REST", "GRPC", "SERVED")]
    if all(given):
        yield Served(given[0], given[1], Path(given[2]))
        return
    folder = tmp_path_factory.mktemp("savedmodels")
    write_models(folder)
    with running(models=[folder]) as server:
        yield Served(server.rest, server.grpc, folder)


@pytest.fixture(scope="session")
def echo_folder(tmp_path_factory):
    """A folder with the model `echo` alone, which answers at once."""
    from tests.serving.toy_models import write_echo

    folder = tmp_path_factory.mktemp("models")
    write_echo(folder / "echo", 1)
    return folder
