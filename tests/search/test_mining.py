"""Hard negatives: the rules, the search, the columns that are written, and what is rejected."""

import itertools
import json

import numpy as np
import pandas
import pytest

import keras_bert as kb
from keras_bert.cli.main import main
from keras_bert.readers.text_groups import PAIRS, TextGroupSource
from keras_bert.search.index import Index
from keras_bert.search.mining import Candidate, chosen
from keras_bert.search.mining_settings import MineSettings
from tests.messages import raises_input_error
from tests.search.indexes import WORDS, sentences
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(scope="module")
def embedder():
    tokenizer = make_tokenizer(WORDS)
    return kb.TextEmbedder(make_encoder(tokenizer), tokenizer, max_length=12, normalize=True)


def pairs(count, seed=0):
    """Anchors with one positive to three, (anchor, positive)."""
    texts = [*dict.fromkeys(sentences(4 * count, seed))]
    anchors, positives = texts[:count], texts[count : 3 * count]
    rng = make_rng(seed + 7)
    chosen = rng.integers(0, len(positives), 2 * count)
    each = [(anchors[n % count], positives[place]) for n, place in enumerate(chosen)]
    return [(a, p) for a, p in each if a != p]


def settings(**given):
    return MineSettings.of({"data": "x", "model": "m", **given})


def expected(scores, own, lowest, given, most):
    """Which numbers of candidates become negatives, by the sentence of each rule."""
    left = [
        n
        for n, score in enumerate(scores)
        if n not in own
        and not (given.margin is not None and score > lowest - given.margin)
        and not (
            given.relative_margin is not None
            and score > lowest - abs(lowest) * given.relative_margin
        )
        and not (given.max_score is not None and score > given.max_score)
        and not (given.min_score is not None and score < given.min_score)
    ]
    return left[: given.last_rank(most)][given.range_min :][: given.num_negatives]


RULES = {
    "margin": (None, 0.0, 0.3),
    "relative_margin": (None, 0.0, 0.4),
    "max_score": (None, 0.6),
    "min_score": (None, 0.1),
    "range_min": (0, 2),
    "range_max": (None, 5),
    "num_negatives": (1, 3),
}


@pytest.mark.parametrize("lowest", [0.8, 0.2, -0.3])
def test_every_combination_of_the_rules(lowest):
    scores = np.sort(make_rng(1).uniform(-1, 1, 20))[::-1].tolist()
    candidates = [Candidate(score, str(n)) for n, score in enumerate(scores)]
    own = {0, 3, 7}
    for values in itertools.product(*RULES.values()):
        given = settings(**dict(zip(RULES, values, strict=True)))
        options = {"lowest": lowest, "settings": given, "most_positives": 2}
        found, rejected = chosen(candidates, own={*map(str, own)}, **options)
        assert [int(c.text) for c in found] == expected(scores, own, lowest, given, 2), given
        assert rejected["own"] == 3 and sum(rejected.values()) <= 20
        if not given.limits:
            assert not {*rejected} - {"own", "range_min"}


def test_random_negatives_pass_the_same_rules_and_depend_on_seed_and_anchor():
    candidates = [Candidate(1 - n / 40, str(n)) for n in range(40)]

    def drawn(seed, anchor):
        given = settings(choose="random", max_score=0.9, range_min=2, range_max=20, seed=seed)
        options = {"own": set(), "lowest": 1.0, "most_positives": 1, "anchor": anchor}
        found, _ = chosen(candidates, settings=given, **options)
        return [int(candidate.text) for candidate in found]

    every = {(seed, anchor): drawn(seed, anchor) for seed in range(4) for anchor in "abc"}
    assert every == {key: drawn(*key) for key in every}
    assert len({*map(tuple, every.values())}) > 6
    for found in every.values():
        assert found == sorted({*found}) and len(found) == 3
        assert 6 <= min(found) and max(found) < 24  # of 0.9 and less, without two, twenty


