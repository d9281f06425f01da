"""CSV as people have it, JSON arrays, gzip, and tables in memory: each gives the same examples."""

import csv
import gzip
import io
import json

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.readers.choices import ChoiceSource
from keras_bert.readers.labels import score
from keras_bert.readers.sentences import TaggedSource
from keras_bert.readers.texts import PAIR, TextSource
from tests.messages import raises_input_error

ROWS = [
    ("I was charged twice, please refund one", "billing"),
    ('It says "error 5";\nthen it closes', "bug"),
    ("Add a dark theme", "feature"),
    ("It's slow\tand hangs", "bug"),
    ("Ünïcode, too", "feature"),
]
EXAMPLES = [(text, label) for text, label in ROWS]


def as_csv(rows, *, delimiter=",", end="\r\n", header=("text", "label"), **options):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator=end, **options).writerows([header, *rows])
    return file.getvalue().encode("utf-8")


def examples(data, **options):
    return [(e.text, e.label) for e in TextSource(data, **options)]


@pytest.fixture
def write(tmp_path):
    def write(content, name="train.csv"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


FILES = {
    "comma": as_csv(ROWS),
    "semicolon": as_csv(ROWS, delimiter=";"),
    "tab": as_csv(ROWS, delimiter="\t"),
    "unix": as_csv(ROWS, end="\n"),
    "all in quotes": as_csv(ROWS, quoting=csv.QUOTE_ALL),
    "byte order mark": b"\xef\xbb\xbf" + as_csv(ROWS),
    "gzip": gzip.compress(as_csv(ROWS)),
    "array": json.dumps([{"text": t, "label": y} for t, y in ROWS]).encode(),
    "indented array": json.dumps([{"text": t, "label": y} for t, y in ROWS], indent=2).encode(),
    "JSON Lines": "".join(json.dumps({"text": t, "label": y}) + "\n" for t, y in ROWS).encode(),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("file", ["train.csv", "train", "train.gz"])
def test_every_form_of_a_table_gives_the_same_examples(name, file, write):
    if file == "train.csv" and FILES[name].startswith((b"[", b"{")):
        file = "train.json"
    assert examples(write(FILES[name], file)) == EXAMPLES


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_gives_the_same_examples_as_a_file(name, monkeypatch):
    for options in ({}, {"text_column": "text", "label_column": "label"}, {"header": True}):
        monkeypatch.setattr(
            "sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(FILES[name])))
        )
        assert examples("-", **options) == EXAMPLES
    if FILES[name].count(b"text,label") or FILES[name].count(b"text;label"):
        content = FILES[name].replace(b"text", b"note", 1).replace(b"label", b"kind", 1)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        given = {"text_column": "note", "label_column": "kind"}
        assert examples("-", header=True, **given) == EXAMPLES
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        with raises_input_error(
            "standard input: no column has a usual name for the text and the label. Its columns "
            "are "
            'column 1 ("note"), column 2 ("kind")...the first line names the columns, set `header='
        ):
            examples("-")


def test_unlabelled_files_are_csv_by_their_names_and_texts_with_commas_are_not(write):
    texts = [text for text, _ in ROWS]
    assert [t for t, _ in examples(write(FILES["comma"], "a"), need_labels=False)] == texts
    lines = write(b"Hello, you\nIf so, say so\n", "a.txt")
    assert examples(lines, need_labels=False) == [("Hello, you", None), ("If so, say so", None)]
    without = write(as_csv([("win, now", "7"), ("see you", "9")], header=("hello, you", "8")))
    unlabelled = examples(without, need_labels=False, header=False, text_column="1")
    assert [text for text, _ in unlabelled] == ["hello, you", "win, now", "see you"]


def test_a_line_is_that_where_its_row_begins(write):
    assert [e.line for e in TextSource(write(FILES["comma"]))] == [2, 3, 5, 6, 7]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            as_csv([*ROWS, ("one", "too", "many")]),
            "train.csv, line 8: 3 columns, but the first line has 2",
        ),
        (b'text,label\na,b\n"c,d\n', "train.csv, line 3: not CSV"),
        (gzip.compress(FILES["comma"])[:-9], "train.csv is not a complete gzip file"),
        (b"\x1f\x8b garbage", "train.csv is not a complete gzip file"),
        (b'[{"text": "a", "label": "b"},\n 7]', "train.csv, item 2: not a JSON object"),
        (b'[{"text": "a", "label": "b"},\n {"text": }]', "train.csv, line 2: not JSON"),
        (b"[\n]\n", "train.csv is an empty JSON array. Expected objects in it."),
        ("text,label\né,b\n".encode("latin-1"), "iconv -f WINDOWS-1252 -t UTF-8 ...train.csv"),
        ("text,label\na,b\n".encode("utf-16"), "iconv -f UTF-16 -t UTF-8 ...train.csv"),
    ],
)
def test_bad_files(content, message, write):
    is_json = content.startswith(b"[")
    with raises_input_error(message.replace("csv", "json") if is_json else message):
        examples(write(content, "train.json" if is_json else "train.csv"))


