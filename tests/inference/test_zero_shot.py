"""Labels through natural-language inference, and folders of `transformers` whose form is open."""

import json

import numpy as np
import pytest
from scipy.special import softmax

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.cli.main import main
from tests.small_model import make_encoder, make_tokenizer

TEXTS, LABELS = ["a b c", "d"], ["e, f", "g"]


def as_of_another_program(folder):
    """The folder without our own key of `config.json`."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    del config["keras_bert"]
    path.write_text(json.dumps(config))


@pytest.fixture(scope="module")
def task():
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    labels = ["Contradiction", "neutral", "ENTAILMENT"]
    return kb.PairClassifier(encoder, tokenizer, labels=labels)


def logits_of(task, template):
    pairs = [(text, template.format(label)) for text in TEXTS for label in LABELS]
    return task.predict(pairs, verbose=0)["logits"].reshape(2, 2, 3).astype("float64")


def test_the_label_whose_hypothesis_is_entailed_most(task):
    expected = softmax(logits_of(task, "It is {}!")[..., 2], axis=1)
    predictions = list(kb.zero_shot(task, TEXTS, LABELS, template="It is {}!"))
    for text, prediction, row in zip(TEXTS, predictions, expected, strict=True):
        np.testing.assert_allclose(list(prediction["probabilities"].values()), row, atol=1e-5)
        assert list(prediction["probabilities"]) == LABELS and prediction["text"] == text
        assert prediction["label"] == LABELS[row.argmax()]
        assert prediction["score"] == prediction["probabilities"][prediction["label"]]


def test_each_label_on_its_own(task):
    logits = logits_of(task, "This example is {}.")
    expected = softmax(logits[..., [0, 2]], axis=2)[..., 1]
    predictions = list(kb.zero_shot(task, TEXTS, LABELS, multi_label=True))
    for prediction, row in zip(predictions, expected, strict=True):
        np.testing.assert_allclose(list(prediction["probabilities"].values()), row, atol=1e-5)
        assert prediction["labels"] == [
            label for label, p in zip(LABELS, row, strict=True) if p > 0.5
        ]


@pytest.mark.usefixtures("eager")
def test_a_folder_of_another_program_and_the_command(task, tmp_path, capsys):
    task.save(tmp_path / "nli")
    as_of_another_program(tmp_path / "nli")
    assert kb.load_task(tmp_path / "nli").TASK_TYPE == "classifier"
    expected = list(kb.zero_shot(tmp_path / "nli", TEXTS, LABELS))
    command = [
        "zero-shot",
        "--model",
        str(tmp_path / "nli"),
        "--labels",
        LABELS[0],
        "--labels",
        LABELS[1],
    ]
    assert main([*command, "--text", TEXTS[0], "--text", TEXTS[1]]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["a"]}, "`labels` must be two or more names"),
        ({"labels": ["a", "a"]}, "`labels` must be two or more names"),
        ({"template": "no place"}, "`template` must have {} once"),
        ({"text": None}, "Pass `data`, a file of texts, or `text`."),
    ],
)
def test_what_is_invalid_is_a_sentence(task, options, message):
    with pytest.raises(InputError, match=message):
        kb.zero_shot(**{"model": task, "text": TEXTS, "labels": LABELS, **options})


def test_a_model_without_entailment_is_a_sentence(task):
    other = kb.PairClassifier(task.encoder, task.tokenizer, labels=["no", "yes"])
    with pytest.raises(InputError, match='labels of the model are "no", "yes".*"entail"'):
        kb.zero_shot(other, TEXTS, LABELS)
    with pytest.raises(InputError, match="no pairs of a premise and a hypothesis"):
        kb.zero_shot(kb.Tagger(task.encoder, task.tokenizer, labels=["a", "b"]), TEXTS, LABELS)


@pytest.mark.usefixtures("eager")
def test_a_folder_with_one_label_scores_single_texts_where_it_is_asked(task, tmp_path):
    scorer = kb.Regressor(task.encoder, task.tokenizer, one_text=True, pooling="cls")
    scorer.save(tmp_path / "scorer")
    expected = [p["score"] for p in kb.predict(scorer, TEXTS)]
    assert [p["score"] for p in kb.predict(tmp_path / "scorer", text=TEXTS)] == expected
    as_of_another_program(tmp_path / "scorer")
    folder = tmp_path / "scorer"
    assert not kb.load_task(folder).settings.one_text  # pairs, such as a cross-encoder's
    for given in ({"text": TEXTS}, {"data": TEXTS, "one_text": True}):
        assert [p["score"] for p in kb.predict(folder, **given)] == pytest.approx(
            expected, abs=1e-5
        )
    one_text_task = kb.load_task(folder, one_text=True)
    assert [p["score"] for p in kb.predict(one_text_task, TEXTS)] == pytest.approx(
        expected, abs=1e-5
    )
    data = list(zip(TEXTS, [1.0, 2.0], strict=True))
    assert kb.evaluate(folder, data, one_text=True)["examples"] == 2
    with pytest.raises(InputError, match="Make the task with `one_text=True`"):
        kb.predict(kb.load_task(folder), text=TEXTS)
    with pytest.raises(InputError, match="serves the task regression. Received"):
        kb.load_task(folder, task="pair-classifier")
