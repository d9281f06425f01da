"""Texts that belong together, by the names of their columns."""

import json

import numpy as np
import pandas
import pytest

from keras_bert.readers.text_groups import BINARY, LABELS, PAIRS, SCORES, TEXTS, TextGroupSource
from tests.messages import raises_input_error


def read(data, **options):
    source = TextGroupSource(data, **options)
    return source.form, [(*e.texts, *([] if e.label is None else [e.label])) for e in source]


def table(**columns):
    return pandas.DataFrame(columns)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"anchor": ["a"], "positive": ["b"]}, (PAIRS, [("a", "b")])),
        ({"question": ["a"], "answer": ["b"], "source": ["x"]}, (PAIRS, [("a", "b")])),
        ({"Query": ["a"], "passage": ["b"], "negative": ["c"]}, (PAIRS, [("a", "b", "c")])),
        (
            {"query": ["a"], "negative_2": ["d"], "pos": ["b"], "negative_1": ["c"]},
            (PAIRS, [("a", "b", "d", "c")]),
        ),
        ({"sentence1": ["a"], "sentence2": ["b"]}, (PAIRS, [("a", "b")])),
        ({"sentence1": ["a"], "sentence2": ["b"], "score": ["2.5"]}, (SCORES, [("a", "b", 2.5)])),
        ({"text_a": ["a"], "text_b": ["b"], "similarity": [1]}, (SCORES, [("a", "b", 1.0)])),
        ({"text_a": ["a"], "text_b": ["b"], "label": [1]}, (BINARY, [("a", "b", 1.0)])),
        ({"query": ["a"], "passage": ["b"], "label": ["0"]}, (BINARY, [("a", "b", 0.0)])),
        (
            {"question1": ["a"], "question2": ["b"], "is_duplicate": [0]},
            (BINARY, [("a", "b", 0.0)]),
        ),
        ({"text": ["a"]}, (TEXTS, [("a",)])),
        ({"text": ["a"], "label": ["x"]}, (LABELS, [("a", "x")])),
    ],
)
def test_names_choose_the_form(columns, expected):
    assert read(table(**columns)) == expected


def test_lists_of_positives_and_negatives(tmp_path):
    rows = [
        {"query": "a", "pos": ["b", "c"], "neg": ["d", "e"]},
        {"query": "f", "pos": ["g"], "neg": []},
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = [("a", "b", "d", "e"), ("a", "c", "d", "e"), ("f", "g")]
    assert read(file) == read(rows) == (PAIRS, expected)
    rows.append({"query": "h", "pos": [], "neg": ["i"]})
    source = TextGroupSource(rows)
    assert len([*source]) == 3 and "row 3: 1 row without a text, left out" in source.notes()[0]


def test_files_with_a_header_without_one_and_plain_lines(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("anchor,positive\na,b\n,c\n")
    source = TextGroupSource(file)
    assert [e.texts for e in source] == [("a", "b")]
    assert source.schema == {"anchor": ["anchor"], "positive": ["positive"]}
    assert "line 3: 1 row without a text, left out" in source.notes()[0]
    file = tmp_path / "a.tsv"
    file.write_text("a\tb\n")
    assert read(file, fields="anchor=1,positive=2") == (PAIRS, [("a", "b")])
    assert read(file, schema={"anchor": ["2"], "positive": ["1"]}) == (PAIRS, [("b", "a")])
    with raises_input_error("the columns do not say what the texts are"):
        read(file)
    file = tmp_path / "a.txt"
    file.write_text("one text\nanother\n")
    assert read(file) == (TEXTS, [("one text",), ("another",)])


def test_sequences():
    assert read(["a", ""]) == (TEXTS, [("a",), ("",)])
    assert read([("a", "b"), ("c", "d", "e")]) == (PAIRS, [("a", "b"), ("c", "d", "e")])
    assert read([("a", "b", ["c", "d"])]) == (PAIRS, [("a", "b", "c", "d")])
    assert read([("a", "b", 0.5), ("c", "d", 1)]) == (SCORES, [("a", "b", 0.5), ("c", "d", 1.0)])
    with raises_input_error("Example 2 of those given: pairs with scores, and the first"):
        read([("a", "b"), ("c", "d", 1)])
    for item in ("a", 3), ("a",), (1, 2), {"a"}:
        with pytest.raises(ValueError, match="Examples must be texts, tuples of an anchor"):
            read([item])


def test_scores_become_fractions_of_a_range():
    rows = table(sentence1=["a", "b"], sentence2=["c", "d"], score=[0, 2.5])
    assert read(rows, score_range=[0, 5]) == (SCORES, [("a", "c", 0.0), ("b", "d", 0.5)])
    with raises_input_error("table, row 1: the score 2.5 is not in `score_range`, 0 to 2"):
        read(rows, score_range=[0, 2])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": ["x"], "b": ["y"]}, '`fields="anchor=…,positive=…"`'),
        ({"sentence1": ["a"], "sentence2": ["b"], "sim": ["1"]}, "the columns do not say what"),
        (
            {"query": ["a"], "question": ["b"], "answer": ["c"]},
            "columns could be the anchor",
        ),
        ({"query": ["a"], "answer": ["b"], "passage": ["c"]}, 'could be the positive: "answer"'),
        (
            {"text_a": ["a"], "text_b": ["b"], "label": [1], "score": [1]},
            "several columns could be the score or label",
        ),
        ({"sentence": ["a"], "comment": ["b"]}, "several columns could be the text"),
        (
            {"text_a": ["a"], "text_b": ["b"], "label": [0.7]},
            'row 0: 0.7 in "label" should be 0 or',
        ),
        ({"text_a": ["a"], "text_b": ["b"], "score": ["x"]}, '"x" is not a score'),
        (
            {"text_a": ["a"], "text_b": ["b"], "score": [np.nan]},
            "have no score...left out" if False else "",
        ),
        ({"anchor": [1], "positive": ["b"]}, 'no text under "anchor"'),
    ],
)
def test_what_could_be_meant_in_two_ways_and_values_of_another_type(columns, message):
    with raises_input_error(message):
        read(table(**columns))


def test_given_columns_win():
    rows = table(title=["t"], body=["b"], answer=["p"], n=["n"], m=["m"], query=["q"])
    form, examples = read(rows, fields="anchor=title+body,positive=answer,negatives=m|n")
    assert (form, examples) == (PAIRS, [("t b", "p", "m", "n")])
    assert read(rows, text_column="body") == (TEXTS, [("b",)])
    with raises_input_error("Give either `fields` or `text_column`, not both"):
        read(rows, text_column="body", fields="text=body")
    with raises_input_error('has no column "x"'):
        read(rows, fields="anchor=x,positive=answer")


def test_without_labels_pairs_stay_pairs():
    rows = table(sentence1=["a"], sentence2=["b"], score=[None])
    source = TextGroupSource(rows, need_labels=False)
    assert [(e.texts, e.label) for e in source] == [(("a", "b"), None)]
