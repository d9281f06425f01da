"""Tables beside predictions keep every column of their input, in its types."""

import csv
import datetime
import decimal
import json

import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.inference.table_files import ENDINGS, write_table
from tests.small_model import make_encoder, make_tokenizer

ROWS = 5
PREDICTED = ["label", "score", "probability_ham", "probability_spam"]


@pytest.fixture(scope="module")
def task():
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    task = kb.Classifier(encoder, tokenizer, labels=["ham", "spam"])
    task.columns = {"text": ["text"]}
    return task


def read(path):
    """The rows of a table; None for the empty cells of a CSV."""
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pylist()
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in file]
        return [{n: cell or None for n, cell in row.items()} for row in csv.DictReader(file)]


def json_lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_columns_are_the_union_of_all_rows(task, tmp_path, ending):
    rows = [{"text": "a"}, {"text": "b", "customer": "x"}, {"note": "n", "text": "c"}]
    data, output = json_lines(tmp_path / "in.jsonl", rows), tmp_path / f"out{ending}"
    for _ in range(2):  # the second time it is recognized
        assert kb.predict(task, data, output=output, force=True) == 3
        found = read(output)
        assert all(list(row) == ["text", "customer", "note", *PREDICTED] for row in found)
        assert [row["customer"] for row in found] == [None, "x", None]
        assert [row["note"] for row in found] == [None, None, "n"]
    given = kb.predict(task, rows, as_dataframe=True)
    assert list(given) == ["text", "customer", "note", *PREDICTED]


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_predictions_of_every_model_before_are_kept(task, tmp_path, ending):
    path = tmp_path / f"0{ending}"
    write_table([{"text": letter, "score": 7, "input_score": 8} for letter in "abc"], path)
    for number in (1, 2):
        before, path = path, tmp_path / f"{number}{ending}"
        kb.predict(task, before, output=path)
    (first, *_), expected = read(path), next(kb.predict(task, ["a"]))
    kept = ["text", "input_score_2", "input_score", "input_score_3", "label", "score", "expected"]
    assert [name for name in first if "probability" not in name] == kept
    values = [float(first[name]) for name in ("input_score_2", "input_score", "input_score_3")]
    assert values == [7, 8, expected["score"]]
    table = pd.DataFrame({"text": ["a"], "score": 7, "input_score": 8})
    given = kb.predict(task, table, as_dataframe=True)
    assert given.loc[0, ["input_score_2", "input_score"]].tolist() == [7, 8]


MOMENT = datetime.datetime(2026, 11, 27, 12, 30, 1, 5)
# One value of each type of Arrow that Parquet has, and its text in JSON Lines.
TYPED = {
    "timestamp": (pyarrow.timestamp("us"), MOMENT, "2026-11-27T12:30:01.000005"),
    "zoned": (pyarrow.timestamp("ns", "UTC"), 1_764_246_601_000_000_001, None),
    "date": (pyarrow.date32(), MOMENT.date(), "2026-11-27"),
    "time": (pyarrow.time64("us"), MOMENT.time(), "12:30:01.000005"),
    "duration": (pyarrow.duration("s"), datetime.timedelta(days=1), None),
    "decimal": (pyarrow.decimal128(30, 2), decimal.Decimal("12345678901234567890.25"), None),
    "binary": (pyarrow.binary(), b"a\xff", "a\\xff"),
    "map": (pyarrow.map_(pyarrow.string(), pyarrow.int64()), [("k", 1)], [["k", 1]]),
    "int8": (pyarrow.int8(), 7, 7),
    "uint64": (pyarrow.uint64(), 2**64 - 1, 2**64 - 1),
    "float16": (pyarrow.float16(), 0.5, 0.5),
    "nan": (pyarrow.float32(), float("nan"), None),
    "inf": (pyarrow.float64(), float("-inf"), "-inf"),
    "category": (pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), "x", "x"),
    "struct": (
        pyarrow.struct([("d", pyarrow.date32())]),
        {"d": MOMENT.date()},
        {"d": "2026-11-27"},
    ),
    "large": (pyarrow.large_list(pyarrow.large_string()), ["a"], ["a"]),
    "nothing": (pyarrow.null(), None, None),
}


@pytest.fixture
def typed(tmp_path):
    """A Parquet file with a row without a text, and each type."""
    columns = {"text": pyarrow.array([*"abcd", None])}
    for name, (kind, value, _) in TYPED.items():
        numbers = pyarrow.array([value] * ROWS, pyarrow.int64()) if name == "zoned" else None
        columns[name] = (
            pyarrow.array([value] * ROWS, kind) if numbers is None else numbers.cast(kind)
        )
    parquet.write_table(pyarrow.table(columns), tmp_path / "in.parquet", row_group_size=2)
    return tmp_path / "in.parquet"


@pytest.mark.filterwarnings("ignore:.*left out")
def test_parquet_keeps_the_types_of_its_input(task, typed, tmp_path):
    kb.predict(task, typed, output=tmp_path / "out.parquet")
    before, after = (
        parquet.read_table(typed).slice(0, 4),
        parquet.read_table(tmp_path / "out.parquet"),
    )
    assert after.column_names[: len(TYPED) + 1] == before.column_names
    for name in before.column_names:
        assert after.schema.field(name).type == before.schema.field(name).type
        one, other = (t.column(name).combine_chunks() for t in (before, after))
        assert one.equals(other) or name == "nan"


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_text_files_have_text_for_what_they_have_no_type_for(task, typed, tmp_path, ending):
    kb.predict(task, typed, output=tmp_path / f"out{ending}")
    first = read(tmp_path / f"out{ending}")[0]
    assert [*first][: len(TYPED) + 1] == ["text", *TYPED]
    for name, (_, _, text) in TYPED.items():
        if ending == ".jsonl" and (text is not None or name in ("nan", "nothing")):
            assert first[name] == text
        assert name in ("nan", "nothing") or first[name] is not None


def test_what_a_format_cannot_hold_is_a_sentence_before_all_is_computed(task, tmp_path):
    cases = [
        (".parquet", {"more": 10**30}, 'Parquet cannot hold this table: the column "more"'),
        (".parquet", {"more": "\ud800"}, 'the column "more" has half a surrogate pair'),
        (".csv", {"more": "\ud800"}, "CSV cannot hold this table: row 2 has half a surrogate pair"),
    ]
    for ending, more, message in cases:
        rows = [{"text": "a", "more": None}, {"text": "b", **more}]
        with pytest.raises(InputError, match=message):
            kb.predict(task, rows, output=tmp_path / f"out{ending}")
        assert not (tmp_path / f"out{ending}").exists()
        kb.predict(task, rows, output=tmp_path / "out.jsonl", force=True)
        assert read(tmp_path / "out.jsonl")[1]["more"] == more["more"]


def test_rows_with_later_columns_widen_a_csv(tmp_path):
    rows = [{"a": 1}, {"a": 'two\n"lines"', "b": [1]}, {"c": True, "a": None}]
    assert write_table(rows, tmp_path / "a.csv") == 3
    assert [list(row.values()) for row in read(tmp_path / "a.csv")] == [
        ["1", None, None],
        ['two\n"lines"', "[1]", None],
        [None, None, "true"],
    ]
    assert write_table([], tmp_path / "empty.csv") == 0
