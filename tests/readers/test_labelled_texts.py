"""Reading labelled texts: every form, every column rule, every sentence about a bad line."""

import io
import os
import threading

import numpy as np
import pandas
import pytest

from keras_bert.readers import sources
from keras_bert.readers.labels import score, several_labels
from keras_bert.readers.text_notes import text_warnings
from keras_bert.readers.texts import TextSource
from tests.messages import raises_input_error


@pytest.fixture
def write(tmp_path):
    def write(content, name=None):
        if name is None:  # the form follows from the extension
            start = content if isinstance(content, str) else content.decode(errors="replace")
            name = "file.jsonl" if start.startswith(("{", "[")) else "file.tsv"
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def pairs(source):
    return [(example.text, example.label) for example in source]


ROWS = [(f"a text of words, number {i}", "10"[i % 2]) for i in range(24)]
TSV = "".join(f"{text}\t{label}\n" for text, label in ROWS)


GIVEN = {"text_column": 1, "label_column": 2}


def test_a_tsv_without_header_names_its_columns_by_numbers(write):
    assert pairs(TextSource(write(TSV), **GIVEN)) == ROWS
    swapped = "".join(f"{label}\t{text}\n" for text, label in ROWS)
    path = write(swapped)
    assert pairs(TextSource(path, text_column=2, label_column=1)) == ROWS
    assert pairs(TextSource(path, text_column=2)) == ROWS  # the other is left over
    with raises_input_error(
        "no column has a usual name for the text and the label. Its columns are column 1 "
        '(2 different: "1", "0"), column 2 (24 different: "a text of words, number 0", '
        '"a text of words, number 1", …). Give `text_column="2"` `label_column="1"`. If the first '
        "line names the columns, set `header=True`."
    ):
        TextSource(path)


def test_a_header_is_found_by_known_names(write):
    source = TextSource(write("Label\tid\tSentence\nx\t1\tone two\ny\t2\tthree four\n"))
    assert source.shown() == 'First example: text: "one two", label: "x". Not read: "id".'
    assert pairs(source) == [("one two", "x"), ("three four", "y")]
    assert 'text in "Sentence", label in "Label"' in source.description
    unknown = write("wording\tkind\n" + TSV)
    with raises_input_error('column 1 (25 different: "wording", ...If the first line names the'):
        TextSource(unknown)
    with raises_input_error(
        '"wording" (24 different: ...Give `text_column="wording"` `label_column'
    ):
        TextSource(unknown, header=True)
    assert pairs(TextSource(unknown, header=True, **GIVEN)) == ROWS
    assert pairs(TextSource(unknown, header=False, **GIVEN)) == [("wording", "kind"), *ROWS]
    named = TextSource(unknown, label_column="kind")
    assert pairs(named) == ROWS
    assert "with a header line" in named.description and '"kind"' in named.description


def test_the_only_column_that_is_left_is_read_whatever_it_holds(write):
    few = "text\tverdict\na fine text\tx\na long text\tx\n"
    source = TextSource(write(few))
    assert pairs(source) == [("a fine text", "x"), ("a long text", "x")]
    assert source.is_left_over
    assert source.description.endswith('text in "text", label in "verdict" (the only column left)')
    ids = "text\tid\n" + "".join(f"the text {n}\tx{n}\n" for n in range(20))
    (note,) = text_warnings([*TextSource(write(ids))])
    assert note.endswith(
        "each of the 20 labels occurs only once. Expected labels that several examples have; see "
        "the first example."
    )
    with_language = "lang\tphrase\tlabel\n" + "".join(f"en\t{t}\t{y}\n" for t, y in ROWS)
    with raises_input_error('The possible columns are "lang" (1 different: "en"), "phrase" (24'):
        TextSource(write(with_language))


