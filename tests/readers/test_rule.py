"""The reader's rule, as files and as tables: forms, headers, columns, and what is missing."""

import io

import numpy as np
import pytest

from keras_bert.readers.labels import one_label, score, several_labels
from keras_bert.readers.sources import files_of
from keras_bert.readers.text_notes import text_warnings
from keras_bert.readers.texts import PAIR, TextSource
from tests.messages import raises_input_error

pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")

ROWS = [
    (f"the parcel {n} came {'late' if n % 3 else 'on time'}", "no yes".split()[n % 2])
    for n in range(12)
]
BODY = "".join(f"{text},{label}\n" for text, label in ROWS)
TABS = BODY.replace(",", "\t")


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def examples(data, **options):
    return [(e.text, e.label) for e in TextSource(data, **options)]


def both(content, path, **options):
    """A CSV as a file, and as pandas reads it."""
    path.write_text(content)
    return path, pandas.read_csv(io.StringIO(content), **options)


# Forms.


def test_a_csv_has_a_header_line_unless_it_is_said_to_have_none(write):
    given = {"text_column": 1, "label_column": 2}
    path = write("a.csv", "phrase,verdict\n" + BODY)
    assert examples(path, **given) == ROWS
    bare = write("b.csv", BODY)
    for data in (bare, pandas.read_csv(bare, header=None)):
        options = {"header": False} if data is bare else {}
        assert examples(data, **options, **given) == ROWS
        assert examples(data, **options, text_column=1) == ROWS
    with raises_input_error(
        'b.csv: no column has a usual name for the text and the label. Its columns are "the parcel '
        '0 came on time" (11 different: ...If the first line is an example, set `header=False`.'
    ):
        examples(bare)
    for line in ("the parcel 0 came,0.5", "2024-01-01,7", '"this is a text, and more"'):
        path = write("c.csv", f"{line}\n" * 2)
        for options in ({}, {"need_labels": False}):
            with raises_input_error(
                "c.csv, line 1: the first line could be an example or name the columns: ...Set "
                "`header=False` if it is an example, or `header=True`."
            ):
                examples(path, **options)
        assert len(examples(path, need_labels=False, header=False, text_column=1)) == 2
    # Few rows, unknown names: as many answers as rows below the header.
    for content, texts in (
        ("post,when\nso it is 1,2021-03-04\nso it is 2,2021-03-05\n", ["so it is 1", "so it is 2"]),
        ('post\n"well, now"\nyes\n', ["well, now", "yes"]),
    ):
        path = write("few.csv", content)
        for data in (path, pandas.read_csv(path)):
            assert [t for t, _ in examples(data, need_labels=False)] == texts


def test_a_header_of_one_unknown_name_over_many_labels(write):
    rows = [(f"we would like number {n}", f"wish{n % 70}") for n in range(75)]
    content = "comment,wish\n" + "".join(f"{text},{label}\n" for text, label in rows)
    path = write("many.csv", content)
    assert examples(path) == examples(pandas.read_csv(path)) == rows


@pytest.mark.parametrize("names", ["text\tlabel", "Sentence\tverdict", "phrase\tclass"])
def test_a_tsv_has_a_header_where_a_name_in_it_is_usual(names, write):
    source = TextSource(write("a.tsv", f"{names}\n{TABS}"))
    assert [(e.text, e.label) for e in source] == ROWS
    assert "TSV with a header line" in source.description


def test_a_tsv_has_a_header_where_a_flag_or_the_model_names_one(write):
    path = write("a.tsv", f"phrase\tverdict\n{TABS}")
    with raises_input_error(
        'column 2 (3 different: "verdict", "no", …). Give...If the first line names the columns'
    ):
        examples(path)
    for given in (
        {"text_column": "phrase"},
        {"label_column": "verdict"},
        {"fields": "text=phrase,label=verdict"},
        {"schema": {"text": ["phrase"], "label": ["verdict"]}},
    ):
        assert examples(path, **given) == ROWS


def test_a_tsv_without_a_header_says_so_and_its_dev_file_may_have_one(write):
    train = TextSource(write("train.tsv", TABS), text_column=1)
    assert [(e.text, e.label) for e in train] == ROWS
    assert "TSV without a header line, text in column 1" in train.description
    swapped = "".join(f"{label}\t{text}\n" for text, label in ROWS)
    dev = TextSource(write("dev.tsv", f"label\ttext\n{swapped}"), schema=train.schema)
    assert [(e.text, e.label) for e in dev] == ROWS and "with a header line" in dev.description


