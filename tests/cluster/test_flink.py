"""The jobs on a Flink cluster of two hosts: the same bytes as here, whatever is lost meanwhile."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.cluster import flink
from tests.cluster.flink import REPOSITORY, Cluster
from tests.seeds import shifted

pytestmark = pytest.mark.cluster

CORPUS_BYTES = 20_000_000
WORDS = 20_000
# Each objective and each masking once.
JOBS = [
    ("mlm-nsp", "static"),
    ("mlm-sop", "dynamic"),
    ("mlm", "dynamic"),
    ("span", "static"),
]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    lack = flink.missing()
    if lack:
        pytest.skip(lack)
    try:
        cluster = Cluster(tmp_path_factory.mktemp("flink"))
    except flink.NotInstalled as error:
        pytest.skip(str(error))
    with cluster:
        yield cluster


def write_corpus(folder, *, files, size):
    """Files of `size` bytes in all: documents of lines of words that follow Zipf's law."""
    draw = random.Random(shifted(1))
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(WORDS)]
    weights = [1 / (rank + 1) for rank in range(WORDS)]
    for number in range(files):
        with (folder / f"text{number}.txt").open("w") as file:
            written = 0
            while written < size / files:
                tokens = draw.choices(words, weights, k=12 * 200)
                lines = (" ".join(tokens[i : i + 12]).capitalize() for i in range(0, 2400, 12))
                written += file.write(".\n".join(lines) + ".\n\n")
    return sorted(folder.glob("*.txt"))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"), files=8, size=CORPUS_BYTES)


def run_here(*command):
    command = [sys.executable, "-m", "keras_bert", *map(str, command)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)


@pytest.fixture(scope="session")
def vocab(tmp_path_factory, corpus):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    run_here("vocab", "--input", *corpus, "--output", path, "--size", 4000)
    return path


def data_flags(corpus, vocab, objective="mlm-nsp", masking="static"):
    return [
        "pretraining-data", "--input", *corpus, "--vocab", vocab, "--objective", objective,
        "--masking", masking, "--input-format", "lines", "--dupe-factor", "1",
        "--shard-bytes", "1000000", "--quiet",
    ]  # fmt: skip


@pytest.fixture(scope="session")
def local(tmp_path_factory, corpus, vocab):
    """The folder that the first job makes on this machine."""
    folder = tmp_path_factory.mktemp("local") / "data"
    run_here(*data_flags(corpus, vocab), "--output", folder)
    return folder