def test_a_left_over_column_that_is_called_as_one_of_its_labels_is_a_question(write):
    path = write("review\t1\n" + TSV)
    with raises_input_error('"1" is the name of a column and one of its labels...`header=False`'):
        list(TextSource(path))
    assert pairs(TextSource(path, header=False, **GIVEN))[0] == ("review", "1")


def test_columns_and_header_can_be_given(write):
    rows = "".join(f"{i % 2}\t{i % 3}\tthe text of row {i}\tits other text\n" for i in range(30))
    chosen = TextSource(write(rows), text_column="4", label_column=2)
    assert pairs(chosen)[1] == ("its other text", "1")
    with_header = "b\tb2\tfirst\tsecond\n" + rows
    named = TextSource(write(with_header), text_column="first", label_column="b2")
    assert pairs(named)[4] == ("the text of row 4", "1")
    assert len(pairs(TextSource(write("text\tlabel\n" + TSV), header=False, **GIVEN))) == 25


def test_longer_texts_in_another_column_are_named(write):
    rows = "".join(f"doc{n}.txt\ta whole sentence, number {n}\t{n % 2}\n" for n in range(6))
    path = write("content\tsource text\tlabel\n" + rows)
    for data in (path, pandas.read_csv(path, sep="\t")):
        source = TextSource(data)
        assert source.shown() == (
            'First example: text: "doc0.txt", label: "0". Not read: "source text".'
        )
        (note,) = source.notes()
        assert note.endswith(
            'the texts in "source text" are longer than those in "content", which are read. If '
            "they are the texts, name them with `fields` (--fields text=…)."
        )
        for given in ({"text_column": "content"}, {"schema": {"text": ["content"]}}):
            assert TextSource(data, **given).notes() == []
        assert TextSource(data, text_column="source text").notes() == []


def test_quotes_are_literal_and_only_newline_ends_a_line(write):
    text = '"a "quoted" text\u2028of one\x0bline\x85 \''
    assert pairs(TextSource(write(f"text\tlabel\n{text}\tx\r\n\nother text\ty\n"))) == [
        (text, "x"),
        ("other text", "y"),
    ]


def test_byte_order_mark_is_no_part_of_the_text(write):
    rows = b"one two\tx\nthree four\ty"
    for header in (b"", b"text\tlabel\n"):
        source = TextSource(
            write(b"\xef\xbb\xbf" + header + rows),
            label_column="2",
            text_column="1",
            header=bool(header),
        )
        assert pairs(source)[0][0] == "one two"


def test_json_lines(write):
    lines = (
        '{"id": 1, "text": "one", "label": "x"}\n\n{"text": "t\\two", "label": 3}\n'
        '{"text": "", "label": true}\n{"text": true, "label": true}\n'
    )
    source = TextSource(write(lines))
    assert [(row.line, row.text, row.label) for row in source] == [
        (1, "one", "x"),
        (3, "t\two", "3"),
        (5, "True", "True"),
    ]
    assert source.notes() == [f"{source.name}, line 4: 1 row without a text, left out."]
    assert "JSON Lines" in source.description
    other = TextSource(write('{"q": "one", "y": "x"}\n'), text_column="q", label_column="y")
    assert pairs(other) == [("one", "x")]


def test_plain_lines_keep_empty_and_tabbed_lines_so_that_answers_stay_in_step(write):
    source = TextSource(write("\n one\n\na\tb\n", "file.txt"), need_labels=False)
    assert pairs(source) == [("", None), (" one", None), ("", None), ("a\tb", None)]
    assert source.columns.label == ()


class Pipe(io.RawIOBase):
    """Gives a line at a time, and counts them."""

    def __init__(self, lines):
        self.lines = iter(lines)
        self.given = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        line = next(self.lines, b"")
        self.given += bool(line)
        buffer[: len(line)] = line
        return len(line)


def pipe_in(monkeypatch, lines):
    """Makes lines the standard input; returns the `Pipe`."""
    pipe = Pipe(lines)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(pipe)))
    return pipe


