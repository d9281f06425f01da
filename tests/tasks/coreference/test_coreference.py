"""Coreference from the command line to the server: trained, measured, asked and exported."""

import json

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import logsumexp

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load_task
from keras_bert.cli.main import main
from keras_bert.heads.spans import AntecedentLoss, AntecedentScores
from keras_bert.tasks.coreference.decode import cluster_numbers, predicted_clusters
from tests.exports.answers import check_clusters
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.family import Family

WOMAN, MAN = "eva", "max"
WORDS = ["then", "saw", "and", "she", "he", "left", "it", "rained"]


def document(rng):
    """A woman and a man, and then one or both as she and he."""
    people = [WOMAN, MAN]
    order = rng.permutation(2)
    words = ["then", people[order[0]], "saw", people[order[1]], "and"]
    clusters = {}
    for who in rng.permutation(2)[: rng.integers(1, 3)]:
        clusters[who] = [words.index(people[who]), len(words)]
        words += [("she", "he")[who], "left", "and"]
    return words + ["it", "rained"], list(clusters.values())


def write(path, count, seed):
    rng = make_rng(seed)
    lines = []
    for number in range(count):
        words, clusters = document(rng)
        of = {word: n for n, cluster in enumerate(clusters) for word in cluster}
        lines.append(f"#begin document ({number}); part 000")
        for place, word in enumerate(words):
            lines.append(f"{number} 0 {place} {word} {f'({of[place]})' if place in of else '-'}")
        lines += ["", "#end document"]
    path.write_text("\n".join(lines) + "\n")
    return path


FAMILY = Family(
    task="coreference",
    words=[*WORDS, WOMAN, MAN],
    write=write,
    ending="conll",
    train_count=288,
    dev_count=24,
    # A mention that the first weights prune gets no gradient: small models learn from some weights
    # and not from others. From those of this seed each of ten draws of the texts was learned.
    encoder={"seed": 5, "hidden_size": 32, "num_attention_heads": 4},
    flags="--epochs 6 --batch-size 8 --learning-rate 0.003 --dropout 0 --max-span-length 1 "
    "--max-antecedents 6 --max-length 24",
)


