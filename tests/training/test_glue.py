"""All of GLUE in one call: the table, the submission, seeds, resuming, and what is rejected."""

import json
import shutil
import zipfile
from statistics import fmean, stdev

import pytest

from keras_bert.base.errors import InputError
from keras_bert.cli.main import main
from keras_bert.readers.glue import GLUE, glue_average
from keras_bert.training import glue as module
from keras_bert.training.glue import glue
from keras_bert.training.sweep_settings import GlueSettings
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

# A word by which the texts of a label can be known.
WORDS = ("good", "bad", "odd")
_PAIR = "index\tsentence1\tsentence2"
_SCORED = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
_NLI = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
    "sentence1_parse\tsentence2_parse\tsentence1\tsentence2"
)
# The header of a test file, what stands before its texts, and what a labelled file adds.
LAYOUTS = {
    "SST-2": ("index\tsentence", "{n}", "sentence\tlabel", "{a}\t{label}"),
    "QQP": (
        "id\tquestion1\tquestion2",
        "{n}",
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
        "{n}\t1\t2\t{a}\t{b}\t{label}",
    ),
    "MRPC": (
        "index\t#1 ID\t#2 ID\t#1 String\t#2 String",
        "{n}\t1\t2",
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        "{label}\t1\t2\t{a}\t{b}",
    ),
    "STS-B": (
        _SCORED,
        "{n}\tmain\tMSR\t2012\t1\tnone\tnone",
        f"{_SCORED}\tscore",
        "{n}\tmain\tMSR\t2012\t1\tnone\tnone\t{a}\t{b}\t{label}",
    ),
    "MNLI": (
        _NLI,
        "{n}\t1\t1n\tfiction\t()\t()\t()\t()",
        f"{_NLI}\tlabel1\tgold_label",
        "{n}\t1\t1n\tfiction\t()\t()\t()\t()\t{a}\t{b}\t{label}\t{label}",
    ),
    "QNLI": (
        "index\tquestion\tsentence",
        "{n}",
        "index\tquestion\tsentence\tlabel",
        "{n}\t{a}\t{b}\t{label}",
    ),
    **dict.fromkeys(("RTE", "WNLI"), (_PAIR, "{n}", f"{_PAIR}\tlabel", "{n}\t{a}\t{b}\t{label}")),
}
TESTS = {name: 3 + number for number, name in enumerate(GLUE)}  # how many, all different


