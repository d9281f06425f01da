"""Rerankers: every loss on pairs and lists, what is saved, resumed and refused."""

import json

import numpy as np
import pytest
from scipy.special import expit

import keras_bert as kb
from keras_bert.checkpoints import save_folder
from keras_bert.readers.examples import divided
from keras_bert.tasks.classification import LIST_METRICS, LOSSES
from keras_bert.tasks.text_embedding.metrics import retrieval_metrics
from tests.messages import raises_input_error
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied

pytestmark = pytest.mark.usefixtures("eager")

WORDS = [f"w{number}" for number in range(12)]
TOKENIZER = make_tokenizer(WORDS)
# A passage is relevant if it has the query's word; lists are of 2 to 4 passages.
NEGATIVES = [
    {
        "query": word,
        "positive": f"{word} w0",
        "negatives": [f"{other} w0" for other in WORDS[9 : 10 + n % 3] if other != word],
        "scores": [2.0, *[-1.0] * sum(other != word for other in WORDS[9 : 10 + n % 3])],
    }
    for n, word in enumerate(WORDS[1:9])
]
GRADES = [
    {
        "query": w,
        "passages": [f"{w} w0", f"w9 {w}", "w0"][: 2 + n % 2],
        "grades": [2, 1, 0][: 2 + n % 2],
    }
    for n, w in enumerate(WORDS[1:9])
]
PAIRS = [
    {"query": row["query"], "passage": passage, "label": int(n == 0)}
    for row in NEGATIVES
    for n, passage in enumerate((row["positive"], *row["negatives"]))
]
NAMES = ("query", "passage", "label")


def reranker(**settings):
    return kb.Regressor(make_encoder(TOKENIZER), TOKENIZER, max_length=12, **settings)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start") / "model"
    encoder = make_encoder(TOKENIZER)
    save_folder(encoder, TOKENIZER, folder)
    return folder


@pytest.fixture
def train(start, tmp_path):
    def run(rows, dev=None, **settings):
        options = {"epochs": 1, "batch_size": 4, "learning_rate": 1e-3, "seed": shifted(3)}
        options |= {"model": start, "max_length": 12}
        if "folds" not in settings:
            options["dev"] = rows if dev is None else dev
        said, output = [], tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        metrics = kb.finetune(
            task="regression",
            train=rows,
            output=output,
            report=said.append,
            **{**options, **settings},
        )
        return metrics, said, output / "model"

    return run


CASES = [
    (PAIRS, "binary-crossentropy", {}, "sigmoid"),
    (PAIRS, "binary-crossentropy", {"group_by_query": True}, "sigmoid"),
    (PAIRS, "listwise", {}, "identity"),
    (PAIRS, None, {}, None),
    (NEGATIVES, "binary-crossentropy", {}, "sigmoid"),
    (NEGATIVES, "squared-error", {}, None),
    (NEGATIVES, "margin-mse", {}, "identity"),
    (NEGATIVES, None, {}, "identity"),
    (GRADES, "listwise", {"list_loss": "ranknet"}, "identity"),
    (GRADES, "binary-crossentropy", {"score_range": [0, 2]}, "sigmoid"),
]


def test_every_loss_is_trained():
    assert {loss for _, loss, _, _ in CASES} == {None, *LOSSES}


@pytest.mark.parametrize(("rows", "loss", "settings", "activation"), CASES)
def test_every_loss_and_form(rows, loss, settings, activation, train):
    metrics, _, folder = train(rows, loss=loss, **settings)
    are_lists = rows is not PAIRS or loss == "listwise" or settings.get("group_by_query")
    assert metrics["best_metric"] == ("ndcg@10" if are_lists else "pearson")
    assert metrics.get("lists", False) == bool(are_lists)
    task = kb.load_task(folder)
    assert task.activation == activation and not task.lists
    section = json.loads((folder / "config.json").read_text())["sentence_transformers"]
    kind = "Sigmoid" if activation == "sigmoid" else "Identity"
    assert section["activation_fn"].endswith(kind)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert config["model_max_length"] == 12
    # What is saved, which reads pairs, gives what the lists of training gave.
    measured = kb.evaluate(folder, rows, group_by_query=bool(settings) or loss == "listwise")
    run_metrics = metrics["dev"]
    assert measured == pytest.approx({name: run_metrics[name] for name in measured}, abs=1e-5)
    if are_lists:
        assert {*LIST_METRICS} < measured.keys() and measured["lists"] == len(NEGATIVES)