def contents(folder):
    """All files of a data folder, cards and pictures too, by their names."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def vocabulary(path):
    """The bytes of a vocabulary and of its counts."""
    return path.read_bytes(), path.with_name(f"{path.stem}.counts.tsv").read_bytes()


def shards(folder):
    return list(folder.glob("[!.]*.tfrecord-*")) if folder.is_dir() else []


def wait_for_shards(process, folder):
    """Waits until a job has written a shard, and is not done."""
    while not shards(folder):
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)


@pytest.mark.slow  # in `make test-all` as well: the short form of what is below
def test_a_small_job_on_the_cluster_gives_the_bytes_of_a_local_one(cluster, tmp_path):
    texts = write_corpus(tmp_path, files=2, size=400_000)
    for place, run in {"here": run_here, "there": cluster.run}.items():
        vocab = tmp_path / f"{place}-vocab"
        run("vocab", "--input", *texts, "--output", vocab, "--size", 1000)
        run(*data_flags(texts, vocab), "--output", tmp_path / place)
    assert vocabulary(tmp_path / "here-vocab") == vocabulary(tmp_path / "there-vocab")
    assert contents(tmp_path / "here") == contents(tmp_path / "there") != {}


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_vocabulary_is_the_same_on_one_host_and_on_two(
    cluster, corpus, vocab, tmp_path, parallelism
):
    path = tmp_path / "vocab.txt"
    status, output = cluster.run(
        "vocab", "--input", *corpus, "--output", path, "--size", 4000, parallelism=parallelism
    )
    assert status == 0, output
    assert vocabulary(path) == vocabulary(vocab)


@pytest.mark.parametrize(("objective", "masking"), JOBS)
def test_a_data_folder_is_the_same_on_two_hosts(
    cluster, corpus, vocab, tmp_path, objective, masking
):
    flags = data_flags(corpus, vocab, objective, masking)
    run_here(*flags, "--output", tmp_path / "here")
    status, output = cluster.run(*flags, "--output", tmp_path / "there")
    assert status == 0, output
    assert contents(tmp_path / "here") == contents(tmp_path / "there") != {}


def test_a_data_folder_is_the_same_on_one_host(cluster, corpus, vocab, local, tmp_path):
    folder = tmp_path / "data"
    status, output = cluster.run(*data_flags(corpus, vocab), "--output", folder, parallelism=1)
    assert status == 0, output
    assert contents(folder) == contents(local)


def write_classifier(folder):
    """A classifier with random weights."""
    import keras_bert as kb
    from tests.small_model import make_encoder, make_tokenizer

    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    kb.Classifier(encoder, tokenizer, labels=["ham", "spam"]).save(folder)


def test_predictions_are_the_same_on_two_hosts(cluster, tmp_path):
    texts, model = write_corpus(tmp_path, files=6, size=300_000), tmp_path / "model"
    write_classifier(model)
    flags = ["predict", "--model", model, "--data", f"{tmp_path}/*.txt"]
    status, output = cluster.run(*flags, "--output", tmp_path / "there.jsonl")
    assert status == 0, output
    run_here(*flags, "--output", tmp_path / "here.jsonl", "--runner=FnApiRunner")
    assert contents(tmp_path / "there.jsonl") == contents(tmp_path / "here.jsonl")
    run_here("predict", "--model", model, "--data", texts[3], "--output", tmp_path / "alone.jsonl")
    written = tmp_path / "there.jsonl" / "part-00003-of-00006.jsonl"
    assert written.read_bytes() == (tmp_path / "alone.jsonl").read_bytes()


def test_a_lost_taskmanager_changes_no_byte(cluster, corpus, vocab, local, tmp_path):
    folder = tmp_path / "data"
    process = cluster.start(*data_flags(corpus, vocab), "--output", folder)
    wait_for_shards(process, folder)
    cluster.kill("taskmanager1")
    time.sleep(5)
    cluster.start_taskmanager(1)
    output = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert contents(folder) == contents(local)
    cluster.wait_for_taskmanagers(2)


def test_a_lost_worker_changes_no_byte(cluster, corpus, vocab, local, tmp_path):
    folder = tmp_path / "data"
    process = cluster.start(*data_flags(corpus, vocab), "--output", folder)
    wait_for_shards(process, folder)
    workers = cluster.workers(1)
    assert workers
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    output = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert contents(folder) == contents(local)


def test_an_interrupted_job_ends_and_writes_nothing_more(cluster, corpus, vocab, tmp_path):
    folder = tmp_path / "data"
    process = cluster.start(*data_flags(corpus, vocab), "--output", folder)
    wait_for_shards(process, folder)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert "Run the same command again to start over" in errors
    left = set(shards(folder))
    state = "RUNNING"
    while state not in ("CANCELED", "FAILED"):  # the job server does not cancel Flink's job
        assert state != "FINISHED"
        time.sleep(1)
        jobs = cluster.rest("/jobs/overview")["jobs"]
        state = max(jobs, key=lambda job: job["start-time"])["state"]
    assert set(shards(folder)) == left


def test_a_pool_that_is_gone_is_one_sentence(cluster, corpus, vocab, tmp_path):
    status, output = cluster.run(
        *data_flags(corpus, vocab), "--output", tmp_path / "data", pool="localhost:50999"
    )
    assert status == 2
    assert output.count("\n") == 1
    assert "Connection refused. Expected a worker pool at localhost:50999" in output
    assert not (tmp_path / "data" / "COMPLETED").exists()


def test_a_job_server_that_does_not_answer_is_one_sentence(cluster, corpus, vocab, tmp_path):
    status, output = cluster.run(
        *data_flags(corpus, vocab), "--output", tmp_path / "data", endpoint="127.0.0.1:9"
    )
    assert status == 2
    assert output == (
        "keras-bert: No job server answers at 127.0.0.1:9 within 10 s. Start it, or correct "
        "--job_endpoint.\n"
    )


def test_a_pool_with_another_python_is_said(cluster, corpus, vocab, tmp_path):
    (tmp_path / "bin").mkdir()
    other = tmp_path / "bin" / "python"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    numbers = (1, 2) if cluster.has_hosts else (1,)
    for number in numbers:
        cluster.kill(f"pool{number}")
        cluster.start_pool(number, path=other.parent)
    flags = [flag for flag in data_flags(corpus, vocab) if flag != "--quiet"]
    process = cluster.start(*flags, "--output", tmp_path / "data")
    try:
        line = ""
        while "Nothing has changed for 60 s" not in line:
            line = process.stderr.readline()
            assert line, "The job ended."
        assert "The first `python` on the pool's PATH must be the one that has this library" in line
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        cluster.cancel_jobs()
        for number in numbers:
            cluster.kill(f"pool{number}")
            cluster.start_pool(number)


def test_bad_input_in_the_middle_of_a_file_is_the_same_sentence(cluster, corpus, vocab, tmp_path):
    content = corpus[0].read_bytes()
    middle = content.index(b"\n", len(content) // 2) + 1
    bad = tmp_path / "bad.txt"
    bad.write_bytes(content[:middle] + b"not \xff UTF-8\n" + content[middle:])
    line = content[:middle].count(b"\n") + 1
    status, output = cluster.run(
        *data_flags([*corpus[1:], bad], vocab), "--output", tmp_path / "data"
    )
    assert status == 2
    assert output == (
        f"keras-bert: {bad}, line {line} is not UTF-8 (byte 0xff). Fix the line, or leave such "
        "lines out with --bad-lines skip.\n"
    )
    assert not (tmp_path / "data" / "COMPLETED").exists()


def test_a_finished_an_interrupted_and_a_foreign_folder(cluster, corpus, vocab, local, tmp_path):
    flags = [flag for flag in data_flags(corpus, vocab) if flag != "--quiet"]
    folder = tmp_path / "data"
    process = cluster.start(*flags, "--output", folder)
    wait_for_shards(process, folder)
    process.kill()
    process.communicate()
    assert not (folder / "COMPLETED").exists()
    time.sleep(30)  # the cluster goes on with the job of the process that was killed
    status, output = cluster.run(*flags, "--output", folder)
    assert status == 0, output
    assert contents(folder) == contents(local)
    status, output = cluster.run(*flags, "--output", folder)
    assert (status, "is finished already. Nothing to do." in output) == (0, True)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    status, output = cluster.run(*flags, "--output", foreign)
    assert status == 2
    assert contents(foreign) == {"thesis.txt": b"mine"}