def write_glue(folder, *, train=24, dev=9):
    """Writes small files of all tasks, in GLUE's layout, whose labels can be learned."""
    rng = make_rng(0)

    def lines(name, count, *, labelled, task):
        base = "MNLI" if name.startswith("MNLI") else name
        for n in range(count):
            number = n % max(2, len(task.labels))
            word = WORDS[number]
            label = task.labels[number] if task.labels else f"{5.0 * number:.3f}"
            a, b = (f"{rng.choice(['film', 'plot'])} {word}" for _ in range(2))
            if name == "CoLA":
                yield f"gj04\t{label}\t\t{a}" if labelled else f"{n}\t{a}"
                continue
            if name == "AX":
                yield f"{n}\t{a}\t{b}"
                continue
            _, start, _, row = LAYOUTS[base]
            if labelled:
                yield row.format(n=n, a=a, b=b, label=label)
            else:
                texts = (a, b)[: len(task.texts)]
                yield "\t".join([start.format(n=n), *texts])

    for name, task in GLUE.items():
        base = "MNLI" if name.startswith("MNLI") else name
        for which, count in (("train", train), ("dev", dev), ("test", TESTS[name])):
            file = getattr(task, which)
            if file is None:
                continue
            labelled = which != "test"
            header = {"AX": [_PAIR], "CoLA": [] if labelled else ["index\tsentence"]}.get(name)
            header = [LAYOUTS[base][2 if labelled else 0]] if header is None else header
            path = folder / task.folders[0] / file
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = lines(name, count, labelled=labelled, task=task)
            path.write_text("".join(f"{line}\n" for line in (*header, *rows)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """GLUE's folder, a vocabulary and an architecture."""
    folder = tmp_path_factory.mktemp("all")
    write_glue(folder / "glue")
    tokenizer = make_tokenizer([*WORDS, "film", "plot"])
    tokenizer.vocabulary.save(folder / "vocab.txt")
    config = make_encoder(tokenizer, num_hidden_layers=1, initializer_range=0.1).config
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    return folder


@pytest.fixture(scope="module")
def arguments(folder):
    return {
        "data": folder / "glue",
        "architecture": folder / "config.json",
        "vocab": folder / "vocab.txt",
        "max_length": 12,
        "learning_rate": [1e-2],
        "batch_size": [8],
        "epochs": [2],
        "deterministic": True,
    }


@pytest.fixture(autouse=True)
def _measured_at_once(monkeypatch):
    monkeypatch.setattr(module, "_SECONDS_MEASURED", 0.01)


def test_no_warning_advises_against_the_grid_unless_it_is_given(arguments, tmp_path, monkeypatch):
    chosen_names = []

    def sweep(settings, report, chosen):
        chosen_names.append(chosen)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "sweep_given", sweep)
    monkeypatch.setattr(module, "_expected_seconds", lambda *_: 0.0)
    for left_out in ("learning_rate", "epochs"):
        given = {name: value for name, value in arguments.items() if name != left_out}
        with pytest.raises(KeyboardInterrupt):
            glue(**given, tasks=["RTE"], dev_only=True, output=tmp_path / left_out)
    assert chosen_names == [{"learning_rate"}, {"epochs"}]


@pytest.fixture(scope="module")
def run(folder, arguments):
    """One run of all nine tasks; (the folder, the results, the reported lines)."""
    lines = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SECONDS_MEASURED", 0.01)
        results = glue(**arguments, output=folder / "run", report=lines.append)
    return folder / "run", results, lines


@pytest.mark.slow
def test_all_nine_tasks_to_the_zip(run):
    output, results, lines = run
    assert list(results["tasks"]) == [name for name in GLUE if name != "AX"]
    assert results == json.loads((output / "metrics.json").read_text())
    for name, of in results["tasks"].items():
        assert of["score"] == pytest.approx(fmean(of["metrics"].values()))
        if name != "MNLI-mm":
            metrics = json.loads((output / "runs" / name / "metrics.json").read_text())["dev"]
            assert of["score"] == pytest.approx(fmean(metrics[m] for m in GLUE[name].metrics))
            assert (of["learning_rate"], of["batch_size"], of["epochs"]) == (1e-2, 8, 2)
    scores = {name: list(of["metrics"].values()) for name, of in results["tasks"].items()}
    for which in (True, False):
        expected = glue_average(scores, with_wnli=which)
        assert results["average"][("without_wnli", "with_wnli")[which]] == pytest.approx(expected)
    first = next(i for i, line in enumerate(lines) if line.startswith("Expected time: about "))
    assert lines[first].endswith(" for 9 tasks with 1 run each.")
    assert [line.split(":")[0].strip() for line in lines[first + 1 : first + 10]] == [
        name for name in results["tasks"] if name != "MNLI-mm"
    ]
    assert lines.index("CoLA, task 1 of 9.") > first


# https://gluebenchmark.com/faq: the names in the zip.
SUBMITTED = """AX.tsv CoLA.tsv MNLI-m.tsv MNLI-mm.tsv MRPC.tsv QNLI.tsv QQP.tsv RTE.tsv SST-2.tsv
STS-B.tsv WNLI.tsv""".split()


@pytest.mark.slow
def test_the_zip_is_what_the_leaderboard_accepts(run):
    output, results, _ = run
    assert results["missing"] == [] and results["submission"] == str(output / "submission.zip")
    with zipfile.ZipFile(results["submission"]) as archive:
        assert archive.namelist() == SUBMITTED
        files = {name: archive.read(name).decode() for name in SUBMITTED}
    for name, task in GLUE.items():
        header, *rows = files[task.submission_file].splitlines()
        assert header == "index\tprediction" and len(rows) == TESTS[name]
        cells = [row.split("\t") for row in rows]
        assert [index for index, _ in cells] == [str(n) for n in range(len(rows))]
        for _, prediction in cells:
            if task.labels:
                assert prediction in task.labels
            else:
                assert 0 <= float(prediction) <= 5


@pytest.mark.slow
def test_a_finished_run_is_not_repeated(run, arguments, monkeypatch):
    output, results, _ = run
    for name in ("sweep_given", "finetune_given", "predict", "evaluate"):
        monkeypatch.setattr(module, name, None)
    lines = []
    assert glue(**arguments, output=output, report=lines.append) == results
    assert lines == [f"The runs in {output} are finished already. These are their results."]


@pytest.fixture(scope="module")
def two(arguments):
    """Two tasks, a grid of two rates, two seeds."""
    return {
        **arguments,
        "tasks": ["RTE", "sts-b"],
        "learning_rate": [1e-2, 5e-3],
        "epochs": [1],
        "num_seeds": 2,
    }


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_results(two, tmp_path, monkeypatch):
    """Killed in the second task's sweep, and again before the second task is predicted."""
    whole = glue(**two, output=tmp_path / "whole")
    sweeps, predictions = [], []
    sweep, predict = module.sweep_given, module.predict

    def killed_sweep(settings, report, chosen):
        sweeps.append(settings["glue"])
        if len(sweeps) == 2:
            raise KeyboardInterrupt
        return sweep(settings, report, chosen=chosen)

    def killed_predict(**settings):
        predictions.append(settings["glue"])
        if len(predictions) == 2:
            raise KeyboardInterrupt
        return predict(**settings)

    monkeypatch.setattr(module, "sweep_given", killed_sweep)
    monkeypatch.setattr(module, "predict", killed_predict)
    for finished in ("2 finished runs", "4 finished runs"):
        with pytest.raises(
            KeyboardInterrupt, match=f"^Interrupted. .*killed has {finished}. Run the"
        ):
            glue(**two, output=tmp_path / "killed")
        assert not (tmp_path / "killed" / "metrics.json").exists()
    lines = []
    monkeypatch.setattr(module, "finetune_given", None)  # all runs are finished
    again = glue(**two, output=tmp_path / "killed", report=lines.append)
    assert sweeps == ["RTE", "STS-B", "STS-B"] and predictions == ["RTE", "STS-B", "STS-B"]
    assert any(line.startswith("Expected time: about 0 seconds for 0 tasks") for line in lines)

    def without_times(value):
        if isinstance(value, dict):
            times = ("seconds", "submission")
            return {k: without_times(v) for k, v in value.items() if k not in times}
        return value

    assert without_times(again) == without_times(whole)
    zips = [(tmp_path / name / "submission.zip").read_bytes() for name in ("whole", "killed")]
    assert zips[0] == zips[1]
    assert sorted(again["missing"]) == sorted(set(SUBMITTED) - {"RTE.tsv", "STS-B.tsv"})
    for of in again["tasks"].values():
        assert len(of["seeds"]) == 2 and of["runs"] == 4
        assert (of["mean"], of["std"]) == (fmean(of["seeds"]), stdev(of["seeds"]))
    assert again["average"] == again["mean"] == {"with_wnli": None, "without_wnli": None}


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder / "glue", tmp_path / "glue")


