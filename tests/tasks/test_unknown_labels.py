"""Labels and tags that occur only in dev or test: errors of the model, or an error on request."""

import json

import numpy as np
import pytest
import seqeval.metrics
from sklearn import metrics as sklearn_metrics

import keras_bert as kb
from keras_bert.tasks import task_class
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

WORDS = {"words": ["ada", "in", "rome"]}
PAIR = {**WORDS, "head": [0, 1], "tail": [2, 3]}
# Kind -> (arguments, examples with known labels, an example with an unknown one).
KINDS = {
    "classifier": ({"labels": ["x", "y"]}, [("good", "x"), ("bad", "y")], ("film", "odd")),
    "pair-classifier": ({"labels": ["x", "y"]}, [("good", "a", "x")], ("film", "b", "odd")),
    "several": (
        {"labels": ["x", "y"], "multi_label": True},
        [("good", "x|y"), ("bad", "")],
        ("film", "odd|x"),
    ),
    "tagger": (
        {"labels": ["O", "B-X", "I-X"]},
        [(["a", "b"], ["O", "B-X"]), (["c"], ["B-X"])],
        (["c"], ["B-NEW"]),
    ),
    "words": (
        {"labels": ["NOUN", "VERB"]},
        [(["a", "b"], ["NOUN", "VERB"])],
        (["c"], ["SYM"]),
    ),
    "semantic-roles": (
        {"labels": ["O", "B-A0", "I-A0", "B-V", "I-V"]},
        [{"words": ["ada", "ran"], "predicate": [1, 2], "tags": ["B-A0", "B-V"]}],
        {"words": ["rome"], "predicate": [0, 1], "tags": ["B-NEW"]},
    ),
    "span-classifier": (
        {"labels": ["LOC", "PER"]},
        [{**WORDS, "spans": [[2, 3, "LOC"]]}, {**WORDS, "spans": []}],
        {**WORDS, "spans": [[0, 1, "NEW"]]},
    ),
    "relation-classifier": (
        {"labels": ["born_in", "no_relation"]},
        [{**PAIR, "label": "born_in"}, {**PAIR, "label": "no_relation"}],
        {**PAIR, "label": "of"},
    ),
}
UNKNOWN = {
    **dict.fromkeys(("tagger", "semantic-roles"), "B-NEW"),
    **{"words": "SYM", "span-classifier": "NEW", "relation-classifier": "of"},
}


@pytest.fixture(scope="module")
def tasks():
    tokenizer = make_tokenizer(["good", "bad", "film", "ada", "rome"])
    names = {"several": "classifier", "words": "tagger"}
    return {
        name: task_class(names.get(name, name))(make_encoder(tokenizer), tokenizer, **arguments)
        for name, (arguments, _, _) in KINDS.items()
    }


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", KINDS)
def test_they_are_counted_as_errors_with_a_note_or_rejected(name, tasks):
    pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")
    task, (_, examples, other), unknown = tasks[name], KINDS[name], UNKNOWN.get(name, "odd")
    notes = []
    metrics = kb.evaluate(model=task, data=[*examples, other], show_errors=9, report=notes.append)
    counted = f'labels that the model does not have, counted as errors: "{unknown}" (1).'
    assert any(note.startswith("Note: ") and note.endswith(counted) for note in notes)
    assert metrics["examples"] == len(examples) + 1
    (error,) = (entry for entry in metrics["errors"] if entry["line"] == len(examples) + 1)
    assert unknown in json.dumps(error["expected"])
    assert set(pandas.DataFrame(metrics["errors"])) == set(error)
    assert task.describe_error(error)
    with raises_input_error(f'"{unknown}"'):
        kb.evaluate(model=task, data=[*examples, other], unknown_labels="error")
    with raises_input_error(f'unknown label "{unknown}". The model\'s labels are'):
        kb.evaluate(model=task, data=[other[:1] + ("odd",)] if name == "several" else [other])
    with raises_input_error(f'"{unknown}"'):
        task.dataset([*examples, other])
    assert list(kb.predict(model=task, data=[*examples, other], unknown_labels="error"))