@pytest.mark.parametrize("content", ["message\nand more\n", "text, label\nmore\n", '"a\n\nb\n'])
def test_a_txt_is_one_text_per_line_whatever_it_has(content, write):
    path = write("a.txt", content)
    assert [t for t, _ in examples(path, need_labels=False)] == content.splitlines()
    with raises_input_error(
        "a.txt as labelled text: a .txt file has one text per line and no labels...tabs .tsv"
    ):
        examples(path)


def test_an_extension_counts_and_not_the_content(write):
    with raises_input_error("a.csv, line 2: 3 columns, but the first line has 1"):
        examples(write("a.csv", 'text\n{"a": 1, "b": 2, "c": 3}\n'), need_labels=False)
    with raises_input_error("a.jsonl, line 1: not JSON"):
        examples(write("a.jsonl", "text,label\n" + BODY))
    with raises_input_error("a.conll as labelled text: its name says that it is CoNLL"):
        examples(write("a.conll", "a O\n"))
    with raises_input_error("Could not read ...a.parquet as a Parquet file"):
        examples(write("a.parquet", "text,label\n" + BODY))
    assert examples(write("a.csv.gz", "text,label\n" + BODY)) == ROWS
    # Without an extension, or with another one, the content does.
    json = "".join(f'{{"text": "{text}", "label": "{label}"}}\n' for text, label in ROWS)
    for name in ("a", "a.train"):
        for content in (json, "text,label\n" + BODY, "text\tlabel\n" + TABS):
            assert examples(write(name, content)) == ROWS
        assert examples(write(name, TABS), text_column=1) == ROWS


@pytest.mark.parametrize("end", ["\r", "\r\n", "\r\r\n", "\n"])
def test_all_line_ends_are_read(end, write):
    path = write("a.csv", ("text,label\n" + BODY).replace("\n", end))
    assert examples(path) == examples(pandas.read_csv(path)) == ROWS
    lines = write("a.txt", f"one{end}two, three{end}")
    texts = [t for t, _ in examples(lines, need_labels=False) if t]
    assert texts == ["one", "two, three"]
    inside = write("b.csv", f'text,label{end}"one{end}two",x{end}three,y{end}')
    (first, _), _ = examples(inside)
    assert first.split() == ["one", "two"]


@pytest.mark.parametrize("delimiter", ";|\t,")
def test_the_line_of_excel_names_the_separator(delimiter, write):
    rows = "".join(f"{text}{delimiter}{label}\r\n" for text, label in ROWS)
    path = write("a.csv", f"sep={delimiter}\r\ntext{delimiter}label\r\n{rows}")
    source = [*TextSource(path)]
    assert source[0].line == 2 + 1
    assert [(e.text, e.label) for e in source] == ROWS
    with raises_input_error("b.csv as labelled text: line 1 has 0 columns"):
        examples(write("b.csv", f"sep={delimiter}\r\n"))


def test_unnamed_columns_are_ignored_and_two_of_one_name_are_not(write):
    rows = "".join(f"{label},{text},,\n" for text, label in ROWS)
    for content in (f"first,text,,\n{rows}", f"label,text,,\n{rows}"):
        path, frame = both(content, write("a.csv", ""))
        assert examples(path) == examples(frame) == ROWS
    frame = pandas.DataFrame([(text, label, label) for text, label in ROWS])
    frame.columns = ["text", "label", "label"]
    with raises_input_error('the given table: two columns have the same name, "label"'):
        examples(frame)
    frame.columns = ["text", "label", "text"]
    with raises_input_error('"text"'):
        examples(frame)
    frame.columns = ["text", "label", "other"]
    assert examples(frame) == ROWS
    index = pandas.DataFrame(ROWS, columns=["text", "verdict"])
    index.to_csv(path)  # with the index, which has no name
    assert examples(path) == examples(pandas.read_csv(path)) == ROWS


QUOTED = [('she said "no"', "a"), ("twice\tso", "b"), ("plain text", "a"), ("two\nlines", "b")]


def test_a_tsv_of_pandas_is_told_from_one_with_literal_quotes(write):
    path = write("a.tsv", "")
    frame = pandas.DataFrame(QUOTED, columns=["text", "label"])
    frame.to_csv(path, sep="\t", index=False)
    source = TextSource(path)
    assert [(e.text, e.label) for e in source] == examples(frame) == QUOTED
    assert "TSV (cells in quotes, as pandas writes them) with a header line" in source.description
    frame.to_csv(path, sep="\t", index=False, quoting=1)
    assert examples(path) == QUOTED
    for cells in ('he said "so" again', '"so" he said', 'he said "so', '"so"'):
        source = TextSource(write("b.tsv", f"text\tlabel\n{cells}\ta\nplain\tb\n"))
        assert [e.text for e in source] == [cells, "plain"]
        assert "TSV (literal quotes) with a header line" in source.description


