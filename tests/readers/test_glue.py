"""GLUE by name: the right files, columns and labels, what is handed in, and the average."""

import numpy as np
import pytest

from keras_bert.base.errors import InputError
from keras_bert.readers.glue import (
    GLUE,
    glue_average,
    glue_metrics,
    glue_settings,
    glue_submission,
    glue_task,
    write_submission,
)
from keras_bert.readers.labels import one_label, score
from keras_bert.readers.texts import PAIR, TEXT, TextSource
from keras_bert.tasks.classification.metrics import classification_metrics, score_metrics
from tests.messages import raises_input_error

# The first lines of GLUE's files: their columns, and a row each.
FILES = {
    "CoLA/train.tsv": "gj04\t1\t\tA sentence here.\ngj04\t0\t*\tSentence a here.\n",
    "CoLA/dev.tsv": "gj04\t1\t\tA dev sentence.\n",
    "CoLA/test.tsv": "index\tsentence\n0\tA test sentence.\n",
    "SST-2/train.tsv": "sentence\tlabel\nhide new secretions \t0\n",
    "SST-2/dev.tsv": "sentence\tlabel\nunflinchingly bleak \t0\n",
    "SST-2/test.tsv": "index\tsentence\n0\tuneasy mishmash .\n",
    "MRPC/train.tsv": (
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t70\t71\tHe said "so.\tHe said so.\n'
    ),
    "MRPC/dev.tsv": "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tOne.\tTwo.\n",
    "MRPC/test.tsv": "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tOne.\tTwo.\n",
    "STS-B/train.tsv": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        "0\tmain\tMSR\t2012\t1\tnone\tnone\tA plane.\tAn air plane.\t5.000\n"
    ),
    "STS-B/dev.tsv": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        "0\tmain\tMSR\t2012\t1\tnone\tnone\tA man.\tA woman.\t1.250\n"
    ),
    "STS-B/test.tsv": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\n"
        "0\tmain\tMSR\t2012\t1\tnone\tnone\tA girl.\tA boy.\n"
    ),
    "QQP/train.tsv": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        "1\t2\t3\tHow?\tWhy?\t0\n"
        "4\t5\t6\tA question that goes on\n"
        "in the next line?\tWhy?\t1\n"
        "7\t8\t9\tWho?\tWho is it?\t1\n"
    ),
    "QQP/dev.tsv": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tHow?\tWhy?\t0\n",
    "QQP/test.tsv": "id\tquestion1\tquestion2\n0\tHow?\tWhy?\n",
    "QNLI/train.tsv": "index\tquestion\tsentence\tlabel\n0\tWho?\tHe is.\tentailment\n",
    "QNLI/dev.tsv": "index\tquestion\tsentence\tlabel\n0\tWho?\tShe.\tnot_entailment\n",
    "QNLI/test.tsv": "index\tquestion\tsentence\n0\tWho?\tThey.\n",
    "diagnostic/diagnostic.tsv": "index\tsentence1\tsentence2\n0\tThe cat.\tNo cat.\n",
}
for _name, _yes, _no in (("RTE", "entailment", "not_entailment"), ("WNLI", "1", "0")):
    _first = "index\tsentence1\tsentence2\tlabel\n0\tIt is.\tIt was."
    FILES |= {
        f"{_name}/train.tsv": f"{_first}\t{_yes}\n",
        f"{_name}/dev.tsv": f"{_first}\t{_no}\n",
        f"{_name}/test.tsv": "index\tsentence1\tsentence2\n0\tIt is.\tIt will be.\n",
    }
_MNLI = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
    "sentence1_parse\tsentence2_parse\tsentence1\tsentence2"
)
_PARSED = "0\t1\t1n\tfiction\t( a )\t( b )\t(ROOT a)\t(ROOT b)\tThe {0}.\tA {0}."
FILES["MNLI/train.tsv"] = (
    f"{_MNLI}\tlabel1\tgold_label\n{_PARSED.format('train')}\tneutral\tneutral\n"
)
for _part in ("matched", "mismatched"):
    _row = _PARSED.format(_part)
    FILES[f"MNLI/dev_{_part}.tsv"] = (
        f"{_MNLI}\tlabel1\tlabel2\tgold_label\n{_row}\tneutral\tneutral\tentailment\n"
    )
    FILES[f"MNLI/test_{_part}.tsv"] = f"{_MNLI}\n{_row}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("glue")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    return folder