def tables():
    pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")
    datasets = pytest.importorskip("datasets", reason="NOT TESTED with datasets")
    columns = {"text": [t for t, _ in ROWS], "label": [y for _, y in ROWS]}
    names = sorted(set(columns["label"]))
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=names)}
    )
    yield pandas.DataFrame(columns)
    yield datasets.Dataset.from_dict(columns)
    yield datasets.Dataset.from_dict(columns, features=features)
    yield [{"text": text, "label": label} for text, label in ROWS]
    yield ROWS
    yield tf.data.Dataset.from_tensor_slices(columns)
    yield tf.data.Dataset.from_tensor_slices((columns["text"], columns["label"]))


def test_tables_in_memory_give_the_same_examples_and_may_be_read_again():
    for table in tables():
        source = TextSource(table)
        for _ in range(2):
            assert [(e.text, e.label) for e in source] == EXAMPLES, type(table)


def test_texts_alone():
    texts = [text for text, _ in ROWS]
    dataset = tf.data.Dataset.from_tensor_slices(texts)
    assert [t for t, _ in examples(dataset, need_labels=False)] == texts
    table = [{"text": text} for text in texts]
    assert [t for t, _ in examples(table, need_labels=False)] == texts


def test_columns_of_a_table_are_chosen_as_those_of_a_file():
    pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")
    frame = pandas.DataFrame({"id": [1, 2], "body": ["a", "b"], "topic": [3, 4]}, index=[7, 7])
    assert examples(frame, text_column="body", label_column="topic") == [("a", "3"), ("b", "4")]
    assert examples(frame) == [("a", "3"), ("b", "4")]
    with raises_input_error(
        "the given table: no column has a usual name for the text and the label. Its columns are "
        '"id" (2 different: "1", "2"), "note" (2 different: "a", "b"), '
        '"kind" (2 different: "3", "4")'
        '. Give `text_column="…"` `label_column="…"`.'
    ):
        examples(frame.rename(columns={"body": "note", "topic": "kind"}))
    scores = pandas.DataFrame({"text_a": ["a", "b"], "text_b": ["c", "d"], "score": [0.5, np.nan]})
    source = TextSource(scores, texts=PAIR, form=score)
    assert [(e.texts, e.label) for e in source] == [(("a", "c"), 0.5)]
    assert source.notes()[0].startswith("the given table, row 1: 1 row without a score")


def test_splits_of_datasets_are_named():
    datasets = pytest.importorskip("datasets", reason="NOT TESTED with datasets")
    both = datasets.DatasetDict({"train": datasets.Dataset.from_dict({"text": ["a"]})})
    with raises_input_error("the splits train. Give one of them, such as data['tr"):
        examples(both)


def test_words_and_tags_and_choices():
    pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")
    frame = pandas.DataFrame({"words": [["in", "Rome"]], "tags": [["O", "B-LOC"]]})
    (sentence,) = TaggedSource(frame)
    assert (sentence.words, sentence.tags) == (("in", "Rome"), ("O", "B-LOC"))
    datasets = pytest.importorskip("datasets", reason="NOT TESTED with datasets")
    tags = datasets.List(datasets.ClassLabel(names=["O", "B-LOC"]))
    features = datasets.Features({"tokens": datasets.List(datasets.Value("string")), "tags": tags})
    rows = [{"tokens": ["in", "Rome"], "tags": [0, 1]}]
    (sentence,) = TaggedSource(datasets.Dataset.from_list(rows, features=features))
    assert (sentence.words, sentence.tags) == (("in", "Rome"), ("O", "B-LOC"))
    choices = {"context": ["He puts the pan on"], "choices": [["it.", "the moon."]], "label": [0]}
    (example,) = ChoiceSource(pandas.DataFrame(choices))
    assert (example.context, example.choices, example.label) == (
        "He puts the pan on",
        ("it.", "the moon."),
        0,
    )