# Columns.


def test_two_columns_that_could_be_the_label_are_a_question(write):
    rows = "".join(
        f"the delivery number {n} failed,{'shop desk'.split()[n % 2]},{'abc'[n % 3]},{n}\n"
        for n in range(30)
    )
    path, frame = both(f"comment,place,reason,ticket\n{rows}", write("a.csv", ""))
    for data in (path, frame, frame.to_dict("records")):
        for form in (one_label, several_labels):
            with raises_input_error(
                "no column has a usual name for the label. The possible columns are "
                '"place" (2 different: "shop", "desk"), "reason" (3 different: "a", "b", …), '
                '"ticket" (30 different: "0", "1", …). Give `label_column="reason"`.'
            ):
                TextSource(data, form=form)
        assert examples(data, label_column="reason")[1] == ("the delivery number 1 failed", "b")


def test_two_columns_that_could_be_the_text_are_a_question(write):
    rows = "".join(f"subject of mail {n},body of the mail {n},{'xy'[n % 2]}\n" for n in range(20))
    path, frame = both(f"head,rest,label\n{rows}", write("a.csv", ""))
    for data in (path, frame):
        with raises_input_error(
            'no column has a usual name for the text. The possible columns are "head" (20 '
            'different: ...), "rest" (20 different: ...). Give `text_column="rest"`.'
        ):
            examples(data)
        assert examples(data, text_column="rest")[0] == ("body of the mail 0", "x")
        joined = TextSource(data, fields="text=head+rest")
        texts = [e.text for e in joined]
        assert texts[0] == "subject of mail 0 body of the mail 0"
        assert joined.schema == {"text": ["head", "rest"], "label": ["label"]}
        assert 'text in "head" + "rest"' in joined.description
        again = TextSource(data, schema=joined.schema)
        assert [e.text for e in again] == texts
    with raises_input_error('has no column "tail". Its columns are "head", "rest", "label"'):
        examples(path, fields="text=head+tail")
    gap = pandas.DataFrame(
        {"head": ["a", None, None], "rest": ["b", "c", None], "label": list("xyx")}
    )
    source = TextSource(gap, fields="text=head+rest")
    assert [e.text for e in source] == ["a b", "c"]
    assert source.notes() == ["the given table, row 2: 1 row without a text, left out."]


def test_two_usual_names_are_a_question_and_the_first_of_them_wins(write):
    rows = "".join(f"{text},{label},{label}\n" for text, label in ROWS)
    path, frame = both(f"text,category,sentiment\n{rows}", write("a.csv", ""))
    for data in (path, frame):
        with raises_input_error(
            'several columns have a usual name for the label. The possible columns are "category" '
            '(2 different: "no", "yes"), "sentiment" (2 different: "no", "yes"). Give `label_column'
        ):
            examples(data)
        assert TextSource(data, need_labels=False).columns.label == ()
    path, frame = both(f"text,category,label\n{rows}", path)
    assert TextSource(path).columns.label == TextSource(frame).columns.label == ("label",)


def test_ids_dates_and_columns_of_one_value_are_not_proposed(write):
    rows = "".join(
        f"{n},2024-0{1 + n % 2}-11,en,u{n},{n % 3}.5 {n},{text},{label}\n"
        for n, (text, label) in enumerate(ROWS)
    )
    path, frame = both(f"id,day,language,user,size,phrase,verdict\n{rows}", write("a.csv", ""))
    for data in (path, frame, frame.assign(day=pandas.to_datetime(frame["day"]))):
        with raises_input_error('Give `text_column="phrase"` `label_column="verdict"`'):
            examples(data)
        assert examples(data, text_column="phrase", label_column="verdict") == ROWS


def test_texts_of_a_script_without_spaces(write):
    rows = [(f"这家餐厅的菜很好吃{n}", "好差"[n % 2]) for n in range(10)]
    path, frame = both(
        "句子,类别,id\n" + "".join(f"{t},{y},k{n}\n" for n, (t, y) in enumerate(rows)),
        write("a.csv", ""),
    )
    for data in (path, frame):
        with raises_input_error('Give `text_column="句子"` `label_column="类别"`'):
            examples(data)
        assert examples(data, text_column="句子", label_column="类别") == rows


