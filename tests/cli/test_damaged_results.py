"""Commands over results that were changed: they are printed, or there is one sentence."""

import json
import random

import pytest

from keras_bert.checkpoints import save_folder
from keras_bert.cli.main import main
from tests.eagerly import eagerly
from tests.mutations import changes_of_json
from tests.seeds import shifted
from tests.small_model import make_encoder, make_tokenizer

FEW, MANY = 5, 200


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """The folder of a finished series of two runs, and the arguments of its command."""
    work = tmp_path_factory.mktemp("results")
    tokenizer = make_tokenizer(["the"])
    save_folder(make_encoder(tokenizer), tokenizer, work / "model")
    rows = "".join(f"the bank {number}\t{'ab'[number % 2]}\n" for number in range(4))
    (work / "train.tsv").write_text(f"text\tlabel\n{rows}")
    arguments = ["finetune", "--model", str(work / "model"), "--train", str(work / "train.tsv")]
    arguments += ["--dev", str(work / "train.tsv"), "--epochs", "1", "--batch-size", "4"]
    arguments += ["--num-seeds", "2", "--output", str(work / "seeds")]
    with eagerly():
        assert main(arguments) == 0
    return work / "seeds", arguments


@pytest.mark.parametrize("most", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_results_that_were_changed_are_printed_or_one_sentence(work, most, capsys):
    output, command = work
    path = output / "metrics.json"
    given = path.read_bytes()
    changes = random.Random(shifted(most)).sample([*changes_of_json(given)], most)
    codes, failures = set(), []
    for what, make in changes:
        path.write_bytes(make())
        try:
            with eagerly():
                code = main(command)
        except Exception as error:
            failures.append(f"{what}: {error!r}")
            continue
        codes.add(code)
        if code == 2:
            error = capsys.readouterr().err.strip().splitlines()[-1]
            assert error.endswith("."), (what, error)
    path.write_bytes(given)
    assert not failures, "\n".join(failures)
    assert codes <= {0, 2}
    with eagerly():
        assert main(command) == 0


@pytest.mark.parametrize("content", [{"a": 1}, {"history": [], "kept": {"step": 1}}, {"kept": [1]}])
def test_a_run_of_a_series_without_its_results_is_named(work, content, tmp_path, capsys):
    output, command = work
    run, results = output / "runs" / "seed-0" / "metrics.json", output / "metrics.json"
    given, results_content = run.read_bytes(), results.read_bytes()
    run.write_text(json.dumps(content))
    results.unlink()
    try:
        assert main(command) == 2
        assert "seed-0/metrics.json was changed after the run" in capsys.readouterr().err
    finally:
        run.write_bytes(given)
        results.write_bytes(results_content)


def test_a_rank_larger_than_the_layers_is_one_sentence(work, tmp_path, capsys):
    _, command = work
    assert main([*command[:-1], str(tmp_path / "lora"), "--lora-rank", "1000000000"]) == 2
    assert "The rank of LoRA must be from 1 to" in capsys.readouterr().err
