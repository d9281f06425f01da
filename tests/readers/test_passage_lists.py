"""Lists of passages per query: which columns make them, and what is left out or rejected."""

import json

import pytest

from keras_bert.readers.passage_lists import PassageList, ScoredPairSource
from tests.messages import raises_input_error

NEGATIVES = {"query": "q", "positive": "p", "negative_1": "n", "negative_2": "m"}
GRADES = {"query": "q", "passages": ["a", "b", "c"], "grades": [0, 2, 1.5]}


def read(data, **options):
    source = ScoredPairSource(data, **options)
    return source, [*source]


def lists(data, **options):
    return [(e.query, e.passages, e.grades, e.teacher) for e in read(data, **options)[1]]


@pytest.mark.parametrize(
    ("row", "options", "expected"),
    [
        (NEGATIVES, {}, ("q", ("p", "n", "m"), (1, 0, 0), None)),
        (GRADES, {}, ("q", ("a", "b", "c"), (0, 2, 1.5), None)),
        (
            {"question": "q", "documents": ["a", "b"], "labels": [1, 0]},
            {},
            ("q", ("a", "b"), (1, 0), None),
        ),
        (
            {"query": "q", "pos": ["p", "r"], "neg": ["n"]},
            {},
            ("q", ("p", "r", "n"), (1, 1, 0), None),
        ),
        ({**NEGATIVES, "scores": [5, 1, -2]}, {}, ("q", ("p", "n", "m"), (1, 0, 0), (5, 1, -2))),
        (
            {**GRADES, "scores": [3, 1, 2]},
            {},
            ("q", ("b", "a", "c"), (2, 0, 1.5), (1, 3, 2)),  # the most relevant one first
        ),
        ({**NEGATIVES, "margins": [4, 7]}, {}, ("q", ("p", "n", "m"), (1, 0, 0), (0, -4, -7))),
        # The positive and the query do not count as negatives.
        (
            {"anchor": "q", "positive": "p", "negatives": ["q", "n", "p"], "scores": [9, 8, 7, 6]},
            {},
            ("q", ("p", "n"), (1, 0), (9, 7)),
        ),
        (
            {"a": "q", "b": "p", "c": "n", "d": "m", "e": 3, "f": 1, "g": 2},
            {"fields": "query=a,positive=b,negatives=c|d,scores=e|f|g"},
            ("q", ("p", "n", "m"), (1, 0, 0), (3, 1, 2)),
        ),
        (
            {"a": "q", "b": ["x", "y"], "c": [0, 1]},
            {"fields": "query=a,passages=b,grades=c"},
            ("q", ("x", "y"), (0, 1), None),
        ),
    ],
)
def test_columns_of_lists(row, options, expected):
    other = {name: f"{value}2" if isinstance(value, str) else value for name, value in row.items()}
    first, second = lists([row, other], **options)
    assert first == expected and second[0] == f"{expected[0]}2"


def test_a_csv_and_json_lines_are_read_alike(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(GRADES) + "\n")
    (tmp_path / "a.csv").write_text(
        'query,passages,grades\nq,"[""a"", ""b"", ""c""]","[0, 2, 1.5]"\n'
    )
    (tmp_path / "b.tsv").write_text("query\tpositive\tnegative\nq\tp\tn\n")
    assert lists(tmp_path / "a.jsonl") == lists(tmp_path / "a.csv") == lists([GRADES])
    source, (example,) = read(tmp_path / "b.tsv")
    assert example.passages == ("p", "n") and "lists of passages" in source.description
    assert source.schema == {
        "query": ["query"],
        "positive": ["positive"],
        "negatives": ["negative"],
    }


def test_columns_of_training_are_used_again():
    rows = [{"a": "q", "b": ["x", "y"], "c": [0, 1], "passages": "no"}]
    schema = {"query": ["a"], "passages": ["b"], "grades": ["c"]}
    assert lists(rows, schema=schema) == [("q", ("x", "y"), (0, 1), None)]
    assert lists([{"a": "q", "b": ["x", "y"]}], schema=schema, need_labels=False) == [
        ("q", ("x", "y"), None, None)
    ]
    with raises_input_error("has no column"):
        read(rows, fields="query=a,passages=b,grades=nowhere")
    (pair,) = read([{"query": "q", "passage": "p", "score": 1}], schema=schema)[1]
    assert (pair.text, pair.text_b, pair.label) == ("q", "p", 1)


def test_pairs_are_grouped_by_their_query():
    rows = [
        ("q", "a", 1),
        ("r", "b", 0),
        ("q", "c", 0),
        ("r", "d", 2),
        ("s", "e", 0),
        ("s", "f", 0),
    ]
    source, found = read(rows, group_by_query=True)
    assert [(e.line, e.query, e.passages, e.grades) for e in found] == [
        (1, "q", ("a", "c"), (1, 0)),
        (2, "r", ("b", "d"), (0, 2)),
    ]
    (note,) = source.notes()
    assert "1 row without a passage with a grade above 0, left out" in note
    table = [{"query": q, "passage": p, "label": g} for q, p, g in rows]
    assert lists(table, group_by_query=True) == lists(rows, group_by_query=True)
    pairs = read(table)[1]
    assert len(pairs) == 6 and not isinstance(pairs[0], PassageList)


def test_lists_to_predict_need_no_grades():
    row = {"query": "q", "passages": ["a"]}
    assert lists([row], need_labels=False) == [("q", ("a",), None, None)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{**GRADES, "grades": [1, 0]}], "row 1: 3 passages and 2 grades. Give one for each."),
        ([GRADES, {**GRADES, "grades": [1, -1, 0]}], "row 2: the grade -1 is negative"),
        ([{**GRADES, "grades": [1, float("nan"), 0]}], "one of them is missing. Give a number for"),
        ([{**GRADES, "grades": [1, "x", 0]}], '"x" is not a score'),
        ([{**GRADES, "grades": [1, float("inf"), 0]}], "inf is not a score"),
        ([{**GRADES, "passages": ["a", 3, "b"]}], 'no text in "passages"'),
        ([{**GRADES, "passages": ["a"], "grades": [1]}], "has no second passage of any record"),
        ([{**GRADES, "grades": [0, 0, 0]}], "has no passage with a grade above 0 of any record"),
        ([{**NEGATIVES, "scores": [1, 2]}], "2 scores of another model for 3 passages"),
        ([{**NEGATIVES, "margins": 3}], "1 margins for 1 positives and 2 negatives"),
        (
            [{**NEGATIVES, "margin": 3, "scores": [1]}],
            "a list has a query, passages and grades, or",
        ),
        ([{**NEGATIVES, "question": "x"}], "several columns could be the query"),
        ([{"query": "q", "passages": ["a", "b"]}], "a list has a query, passages and grades, or"),
    ],
)
def test_rejected(rows, message):
    with raises_input_error(message):
        read(rows)


def test_a_missing_part_may_be_an_error():
    rows = [GRADES, {**GRADES, "grades": [0, 0, 0]}]
    assert len(lists(rows)) == 1
    with raises_input_error("row 2: a row without a passage with a grade above 0"):
        read(rows, missing="error")
    with raises_input_error("the grade -2 is negative"):
        read([("q", "a", 1), ("q", "b", -2)], group_by_query=True)