def read(path, task, *, labelled=True):
    return TextSource(
        path,
        texts=TEXT if task.task_type == "classifier" else PAIR,
        form=score if task.task_type == "regression" else one_label,
        glue=task.name,
        need_labels=labelled,
    )


@pytest.mark.parametrize("name", [name for name, task in GLUE.items() if task.train])
def test_a_task_by_its_name(folder, name):
    task = glue_task(name)
    settings = glue_settings(name.lower(), folder)
    assert (settings["task"], settings["glue"]) == (task.task_type, name)
    for which in ("train", "dev"):
        assert settings[which] == str(folder / task.folders[0] / getattr(task, which))
        for example in read(settings[which], task):
            assert len(example.texts) == len(task.texts) and all(example.texts)
            if task.labels:
                assert example.label in task.labels
    # A folder is its dev file, or if nothing is known its test file; its own folder will do.
    task_folder = folder / task.folders[0]
    assert next(iter(read(task_folder, task))) == next(iter(read(settings["dev"], task)))
    assert next(iter(read(folder, task, labelled=False))).label is None


def test_columns_are_those_of_the_task(folder):
    def first(name, file, **options):
        return next(iter(read(folder / file, glue_task(name), **options)))

    assert first("CoLA", "CoLA/train.tsv").texts == ("A sentence here.",)
    assert first("CoLA", "CoLA/test.tsv", labelled=False).texts == ("A test sentence.",)
    assert first("MRPC", "MRPC/train.tsv").texts == ('He said "so.', "He said so.")
    assert first("STS-B", "STS-B/dev.tsv").label == 1.25
    mismatched = next(iter(read(folder, glue_task("MNLI-mm"))))
    assert (mismatched.texts, mismatched.label) == (
        ("The mismatched.", "A mismatched."),
        "entailment",
    )
    assert next(iter(read(folder, glue_task("MNLI-m")))).text == "The matched."
    diagnostic = next(iter(read(folder, glue_task("AX"), labelled=False)))
    assert diagnostic.texts == ("The cat.", "No cat.")


def test_broken_lines_of_qqp_are_left_out_and_counted(folder):
    source = read(folder / "QQP/train.tsv", glue_task("QQP"))
    assert [example.text for example in source] == ["How?", "Who?"]
    assert source.notes() == [
        f"{source.name}: 2 invalid lines (another number of columns), left out as GLUE's own "
        "readers do."
    ]


@pytest.mark.parametrize(
    "name, message",
    [
        ("SNLI", "no task 'SNLI'. Its tasks are CoLA, SST-2, MRPC, STS-B"),
        ("AX", "AX has no training file. Train on MNLI"),
        ("RTE", "RTE has no train.tsv in .... Expected ...RTE/train"),
    ],
)
def test_what_glue_does_not_have_is_named(name, message, tmp_path):
    with raises_input_error(message):
        glue_settings(name, tmp_path)


def test_a_file_of_another_task_is_named(folder):
    with raises_input_error('line 1: no column "question1"... QQP has'):
        read(folder / "RTE/dev.tsv", glue_task("QQP"))


@pytest.mark.parametrize(
    "name, texts, form, message",
    [
        ("MRPC", TEXT, one_label, "pair-classifier .* two texts and a label .* one text and a"),
        ("SST-2", PAIR, one_label, "classifier .* one text and a label .* two texts and a label"),
        ("STS-B", PAIR, one_label, "regression .* two texts and a score .* two texts and a label"),
        ("RTE", PAIR, score, "pair-classifier .* two texts and a label .* two texts and a score"),
    ],
)
def test_a_task_of_another_kind_is_not_read_in_part(folder, name, texts, form, message):
    with pytest.raises(InputError, match=f"^GLUE's {name} is a {message}"):
        TextSource(folder, texts=texts, form=form, glue=name)