def test_standard_input_is_read_line_by_line_when_it_holds_plain_lines(monkeypatch):
    pipe = pipe_in(monkeypatch, [b"first\n", b"second\n", b"third\n"])
    rows = iter(TextSource("-", need_labels=False))
    assert next(rows).text == "first"
    assert pipe.given == 1
    assert [row.text for row in rows] == ["second", "third"]


def test_a_pipe_of_a_table_is_answered_row_by_row(monkeypatch):
    for lines, header in (
        ([b'{"text": "a"}\n', b'{"text": "b"}\n', b'{"text": "c"}\n'], 0),
        ([b"id,text,note\n", b"1,a,x\n", b"2,b,y\n", b"3,c,x\n"], 1),
    ):
        pipe = pipe_in(monkeypatch, lines)
        source = iter(TextSource("-", need_labels=False, labels=("x", "y")))
        assert next(source).text == "a" and pipe.given == 1 + header
        assert [e.text for e in source] == ["b", "c"]


def test_a_model_does_not_tell_the_columns_by_its_labels(write):
    rows = "".join(f"en\tsome text number {i}\t{'ham' if i % 3 else 'spam'}\n" for i in range(4))
    with raises_input_error("no column has a usual name for the text and the label"):
        TextSource(write(rows), labels=("ham", "spam"))
    unlabelled = write("1\tfirst text\n2\tsecond text\n")
    with raises_input_error('no column has a usual name for the text...Give `text_column="2"`'):
        TextSource(unlabelled, labels=("ham", "spam"), need_labels=False)
    named = TextSource(write("id\ttext\n1\tfirst text\n"), labels=("a", "b"), need_labels=False)
    assert pairs(named) == [("first text", None)]


def test_labels_that_a_model_does_not_know_are_read_all_the_same(write):
    """So that they can be told by their lines, not by a column that was not found."""
    rows = "".join(f"{'true' if i % 2 else 'false'}\tthe text of number {i}\n" for i in range(24))
    given = {"text_column": 2, "label_column": 1}
    assert pairs(TextSource(write(rows), labels=("0", "1"), **given))[1] == (
        "the text of number 1",
        "True",
    )


@pytest.mark.parametrize("header", ["text\tlabel\n", "wording\tkind\n"])
def test_a_header_that_comes_again_is_told_by_its_line(write, header):
    """In files that were joined; its own words would be one more label."""
    for again in (header, header.title(), header.upper().replace("\t", " \t")):
        path = write(header + TSV + again + TSV)
        with raises_input_error("line 26: the header line again"):
            list(TextSource(path, header=True, **GIVEN))
        with raises_input_error("row 24: the header line again"):  # by the index, from 0
            list(TextSource(pandas.read_csv(path, sep="\t"), **GIVEN))
    as_rows = TextSource(write("text\tlabel\n" + TSV + "text\tlabel\n"), header=False, **GIVEN)
    assert pairs(as_rows)[-1] == ("text", "label")


def test_what_is_odd_is_counted_and_the_first_of_it_named(write):
    content = 'text\tlabel\none two\tham\n  \tham\nthree\t"spam"\n\tham\n'
    source = TextSource(write(content))
    assert text_warnings(list(source)) == [
        f"{source.name}, line 4: 1 label in quotes. Quotes are ordinary characters here: "
        '"spam" and spam are different labels.',
        f"{source.name}, lines 3 and 5: 2 rows without a text, left out.",
    ]
    given = TextSource([("", "x"), ("one", '"'), ("two", "it's")])
    assert text_warnings(list(given)) == [
        "the given texts, text 1: 1 row without a text, left out."
    ]
    given = TextSource(["", "one"], need_labels=False)  # each gets a prediction
    assert text_warnings(list(given)) == ["the given texts, text 1: 1 text without a word."]


