"""Text embedders: every form of examples for training and evaluation, and what is refused."""

import json

import numpy as np
import pandas
import pytest

import keras_bert as kb
from keras_bert.base.errors import InputWarning
from keras_bert.tasks.text_embedding import BINARY, LABELS, PAIRS, SCORES, TEXTS
from tests.messages import raises_input_error
from tests.seeds import shifted
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied

pytestmark = pytest.mark.usefixtures("eager")

WORDS = [f"w{number}" for number in range(12)]
TOKENIZER = make_tokenizer([*WORDS, "ask", "tell"])
PAIR = [(f"{a} w0", f"{a} w1") for a in WORDS[2:10]]
ROWS = {
    PAIRS: [{"anchor": a, "positive": b, "negative": f"w1 {a}"} for a, b in PAIR],
    SCORES: [{"text_a": a, "text_b": b, "score": n} for n, (a, b) in enumerate(PAIR)],
    BINARY: [{"text_a": a, "text_b": b, "label": n % 2} for n, (a, b) in enumerate(PAIR)],
    LABELS: [{"text": a, "label": f"l{n % 3}"} for n, (a, _) in enumerate(PAIR)],
    TEXTS: [{"text": a} for a, _ in PAIR],
}
METRICS = {
    PAIRS: "ndcg@10",
    SCORES: "spearman",
    BINARY: "average_precision",
    LABELS: "ndcg@10",
}


def embedder(**settings):
    return kb.TextEmbedder(make_encoder(TOKENIZER, num_hidden_layers=1), TOKENIZER, **settings)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start") / "model"
    embedder(max_length=12).save(folder)
    return folder


@pytest.fixture
def train(start, tmp_path):
    def run(rows, dev, **settings):
        options = {"epochs": 1, "batch_size": 4, "learning_rate": 1e-3, "seed": shifted(3)}
        said = []
        metrics = kb.finetune(
            task="text-embedding",
            model=start,
            train=rows,
            dev=dev,
            output=tmp_path / f"run{len(list(tmp_path.iterdir()))}",
            report=said.append,
            **{**options, **settings},
        )
        return metrics, said

    return run


