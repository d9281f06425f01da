"""The jobs on Prism, Beam's runner in Go, which is built from its module if Go is installed."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.cluster.flink import INSTALLED, REPOSITORY
from tests.cluster.test_flink import (
    contents,
    data_flags,
    run_here,
    write_classifier,
    write_corpus,
)

pytestmark = pytest.mark.cluster

VERSION = "v2.77.0"
MODULE = "github.com/apache/beam/sdks/v2/go/cmd/prism"


@pytest.fixture(scope="session")
def prism():
    """The program's path."""
    program = INSTALLED / f"prism-{VERSION}"
    if not program.exists():
        if not shutil.which("go"):
            pytest.skip("Prism is built from its Go module: there is no go here.")
        built = INSTALLED / "go"
        environment = {"GOBIN": str(built / "bin"), "GOPATH": str(built), "GOFLAGS": "-modcacherw"}
        command = ["go", "install", f"{MODULE}@{VERSION}"]
        subprocess.run(command, env=os.environ | environment, check=True)
        (built / "bin" / "prism").rename(program)
        shutil.rmtree(built)
    return program


def test_prism_gives_the_bytes_of_a_local_job(prism, tmp_path):
    texts = write_corpus(tmp_path, files=2, size=2_000_000)
    on_prism = ["--runner=PrismRunner", f"--prism_location={prism}"]
    for place, flags in {"here": [], "there": on_prism}.items():
        vocab = tmp_path / f"{place}-vocab"
        run_here("vocab", "--input", *texts, "--output", vocab, "--size", 1000, *flags)
        run_here(*data_flags(texts, vocab), "--output", tmp_path / place, *flags)
    assert contents(tmp_path / "here") == contents(tmp_path / "there") != {}


def test_prism_gives_the_predictions_of_a_local_job(prism, tmp_path):
    write_corpus(tmp_path, files=2, size=40_000)
    write_classifier(tmp_path / "model")
    on_prism = ["--runner=PrismRunner", f"--prism_location={prism}"]
    for place, flags in {"here": ["--runner=FnApiRunner"], "there": on_prism}.items():
        command = ["predict", "--model", tmp_path / "model", "--data", f"{tmp_path}/*.txt"]
        run_here(*command, "--output", tmp_path / f"{place}.jsonl", *flags)
    assert contents(tmp_path / "here.jsonl") == contents(tmp_path / "there.jsonl") != {}


def test_bad_input_is_one_sentence(prism, tmp_path):
    text = tmp_path / "bad.txt"
    text.write_bytes(b"A line.\nnot \xff UTF-8\n")
    result = subprocess.run(
        [
            sys.executable, "-m", "keras_bert", "vocab", "--input", text,
            "--output", tmp_path / "vocab", "--size", "50", "--runner=PrismRunner",
            f"--prism_location={prism}",
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert result.returncode == 2
    assert result.stderr.splitlines()[1:] == [
        f"keras-bert: {text}, line 2 is not UTF-8 (byte 0xff). Fix the line, or leave such lines "
        "out with --bad-lines skip."
    ]