def test_labels_alike_and_texts_with_two_labels_are_noted(write):
    table = "one two\tSpam\nthree\tspam\nfour\t0\nfive\t0.0\nsix\tnot  ham\nseven\tnot ham\n"
    source = TextSource(write(table), text_column=1, label_column=2, header=False)
    alike = "look the same but for case or spaces, and are different labels here."
    assert text_warnings(list(source))[1:] == [
        f'{source.name}: the labels "Spam" (1), "spam" (1) {alike}',
        f'{source.name}: the labels "0" (1), "0.0" (1) are equal as numbers, and are different '
        "labels here.",
        f'{source.name}: the labels "not  ham" (1), "not ham" (1) {alike}',
    ]
    given = [("a", "d\u00e9j"), ("b", "de\u0301j"), ("c", "1.1"), ("d", "1.10")] * 2
    first, second = text_warnings(list(TextSource(given)))
    assert first.endswith(alike) and "equal as numbers" in second
    given = [("a", "x"), ("b", "y"), ("a", "x"), ("a", "y"), ("a", "z")]
    assert text_warnings(list(TextSource(given))) == [
        "the given texts, text 4 and later: 2 examples have the text of an earlier one (text 1), "
        "but another label."
    ]
    given = [("a", ["x", "y"]), ("a", ["y", "x"]), ("b", ["x"])]
    assert text_warnings(list(TextSource(given, form=several_labels))) == []
    given = [("a", "b", 1), ("a", "b", 2.5), ("a", "c", 3)]
    (note,) = text_warnings(list(TextSource(given, texts=("text_a", "text_b"), form=score)))
    assert note.endswith(
        "text 2: 1 example has the text of an earlier one (text 1), but another score."
    )


def test_given_labels_are_words_or_whole_numbers():
    given = TextSource([("a", 1), ("b", np.int64(0)), ("c", True), ("d", " x "), ("e", 0.5)])
    assert [example.label for example in given] == ["1", "0", "True", "x", "0.5"]
    with raises_input_error("Text 1 ...: 1j is neither a text nor"):
        TextSource([("a", 1j)])


def test_a_pipe_is_read_once_like_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=[TSV])
    writer.start()
    assert pairs(TextSource(pipe, **GIVEN)) == ROWS
    writer.join()


def test_a_small_file_is_read_like_the_one_it_belongs_to(write):
    rows = write("".join(f"{label}\t{text}\n" for text, label in ROWS))
    train = TextSource(rows, text_column=2, label_column=1)
    dev = write("1\tb\n", "dev.tsv")  # by itself anybody's guess
    assert pairs(TextSource(dev, schema=train.schema, labels=["0", "1"])) == [("b", "1")]


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "file.tsv is empty"),
        (b"\n\n", "file.tsv is empty"),
        (b"one\tx\ntwo\n", "file.tsv, line 2: 1 column, but the first line has 2"),
        (b"one\tx\n\ntwo\ty\tz\n", "file.tsv, line 3: 3 columns, but the first line has 2"),
        (b"one\tx\ntw\xffo\ty\n", "file.tsv, line 2: byte 3 is not UTF-8"),
        (b"one\tx\ntw\0o\ty\n", "file.tsv, line 2: contains a NUL byte"),
        (
            "one\tx\n".encode("utf-16"),
            "file.tsv, line 1: the file is UTF-16. Convert it with `iconv -f UTF-16 -t UTF-8 "
            "...file.tsv > ...file.utf8.tsv`.",
        ),
        (
            b"text alone\nand another\n",
            "file.tsv as labelled text: line 1 has one column. Expected CSV, TSV or JSON "
            "Lines with a text and a label.",
        ),
        (b"text\tlabel\n", "has a header line and nothing else"),
        (b"text\tlabel\na\t\n", 'file.tsv has no label in "label" of any record (line 2), so'),
        (b"label\tlabel\nx\ty\n", "line 1: two columns of the header have the same name"),
        (b'{"text": "a", "label": "x"}\n{"text": "b"\n', "line 2: not JSON"),
        (b'{"text": "a", "label": "x"}\n[1]\n', "line 2: not a JSON object"),
        (b'{"text": "a", "label": "x"}\n{"text": ["b"], "label": "x"}\n', "line 2: no text under"),
        (b'{"text": "a\\u0000", "label": "x"}\n', 'line 1: "text" contains a NUL or half'),
        (b'{"text": "\\ud83d", "label": "x"}\n', 'line 1: "text" contains a NUL or half'),
        (b'{"text": "a", "label": "\\udc00"}\n', "line 1: A label contains a NUL or half"),
        (
            b'{"text": "a", "label": [1]}\n',
            "line 1: [1] is a list, and not a label (`multi_label=True`",
        ),
        (
            b'{"text": "a", "n": 1, "m": 2}\n',
            'no column has a usual name for the label. The possible keys are "n" (1 different: '
            '"1"), '
            '"m" (1 different: "2"). Give `label_column="…"`.',
        ),
        (
            b'{"n": 1, "txt": 2, "label": "x"}\n',
            'no column has a usual name for the text. The possible keys are "n"...`text_'
            'column="…"`',
        ),
        (b'{"text": "a"\n', "line 1: not JSON"),
        (
            b'{"text": "a", "label": "x"}\n' + b"[" * 200_000 + b"\n",
            "line 2: not JSON (it is nested",
        ),
        (b'{"text": "a", "label": ' + b"1" * 5000 + b"}\n", "line 1: not JSON (it holds a number"),
    ],
)
def test_a_bad_file_is_told_in_one_sentence(write, content, message):
    with raises_input_error(message):
        list(TextSource(write(content)))


