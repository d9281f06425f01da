"""The modules that a data job loads before it works, and answers without loading anything."""

import subprocess
import sys

import pytest

from keras_bert.cli.main import main

HEAVY = {"tensorflow", "tensorflow_text", "keras", "apache_beam", "numpy", "matplotlib"}

# The parts of a job that run in the main process when others work, in a process of their own.
PLAN = """
import sys
from data_gen import documents
from data_gen.pretraining_data import Job
from data_gen.data_folder import NewDataFolder
from data_gen.pretraining_data import add_steps
from data_gen.settings import DataSettings
from data_gen.vocabulary import learn_vocabulary
import apache_beam as beam

text, vocab, output = sys.argv[1:]
settings = DataSettings.of({"input": text, "vocab": vocab, "output": output})
windows = documents.find(settings.input)
blocks = [block for window in windows for block in documents.blocks(window)]
NewDataFolder(settings.output, force=False)
pipeline = beam.Pipeline()
add_steps(pipeline, windows=windows, job=Job.from_settings(settings))
pipeline.to_runner_api()
print(len(blocks), *sorted(name for name in sys.modules if "." not in name))
"""


def run(*command):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)


def test_describing_a_job_loads_no_tensorflow(corpus, corpus_files, tmp_path):
    corpus.vocabulary.save(tmp_path / "vocab.txt")
    files = [corpus_files, tmp_path / "vocab.txt", tmp_path / "data"]
    blocks, *loaded = run("-c", PLAN, *map(str, files)).stdout.split()
    assert int(blocks) == 8
    assert "apache_beam" in loaded and "numpy" in loaded
    assert not set(loaded) & {"tensorflow", "tensorflow_text", "keras", "matplotlib"}


COMMANDS = """
import sys
from keras_bert.cli.main import main

text, folder = sys.argv[1:]
others = ["--direct_num_workers=2"]
assert main(["vocab", "--input", text, "--output", f"{folder}/v", "--size=200", *others]) == 0
data = ["--input", text, "--vocab", f"{folder}/v", "--output", f"{folder}/data"]
assert main(["pretraining-data", *data, *others]) == 0
print(*sorted(name for name in sys.modules if "." not in name))
"""


@pytest.mark.slow
def test_the_commands_load_no_tensorflow_where_other_processes_work(corpus_files, tmp_path):
    *_, loaded = run("-c", COMMANDS, str(corpus_files), str(tmp_path)).stdout.splitlines()
    assert "apache_beam" in loaded.split()
    assert not set(loaded.split()) & {"tensorflow", "tensorflow_text", "keras"}


ANSWERS = """
import contextlib, io, sys
from keras_bert.cli.main import main
for command in ("pretraining-data", "vocab"):
    needed = {"pretraining-data": ["--vocab=v"], "vocab": ["--size=90"]}[command]
    given = [command, "--input=x", "--output=y", *needed]
    for arguments in (
        [command, "--help"],
        [command, "--input=x"],
        [*given, "--bad-lines=perhaps"],
        [*given, "--bad-linse=skip"],
    ):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main(arguments)
print(*sorted(sys.modules))
"""


def test_help_and_wrong_flags_load_nothing():
    result = run("-c", ANSWERS)
    assert not set(result.stdout.split()) & HEAVY
    assert result.stderr.count("\n") == 6 and result.stderr.count("--bad-linse") == 2


@pytest.mark.parametrize(
    "flags, sentence",
    [
        (["--max-lenght=64"], "Unknown option --max-lenght"),
        (["--runner=NoRunner"], "Invalid --runner 'NoRunner'. Expected FnApiRunner (the "),
        (["--runner=os.NoRunner"], "Invalid --runner 'os.NoRunner'. Expected "),
        (
            ["--runner=no_such.Runner"],
            "Invalid --runner 'no_such.Runner'. Apache Beam cannot load ",
        ),
        (["--max-length=4"], "--max-length must be at least 8. Received: 4."),
        (["--pad", "--masking=dynamic"], "--pad needs static masks"),
        (["--objective=clm"], "--objective is 'clm'. It should be mlm-nsp, mlm-sop, mlm or span."),
    ],
)
def test_a_wrong_flag_is_told_by_its_name(capsys, flags, sentence):
    given = ["pretraining-data", "--input=x", "--vocab=y", "--output=z"]
    assert main([*given, *flags]) == 2
    assert capsys.readouterr().err.startswith(f"keras-bert: {sentence}")