def test_a_probability_and_its_logit():
    task = reranker(loss="binary-crossentropy")
    pairs = [(row["query"], row["passage"]) for row in PAIRS]
    logits = task(pairs)["score"].numpy()[:, 0]
    scores = [row["score"] for row in kb.predict(task, pairs)]
    np.testing.assert_allclose(scores, expit(logits), atol=1e-6)
    task.compile_defaults("sgd")
    loss = task.evaluate(PAIRS, verbose=0, return_dict=True)["loss"]
    labels = np.array([row["label"] for row in PAIRS])
    expected = np.mean(np.log1p(np.exp(logits)) - labels * logits)
    assert loss == pytest.approx(expected, rel=1e-4)
    assert task.from_config(task.get_config()).activation == "sigmoid"


def test_the_loss_of_lists_is_that_of_the_scores():
    task = reranker(loss="listwise")
    sequences = task._sequences([*task.read(GRADES, inferred_arguments={"lists": True})])
    inputs, labels = sequences.batch(np.arange(8))
    scores = task(inputs)["score"].numpy()
    assert scores.shape == (8, 3) and labels["score"].shape == (8, 3, 2)
    values = []
    for row, list_scores in zip(GRADES, scores, strict=True):
        z, y = list_scores[: len(row["grades"])], np.array(row["grades"], float)
        values.append(-np.sum(np.exp(y) / np.exp(y).sum() * (z - np.log(np.exp(z).sum()))))
    task.compile_defaults("sgd")
    loss = task.evaluate(GRADES, verbose=0, return_dict=True)["loss"]
    assert loss == pytest.approx(np.mean(values), rel=1e-4)
    # A pair is a list of one passage, and a passage has the score that it has in a list.
    (alone,) = kb.predict(task, [(GRADES[1]["query"], GRADES[1]["passages"][2])])
    assert alone["score"] == pytest.approx(float(scores[1, 2]), abs=1e-5)
    listed = [row["scores"] for row in kb.predict(task, GRADES)]
    np.testing.assert_allclose(listed[1], scores[1], atol=1e-5)


def test_metrics_of_lists_are_those_of_retrieval():
    task, rng = reranker(), make_rng(3)
    examples = [*task.read(GRADES)]
    predictions = [
        {"scores": rng.normal(size=len(row["grades"])).tolist(), "query": row["query"]}
        for row in GRADES
    ]
    metrics = task.official_metrics(predictions, examples)
    ranked = [np.argsort(-np.array(p["scores"])).tolist() for p in predictions]
    relevant = [{n: g for n, g in enumerate(row["grades"]) if g} for row in GRADES]
    expected = retrieval_metrics(ranked, relevant)
    assert metrics == pytest.approx(
        {name: expected[name] for name in LIST_METRICS}
        | {"examples": 8, "lists": 8, "passages": 20}
    )
    # A model that tells nothing apart gets nothing for the order of the data.
    negatives = [*task.read(NEGATIVES)]
    equal = [{"scores": [0.0] * len(example.passages)} for example in negatives]
    assert task.official_metrics(equal, negatives)["accuracy@1"] == 0
    worst = task.errors(predictions, examples)
    assert len(worst) == sum(row["grades"][r[0]] < 2 for row, r in zip(GRADES, ranked, strict=True))
    assert "relevant:" in task.describe_error(worst[0])


def test_queries_are_not_in_two_splits(train):
    task = reranker(loss="listwise")
    lists = [*task.read(PAIRS, inferred_arguments=task.inferred_arguments)]
    assert [list.query for list in lists] == WORDS[1:9]
    train_part, dev_part = divided(lists * 2, 0, 4)  # the same query in two rows of a file
    assert {e.query for e in train_part}.isdisjoint(e.query for e in dev_part)
    _, said, _ = train(PAIRS, loss="listwise", folds=2)
    assert any("2 folds of 8 examples" in line for line in said)


@pytest.mark.parametrize("rows", [NEGATIVES, GRADES])
def test_a_smaller_model_learns_from_the_scores_of_a_larger_one(rows, train, tmp_path):
    """Training by margin-mse reads what `predict` writes of a file of lists."""
    teacher = reranker(activation="identity")
    teacher.save(tmp_path / "teacher")
    rows = [{name: value for name, value in row.items() if name != "scores"} for row in rows]
    (tmp_path / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    scored = tmp_path / "scored.jsonl"
    kb.predict(tmp_path / "teacher", tmp_path / "lists.jsonl", output=scored)
    examples = [*teacher.read(scored)]
    for example in examples:
        pairs = [(example.query, passage) for passage in example.passages]
        expected = [row["score"] for row in kb.predict(teacher, pairs)]
        np.testing.assert_allclose(example.teacher, expected, atol=1e-5)
    # A student with the weights of its teacher has a loss of zero; the run begins with these.
    task = reranker(loss="margin-mse")
    task.set_weights(teacher.get_weights())
    task.compile_defaults("sgd")
    loss = task.evaluate(str(scored), verbose=0, return_dict=True)["loss"]
    assert loss == pytest.approx(0, abs=1e-8)
    train(scored, dev=rows, loss="margin-mse")


def test_training_goes_on_with_the_head_of_a_folder(train):
    _, _, folder = train(PAIRS, loss="binary-crossentropy")
    _, said, _ = train(GRADES, loss="listwise", model=folder)
    assert any(line.startswith("Continuing with its head") for line in said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "settings"),
    [
        (GRADES, {"loss": "listwise"}),
        (PAIRS, {"loss": "listwise", "list_loss": "ranknet"}),
        (NEGATIVES, {"loss": "margin-mse"}),
        (PAIRS, {"loss": "binary-crossentropy"}),
        (GRADES, {"loss": "listwise", "freeze_encoder": True}),
    ],
)
def test_a_killed_run_ends_with_the_same_weights(rows, settings, start, tmp_path):
    given = {
        **{"task": "regression", "model": start, "train": rows, "dev": rows, "epochs": 3},
        **{"batch_size": 4, "learning_rate": 1e-2, "seed": shifted(3), "max_length": 12},
        **{"checkpoint_every": 1, "keep": "last", "dropout": 0.2, **settings},
    }
    output, killed = tmp_path / "run", tmp_path / "killed"
    with copied(output, killed, after_step=3):
        kb.finetune(**given, output=output)
    kb.finetune(**given, output=killed)
    assert_same_weights(killed, output)