def test_a_file_without_line_ends_is_told_before_the_memory_is_full(write, monkeypatch):
    monkeypatch.setattr(sources, "_LONGEST_LINE", 1000)
    given = {"header": False, "text_column": 1, "label_column": 2}
    assert len(pairs(TextSource(write("x" * 990 + "\ty\n" + "a\tz\n"), **given))) == 2
    with raises_input_error("line 2: more than 0 MiB without a line end"):
        list(TextSource(write("a\tx\n" + "x" * 1000 + "\ty\n"), **given))


IDS = "".join(f"the text {i}\t{i}\n" for i in range(30))


@pytest.mark.parametrize(
    "content, options, message",
    [
        (IDS, {}, 'Give `text_column="1"` `label_column="…"`'),
        (TSV, {"label_column": 3}, 'no column "3". Its columns are 1 to 2'),
        (
            "text\tlabel\n" + TSV,
            {"label_column": "kind"},
            'no column "kind". Its columns are "text", "label"',
        ),
        (TSV, {"label_column": 2, "text_column": 2}, "cannot be the same column"),
    ],
)
def test_columns_that_cannot_be_detected_are_asked_for(write, content, options, message):
    with raises_input_error(message):
        TextSource(write(content), **options)


@pytest.mark.parametrize("name, message", [("none.tsv", "does not exist"), ("", "is a folder")])
def test_what_is_no_file_is_named(tmp_path, name, message):
    with raises_input_error(message):
        TextSource(tmp_path / name)


def test_a_file_of_pairs_is_not_silently_read_as_single_texts(shared_data):
    with raises_input_error('no column has a usual name for the text...`text_column="#2 String"`'):
        TextSource(shared_data / "mrpc" / "train.tsv")
    chosen = TextSource(shared_data / "mrpc" / "train.tsv", text_column="#2 String")
    assert sum(1 for _ in chosen) == 3576


def test_sst2(shared_data):
    counts = {}
    for split in ("train", "dev", "test"):
        path = shared_data / "sst2" / f"{split}.tsv"
        with raises_input_error('Give `text_column="1"` `label_column="2"`'):
            TextSource(path)
        source = TextSource(path, **GIVEN)
        rows = pairs(source)
        assert {label for _, label in rows} == {"0", "1"}
        counts[split] = len(rows)
    assert counts == {"train": 6920, "dev": 872, "test": 1821}
