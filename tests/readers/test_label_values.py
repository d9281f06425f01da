"""One conversion of labels, whatever they are written as, and of several labels of a text."""

import collections

import numpy as np
import pytest

from keras_bert.readers.labels import (
    fraction_among,
    named_labels,
    one_label,
    score,
    several_labels,
    sorted_labels,
)
from keras_bert.readers.texts import TextSource
from keras_bert.tasks.classification.classifier import Classifier
from tests.messages import raises_input_error

pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")


@pytest.mark.parametrize(
    "label, values",
    [
        ("7", [7, "7", np.int64(7), " 7 "]),
        ("7.0", [7.0, "7.0", np.float32(7)]),
        ("-3", [-3, "-3", np.int8(-3)]),
        ("2.5", [2.5, "2.5", np.float64(2.5), np.float32(2.5)]),
        ("True", [True, "true", "True", "TRUE", "tRUE"]),
        ("False", [False, "false", "False", "FALSE"]),
        ("not ham", ["not ham", " not ham "]),
        (None, [None, "", "  ", float("nan"), np.float64("nan")]),
    ],
)
def test_a_label_is_what_is_written(label, values):
    assert {one_label(value) for value in values} == {label}
    for text in ("007", "1.10", "1e5", "2E1", "+7", "1_000", "１", "1.2.3", "[other]", "(a)"):
        assert one_label(text) == text
    for value in (float("inf"), -np.inf, [1], {"a": 1}, "['a']", '{"a": 1}', b"\xff", 1j):
        with pytest.raises(ValueError):
            one_label(value)


@pytest.mark.parametrize(
    "labels, names",
    [
        (["1.0", "0.0", "1"], ["1", "0", "1"]),
        (["-1", "1.0"], ["-1", "1"]),
        (["1.1", "1.10", "1.0"], ["1.1", "1.10", "1.0"]),
        (["007", "7", "7.0"], ["007", "7", "7.0"]),
        (["1e5", "100000"], ["1e5", "100000"]),
        (["1.0", "other"], ["1.0", "other"]),
        (["2.5", "1.0"], ["2.5", "1"]),
    ],
)
def test_labels_are_numbers_if_all_are_plain_numbers(labels, names):
    assert [*named_labels(labels).values()] == names
    assert fraction_among(labels) == ("2.5" if "2.5" in labels else None)


def test_values_of_numpy_and_pandas():
    labels = [np.True_, np.int32(5), np.float64(0.5), np.str_("x"), pandas.NA, pandas.NaT, b"y"]
    data = [{"text": "a", "label": value} for value in [*labels, np.float32(0.1)]]
    assert [e.label for e in TextSource(data)] == ["True", "5", "0.5", "x", "y", "0.1"]
    frame = pandas.DataFrame({"text": ["a", "b"], "score": [0.1, 0.2]}).astype({"score": "float32"})
    for dtype in ("float32", "Float32", "float16"):
        scores = TextSource(frame.astype({"score": dtype}), form=score)
        assert [e.label for e in scores] == [0.1, 0.2]


def test_labels_of_files_are_those_of_tables(tmp_path):
    path = tmp_path / "a.csv"
    for cells in (
        ["1", "0", "1.0", ""],
        ["true", "TRUE", "False", "false", "True"],
        ["-1", "1", "-1", "1"],
        ["3", "", "4.0"],
        ["x", "y", "01", "1", "true"],
        ["007x", "7", "1.10", "1e5"],
    ):
        path.write_text(
            "text,label\n" + "".join(f"some text {n},{c}\n" for n, c in enumerate(cells))
        )
        file_examples = [(e.text, e.label) for e in TextSource(path)]
        assert file_examples == [(e.text, e.label) for e in TextSource(pandas.read_csv(path))], (
            cells
        )
        as_strings = pandas.read_csv(path, dtype=str)
        assert file_examples == [(e.text, e.label) for e in TextSource(as_strings)], cells
        assert all(isinstance(label, str) for _, label in file_examples)