def test_everything_that_is_missing_is_named_at_once(copy, arguments, tmp_path):
    shutil.rmtree(copy / "RTE")
    shutil.rmtree(copy / "diagnostic")
    (copy / "MNLI" / "dev_mismatched.tsv").unlink()
    (copy / "WNLI" / "test.tsv").unlink()
    given = {**arguments, "data": copy, "output": tmp_path / "run"}
    with pytest.raises(InputError) as error:
        glue(**given)
    assert str(error.value) == (
        f"{copy} lacks files of GLUE: MNLI/dev_mismatched.tsv, diagnostic/diagnostic.tsv, the "
        "folder RTE, WNLI/test.tsv. Expected them as gluebenchmark.com gives them. Leave tasks "
        "out with `tasks`, and the test files with `dev_only`."
    )
    with pytest.raises(InputError, match="lacks files of GLUE: the folder RTE. "):
        glue(**given, tasks=["RTE", "WNLI"], dev_only=True)
    with pytest.raises(InputError, match="There is no folder .*nowhere. Expected GLUE's"):
        glue(**{**given, "data": tmp_path / "nowhere"})
    assert not (tmp_path / "run").exists()


def _replace(file, old, new):
    def change(glue_folder):
        path = glue_folder / file
        path.write_text(path.read_text().replace(old, new))

    return change