def test_the_columns_of_training_come_before_the_usual_names(write):
    rows = "".join(f"other,{label},{text}\n" for text, label in ROWS)
    path, frame = both(f"text,verdict,phrase\n{rows}", write("a.csv", ""))
    schema = {"text": ["phrase"], "label": ["verdict"]}
    for data in (path, frame):
        assert examples(data, schema=schema) == ROWS
        assert examples(data, schema=schema, text_column="text")[0][0] == "other"
    # If they are not there, as without.
    assert examples(write("b.csv", "text,label\n" + BODY), schema=schema) == ROWS


def test_a_column_that_is_left_over_is_said(write):
    path, frame = both("text,verdict\n" + BODY, write("a.csv", ""))
    for data in (path, frame):
        source = TextSource(data)
        assert source.is_left_over
        assert source.description.endswith(
            'text in "text", label in "verdict" (the only column left)'
        )
        assert not TextSource(data, fields="text=text,label=verdict").is_left_over
    path, frame = both("phrase,label\n" + BODY, path)
    for data in (path, frame):
        source = TextSource(data)
        assert source.description.endswith(
            'text in "phrase" (the only column left), label in "label"'
        )


def test_declared_labels_count_as_names(write):
    frame = pandas.DataFrame(ROWS, columns=["text", "verdict"]).assign(lang="en")
    with raises_input_error("no column has a usual name for the label"):
        examples(frame)
    assert examples(frame.astype({"verdict": "category"})) == ROWS
    with raises_input_error("several columns have a usual name for the label"):
        examples(frame.astype("category"))
    assert examples(frame.rename(columns={"verdict": "label"}).astype("category")) == ROWS


def test_the_only_score(write):
    rows = "".join(f"{n},one text {n},another text {n},{n % 4}.5\n" for n in range(12))
    path, frame = both(f"pair,left,right,grade\n{rows}", write("a.csv", ""))
    for data in (path, frame):
        with raises_input_error('Give `fields="text_a=left,text_b=right,label=grade"`'):
            TextSource(data, texts=PAIR, form=score)
    grades = "".join(f"one text {n},another text {n},{n % 4}.5\n" for n in range(12))
    path, frame = both(f"sentence1,sentence2,grade\n{grades}", path)
    for data in (path, frame):
        source = TextSource(data, texts=PAIR, form=score)
        assert [e.label for e in source][:3] == [0.5, 1.5, 2.5] and source.is_left_over
    path, frame = both("text1,text2,a,b\n" + "one x,two y,1.5,2.5\none z,two w,0.5,1.5\n", path)
    for data in (path, frame):
        with raises_input_error(
            'no column has a usual name for the score. The possible columns are "a" (2 different: '
            '"1.5", "0.5"), "b" (2 different: "2.5", "1.5"). Give `fields="label=b"`.'
        ):
            TextSource(data, texts=PAIR, form=score)


# What is missing.


GAPS = (
    "id,text,label\n1,good one,yes\n2,,no\n3,NA,no\n4,  ,yes\n5,bad one,\n6,so so,null\n7,fine,no\n"
)


def test_missing_texts_and_labels_are_left_out_and_counted(write):
    path, frame = both(GAPS, write("a.csv", ""))
    expected = [("good one", "yes"), ("fine", "no")]
    file_source, table_source = TextSource(path), TextSource(frame)
    assert (
        [(e.text, e.label) for e in file_source]
        == [(e.text, e.label) for e in table_source]
        == expected
    )
    assert file_source.notes() == [
        f"{path}, lines 3, 4 and 5: 3 rows without a text, left out.",
        f"{path}, lines 6 and 7: 2 rows without a label, left out.",
        f'{path}: 1 row with "NA" in "text", which is read as no text, as in pandas. If it is a '
        "text, set `keep_na=True` (--keep-na).",
        f'{path}: 1 row with "null" in "label", which is read as no label, as in pandas. If it is '
        "the name of a class, set `keep_na=True` (--keep-na).",
    ]
    assert table_source.notes() == [
        "the given table, rows 1, 2 and 3: 3 rows without a text, left out.",
        "the given table, rows 4 and 5: 2 rows without a label, left out.",
    ]
    assert text_warnings([*table_source]) == table_source.notes()
    unlabelled = TextSource(path, need_labels=False)
    assert [e.text for e in unlabelled] == ["good one", "bad one", "so so", "fine"]
    for data, line in ((path, "line 3"), (frame, "row 1")):
        with raises_input_error(
            f'{line}: a row without a text. Set `missing="skip"` to leave such rows out'
        ):
            examples(data, missing="error")
    assert (
        examples(path, keep_na=True)
        == examples(pandas.read_csv(path, keep_default_na=False))
        == [
            ("good one", "yes"),
            ("NA", "no"),
            ("so so", "null"),
            ("fine", "no"),
        ]
    )


