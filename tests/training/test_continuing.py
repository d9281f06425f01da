"""Fine-tuning from a folder that was fine-tuned: its head and options, for every task type."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

import keras_bert.training.finetune as module
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load_task
from keras_bert.tasks import finetuned_task_types, task_class
from keras_bert.training.earlier_task import EarlierTask
from keras_bert.training.finetune import finetune
from tests.eagerly import eagerly
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.test_files_of_another_kind import FILES

# What the task in the folder is made with, and whether it reads a mix of layers.
OPTIONS = {
    "classifier": (
        {"pooling": "both", "multi_label": True, "threshold": 0.25, "max_length": 20},
        True,
    ),
    "pair-classifier": ({"pooling": "mean", "max_length": 24}, False),
    "regression": ({"pooling": "both", "mean": 3.0, "scale": 4.0}, True),
    "multiple-choice": ({"max_length": 16}, True),
    "tagger": ({"crf": True, "bilstm": 3, "document_context": True}, True),
    "semantic-roles": ({"crf": True, "max_length": 20}, True),
    "question-answering": (
        {
            **{"max_length": 30, "stride": 5, "max_question_length": 7, "max_answer_length": 4},
            **{"n_best": 3, "null_threshold": 0.5},
        },
        False,
    ),
    "span-classifier": (
        {
            **{"max_span_length": 3, "span_representation": "biaffine", "threshold": 0.25},
            **{"threshold_metric": "precision", "flat": True},
        },
        False,
    ),
    "coreference": ({"max_span_length": 3, "max_antecedents": 2, "max_length": 20}, True),
    "text-embedding": ({"pooling": "cls+max", "dense": "6:tanh", "max_length": 20}, True),
    "relation-classifier": ({"span_representation": "attention", "null_label": "of"}, True),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("continued")
    for kind, content in FILES.items():
        (folder / kind).write_text(content)
    (folder / "colours").write_text("text\tlabel\na good film\tred\na bad film\tblue\n")
    return folder


@pytest.fixture(scope="module")
def saved(folder):
    """A function that writes the folder of a kind with random weights, each once."""
    tokenizer = make_tokenizer(["good", "film"])

    def save(kind, *, mix=None, name=None, **more):
        path = folder / (name or f"{kind}-model")
        if path.exists():
            return path
        options, mixed = OPTIONS[kind]
        encoder = make_encoder(tokenizer, num_hidden_layers=1)
        if mixed if mix is None else mix:
            more["layer_mix"] = {"layer_norm_eps": encoder.config.layer_norm_eps, "l2": 0.5}
        source = task_class(kind).read(folder / kind)
        inferred_arguments = task_class(kind).infer_arguments(list(source))
        if "labels" in inferred_arguments:  # another order than that of a file
            inferred_arguments["labels"] = inferred_arguments["labels"][::-1]
        task = task_class(kind)(encoder, tokenizer, **{**inferred_arguments, **options, **more})
        task.columns = source.schema  # as of a run
        keras.utils.set_random_seed(shifted(3))
        for weight in task.trainable_weights:
            weight.assign_add(keras.random.normal(weight.shape) * 0.1)
        task.save(path)
        return path

    return save


@pytest.fixture
def continued(folder, tmp_path, monkeypatch):
    """A function that fine-tunes without a step, and returns (its folder, what it reported)."""
    monkeypatch.setattr(module, "train", lambda run: [{"step": run.plan.steps, "seconds": 0.0}])

    def run(kind, model, *, file=None, **settings):
        said = []
        path = folder / (file or kind)
        files = {"train": path, "dev": path, "output": tmp_path / "run"}
        with eagerly():
            finetune(**files, task=kind, model=model, keep="last", report=said.append, **settings)
        return tmp_path / "run" / "model", said

    return run


def test_every_kind_is_continued():
    assert set(OPTIONS) == set(finetuned_task_types())


# Options of all sorts, a mix, a CRF and a BiLSTM are among these; the other kinds are slow.
QUICK = ("classifier", "tagger", "question-answering")
KINDS = [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in OPTIONS]


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_continues_with_the_head_and_the_options_of_its_model(kind, saved, continued):
    source = saved(kind)
    model, said = continued(kind, source)
    expected, tensors = (load_file(path / "model.safetensors") for path in (source, model))
    assert tensors.keys() == expected.keys()
    for name, tensor in expected.items():
        np.testing.assert_array_equal(tensors[name], tensor, err_msg=name)
    before, after = (json.loads((path / "config.json").read_text()) for path in (source, model))
    assert after == before
    (line,) = (line for line in said if "Continuing with its head" in line)
    assert "New" not in line and "Changed" not in line
    recorded = json.loads((model.parent / "run.json").read_text())["settings"]
    options, mixed = OPTIONS[kind]
    given = {name: value for name, value in options.items() if name not in ("mean", "scale")}
    assert {name: recorded[name] for name in given} == given
    assert recorded["layers"] == ("mix-all" if mixed else "last")
    assert recorded["scalar_mix_layer_norm"] == mixed


def test_what_is_given_wins_and_what_it_changes_is_new(saved, continued):
    source = saved("tagger", mix=False, name="plain-tagger")
    model, said = continued("tagger", source, bilstm=5, crf=True, max_length=12)
    task, before = load_task(model), load_task(source)
    settings = task.settings
    assert (settings.bilstm, settings.crf, settings.max_length) == (5, True, 12)
    assert settings.document_context
    (line,) = (line for line in said if "Continuing with its " in line)
    assert "Changed: max_length 12, was 40; bilstm 5, was 3." in line
    assert line.endswith(
        "New, from random weights: bilstm, classifier, crf. Not kept: bilstm, classifier, crf."
    )
    assert task.classifier.kernel.shape != before.classifier.kernel.shape


@pytest.mark.parametrize(
    "options, new",
    [
        ({"crf": False}, None),
        ({"layers": "mix-all"}, "scalar_mix, bilstm, classifier, crf"),
        ({"threshold": 0.5}, None),
        ({"pooling": "cls"}, "classifier"),
        ({"pooling": "mean"}, "classifier"),
        ({"layers": "last"}, "classifier"),
    ],
    ids=lambda x: None if x is None else str(x),
)
def test_a_head_is_new_where_it_would_read_something_else(options, new, saved, continued):
    if {*options} & {"threshold", "pooling"} or options == {"layers": "last"}:
        kind, source = "classifier", saved("classifier")
    else:
        kind, source = "tagger", saved("tagger", mix=False, name="plain-tagger")
    model, said = continued(kind, source, **options)
    (line,) = (line for line in said if "Continuing with its " in line)
    assert ("New, from random weights: " in line) == (new is not None)
    assert ("without its head, which reads something else" in line) == (new is not None)
    task, before = load_task(model), load_task(source)
    same = np.array_equal(task.classifier.bias, before.classifier.bias)
    assert same == (new is None)
    if new is not None:
        assert f"New, from random weights: {new}." in line
    if options == {"crf": False}:
        assert task.crf is None and line.endswith("Not kept: crf.")


def test_other_labels_or_another_kind_have_a_new_head_and_that_is_said(saved, continued, folder):
    source = saved("classifier")
    model, said = continued("classifier", source, file="colours")
    task = load_task(model)
    assert set(task.labels) == {"red", "blue"}
    assert (task.settings.pooling, task.settings.threshold) == ("cls", 0.5)
    assert task.settings.multi_label  # or the file would be read in another way
    (line,) = (line for line in said if line.startswith("The head is new: "))
    assert line == (
        f"The head is new: {source} has other labels (good, bad). Its own head is not kept "
        "(max_length 20, pooling both, threshold 0.25, layers mix-all, scalar_mix_l2 0.5, "
        "scalar_mix_layer_norm). Its options for reading files are kept: multi_label."
    )


def test_with_a_label_more_the_labels_that_stay_keep_their_weights(saved, continued, folder):
    (folder / "more").write_text("text\tlabel\na good film\tgood\na bad one\tbad\nfilm\tnew\n")
    source = saved("classifier")
    model, said = continued("classifier", source, file="more")
    before, task = load_task(source), load_task(model)
    assert set(task.labels) == {"good", "bad", "new"} and task.settings.pooling == "both"
    for label in before.labels:
        columns = [np.array(t.classifier.kernel)[:, t.labels.index(label)] for t in (before, task)]
        np.testing.assert_array_equal(*columns)
    assert (
        'The weights of the labels that stay are kept: "bad", "good". New, from random weights: '
        '"new".'
    ) in said
    assert any(line.startswith("Continuing with its head (") for line in said)


# Kind -> the labels of an earlier task, and those of one that continues with it.
OTHER_LABELS = {
    "classifier": (["c", "a", "b"], ["a", "b", "d", "e"]),
    "tagger": (["O", "B-X", "I-X"], ["B-W", "B-X", "I-W", "I-X", "O"]),
    "span-classifier": (["LOC", "PER"], ["ORG", "PER", "LOC"]),
    "relation-classifier": (["of", "in", "none"], ["at", "in", "of"]),
}


@pytest.mark.parametrize("kind", OTHER_LABELS)
def test_each_label_that_stays_keeps_its_items_in_every_weight(kind):
    tokenizer, rng = make_tokenizer(), make_rng(2)
    options = {"crf": True} if kind == "tagger" else {}
    tasks = [
        task_class(kind)(make_encoder(tokenizer), tokenizer, labels=labels, **options)
        for labels in OTHER_LABELS[kind]
    ]
    for task in tasks:
        for head in task.HEADS:
            for weight in getattr(task, head).weights:
                weight.assign(rng.normal(size=weight.shape))
    before, after = ([np.array(w) for h in t.HEADS for w in getattr(t, h).weights] for t in tasks)
    earlier = EarlierTask(tasks[0])
    assert earlier.shares_labels(tasks[1].labels) and not earlier.has_labels(tasks[1].labels)
    continued, new, lost = earlier.continue_in(tasks[1])
    assert continued == list(tasks[1].HEADS) and not new and not lost
    now = [np.array(w) for h in tasks[1].HEADS for w in getattr(tasks[1], h).weights]
    first = tasks[1].FIRST_LABEL
    counts = [len(task.labels) + first for task in tasks]
    shared = [label for label in tasks[1].labels if label in tasks[0].labels]
    numbers = [[*range(first), *(first + t.labels.index(x) for x in shared)] for t in tasks]
    for old, random, kept in zip(before, after, now, strict=True):
        axes = [a for a in range(old.ndim) if (old.shape[a], kept.shape[a]) == tuple(counts)]
        for axis in axes[-1:]:
            rows = [np.take(x, n, axis) for x, n in zip((old, kept), numbers, strict=True)]
            if len(axes) == 2:
                rows = [np.take(x, n, 0) for x, n in zip(rows, numbers, strict=True)]
            np.testing.assert_array_equal(*rows)
            others = np.setdiff1d(np.arange(counts[1]), numbers[1])
            np.testing.assert_array_equal(*(np.take(x, others, axis) for x in (random, kept)))
        if not axes:
            np.testing.assert_array_equal(old, kept)


def test_too_few_labels_that_stay_are_a_new_head():
    tokenizer = make_tokenizer()
    labels = ["ham", "spam"]
    earlier = EarlierTask(
        task_class("classifier")(make_encoder(tokenizer), tokenizer, labels=labels)
    )
    assert not earlier.shares_labels(["ham", "eggs"]) and earlier.shares_labels(
        ["ham", "spam", "e"]
    )


def test_another_kind_has_a_new_head_and_that_is_said(saved, continued):
    source = saved("tagger")
    _, said = continued("multiple-choice", source)
    assert (
        f"The head is new: {source} contains a tagger, and this run trains a multiple-choice. "
        "Its own head and options are not kept."
    ) in said


def test_a_head_of_ours_that_cannot_be_read_is_rejected_and_one_of_others_new(
    saved, continued, tmp_path
):
    config = saved("tagger", mix=False, name="torn", bilstm=None, crf=False) / "config.json"
    fields = json.loads(config.read_text())
    fields["id2label"] = {"0": "O"}
    config.write_text(json.dumps(fields))
    with pytest.raises(InputError, match="has a single label. The task tagger needs two or more"):
        continued("tagger", config.parent)
    del fields["keras_bert"]
    config.write_text(json.dumps(fields))
    _, said = continued("tagger", config.parent)
    (line,) = (line for line in said if line.startswith("The head is new: "))
    assert "has a single label" in line


def test_pairs_continue_with_a_classifier_of_another_program(saved, continued):
    """BertForSequenceClassification does not say how many texts it reads."""
    config = saved("pair-classifier", name="foreign", pooling="cls") / "config.json"
    fields = json.loads(config.read_text())
    del fields["keras_bert"]
    config.write_text(json.dumps(fields))
    model, said = continued("pair-classifier", config.parent)
    tensors, expected = (load_file(p / "model.safetensors") for p in (model, config.parent))
    np.testing.assert_array_equal(tensors["classifier.weight"], expected["classifier.weight"])
    assert any(line.startswith("Continuing with its head (max_length 40") for line in said)


def test_a_threshold_that_was_tuned_is_tuned_again(saved, continued):
    source = saved("span-classifier", name="tuned", threshold=None)
    task = load_task(source)
    assert task.tuned == ("threshold",)
    task.update_settings(threshold=0.125)
    task.save(source.with_name("tuned-folder"))
    again = load_task(source.with_name("tuned-folder"))
    assert (again.settings.threshold, again.tuned) == (0.125, ("threshold",))
    model, _ = continued("span-classifier", source.with_name("tuned-folder"))
    assert load_task(model).settings.threshold != 0.125 and load_task(model).tuned == ("threshold",)


def test_a_run_that_continues_is_resumed_and_repeated_by_its_settings(saved, continued, tmp_path):
    source = saved("tagger")
    model, _ = continued("tagger", source)
    (model.parent / "metrics.json").unlink()
    again, _ = continued("tagger", source)  # the same arguments
    settings = json.loads((again.parent / "run.json").read_text())["settings"]
    repeated = {name: v for name, v in settings.items() if name in ("crf", "bilstm", "max_length")}
    assert repeated == {"crf": True, "bilstm": 3, "max_length": 40}
    with pytest.raises(InputError, match="crf True, now False"):
        continued("tagger", source, crf=False)