@pytest.mark.parametrize("form", [one_label, several_labels])
def test_numbers_that_are_not_whole_are_no_names_of_classes(form, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,labels\none text,0.0\ntwo texts,0.17\nthree,1.0\n")
    for data in (path, pandas.read_csv(path), pandas.read_csv(path).astype({"labels": "float32"})):
        with raises_input_error(
            'row 1: the label "0.17" could be a score or the name of a class...'
            'with `task="regression"`; write the name of a class as a word, such as "v0.17"'
            if data is not path
            else 'line 3: the label "0.17" could be a score or the name of a class'
        ):
            list(TextSource(data, form=form))
        # Of a model they are names.
        model = ["0", "0.17", "1"]
        assert [e.labels[0] for e in TextSource(data, form=form, labels=model)] == model
    for value in ([0.1, 0.9], {"a": 0.2, "b": 0.8}):
        with raises_input_error(f"{value!r} could be probabilities or scores of several labels"):
            list(TextSource([("a", value)], form=form))


def test_infinity_and_bytes_are_errors_and_nan_is_missing(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"text": "one", "label": NaN, "note": 1}\n{"text": NaN, "label": 1}\n'
        '{"text": "two", "label": "nan"}\n'
        '{"text": "three", "label": "x"}\n'
    )
    frame = pandas.DataFrame(
        {
            "text": ["one", np.nan, "two", "three"],
            "label": [np.nan, 1, "nan", "x"],
            "note": 1,
        }
    )
    frame.astype({"label": str}).to_parquet(tmp_path / "strings.parquet")
    for data in (path, frame, frame.to_dict("records")):
        source = TextSource(data)
        assert [(e.text, e.label) for e in source] == [("two", "nan"), ("three", "x")]
        assert len(source.notes()) == 2
        joined = TextSource(data, text_column="text+label", fields="label=note", need_labels=False)
        assert [e.text for e in joined] == ["one", "1", "two nan", "three x"]
    numbers = pandas.DataFrame({"text": ["a", "b", "c"], "label": [1.0, np.nan, 2.0]})
    numbers.to_parquet(tmp_path / "a.parquet")
    for data in (numbers, tmp_path / "a.parquet"):
        assert [e.label for e in TextSource(data)] == ["1", "2"]
    path.write_text('{"text": "one", "label": 1}\n{"text": "two", "label": -Infinity}\n')
    frame = pandas.DataFrame({"text": ["one", "two"], "label": [1, -np.inf]}, index=[1, 2])
    for data in (path, frame):
        with raises_input_error("2: -inf is not a label. Expected a word or a whole number"):
            list(TextSource(data))
        with raises_input_error("2: -inf is not a score"):
            list(TextSource(data, form=score, fields="text=text,label=label"))
    path.write_text('{"text": "one", "label": 1, "text": "two"}\n')
    with raises_input_error('line 1: not JSON (the key "text" comes twice)'):
        list(TextSource(path))
    for name in ("text", "label"):
        row = {"text": "one", "label": "x", name: b"\xff\xfe"}
        with raises_input_error("bytes are not UTF-8" if name == "text" else "not UTF-8"):
            list(TextSource([row]))


def test_numbers_sort_as_numbers():
    labels = ["b", "10", "-1", "2", "0.5", "-0.25", "a", "1"]
    assert sorted_labels(labels) == ["-1", "-0.25", "0.5", "1", "2", "10", "a", "b"]
    Example = collections.namedtuple("Example", "label")
    examples = [Example(label) for label in ("1", "-1", "1")]
    assert Classifier.infer_arguments(examples) == {"labels": ["-1", "1"]}
    assert Classifier.describe_examples(examples, examples, {"labels": ["-1", "1"]}).endswith(
        'The positive class of F1 is "1".'
    )


def test_a_models_own_names_win():
    names = named_labels(["True", "False", "1.0", "01", "x"], ["true", "false", "1", "01"])
    assert [*names.values()] == ["true", "false", "1", "01", "x"]
    data = [("one text", "True"), ("two texts", True), ("three", "maybe")]
    source = TextSource(data, labels=["false", "true"])
    assert [e.label for e in source] == ["true", "true", "maybe"]


@pytest.mark.parametrize(
    "value",
    [
        ["spam", "ham"],
        ("spam", "ham"),
        np.array(["spam", "ham"]),
        "spam|ham",
        " spam | ham ",
        "['spam', 'ham']",
        '["spam", "ham"]',
        "('spam', 'ham')",
        {"spam": 1, "eggs": 0, "ham": True},
        '{"spam": 1, "eggs": 0, "ham": 1}',
        "{'spam': 1, 'eggs': 0, 'ham': 1.0}",
    ],
)
def test_several_labels_of_one_text(value, tmp_path):
    (example,) = TextSource([{"text": "a", "labels": value}], form=several_labels)
    assert example.label == ("spam", "ham")
    (example,) = TextSource([("a", value)], form=several_labels)
    assert example.label == ("spam", "ham")
    frame = pandas.DataFrame({"text": ["a"], "labels": [value]})
    if isinstance(value, np.ndarray):
        return  # which has no commas in a file
    frame.to_csv(tmp_path / "a.csv", index=False)
    (example,) = TextSource(tmp_path / "a.csv", form=several_labels)
    assert example.label == ("spam", "ham")