@pytest.mark.parametrize("name", ["None", "none", "NA", "n/a", "NULL", "nan"])
def test_a_class_called_none_is_kept_on_request(name, write):
    rows = [(text, "bug" if label == "no" else name) for text, label in ROWS]
    path, frame = both("text,label\n" + "".join(f"{t},{y}\n" for t, y in rows), write("a.csv", ""))
    expected = [(t, y) for t, y in rows if y == "bug"] if name != "none" else rows
    source = TextSource(path)
    assert [(e.text, e.label) for e in source] == examples(frame) == expected
    said = f'6 rows with "{name}" in "label", which is read as no label'
    assert (name == "none") or said in source.notes()[-1]
    assert examples(path, keep_na=True) == rows
    # In JSON and in Python a string is one.
    assert examples([{"text": t, "label": y} for t, y in rows]) == rows


def test_a_pipe_of_many_missing_labels_lists_the_first_ones(write):
    rows = "".join(f"text {n},{'x' if n < 2 else ''}\n" for n in range(100))
    source = TextSource(write("a.csv", "text,label\n" + rows))
    assert len([*source]) == 2
    assert source.notes() == [
        f"{source.name}, lines 4, 5, 6, 7, 8 and 93 more: 98 rows without a label, left out."
    ]


def test_nothing_left_is_an_error(write):
    with raises_input_error(
        'has no label in "label" of any record (lines 2 and 3), so there is nothing'
    ):
        examples(write("a.csv", "text,label\na,\nb,\n"))
    with raises_input_error('has no text in "text" of any record'):
        examples(write("a.csv", "text,label\n,x\n,y\n"))


# Tables in memory.


def test_tables_of_every_kind():
    frame = pandas.DataFrame(ROWS, columns=["text", "label"], index=range(40, 52))
    assert examples(frame) == ROWS
    numbered = pandas.DataFrame(ROWS)
    assert examples(numbered, text_column=1, label_column=2) == ROWS
    source = TextSource(numbered, text_column=1)
    assert source.schema == {"text": ["1"], "label": ["2"]}
    assert "text in column 1, label in column 2" in source.description
    with raises_input_error('the given table has no column "0". Its columns are 1 to 2.'):
        examples(numbered, text_column=0)
    wide = pandas.DataFrame([(n, *row) for n, row in enumerate(ROWS)])
    given = {"text_column": 2, "label_column": 3}
    assert examples(wide, **given) == examples(wide[[1, 2]], **given) == ROWS
    assert examples(frame.to_dict("list")) == examples(frame.to_dict("records")) == ROWS
    assert examples(frame.astype({"label": "category", "text": "string"})) == ROWS
    assert [t for t, _ in examples(frame["text"], need_labels=False)] == [t for t, _ in ROWS]
    gap = pandas.Series(["a", None, np.nan, pandas.NA, "b"])
    source = TextSource(gap, need_labels=False)
    assert [e.text for e in source] == ["a", "b"] and [e.line for e in source] == [1, 5]
    assert source.notes() == ["the given texts, texts 2, 3 and 4: 3 rows without a text, left out."]
    assert examples(np.array(["a b", "c"]), need_labels=False) == [("a b", None), ("c", None)]
    for empty in (frame[:0], []):
        assert examples(empty, need_labels=False) == examples(empty) == []
    with raises_input_error(
        "The given table has no columns. Expected one with a text in each row."
    ):
        examples(pandas.DataFrame())
    with raises_input_error(
        "A dictionary must have a list for each column, all of the same length"
    ):
        examples({"text": ["a", "b"], "label": ["x"]})


def test_numbers_in_the_text_column_are_their_text():
    frame = pandas.DataFrame({"text": [12, 7], "label": ["x", "y"]})
    assert examples(frame) == [("12", "x"), ("7", "y")]


def test_several_files_and_globs(tmp_path, write):
    for name in ("b.csv", "a.csv", "c.tsv"):
        write(name, "")
    assert files_of(str(tmp_path / "*.csv")) == [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    assert files_of([tmp_path / "c.tsv", str(tmp_path / "a*")])[1:] == [str(tmp_path / "a.csv")]
    frame = pandas.DataFrame(ROWS)
    assert files_of(frame)[0] is frame and files_of(ROWS) == [ROWS]
    with raises_input_error("No file matches ...*.json. Expected a path, or a glob"):
        files_of(str(tmp_path / "*.json"))