def test_a_run_learns_who_is_meant(run, files, capsys):
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["best_metric"] == "f1" and metrics["dev"]["examples"] == 24
    assert metrics["dev"]["f1"] > 0.99
    assert main(["evaluate", "--json", "--model", str(run), "--data", str(files["dev"])]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == metrics["dev"]
    assert "the mean of MUC 100.0 %" in load_task(run).describe_metrics(metrics["dev"])
    assert metrics["dev"]["f1"] == pytest.approx(
        np.mean([metrics["dev"][f"{name}_f1"] for name in ("muc", "b_cubed", "ceaf")])
    )
    config = json.loads((run / "model" / "config.json").read_text())["keras_bert"]
    assert (config["task"], config["max_antecedents"]) == ("coreference", 6)


TEXT = "Then Éva saw Max and she left and it rained."


@pytest.mark.usefixtures("eager")
def test_predict_gives_clusters_with_their_places(run, tmp_path, capsys):
    assert main(["predict", "--model", str(run), "--text", TEXT]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["words"][:4] == ["Then", "Éva", "saw", "Max"]
    (cluster,) = answer["clusters"]
    assert cluster == [
        {"start": 5, "end": 8, "words": [1, 2], "text": "Éva"},
        {"start": 21, "end": 24, "words": [5, 6], "text": "she"},
    ]
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps(answer) + "\n")
    measures = kb.evaluate(model=run, data=answers)
    assert measures["f1"] == 1 and measures["mentions"] == 2
    wrong = {"text": TEXT, "clusters": [[[13, 16], [21, 24]]]}
    measures = kb.evaluate(model=run, data=[wrong], show_errors=1)
    assert measures["muc_f1"] == 0 and measures["mention_recall"] == 0.5
    (error,) = measures["errors"]
    assert load_task(run).describe_error(error) == ("line 1, true: Max = she; predicted: Éva = she")


def test_an_export_answers_as_predict_does_in_texts_of_any_length(run, tmp_path):
    rng = make_rng(5)
    texts = [" ".join(document(rng)[0]) for _ in range(12)]
    texts += [TEXT, "", "rain", " and ".join(texts), " ".join(texts[::-1]) * 3]
    expected = list(kb.predict(model=run, text=texts))
    assert max(len(answer["words"]) for answer in expected) > 300
    version = kb.export(model=run, output=tmp_path / "served")
    serve = tf.saved_model.load(str(version)).signatures["serving_default"]
    outputs = {name: array.numpy() for name, array in serve(text=tf.constant(texts)).items()}
    for number, answer in enumerate(expected):
        check_clusters({name: array[number] for name, array in outputs.items()}, answer)
    assert sum(len(answer["clusters"]) for answer in expected) > 20


@pytest.mark.usefixtures("eager")
def test_an_answer_does_not_depend_on_the_other_documents_of_its_batch(run):
    rng = make_rng(6)
    texts = [" ".join(document(rng)[0]) for _ in range(4)]
    batched = list(kb.predict(model=run, text=[*texts, " ".join(texts * 3)], batch_size=5))
    alone = list(kb.predict(model=run, text=texts, batch_size=1))
    assert batched[:4] == alone


def test_words_in_several_sequences_have_the_vectors_of_the_one_that_owns_them():
    tokenizer = make_tokenizer(WORDS)
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    task = kb.CoreferenceResolver(encoder, tokenizer, max_length=12, dropout=0.0)
    words = [*WORDS * 3, "unheard", *WORDS]
    sequences = task.features(list(task.read([{"words": words, "clusters": []}])), labelled=True)
    inputs, labels = sequences.batch([0])
    assert inputs["input_ids"].shape[:2] == (1, 6) and labels["antecedents"].shape == (1, 40, 10)
    hidden = encoder(
        {name: inputs[name][0] for name in encoder.input_names}, outputs=("sequence_output",)
    )["sequence_output"].numpy()
    means = task.word_means(
        hidden,
        *(inputs[f] for f in ("input_mask", "word_segments", "word_starts", "word_ends")),
    ).numpy()
    segments, starts, ends = (
        inputs[f"word_{name}"][0].numpy() for name in ("segments", "starts", "ends")
    )
    ids = inputs["input_ids"][0].numpy()
    for number, word in enumerate(words):
        place = segments[number], slice(starts[number], ends[number])
        pieces = tokenizer.tokenize([word])[0].numpy()
        assert list(ids[place]) == list(pieces[: ends[number] - starts[number]])
        np.testing.assert_allclose(means[0, number], hidden[place].mean(axis=0), atol=1e-5)
    assert (np.diff(segments[: len(words)]) >= 0).all() and not means[0, len(words) :].any()


def test_candidates_and_scores_are_those_of_the_paper():
    """In numpy, pair by pair."""
    rng = make_rng(0)
    batch, words, longest, size, most = 2, 12, 3, 4, 3
    layer = AntecedentScores(units=5, max_antecedents=most)
    spans = rng.normal(size=(batch, words, longest, size)).astype("float32")
    ends = np.ones((batch, words), "int32")
    ends[1, 7:] = 0
    layer(spans, ends)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape))
    outputs = np.asarray(layer(spans, ends))

    def dense(name, x):
        layer_of = getattr(layer, name)
        bias = 0 if layer_of.bias is None else np.asarray(layer_of.bias, "float64")
        return x @ np.asarray(layer_of.kernel, "float64") + bias

    def relu(x):
        return np.maximum(x, 0)

    for row, count in ((0, 12), (1, 7)):
        candidates = [(f, f + w) for f in range(count) for w in range(longest) if f + w < count]
        vectors = {(f, last): spans[row, f, last - f].astype("float64") for f, last in candidates}
        score = {
            s: dense("mention_score", relu(dense("mention_hidden", v)))[0]
            for s, v in vectors.items()
        }
        mentions = sorted(sorted(candidates, key=lambda s: -score[s])[: -(-4 * count // 10)])
        assert [tuple(x) for x in outputs[row, : len(mentions), :2].astype(int)] == mentions
        assert (outputs[row, len(mentions) :, :2] == -1).all()
        for i, one in enumerate(mentions):
            for a in range(most):
                if i - 1 - a < 0:
                    assert outputs[row, i, 2 + a] < -1e8
                    continue
                other = mentions[i - 1 - a]
                g, h = vectors[one], vectors[other]
                hidden = dense("anaphor", g) + dense("antecedent", h) + dense("product", g * h)
                hidden = relu(hidden + np.asarray(layer.distance, "float64")[a])
                expected = score[one] + score[other] + dense("pair_score", hidden)[0]
                assert outputs[row, i, 2 + a] == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_the_loss_is_minus_log_of_what_is_on_the_right_antecedents():
    never = -1e9
    labels = np.zeros((2, 4, 2), "int32")
    labels[0, 0, 0], labels[0, 1, 1], labels[0, 3, 0], labels[1, 1, 0] = 1, 2, 1, 1
    outputs = np.array(
        [
            [[0, 0, never, never], [1, 2, 0.5, never], [3, 3, 1.0, 2.0]],
            [[1, 1, never, never], [2, 2, -0.5, never], [-1, -1, never, never]],
        ],
        "float32",
    )
    # The last candidate of the first document is of the cluster of the first, two before it.
    first = 0.0, logsumexp([0, 0.5]), logsumexp([0, 1, 2]) - 2
    second = 0.0, logsumexp([0, -0.5])
    loss = AntecedentLoss(reduction="none")(labels, outputs)
    np.testing.assert_allclose(loss, [np.mean(first), np.mean(second)], rtol=1e-5)
    # Of several right antecedents, the probabilities are added.
    labels[0, 1, 1] = 1
    loss = AntecedentLoss(reduction="none")(labels, outputs)
    losses = 0.0, logsumexp([0, 0.5]) - 0.5, logsumexp([0, 1, 2]) - logsumexp([1, 2])
    assert float(loss[0]) == pytest.approx(np.mean(losses), rel=1e-5)


def clusters_one_by_one(candidates):
    """The clusters of one document: each candidate joins its best antecedent's."""
    clusters = []
    for number, (first, last, *scores) in enumerate(candidates.tolist()):
        if first < 0:
            break
        best = int(np.argmax(scores))
        cluster = clusters[number - 1 - best] if scores[best] > 0 else []
        cluster.append((int(first), int(last) + 1))
        clusters.append(cluster)
    different = {id(cluster): cluster for cluster in clusters if len(cluster) > 1}
    return list(different.values())


def test_chains_of_antecedents_are_clusters():
    rng = make_rng(1)
    scores = rng.normal(-0.3, 1, (20, 30, 4)).astype("float32")
    for i in range(4):
        scores[:, i, i:] = -1e9
    counts = rng.integers(0, 31, 20)
    firsts = np.where(np.arange(30) < counts[:, None], np.arange(30), -1)
    scores[firsts < 0] = -1e9
    candidates = np.concatenate([np.repeat(firsts[..., None], 2, axis=-1), scores], axis=-1)
    documents = [
        row[: count + place % 3]
        for place, (row, count) in enumerate(zip(candidates, counts, strict=True))
    ]
    found = predicted_clusters(documents)
    assert found == [clusters_one_by_one(row) for row in candidates]
    assert max(map(len, found)) > 3
    assert predicted_clusters([]) == [] and predicted_clusters([candidates[0][:0]]) == [[]]
    in_graph = tf.function(cluster_numbers)(tf.constant(candidates, tf.float32)).numpy()
    for row, clusters in zip(in_graph, found, strict=True):
        expected = np.full(30, -1)
        for number, cluster in enumerate(clusters):
            expected[[first for first, _ in cluster]] = number
        assert row.tolist() == expected.tolist()


@pytest.mark.usefixtures("eager")
def test_bad_input_is_named(run, files, tmp_path):
    inside = [{"text": "then Éva left", "clusters": [[[5, 7], [9, 13]]]}]
    with pytest.raises(InputError, match=r'"Év", ends inside the word "Éva"'):
        kb.evaluate(model=run, data=inside)
    without_clusters = tmp_path / "none.jsonl"
    without_clusters.write_text('{"words": ["rain"], "clusters": []}\n')
    given = {"task": "coreference", "model": files["encoder"], "output": tmp_path / "run"}
    with pytest.raises(InputError, match="has no clusters of two mentions to learn from"):
        kb.finetune(**given, train=without_clusters, dev=without_clusters)
    with pytest.raises(InputError, match="`max_span_length` must be at least 1. Received: 0"):
        kb.finetune(**given, train=files["train"], dev=files["dev"], max_span_length=0)