@pytest.mark.usefixtures("eager")
def test_metrics_are_those_of_scikit_learn(tasks):
    rng = make_rng(0)
    words = ["good", "bad", "film", "ada", "rome"]
    texts = [" ".join(rng.choice(words, rng.integers(1, 5))) for _ in range(60)]
    labels = rng.choice(["x", "y", "odd", "z"], 60, p=[0.4, 0.4, 0.1, 0.1]).tolist()
    data = list(zip(texts, labels, strict=True))
    metrics = kb.evaluate(model=tasks["classifier"], data=data)
    predicted = [answer["label"] for answer in kb.predict(model=tasks["classifier"], data=data)]
    assert list(metrics["labels"]) == ["x", "y", "odd", "z"]
    confusion = sklearn_metrics.confusion_matrix(labels, predicted, labels=[*metrics["labels"]])
    assert metrics["confusion"] == confusion.tolist()
    options = {"average": "macro", "zero_division": 0}
    assert metrics["accuracy"] == pytest.approx(sklearn_metrics.accuracy_score(labels, predicted))
    macro = sklearn_metrics.f1_score(labels, predicted, **options)
    assert metrics["macro_f1"] == pytest.approx(macro)
    matthews = sklearn_metrics.matthews_corrcoef(labels, predicted)
    assert metrics["matthews"] == pytest.approx(matthews)

    several = [(text, f"{label}|x") for text, label in data]
    metrics = kb.evaluate(model=tasks["several"], data=several)
    predicted = [answer["labels"] for answer in kb.predict(model=tasks["several"], data=several)]
    names = ["x", "y", "odd", "z"]
    expected = np.array([[n in ("x", label) for n in names] for label in labels])
    predicted = np.array([[n in label_set for n in names] for label_set in predicted])
    for name in ("micro", "macro"):
        their_f1 = sklearn_metrics.f1_score(expected, predicted, average=name, zero_division=0)
        assert metrics[f"{name}_f1"] == pytest.approx(their_f1)


@pytest.mark.usefixtures("eager")
@pytest.mark.filterwarnings("ignore")
def test_metrics_are_those_of_seqeval(tasks):
    rng = make_rng(1)
    data = []
    for _ in range(40):
        tags = rng.choice(["O", "B-X", "B-NEW"], rng.integers(1, 6), p=[0.6, 0.3, 0.1]).tolist()
        data.append((rng.choice(["ada", "in", "rome"], len(tags)).tolist(), tags))
    metrics = kb.evaluate(model=tasks["tagger"], data=data)
    predicted = [answer["tags"] for answer in kb.predict(model=tasks["tagger"], data=data)]
    expected = [tags for _, tags in data]
    for name in ("precision", "recall", "f1"):
        their_score = getattr(seqeval.metrics, f"{name}_score")(expected, predicted)
        assert metrics[name] == pytest.approx(their_score)
    assert metrics["accuracy"] == pytest.approx(seqeval.metrics.accuracy_score(expected, predicted))
    assert metrics["labels"]["NEW"]["recall"] == 0


@pytest.fixture(scope="module")
def architecture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("architecture")
    tokenizer = make_tokenizer(["good", "bad", "film"])
    tokenizer.vocabulary.save(folder / "vocab.txt")
    config = make_encoder(tokenizer, num_hidden_layers=1).config
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    return {"architecture": folder / "config.json", "vocab": folder / "vocab.txt"}


@pytest.mark.usefixtures("eager")
def test_a_run_goes_on_and_its_epochs_are_compared_by_all_dev_examples(architecture, tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "good film\tx\nbad film\ty\n" * 8)
    (tmp_path / "dev.tsv").write_text("text\tlabel\ngood\tx\nbad\ty\nfilm film\todd\n")
    given = {**architecture, "train": tmp_path / "train.tsv", "dev": tmp_path / "dev.tsv"}
    notes = []
    metrics = kb.finetune(
        **given, epochs=1, learning_rate=1e-3, output=tmp_path / "run", report=notes.append
    )
    counted = 'labels that the model does not have, counted as errors: "odd" (1).'
    assert f"Note: {tmp_path}/dev.tsv: {counted}" in notes
    (record,) = (entry["eval"] for entry in metrics["history"] if "eval" in entry)
    assert metrics["dev"]["accuracy"] in (0, 1 / 3, 2 / 3)
    assert record["accuracy"] == pytest.approx(metrics["dev"]["accuracy"])
    assert np.isfinite(record["loss"])
    with raises_input_error('dev.tsv, line 4: unknown label "odd"'):
        kb.finetune(**given, output=tmp_path / "other", unknown_labels="error")
    assert not (tmp_path / "other").exists()


def test_parts_of_another_task_are_named_with_it(architecture, tmp_path, capsys):
    from keras_bert.cli.main import main

    (tmp_path / "a.csv").write_text("premise,hypothesis,label\na,b,yes\nc,d,no\n")
    file = str(tmp_path / "a.csv")
    command = ["finetune", "--train", file, "--dev", file, "--output", str(tmp_path / "run")]
    command += ["--vocab", str(architecture["vocab"])]
    command += ["--architecture", str(architecture["architecture"])]
    assert main([*command, "--fields", "text_a=premise,text_b=hypothesis,label=label"]) == 2
    said = capsys.readouterr().err
    assert 'names "text_a"' in said and "(--task pair-classifier)" in said