@pytest.mark.parametrize(
    "change, message",
    [
        (
            _replace("RTE/dev.tsv", "not_entailment", "contradiction"),
            r'RTE/dev.tsv, line 3: GLUE\'s RTE has the labels "entailment", "not_entailment". '
            r'Received: "contradiction". Is this the file of another task\?',
        ),
        (
            _replace("STS-B/train.tsv", "5.000", "100"),
            "STS-B/train.tsv, line 3: GLUE's STS-B has the scores from 0 to 5. Received: 100.",
        ),
        (
            lambda at: shutil.copy(at / "QNLI" / "test.tsv", at / "RTE" / "test.tsv"),
            'RTE/test.tsv, line 1: no column "sentence1"',
        ),
        (
            lambda at: shutil.copy(at / "MRPC" / "train.tsv", at / "CoLA" / "train.tsv"),
            'CoLA/train.tsv, line 1: GLUE\'s CoLA has the labels "0", "1". Received: "#1 ID"',
        ),
        (
            lambda at: (at / "WNLI" / "dev.tsv").write_text(f"{_PAIR}\tlabel\n"),
            "WNLI/dev.tsv contains no examples.",
        ),
    ],
)
def test_files_of_another_task_are_found_first(change, message, copy, arguments, tmp_path):
    change(copy)
    with pytest.raises(InputError, match=message):
        glue(**{**arguments, "data": copy, "output": tmp_path / "run"})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"tasks": ["AX"]}, "GLUE's AX has no training file: it is predicted with the model of"),
        ({"tasks": ["SNLI"]}, "GLUE has no task 'SNLI'"),
        ({"tasks": []}, "`tasks` is empty"),
        ({"strategy": "multiworker"}, "`strategy` multiworker trains one model on several"),
        ({"scalar_mix_l2": 0.1}, "`scalar_mix_l2` needs `layers` mix"),
        ({"learning_rate": [0.0]}, "`learning_rate` must be above 0. Received: 0.0"),
        ({"architecture": None}, "Give either a model folder to start from, or an architecture"),
        ({"data": None}, "`data` is None"),
        ({"num_seeds": 2, "seed": 2**32 - 1}, "exceed the largest seed"),
    ],
)
def test_invalid_arguments(changes, message, arguments, tmp_path):
    with pytest.raises(InputError, match=message):
        glue(**{**arguments, "output": tmp_path / "run", **changes})
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("eager")
def test_a_run_with_other_data_or_settings_is_not_resumed(copy, arguments, tmp_path):
    given = {**arguments, "data": copy, "output": tmp_path / "run", "tasks": ["WNLI"]}
    given |= {"dev_only": True, "epochs": [1]}
    results = glue(**given)
    assert results["submission"] is None and results["missing"] == []
    assert not (tmp_path / "run" / "submission").exists()
    with pytest.raises(InputError, match="different settings: epochs .*, now"):
        glue(**{**given, "epochs": [2]})
    _replace("WNLI/dev.tsv", "film", "plot")(copy)
    with pytest.raises(InputError, match="different settings: other content of WNLI"):
        glue(**given)


def test_the_grid_is_the_papers_or_a_quick_one():
    names = {"data": "glue", "output": "run", "model": "m"}
    paper, quick = GlueSettings(**names), GlueSettings(**names, quick=True, epochs=[1, 2])
    assert paper.grid == {
        "learning_rate": [5e-5, 3e-5, 2e-5],
        "batch_size": [16, 32],
        "epochs": [2, 3, 4],
    }
    assert (paper.runs_per_task, paper.is_sweep, len(paper.tasks)) == (18, True, 9)
    assert quick.grid == {"learning_rate": [3e-5], "batch_size": [32], "epochs": [1, 2]}
    assert GlueSettings(**names, quick=True, num_seeds=3).runs_per_task == 3
    assert GlueSettings(**names, num_seeds=3).runs_per_task == 21


@pytest.mark.usefixtures("eager")
def test_the_command_prints_the_table(arguments, tmp_path, capsys):
    flags = [
        f"--{name.replace('_', '-')}={value[0] if isinstance(value, list) else value}"
        for name, value in arguments.items()
        if value is not True
    ]
    command = ["glue", *flags, "--epochs", "1", "--tasks", "CoLA", "--output", str(tmp_path / "x")]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert "Matthew's Corr" in captured.out and "submission.zip" in captured.out
    assert "Missing: SST-2.tsv, MRPC.tsv" in captured.out
    assert "Expected time: about" in captured.err
    assert main([*command, "--data", str(tmp_path)]) == 2
    assert "lacks files of GLUE: the folder CoLA" in capsys.readouterr().err
