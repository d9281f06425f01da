"""The pictures of a run show its metrics.json."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from keras_bert.base.errors import InputError
from keras_bert.cli.training_commands import draw as draw_and_report
from keras_bert.pictures import run, save_picture
from keras_bert.pictures.run import draw_run
from keras_bert.tasks import finetuned_task_types, task_class
from keras_bert.tasks.tagging.metrics import chunk_metrics, role_metrics

METRICS = {
    "kept": {"which": "best", "epoch": 1, "step": 4},
    "best_metric": "f1",
    "history": [
        {"step": 2, "train": {"loss": 2.0}},
        {"step": 4, "train": {"loss": 1.0}, "eval": {"loss": 1.5, "f1": 0.75}},
        {"step": 8, "train": {"loss": 0.5}, "eval": {"loss": 1.75, "f1": 0.5}},
    ],
    "dev": {
        "confusion": [[3, 1], [0, 0]],
        "labels": {
            "ham": {"precision": 0.5, "recall": 0.25, "f1": 0.375, "examples": 4},
            "spam": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "examples": 0},
        },
        "calibration": [
            {"confidence": None, "accuracy": None, "examples": 0},
            {"confidence": 0.9, "accuracy": 0.7, "examples": 3},
            {"confidence": 1.0, "accuracy": 1.0, "examples": 1},
        ],
    },
}


@pytest.fixture
def draw(tmp_path, monkeypatch):
    """A function from metrics to the figures by the name of the file."""

    def drawn(metrics):
        figures = {}

        def keep(draw, path, *, size):
            figures[path.stem] = Figure(size)
            draw(figures[path.stem])
            return path

        monkeypatch.setattr(run, "save_picture", keep)
        (tmp_path / "metrics.json").write_text(json.dumps(metrics))
        paths = draw_run(tmp_path)
        assert [path.stem for path in paths] == list(figures)
        return figures

    return drawn


@pytest.fixture
def drawn(draw):
    """The figures of METRICS."""
    return draw(METRICS)


def test_the_history_has_the_loss_and_the_metric_that_selects_the_model(drawn):
    loss, figure = drawn["learning_curve"].axes
    (_, training, dev), (best_step, _, f1) = loss.lines, figure.lines
    np.testing.assert_array_equal(training.get_xydata(), [[2, 2], [4, 1], [8, 0.5]])
    np.testing.assert_array_equal(dev.get_xydata(), [[4, 1.5], [8, 1.75]])
    np.testing.assert_array_equal(f1.get_xydata(), [[4, 0.75], [8, 0.5]])
    assert set(best_step.get_xdata()) == {4}
    assert "the best is step 4, 0.750 on dev" in figure.get_xlabel()


def test_labels_are_counted_and_coloured_by_their_fraction_of_the_true_ones(drawn):
    (axis,) = drawn["confusion"].axes
    np.testing.assert_array_equal(axis.images[0].get_array(), [[0.75, 0.25], [0, 0]])
    assert [text.get_text() for text in axis.texts] == ["3", "1", "0", "0"]
    for ticks in (axis.get_xticklabels(), axis.get_yticklabels()):
        assert [tick.get_text() for tick in ticks] == ["ham", "spam"]
    (axis,) = drawn["labels"].axes
    columns = ["precision", "0.500", "–", "recall", "0.250", "–", "F1", "0.375", "–"]
    assert [text.get_text() for text in axis.texts] == [*columns, "examples", "4", "0"]


def test_reliability_is_of_the_bins_that_hold_examples(drawn):
    above, below = drawn["reliability"].axes
    np.testing.assert_array_equal(above.lines[1].get_xydata(), [[0.9, 0.7], [1, 1]])
    assert [bar.get_height() for bar in below.patches] == [3, 1]
    middles = [bar.get_x() + bar.get_width() / 2 for bar in below.patches]
    assert middles == pytest.approx([1 / 2, 5 / 6])  # of the bins, which are three here
    assert "calibration error 0.150" in above.get_title(loc="left")  # (3 * 0.2 + 1 * 0) / 4


def labelled(*labels):
    return [SimpleNamespace(label=label) for label in labels]


def span(words, label, score):
    return {"words": words, "label": label, "score": score}


# For each kind what its `official_metrics` reads of the task, two answers, two examples, and what
# is drawn in addition to the learning curve.
MEASURED = {
    "classifier": (
        {"settings": SimpleNamespace(multi_label=False), "labels": ("ham", "spam")},
        [{"probabilities": {"ham": 0.9, "spam": 0.1}}] * 2,
        labelled("ham", "spam"),
        ("confusion", "labels", "reliability"),
    ),
    "classifier of several labels": (
        {"settings": SimpleNamespace(multi_label=True), "labels": ("ham", "spam")},
        [{"probabilities": {"ham": 0.9, "spam": 0.1}, "labels": ["ham"]}] * 2,
        labelled(("ham",), ()),
        ("confusion", "labels", "reliability"),
    ),
    "regression": (
        {"settings": SimpleNamespace(score_range=None)},
        [{"score": 1.5}, {"score": 2.5}],
        labelled(1.0, 3.0),
        (),
    ),
    "multiple-choice": (
        {},
        [{"label": 0, "score": 0.75, "probabilities": [0.75, 0.25]}] * 2,
        labelled(0, 1),
        ("reliability",),
    ),
    "tagger": (
        {"scheme": None, "labels": ("NOUN", "VERB")},
        [{"tags": ["NOUN", "VERB"], "scores": [0.9, 0.5]}] * 2,
        [SimpleNamespace(tags=tags) for tags in (["NOUN", "VERB"], ["NOUN", "NOUN"])],
        ("confusion", "labels", "reliability"),
    ),
    "tagger of chunks": (
        {"scheme": "bio", "labels": ("O", "B-PER", "I-PER"), "scheme_metrics": chunk_metrics},
        [{"tags": ["B-PER", "O"], "scores": [0.9, 0.5]}] * 2,
        [SimpleNamespace(tags=tags) for tags in (["B-PER", "I-PER"], ["O", "O"])],
        ("confusion", "labels", "reliability"),
    ),
    "semantic-roles": (
        {"scheme": "bio", "labels": ("O", "B-A0", "B-V"), "scheme_metrics": role_metrics},
        [{"tags": ["B-A0", "B-V"], "scores": [0.9, 0.5]}] * 2,
        [SimpleNamespace(tags=tags) for tags in (["B-A0", "B-V"], ["O", "B-V"])],
        ("confusion", "labels", "reliability"),
    ),
    "question-answering": (
        {},
        [{"answer": "Oslo", "score": 0.75, "null_score": 0.0}, {"answer": "", "score": 0.5}],
        [SimpleNamespace(answers=[SimpleNamespace(text=text)]) for text in ("Oslo", "Rome")],
        ("reliability",),
    ),
    "span-classifier": (
        {
            "labels": ("LOC",),
            "settings": SimpleNamespace(max_span_length=3),
            "check_label": lambda label, example: None,
        },
        [{"expected": [span([0, 1], "LOC", 1)], "spans": [span([1, 2], "LOC", 0.75)]}] * 2,
        labelled(None, None),
        ("confusion", "labels", "reliability"),
    ),
    "coreference": (
        {"settings": SimpleNamespace(max_span_length=3)},
        [{"expected": [[span([0, 1], "", 1), span([1, 2], "", 1)]], "clusters": []}] * 2,
        labelled(None, None),
        (),
    ),
    "text-embedding": (
        {"settings": SimpleNamespace(similarity="cosine", sizes=[]), "size_of": lambda size: 2},
        [SimpleNamespace(vectors=np.eye(2, dtype="float32"))] * 2,
        [SimpleNamespace(form="pairs", texts=("a", "b"))] * 2,
        (),
    ),
    "relation-classifier": (
        {"labels": ("in", "none"), "settings": SimpleNamespace(null_label="none")},
        [{"label": "in", "score": 0.75}] * 2,
        labelled("in", "none"),
        ("confusion", "labels", "reliability"),
    ),
}
MEASURED["pair-classifier"] = MEASURED["classifier"]


@pytest.mark.parametrize("kind", MEASURED)
def test_the_pictures_of_each_kind(kind, draw):
    task, answers, examples, pictures = MEASURED[kind]
    measure = task_class(kind.split()[0]).official_metrics
    task = SimpleNamespace(unknown_labels=lambda examples: {}, **task)
    figures = draw({**METRICS, "dev": measure(task, answers, examples)})
    assert tuple(figures) == ("learning_curve", *pictures)


@pytest.mark.parametrize("name", ["$5 \\x $6", "a$_$"])
def test_dollars_are_not_formulas(name, tmp_path):
    path = save_picture(lambda figure: figure.suptitle(name), tmp_path / "a.png", size=(1, 1))
    assert path.exists()


def test_every_kind_has_its_pictures():
    assert {kind.split()[0] for kind in MEASURED} == {*finetuned_task_types()}


def test_the_kinds_of_chunks_are_drawn_with_what_is_outside_and_nothing_without_answers(draw):
    dev = {"confusion": [[1, 2], [0, 4]], "confusion_labels": ["PER", "O"]}
    empty = {"confidence": 0.0, "accuracy": 0.0, "examples": 0}
    figures = draw({**METRICS, "dev": {**dev, "calibration": [empty] * 10}, "labels": ["A", "B"]})
    (axis,) = figures.pop("confusion").axes
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["PER", "O"]
    assert list(figures) == ["learning_curve"]


def test_of_several_labels_each_has_a_table_of_no_and_yes(draw, monkeypatch):
    monkeypatch.setattr(run, "_MOST_TABLES", 6)
    names = [f"label {number}" for number in range(8)]
    counts = [[[9, 1], [number, 2]] for number in range(8)]
    figure = draw({**METRICS, "dev": {"confusion": counts, "labels": names}})["confusion"]
    shown = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title(loc="left") for axis in shown] == names[2:]
    assert figure.get_suptitle() == "True and predicted labels; 2 rarer ones are left out"
    assert [text.get_text() for text in shown[1].texts] == ["9", "1", "3", "2"]
    np.testing.assert_allclose(shown[1].images[0].get_array(), [[0.9, 0.1], [0.6, 0.4]])


def test_a_task_without_labels_has_a_history_alone_and_the_command_reports_the_pictures(
    tmp_path, capsys, monkeypatch
):
    with pytest.raises(InputError, match="is not a finished run"):
        draw_run(tmp_path)
    (tmp_path / "metrics.json").write_text(json.dumps({**METRICS, "dev": {"pearson": 0.9}}))
    draw_and_report(tmp_path)
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["learning_curve.png"]
    assert capsys.readouterr().out == f"1 picture: {tmp_path}/pictures/learning_curve.png\n"
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    draw_and_report(tmp_path)
    assert capsys.readouterr().err.startswith("Pictures need matplotlib, which is not installed")


PRETRAINED = {
    "unigram_entropy": 6.5,
    "train": {"masked_lm_loss": 5.0, "next_sentence_loss": 0.5},
    "history": [
        {
            "step": 0,
            "tokens": 0,
            "train": {},
            "eval": {"masked_lm_loss": 8.0, "next_sentence_loss": 0.7},
            "learning_rate": 0.0,
            "tokens_per_second": None,
        },
        {
            "step": 5,
            "tokens": 10_500,
            "train": {"masked_lm_loss": 7.0, "next_sentence_loss": 0.6, "masked_lm_accuracy": 0.1},
            "learning_rate": 1e-3,
            "gradient_norm": 2.5,
            "tokens_per_second": 900.0,
            "input_wait": 0.02,
            "mfu": 0.4,
        },
        {
            "step": 10,
            "tokens": 21_000,
            "train": {"masked_lm_loss": 5.0, "next_sentence_loss": 0.5, "masked_lm_accuracy": 0.2},
            "eval": {"masked_lm_loss": 5.5, "next_sentence_loss": 0.6},
            "learning_rate": 0.0,
            "gradient_norm": 1.5,
            "tokens_per_second": 1000.0,
            "input_wait": 0.01,
            "mfu": 0.5,
        },
    ],
}


def curves_of(metrics, monkeypatch):
    """The axes of the figure, the four panels first, and then those on their right."""
    figure = Figure((10, 7))
    monkeypatch.setattr(run, "save_picture", lambda draw, path, size: draw(figure))
    run.draw_curves(metrics, "curves.png")
    return figure.axes


def test_the_curves_of_pretraining_are_those_of_its_log_records(monkeypatch):
    losses, accuracies, regime, speed, norm, wait = curves_of(PRETRAINED, monkeypatch)
    drawn = {line.get_label(): line.get_xydata().tolist() for line in losses.lines}
    assert drawn["masked tokens, training"] == [[5, 7], [10, 5]]
    assert drawn["masked tokens, held out"] == [[0, 8], [10, 5.5]]
    assert set(losses.lines[-1].get_ydata()) == {6.5} and len(losses.lines) == 3
    assert losses.get_xlabel() == "steps; 21,000 tokens"
    assert accuracies.lines[0].get_xydata().tolist() == [[5, 0.1], [10, 0.2]]
    assert regime.lines[0].get_xydata().tolist() == [[0, 0], [5, 1e-3], [10, 0]]
    assert norm.lines[0].get_xydata().tolist() == [[5, 2.5], [10, 1.5]]
    assert speed.lines[0].get_xydata().tolist() == [[5, 900], [10, 1000]]
    assert wait.lines[0].get_xydata().tolist() == [[5, 0.02], [10, 0.01]]
    # A small fraction looks small.
    assert wait.get_ylim() == (0, 0.05) and wait.yaxis.get_major_formatter()(0.02) == "2.0 %"
    assert speed.get_xlabel() == "steps; 45 % of the processor's rate of matrix products"


def test_a_metric_that_hardly_changes_looks_so(draw):
    history = [{"step": n, "eval": {"loss": 1.0, "f1": 0.267 + n / 1000}} for n in (1, 2, 3)]
    kept = {"which": "best", "epoch": 3, "step": 3}
    for shift in (0.0, 0.73):
        for record in history:
            record["eval"]["f1"] += shift
        figures = draw({**METRICS, "history": history, "kept": kept})
        low, high = figures["learning_curve"].axes[1].get_ylim()
        assert high - low == pytest.approx(0.1) and high <= 1.0001
        assert low < history[0]["eval"]["f1"] and history[-1]["eval"]["f1"] <= high


def test_a_single_training_size_is_no_curve(draw):
    size = {"train_examples": 9, "metrics": [0.5], "mean": 0.5, "std": None}
    one = {"training_sizes": {"model": [size], "baseline": [size]}}
    assert "training_sizes" not in draw({**METRICS, **one})
    two = {"training_sizes": {"model": [size, {**size, "train_examples": 90}]}}
    assert "training_sizes" in draw({**METRICS, **two})


def test_what_an_earlier_run_did_not_measure_is_left_out(monkeypatch):
    new = ("tokens", "gradient_norm", "input_wait", "mfu")
    history = [{k: v for k, v in e.items() if k not in new} for e in PRETRAINED["history"]]
    losses, *_, norm, wait = curves_of({**PRETRAINED, "history": history}, monkeypatch)
    assert losses.get_xlabel() == "steps" and not norm.get_visible() and not wait.get_visible()


def test_the_pretrain_command_draws_them_into_the_runs_folder(tmp_path, capsys):
    (tmp_path / "metrics.json").write_text(json.dumps(PRETRAINED))
    draw_and_report(tmp_path)
    assert capsys.readouterr().out == f"1 picture: {tmp_path}/curves.png\n"
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