# What the leaderboard says of each task: https://gluebenchmark.com/tasks and /leaderboard.
LEADERBOARD = {
    "CoLA": ("01", ["Matthew's Corr"], "CoLA.tsv"),
    "SST-2": ("01", ["Accuracy"], "SST-2.tsv"),
    "MRPC": ("01", ["F1", "Accuracy"], "MRPC.tsv"),
    "STS-B": ("", ["Pearson Corr", "Spearman Corr"], "STS-B.tsv"),
    "QQP": ("01", ["F1", "Accuracy"], "QQP.tsv"),
    "MNLI": (["entailment", "neutral", "contradiction"], ["Accuracy"], "MNLI-m.tsv"),
    "MNLI-mm": (["entailment", "neutral", "contradiction"], ["Accuracy"], "MNLI-mm.tsv"),
    "QNLI": (["entailment", "not_entailment"], ["Accuracy"], "QNLI.tsv"),
    "RTE": (["entailment", "not_entailment"], ["Accuracy"], "RTE.tsv"),
    "WNLI": ("01", ["Accuracy"], "WNLI.tsv"),
    "AX": (["entailment", "neutral", "contradiction"], ["Matthew's Corr"], "AX.tsv"),
}


@pytest.mark.parametrize("name", GLUE)
def test_what_is_handed_in_of_each_task(name, tmp_path):
    labels, _, file = LEADERBOARD[name]
    answers = [{"label": label, "score": 0.9} for label in labels]
    said = list(labels)
    if not labels:
        answers = [{"score": score} for score in (3.14159, -0.2, 5.4)]
        said = ["3.142", "0.000", "5.000"]
    path = write_submission(name.lower(), iter(answers), tmp_path / "submission")
    assert path == tmp_path / "submission" / file
    lines = ["index\tprediction", *(f"{number}\t{answer}" for number, answer in enumerate(said))]
    assert path.read_text() == "".join(f"{line}\n" for line in lines)
    assert list(glue_submission(name, answers)) == lines
    assert write_submission(name, answers[:1], path.parent).read_text().count("\n") == 2
    if labels:
        with raises_input_error(f'predicts "maybe". The labels of GLUE\'s {name} are'):
            write_submission(name, [{"label": "maybe"}], path.parent)
    path.write_text("my own\n")
    with raises_input_error(f"{file} is a file that this command did not write"):
        write_submission(name, answers, path.parent)


@pytest.mark.parametrize("name", GLUE)
def test_the_metrics_of_each_task_have_the_names_that_glue_has(name):
    task, (labels, names, _) = glue_task(name), LEADERBOARD[name]
    if labels:
        numbers = np.arange(12) % len(labels)
        probabilities = np.eye(len(labels))[(numbers + (np.arange(12) > 8)) % len(labels)]
        measures = classification_metrics(numbers, probabilities, labels=sorted(labels))
    else:
        measures = score_metrics(np.arange(9.0), np.arange(9.0) ** 2)
    metrics = glue_metrics(name, measures)
    assert list(metrics) == ["task", *names, "score"] and metrics["task"] == name
    # What a run keeps the best epoch by is the mean of the same figures.
    assert metrics["score"] == pytest.approx(measures[task.metric])
    with raises_input_error(f"GLUE's {name} is measured by .... This model has no"):
        glue_metrics(name, {})


def test_answers_of_another_task_are_not_handed_in():
    with raises_input_error('predicts "yes". The labels of GLUE\'s RTE are "entailment"'):
        list(glue_submission("RTE", [{"label": "yes"}]))
    with raises_input_error("STS-B needs scores"):
        list(glue_submission("STS-B", [{"label": "1", "score": 0.5}]))


def test_the_average_is_that_of_the_leaderboard():
    """BERT-large's row there (Devlin et al. 2018): 80.5."""
    bert_large = {
        "CoLA": 60.5,
        "SST-2": 94.9,
        "MRPC": [89.3, 85.4],
        "STS-B": [87.6, 86.5],
        "QQP": [72.1, 89.3],
        "MNLI": [86.7, 85.9],
        "QNLI": 92.7,
        "RTE": 70.1,
        "WNLI": 65.1,
    }
    assert round(glue_average(bert_large, with_wnli=True), 1) == 80.5
    # (60.5 + 94.9 + 87.35 + 87.05 + 80.7 + 86.3 + 92.7 + 70.1) / 8
    assert glue_average(bert_large, with_wnli=False) == pytest.approx(82.45)
    apart = {**bert_large, "MNLI": 86.7, "MNLI-mm": 85.9}  # as `evaluate --glue` says them
    for named in (apart, {name.lower(): value for name, value in apart.items()}):
        assert glue_average(named, with_wnli=False) == pytest.approx(82.45)
    with raises_input_error("needs RTE, too"):
        glue_average({k: v for k, v in bert_large.items() if k != "RTE"}, with_wnli=True)
