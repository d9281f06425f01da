"""A server with models, for the tests of this folder.

The conformance test can be run against another server, such as TensorFlow Serving:

    python -m tests.serving.served_models MODELS        # writes models, and their models.config
    docker run --rm -p 127.0.0.1:8501:8501 -p 127.0.0.1:8500:8500 -v "$PWD/MODELS:/models:ro" \\
        tensorflow/serving:2.19.1 --model_config_file=/models/models.config
    KERAS_BERT_SERVED=MODELS KERAS_BERT_REST=http://127.0.0.1:8501 \\
        KERAS_BERT_GRPC=grpc://127.0.0.1:8500 python -m pytest tests/serving/test_conformance.py
"""

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.serving.grpc_service import serving_models
from tests.serving.running import running
from tests.serving.served_models import write_models


class Served(NamedTuple):
    """The addresses of a server to be asked, and the folder of its models."""

    rest: str
    grpc: str
    models: Path


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """A folder of a real export, `classifier`, and `echo`."""
    folder = tmp_path_factory.mktemp("savedmodels")
    write_models(folder)
    return folder


@pytest.fixture(scope="session")
def served(request):
    """The server in the environment, or a development server and the tests' gRPC service."""
    given = [os.environ.get(f"KERAS_BERT_{name}") for name in ("REST", "GRPC", "SERVED")]
    if all(given):
        yield Served(given[0], given[1], Path(given[2]))
        return
    folder = request.getfixturevalue("exported")
    with running(models=[folder]) as server, serving_models(folder) as address:
        yield Served(server.rest, address, folder)


@pytest.fixture(scope="session")
def echo_folder(tmp_path_factory):
    """A folder with the model `echo` alone, which answers at once."""
    from tests.serving.toy_models import write_echo

    folder = tmp_path_factory.mktemp("models")
    write_echo(folder / "echo", 1)
    return folder