@pytest.fixture
def folder(tmp_path):
    """A retrieval folder."""
    (tmp_path / "beir" / "qrels").mkdir(parents=True)
    texts = {"queries": [a for a, _ in PAIR], "corpus": [b for _, b in PAIR]}
    for name, some in texts.items():
        rows = (json.dumps({"_id": str(n), "text": text}) for n, text in enumerate(some))
        (tmp_path / "beir" / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    lines = ("query-id\tcorpus-id\tscore", *(f"{n}\t{(n + 1) % 8}\t1" for n in range(8)))
    (tmp_path / "beir" / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path / "beir"


@pytest.mark.parametrize("form", ROWS)
def test_every_form_is_trained_by_its_loss_and_selected_by_the_metric_of_the_dev_form(form, train):
    dev = SCORES if form == TEXTS else form
    metrics, _ = train(ROWS[form], ROWS[dev])
    assert metrics["form"] == form and metrics["best_metric"] == METRICS[dev]
    assert metrics["dev"]["examples"] == 8
    kept = metrics["history"][-1]["eval"]
    assert kept[METRICS[dev]] == pytest.approx(metrics["dev"][METRICS[dev]], abs=1e-6)
    # The loss of pairs says nothing of scores.
    assert ("loss" in kept) == (form == dev)


def test_texts_find_those_of_their_label():
    task = embedder(max_length=8)
    rows = [*ROWS[LABELS], {"text": "w11", "label": "alone"}]
    metrics = kb.evaluate(task, rows)
    assert metrics["queries"] == 8 and metrics["documents"] == 9
    vectors, labels = task.encode([r["text"] for r in rows]), [r["label"] for r in rows]
    similarity = task.similarity(vectors, vectors) - 9 * np.eye(9)
    nearest = [labels[n] for n in similarity.argmax(axis=1)[:8]]
    assert metrics["accuracy@1"] == np.mean([a == b for a, b in zip(nearest, labels, strict=False)])
    with raises_input_error("has no label twice"):
        kb.evaluate(task, rows[-3:])
    assert [e.form for e in task.read(rows, text_column="text")] == [TEXTS] * 9
    assert [e.label for e in task.read([{"a": "w1", "b": 2}], fields="text=a,label=b")] == ["2"]


@pytest.fixture
def files(tmp_path):
    """Two files of pairs, 8 rows and 4, without a common text."""
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    others = [(f"{b} w0 w0", f"{b} w1 w1") for b, _ in PAIR[:4]]
    for path, pairs in zip(paths, (PAIR, others), strict=True):
        pandas.DataFrame(pairs, columns=["anchor", "positive"]).to_csv(path, index=False)
    return paths


def test_files_with_a_weight_each_have_batches_of_their_own(files, train, tmp_path):
    task = embedder(max_length=8, file_weights=[1, 2])
    examples = [example for path in files for example in task.read(path)]
    sequences = task.features(examples, labelled=True)
    for epoch in range(3):
        batches = sequences.epoch_batches(count=6, seed=shifted(1), epoch=epoch)
        assert sorted({n >= 8 for n in b} == {True} for b in batches) == [False] * 2 + [True] * 4
        assert all(len({n >= 8 for n in batch}) == 1 for batch in batches)
    metrics, _ = train(files, ROWS[PAIRS], file_weights=[1, 2], batch_size=2)
    assert metrics["steps"] == 6
    for weights, message in (
        ([1, 2, 3], "`file_weights` and the files of `train` must be as many. Received: 3 weights"),
        ([1, 99], "a.csv would have none of the 6 batches of an epoch"),
    ):
        with raises_input_error(message):
            train(files, ROWS[PAIRS], file_weights=weights, batch_size=2)
    with raises_input_error("A run trains on one form: train on one after another."):
        pandas.DataFrame(ROWS[SCORES]).to_csv(tmp_path / "c.csv", index=False)
        train([files[0], tmp_path / "c.csv"], ROWS[PAIRS])


@pytest.mark.slow
def test_a_killed_run_of_files_with_weights_ends_with_the_same_weights(files, start, tmp_path):
    given = {
        **{"task": "text-embedding", "model": start, "train": files, "epochs": 3},
        **{"dev": ROWS[PAIRS], "batch_size": 3, "learning_rate": 1e-2, "seed": shifted(3)},
        **{"checkpoint_every": 1, "keep": "last", "file_weights": [3, 1]},
    }
    output, killed = tmp_path / "run", tmp_path / "killed"
    with copied(output, killed, after_step=6):
        kb.finetune(**given, output=output)
    kb.finetune(**given, output=killed)
    assert_same_weights(killed, output)


def test_dev_data_of_another_form_and_the_sizes(train, folder, start, tmp_path):
    metrics, said = train(ROWS[PAIRS], folder, matryoshka=[16, 4], epochs=2, metric="mrr@10")
    assert metrics["best_metric"] == "mrr@10"
    assert metrics["dev"].keys() >= {"mrr@10", "ndcg@10", "queries", "documents", "sizes"}
    assert metrics["dev"]["sizes"].keys() == {"4"}
    assert metrics["dev"]["sizes"]["4"].keys() == metrics["dev"].keys() - {"sizes"}
    assert any("with 1 negative" in line and "a retrieval folder" in line for line in said)
    (model,) = tmp_path.glob("run*/model")
    measured = kb.evaluate(model, folder)
    assert measured.pop("sizes") == {"4": pytest.approx(metrics["dev"]["sizes"].pop("4"))}
    assert measured == pytest.approx({n: v for n, v in metrics["dev"].items() if n != "sizes"})
    assert kb.load_task(model).settings.sizes == [16, 4]
    measured = kb.evaluate(model, ROWS[PAIRS])
    assert {"triplet_accuracy", "ndcg@10"} <= measured.keys()
    assert measured["queries"] == 8 and measured["documents"] == 16


def test_prompts_are_those_of_anchors_and_of_positives():
    task = embedder(prompts={"query": "ask ", "passage": "tell "}, max_length=8)
    (group,) = task._sequences([next(iter(task.read([("w1", "w2", "w3")])))]).segments
    texts = [TOKENIZER.detokenize(ids) for ids in group[0].to_list()]
    assert texts == ["ask w1", "tell w2", "tell w3"]
    pair = [next(iter(task.read([("w1", "w2", 0.5)])))]
    assert [*map(TOKENIZER.detokenize, task.features(pair).segments[0][0].to_list())] == [
        "w1",
        "w2",
    ]


def test_keras_fit_on_a_table_with_weights_of_rows():
    task = embedder(max_length=8)
    task.compile_defaults("sgd")
    history = task.fit(
        pandas.DataFrame(ROWS[PAIRS]),
        sample_weight=np.zeros(8),
        validation_data=pandas.DataFrame(ROWS[PAIRS]),
        verbose=0,
    ).history
    assert history["loss"] == [0.0] and "val_ndcg@10" in history
    with raises_input_error("The loss is for anchors and positives, and the data have pairs with"):
        task.evaluate(pandas.DataFrame(ROWS[SCORES]), verbose=0)
    task = embedder(loss="cosent", max_length=8)
    task.compile_defaults("sgd")
    with raises_input_error("`sample_weight` is for losses with a value for each row"):
        task.fit(pandas.DataFrame(ROWS[SCORES]), sample_weight=np.ones(8), verbose=0)
    with raises_input_error("has anchors and positives, and the model trains on pairs with scores"):
        task.fit(pandas.DataFrame(ROWS[PAIRS]), verbose=0)


ONE = ROWS[PAIRS][:1]


@pytest.mark.parametrize(
    ("rows", "dev", "settings", "message"),
    [
        (ONE, ONE, {}, "has a single example"),
        (ONE * 8, ROWS[PAIRS], {}, "too many rows share a text"),
        (PAIR, PAIR, {"loss": "triplet"}, "has no negatives, which `loss` triplet needs"),
        (PAIR, PAIR, {"fields": "anchor=a,positive=b"}, "`fields`"),
        (
            [{"anchor": a, "positive": b} for a, b in PAIR],
            ROWS[PAIRS],
            {"fields": "anchor=anchor,positive=positive,negatives=no"},
            'has no column "no"',
        ),
        ([(a, b, float("nan")) for a, b in PAIR], ROWS[SCORES], {}, "no score of any record"),
        (ROWS[PAIRS], ROWS[TEXTS], {}, "has plain texts, which have no metric"),
        (ROWS[PAIRS], ROWS[SCORES], {"metric": "ndcg@10"}, "which the dev data have not: pa"),
        (
            ROWS[SCORES],
            ROWS[SCORES],
            {"loss": "triplet"},
            "The training examples are pairs",
        ),
        (ROWS[PAIRS], ROWS[PAIRS], {"matryoshka": [64]}, "`matryoshka` is 64, but a vector has"),
        (ROWS[PAIRS], ROWS[PAIRS], {"size": 64}, "`size` is 64, but a vector has"),
        (ROWS[PAIRS], ROWS[PAIRS], {"default_prompt": "x"}, "`default_prompt` is 'x'"),
        (ROWS[PAIRS], ROWS[PAIRS], {"prompts": ["x"]}, "Expected NAME=TEXT"),
        (ROWS[PAIRS], ROWS[PAIRS], {"pooling": "mean+mean"}, "`pooling` is 'mean+mean'"),
        (ROWS[PAIRS], ROWS[PAIRS], {"dense": "8:tan"}, "`dense` is '8:tan'"),
        (
            ROWS[PAIRS],
            ROWS[PAIRS],
            {"margin": 1.0, "loss": "cosent"},
            "`margin` has no effect",
        ),
        (
            ROWS[PAIRS],
            ROWS[PAIRS],
            {"symmetric": True, "loss": "triplet"},
            "`symmetric` has no",
        ),
        (ROWS[PAIRS], ROWS[PAIRS], {"freeze_encoder": True}, "leaves nothing to train"),
        (ROWS[SCORES][:1] * 4, ROWS[SCORES], {}, "has a single score or label (0)"),
        (ROWS[PAIRS], ROWS[PAIRS], {"score_range": [0, 5]}, "`score_range` is for pairs with sc"),
        (ROWS[PAIRS], ROWS[PAIRS], {"qrels": "test"}, "`qrels` is for a retrieval folder"),
    ],
)
def test_what_cannot_be_trained_is_said(train, rows, dev, settings, message):
    with raises_input_error(message):
        train(rows, dev, **settings)


def test_scores_and_negatives_that_are_none_are_left_out_and_counted(train):
    rows = [(a, b, float("nan") if n == 1 else float(n)) for n, (a, b) in enumerate(PAIR)]
    metrics, said = train(rows, ROWS[SCORES])
    assert metrics["form"] == SCORES
    assert any("1 row without a score, left out" in line for line in said)
    rows = [{**row, "negative": row["positive"]} for row in ROWS[PAIRS][:3]] + ROWS[PAIRS][3:]
    metrics, said = train(rows, ROWS[PAIRS])
    assert any("3 rows with a negative that equals the anchor or the positive" in x for x in said)


@pytest.mark.slow
@pytest.mark.parametrize("form", ROWS)
def test_a_killed_run_ends_with_the_same_weights(form, start, tmp_path):
    given = {
        **{"task": "text-embedding", "model": start, "train": ROWS[form], "epochs": 3},
        **{"dev": ROWS[SCORES], "batch_size": 4, "learning_rate": 1e-2, "seed": shifted(3)},
        **{"checkpoint_every": 1, "keep": "last", "matryoshka": [16, 4], "dense": "16:tanh"},
    }
    output, killed = tmp_path / "run", tmp_path / "killed"
    with copied(output, killed, after_step=3):
        kb.finetune(**given, output=output)
    kb.finetune(**given, output=killed)
    assert_same_weights(killed, output)


def test_what_cannot_be_encoded_is_said():
    task = embedder(max_length=5, prompts={"query": "ask "})
    with raises_input_error("There is no `prompt` 'passage'. Choose from: query."):
        task.encode("w1", prompt="passage")
    with raises_input_error("`size` must be from 1 to"):
        task.encode("w1", size=1000)
    with raises_input_error("`texts` must be strings. Received: 3"):
        task.encode(["w1", 3])
    with pytest.warns(InputWarning, match="1 of the 2 texts are longer than 5 tokens"):
        task.encode(["w1 w2 w3 w4", "w1 w2 w3"])


def test_vectors_do_not_depend_on_the_batch_or_the_order():
    task = embedder(pooling="weighted-mean+last", normalize=True, max_length=12)
    texts = [" ".join(WORDS[:length]) for length in (3, 0, 9, 1, 5, 9)]
    whole = task.encode(texts)
    np.testing.assert_allclose(task.encode(texts, batch_size=2), whole, atol=1e-6)
    np.testing.assert_allclose([task.encode(text) for text in texts], whole, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(task.encode(texts, size=5), whole[:, :5])


def test_predict_gives_the_vector_of_a_text_and_the_similarity_of_a_pair():
    task = embedder(max_length=8, similarity="euclidean", size=6)
    one, two = kb.predict(task, text=["w1 w2", "w3"])
    vectors = task.encode(["w1 w2", "w3"])
    assert one["text"] == "w1 w2"
    np.testing.assert_allclose([one["embedding"], two["embedding"]], vectors, atol=1e-5)
    (pair,) = kb.predict(task, [{"sentence1": "w1 w2", "sentence2": "w3", "score": 2}])
    assert pair["similarity"] == pytest.approx(task.similarity(*vectors)[0, 0], abs=1e-4)
    assert pair["expected"] == 2