def test_the_negatives_are_those_of_sorting_all_similarities(embedder):
    data = pairs(12)
    mined = kb.mine_negatives(data=data, model=embedder, num_negatives=4, range_max=9)
    corpus = [*dict.fromkeys(p for _, p in data)]
    vectors = embedder.encode_document(corpus)
    for row in mined.rows:
        scores = vectors @ embedder.encode_query(row["anchor"])
        own = {p for a, p in data if a == row["anchor"]} | {row["anchor"]}
        order = [corpus[n] for n in np.argsort(-scores) if corpus[n] not in own]
        assert [row[f"negative_{n}"] for n in (1, 2, 3, 4)] == order[:4]
    assert mined.pairs == len({*data}) == len(mined.rows)
    assert [(row["anchor"], row["positive"]) for row in mined.rows] == sorted(
        {*data}, key=lambda pair: ([a for a, _ in data].index(pair[0]), data.index(pair))
    )


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_an_index_and_the_positives_that_it_lacks_are_one_corpus(embedder, dtype):
    data = pairs(10, seed=3)
    others = [text for text in sentences(30, seed=9) if text not in {*sum(data, ())}]
    some = [*dict.fromkeys(p for _, p in data)][::2]
    table = pandas.DataFrame({"text": [*others, *some, *others[:5]]})  # some texts are there twice
    index = Index.build(embedder, table, dtype=dtype)
    index.delete(["1"])
    options = {"num_negatives": 5, "relative_margin": 0.05, "format": "list"}
    mined_from_index = kb.mine_negatives(data=data, index=index.folder, model=embedder, **options)
    kept = pandas.DataFrame({"text": [*others[1:], *some, *others[:1]] if len(others) > 5 else []})
    mined_from_corpus = kb.mine_negatives(data=data, model=embedder, corpus=kept, **options)
    if dtype == "float32":
        assert (
            mined_from_index.rows == mined_from_corpus.rows
            and mined_from_index.rejected == mined_from_corpus.rejected
        )
    assert (
        mined_from_index.negatives
        and mined_from_index.positive_score > mined_from_index.negative_score
    )
    texts = {text for row in mined_from_index.rows for text in row["negatives"]}
    assert texts & {*others} and texts & {p for _, p in data}


def test_scores_of_a_function_take_the_place_of_similarities(embedder):
    data, asked = pairs(8, seed=5), []

    def scores_of(given):
        asked.extend(given)
        return [len(text) / 100 for _, text in given]

    options = {"num_negatives": 2, "range_max": 10}
    mined = kb.mine_negatives(
        data=data, model=embedder, filter_by=scores_of, margin=0.02, **options
    )
    lowest = {a: min(len(p) for b, p in data if b == a) for a, _ in data}
    for row in mined.rows:
        found = [len(row[name]) for name in row if name.startswith("negative") and row[name]]
        assert found == sorted(found, reverse=True)
        assert all(length / 100 <= lowest[row["anchor"]] / 100 - 0.02 for length in found)
    assert mined.rejected["margin"] and {*data} <= {*asked}
    with raises_input_error("must give a finite number for each of"):
        kb.mine_negatives(
            data=data, model=embedder, filter_by=lambda some: [1.0], margin=0.0, **options
        )
    with raises_input_error("`filter_by` gives the scores of margins and limits. Give one of"):
        kb.mine_negatives(data=data, model=embedder, filter_by=scores_of)


def test_a_cross_encoder_filters(embedder, tmp_path):
    tokenizer = make_tokenizer(WORDS)
    task = kb.Regressor(make_encoder(tokenizer), tokenizer, max_length=20)
    task.save(tmp_path / "scorer")
    data = pairs(5, seed=6)
    options = {"data": data, "model": embedder, "max_score": 100.0, "num_negatives": 2}
    mined = kb.mine_negatives(**options, filter_by=tmp_path / "scorer")
    text = data[0][0]
    (row, *_) = (row for row in mined.rows if row["anchor"] == text)
    negatives = [row["negative_1"], row["negative_2"]]
    scores = [p["score"] for p in kb.predict(task, [(text, other) for other in negatives])]
    assert scores[0] >= scores[1]
    with raises_input_error("which cannot rerank. Expected a cross-encoder"):
        kb.mine_negatives(**options, filter_by=embedder)


def test_with_passages_no_part_of_a_text_with_a_positive_is_a_negative(embedder):
    long = ["the old cat sat " * 6 + "new dog ran", "red fish flew " * 8, "old bird sat"]
    index = Index.build(embedder, long, passages=True)
    data = [("cat", "new dog ran"), ("fish", "old bird sat")]
    mined = kb.mine_negatives(data=data, index=index, num_negatives=9, format="list")
    first, second = mined.rows
    assert first["negatives"] and all(part not in long[0] for part in first["negatives"])
    assert any(part in long[0] and part != long[0] for part in second["negatives"])