@pytest.mark.slow
def test_an_export_of_lists_scores_pairs(tmp_path):
    import tensorflow as tf

    for loss in ("listwise", "binary-crossentropy"):
        task = reranker(loss=loss)
        version = task.export(tmp_path / loss)
        served = tf.saved_model.load(str(version)).signatures["serving_default"]
        given = {"text_a": tf.constant(["w1", "w2"]), "text_b": tf.constant(["w3 w1", "w4"])}
        expected = [row["score"] for row in kb.predict(task, [("w1", "w3 w1"), ("w2", "w4")])]
        np.testing.assert_allclose(served(**given)["score"], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        (PAIRS, {"loss": "margin-mse"}, "no scores of another model, which `loss` margin-mse need"),
        (
            PAIRS,
            {"loss": "margin-mse", "freeze_encoder": True},
            "no scores of another model, which",
        ),
        (GRADES, {"loss": "binary-crossentropy"}, "the score 2 is not from 0 to 1"),
        (GRADES, {"loss": "listwise", "metric": "pearson"}, "`metric` pearson is of pairs with sc"),
        (PAIRS, {"metric": "ndcg@10"}, "`metric` ndcg@10 is of lists of passages"),
        (GRADES, {"both_orders": True}, "Lists of passages are read as pairs in their order"),
        (PAIRS, {"loss": "listwise", "one_text": True}, "Lists of passages are read as pairs"),
        (PAIRS, {"list_loss": "ranknet", "loss": "margin-mse"}, "`list_loss` is for"),
        (PAIRS, {"score_range": [0, 1], "loss": "listwise"}, "`score_range` is for"),
        (PAIRS, {"score_range": [1, 0]}, "`score_range` must be two numbers, the lower one first"),
        ([{**row, "label": -1} for row in PAIRS], {"loss": "listwise"}, "the grade -1 is negative"),
    ],
)
def test_rejected(rows, settings, message, train):
    with raises_input_error(message):
        train(rows, **settings)


def test_what_does_not_go_together():
    with raises_input_error("`loss` squared-error is for scores in the range of the labels"):
        reranker(loss="squared-error", activation="sigmoid")
    assert reranker(activation="sigmoid").settings.loss == "binary-crossentropy"
    assert reranker(lists=True).settings.loss == "listwise"
    task = reranker(loss="listwise")
    task.compile_defaults("sgd")
    with raises_input_error("`sample_weight` is for pairs with a score"):
        task.fit(GRADES, sample_weight=np.ones(8), verbose=0)


def test_files_of_lists_and_of_pairs(train, tmp_path):
    files = []
    for name, rows in (("lists", GRADES), ("pairs", PAIRS)):
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].write_text("\n".join(map(json.dumps, rows)) + "\n")
    options = {"dev": GRADES, "loss": "squared-error"}
    with raises_input_error("line 1: a pair, and the first training example is a list of passag"):
        train(files, **options)
    metrics, _, _ = train(files, group_by_query=True, **options)
    assert metrics["train_examples"] == 16


def test_what_is_left_out_is_said(train):
    rows = [*GRADES, {"query": "w9", "passages": ["w1", "w2"], "grades": [0, 0]}]
    rows.append({"query": "w9", "passages": ["w1"], "grades": [1]})
    metrics, said, _ = train(rows, dev=GRADES)
    assert metrics["dev"]["examples"] == 8  # what the command prints at the end
    notes = [line for line in said if "left out" in line]
    assert any("1 row without a passage with a grade above 0" in line for line in notes)
    assert any("1 row without a second passage" in line for line in notes)
    assert any("8 training lists of 2 to 3 passages, and 8 dev lists" in line for line in said)
