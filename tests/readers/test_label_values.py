"""One conversion of labels, whatever they are written as, and of several labels of a text."""

import collections

import numpy as np
import pytest

from keras_bert.readers.labels import names_of_model, one_label, several_labels, sorted_labels
from keras_bert.readers.texts import TextSource
from keras_bert.tasks.classification.classifier import Classifier
from tests.messages import raises_input_error

pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")


@pytest.mark.parametrize(
    "label, spellings",
    [
        ("7", [7, "7", "07", "7.0", "+7", 7.0, np.int64(7), np.float32(7), "7e0", " 7 "]),
        ("-3", [-3, "-3", "-03", "-3.00", -3.0, np.int8(-3)]),
        ("0", [0, "0", "00", "-0", "0.0", -0.0, "-0.0"]),
        ("2.5", [2.5, "2.5", "2.50", "02.5", np.float64(2.5), np.float32(2.5)]),
        ("True", [True, "true", "True", "TRUE"]),
        ("False", [False, "false", "False", "FALSE"]),
        ("tRUE", ["tRUE"]),
        ("1_000", ["1_000"]),
        ("１", ["１"]),
        ("1.2.3", ["1.2.3"]),
        ("not ham", ["not ham", " not ham "]),
        ("9" * 400, ["9" * 400]),
        ("1" + "0" * 22, ["1e22", 1e22, 10**22]),
        (None, [None, "", "  "]),
    ],
)
def test_one_label(label, spellings):
    assert {one_label(value) for value in spellings} == {label}


def test_values_of_numpy_and_pandas():
    labels = [np.True_, np.int32(5), np.float64(0.5), np.str_("x"), pandas.NA, pandas.NaT, b"y"]
    data = [{"text": "a", "label": value} for value in labels]
    assert [e.label for e in TextSource(data)] == ["True", "5", "0.5", "x", "y"]


def test_labels_of_files_are_those_of_tables(tmp_path):
    path = tmp_path / "a.csv"
    for cells in (
        ["1", "0", "1.0", "01", ""],
        ["true", "TRUE", "False", "false", "True"],
        ["-1", "1", "-1", "+1", "1"],
        ["2.5", "3", "2.50", "", "4.0"],
        ["x", "y", "01", "1", "true"],
    ):
        path.write_text(
            "text,label\n" + "".join(f"some text {n},{c}\n" for n, c in enumerate(cells))
        )
        of_file = [(e.text, e.label) for e in TextSource(path)]
        assert of_file == [(e.text, e.label) for e in TextSource(pandas.read_csv(path))], cells
        assert all(isinstance(label, str) for _, label in of_file)


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
    name_of = names_of_model(["true", "false", "01"])
    assert [name_of(one_label(v)) for v in (True, "FALSE", "1", "x")] == [
        "true",
        "false",
        "01",
        "x",
    ]
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


def test_a_column_for_each_label(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(MATRIX)
    for data in (path, pandas.read_csv(path), pandas.read_csv(path).astype({"rude": bool})):
        with raises_input_error(
            'the label could be in "rude" or in "false" or in "spam"...`label_columns`'
        ):
            TextSource(data)
        source = TextSource(data, form=several_labels)
        labels = [e.label for e in source]
        assert labels[:4] == [("false",), ("rude",), (), ("rude", "false", "spam")]
        assert source.schema["label"] == ["rude", "false", "spam"]
        for names in ("spam,rude", ["spam", "rude"]):
            given = TextSource(data, form=several_labels, label_columns=names)
            assert [e.label for e in given][3] == ("spam", "rude")
    with raises_input_error("`label_columns` has one name. Give the names of two or more labels."):
        TextSource(path, form=several_labels, label_columns="rude")
    for name in ("label_columns", "label_names"):
        with raises_input_error("is for several labels per text (`multi_label=True`)"):
            TextSource(path, **{name: "rude,spam"})
    with raises_input_error('has no column "kind"'):
        TextSource(path, form=several_labels, label_columns="rude,kind")
    path.write_text(MATRIX + "k12,the last remark,2,0,1\n")
    with raises_input_error("""line 14: '2' in "rude" should be 0 or 1"""):
        list(TextSource(path, form=several_labels, label_columns="rude,spam"))
    path.write_text(MATRIX + "k12,the last remark,,0,1\n")
    source = TextSource(path, form=several_labels, label_columns="rude,spam")
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