def test_own_negatives_stay_and_every_form_is_read_by_training(embedder, tmp_path):
    rows = [{"anchor": a, "positive": p, "negative": None} for a, p in pairs(6, seed=2)]
    rows[0]["negative"] = "red red red"
    data = pandas.DataFrame(rows)
    options = {"data": data, "model": embedder, "num_negatives": 2}
    for name in ("a.parquet", "a.csv", "a.jsonl"):
        for format in ("columns", "list"):
            if (name, format) == ("a.csv", "list"):
                continue
            path = tmp_path / f"{format}.{name}"
            mined = kb.mine_negatives(**options, format=format, output=path)
            source = TextGroupSource(path)
            examples = [*source]
            assert source.form == PAIRS and len(examples) == len(mined.rows) == len(mined)
            (first,) = (e for e in examples if e.texts[:2] == tuple(data.iloc[0])[:2])
            assert first.texts[2] == "red red red" and len(first.texts) == 5
            assert len(examples[-1].texts) == 4
    mined = kb.mine_negatives(**options, format="labels", output=tmp_path / "labels.csv")
    (one,) = {row["query"] for row in mined.rows if row["passage"] == "red red red"}
    assert one == rows[0]["anchor"]
    scored = kb.Regressor.read(tmp_path / "labels.csv")
    assert {example.label for example in scored} == {0.0, 1.0}
    assert sum(row["label"] for row in mined.rows) == mined.pairs
    with raises_input_error("is there already"):
        kb.mine_negatives(**options, output=tmp_path / "labels.csv")


def test_pairs_with_too_few_are_said_and_stay(embedder):
    data = [("cat sat", "the old cat"), ("dog ran", "new dog"), ("cat sat", "red cat")]
    mined = kb.mine_negatives(data=data, model=embedder, num_negatives=2)
    assert [len([v for v in row.values() if v]) for row in mined.rows] == [3, 3, 4]
    assert (mined.pairs, mined.short, mined.without, mined.negatives) == (3, 2, 0, 3)
    assert any("2 pairs with fewer negatives than asked for" in line for line in mined.lines())
    mined = kb.mine_negatives(data=data, model=embedder, min_score=2.0)
    assert mined.rows == [{"anchor": a, "positive": p} for a, p in (data[0], data[2], data[1])]
    assert (mined.without, mined.negative_score) == (3, None)
    assert mined.rejected == {"own": 3, "min_score": 3}


def test_the_command(embedder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    embedder.save("model")
    data = pairs(6)
    pandas.DataFrame(data, columns=["question", "answer"]).to_csv("pairs.csv", index=False)
    (tmp_path / "texts.txt").write_text("\n".join(sentences(20, seed=4)))
    assert main("index --model model --data texts.txt --output my.index".split()) == 0
    capsys.readouterr()
    command = "mine-negatives --index my.index --data pairs.csv --relative-margin 0.05"
    assert main([*command.split(), "--output", "mined.jsonl"]) == 0
    out, _ = capsys.readouterr()
    lines = (tmp_path / "mined.jsonl").read_text().splitlines()
    assert {*json.loads(lines[0])} >= {"anchor", "positive", "negative_1"}
    assert f"{len({*data})} pairs, " in out and "by the relative margin" in out
    assert f"Wrote mined.jsonl: {len({*data})} rows." in out
    assert "Next: keras-bert finetune --task text-embedding" in out
    assert main([*command.split(), "--output", "mined.jsonl"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main([*command.split(), "--output", "mined.jsonl", "--force"]) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Give `index`, or `model` to find candidates among the positives."),
        ({"model": "m", "index": "i", "corpus": "c"}, "`corpus` is for `model` alone."),
        ({"model": "m", "range_max": 2}, "leave 2 ranks, and `num_negatives` is 3."),
        ({"model": "m", "range_min": 9, "range_max": 5}, "leave 0 ranks"),
        ({"model": "m", "min_score": 0.5, "max_score": 0.1}, "`min_score` is above `max_score`"),
        ({"model": "m", "force": True}, "`force` is for `output`"),
        ({"model": "m", "output": "x.csv", "format": "list"}, "A CSV has no lists."),
        ({"model": "m", "output": "x.txt"}, "must be a file NAME.csv, NAME.parquet"),
    ],
)
def test_bad_settings(given, message):
    with raises_input_error(message):
        kb.mine_negatives(data=[("a", "b")], **given)


def test_bad_data(embedder):
    with raises_input_error("has pairs with scores. Negatives are of anchors and positives"):
        kb.mine_negatives(data=[("a", "b", 0.5)], model=embedder)
    with raises_input_error("has plain texts. Negatives are of"):
        kb.mine_negatives(data=["a", "b"], model=embedder)