def test_sets_and_no_labels(tmp_path):
    cells = [{"x"}, frozenset({"y", "x"}), set(), [], "", "[]", None]
    data = [{"text": f"text {n}", "labels": value} for n, value in enumerate(cells)]
    labels = [e.label for e in TextSource(data, form=several_labels)]
    assert labels == [("x",), ("x", "y"), (), (), (), (), ()]
    path = tmp_path / "a.csv"
    path.write_text("text,labels\na,x|y\nb,\nc,['z']\n")
    for table in (path, pandas.read_csv(path)):
        assert [e.label for e in TextSource(table, form=several_labels)] == [("x", "y"), (), ("z",)]


VECTORS = [[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]]


def test_lists_of_0_and_1_need_names(tmp_path):
    rows = [{"text": f"text {n}", "labels": vector} for n, vector in enumerate(VECTORS)]
    frame = pandas.DataFrame(rows)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    tables = (rows, frame, tmp_path / "a.csv", tmp_path / "a.jsonl")
    for data in tables:
        with raises_input_error(
            "[1, 0, 1]...looks like a 0 or 1 for each label...names as `labels`...`label_col"
        ):
            list(TextSource(data, form=several_labels))
        for names in ("spam,ham,eggs", ["spam", "ham", "eggs"]):
            source = TextSource(data, form=several_labels, label_names=names)
            expected = [("spam", "eggs"), ("ham",), (), ("spam", "ham", "eggs")]
            assert [e.label for e in source] == expected
        again = TextSource(data, form=several_labels, schema=source.schema)
        assert [e.label for e in again] == expected
        with raises_input_error("looks like a 0 or 1 for each label...`labels` has 2 names."):
            list(TextSource(data, form=several_labels, label_names="a,b"))
    # Two numbers could be two labels; a file of nothing else could not.
    pairs = [{"text": f"text {n}", "labels": [n % 2, 1 - n % 2]} for n in range(4)]
    with raises_input_error("the given table: each list looks like a 0 or 1 for each label"):
        list(TextSource(pairs, form=several_labels))
    mixed = [*pairs, {"text": "and more", "labels": [1]}]
    assert [e.label for e in TextSource(mixed, form=several_labels)][-1] == ("1",)


MATRIX = "id,remark,rude,false,spam\n" + "".join(
    f"k{n},the remark number {n},{n % 2},{int(n % 3 == 0)},{int(n % 4 == 3)}\n" for n in range(12)
)
NAMED = {"text_column": "remark"}


def test_a_column_for_each_label(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(MATRIX)
    for data in (path, pandas.read_csv(path), pandas.read_csv(path).astype({"rude": bool})):
        with raises_input_error(
            'no column has a usual name for the label..."id" (12 different: "k0", "k1", …), '
            '"rude" (2 different:...Give `label_columns="rude,false,spam"`'
        ):
            TextSource(data, form=several_labels, **NAMED)
        for names in ("spam,rude", ["spam", "rude"]):
            given = TextSource(data, form=several_labels, label_columns=names, **NAMED)
            labels = [e.label for e in given]
            assert labels[:4] == [(), ("rude",), (), ("spam", "rude")]
            assert given.schema["label"] == ["spam", "rude"]
    with raises_input_error("`label_columns` has one name. Give the names of two or more labels."):
        TextSource(path, form=several_labels, label_columns="rude")
    for name in ("label_columns", "label_names"):
        with raises_input_error("is for several labels per text (`multi_label=True`)"):
            TextSource(path, **{name: "rude,spam"})
    with raises_input_error('has no column "kind"'):
        TextSource(path, form=several_labels, label_columns="rude,kind", **NAMED)
    path.write_text(MATRIX + "k12,the last remark,2,0,1\n")
    with raises_input_error("""line 14: '2' in "rude" should be 0 or 1"""):
        list(TextSource(path, form=several_labels, label_columns="rude,spam", **NAMED))
    path.write_text(MATRIX + "k12,the last remark,,0,1\n")
    source = TextSource(path, form=several_labels, label_columns="rude,spam", **NAMED)
    assert len([*source]) == 12
    assert source.notes() == [f"{path}, line 14: 1 row without a label, left out."]


@pytest.mark.parametrize(
    "value",
    ["['spam' 'ham']", "['spam', ", "[spam, ham]", "{spam}", {"spam": 2}, [["spam"]], [{"a": 1}]],
)
def test_what_is_no_list_of_labels_is_shown(value):
    with raises_input_error(
        f"row 1: {value!r} should " if isinstance(value, str) else "row 1: ... should "
    ):
        list(TextSource([{"text": "a", "labels": value}], form=several_labels))
