"""Pairs of texts, scores and several labels a row, in every form a file may have."""

import pytest

from keras_bert.readers.labels import score, several_labels
from keras_bert.readers.text_notes import text_warnings
from keras_bert.readers.texts import PAIR, TextSource
from tests.messages import raises_input_error


@pytest.fixture
def write(tmp_path):
    def write(content):
        name = "file.jsonl" if content.startswith("{") else "file.tsv"
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return write


def pairs(source):
    return [(*example.texts, example.label) for example in source]


ROW = [("a man sits", "a person sits down", "yes"), ("two dogs run", "a cat", "no")]


@pytest.mark.parametrize(
    "names",
    [
        ("sentence1", "sentence2", "label"),
        ("text_a", "text_b", "label"),
        ("premise", "hypothesis", "gold_label"),
        ("Question", "Sentence", "Label"),
        ("question1", "question2", "is_duplicate"),
        ("#1 String", "#2 String", "Quality"),
    ],
)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_columns_are_told_by_their_names(write, names, order):
    lines = ["id\t" + "\t".join(names[place] for place in order)]
    lines += [f"{n}\t" + "\t".join(row[place] for place in order) for n, row in enumerate(ROW)]
    assert pairs(TextSource(write("\n".join(lines)), texts=PAIR)) == ROW


def test_columns_without_names_are_a_question(write):
    rows = [(f"the first text {i}", f"the second one, {i}", "ab"[i % 2]) for i in range(24)]
    for order in ((0, 1, 2), (2, 0, 1)):
        path = write("".join("\t".join(row[place] for place in order) + "\n" for row in rows))
        numbers = [order.index(place) + 1 for place in (0, 1, 2)]
        fields = "text_a={},text_b={},label={}".format(*numbers)
        with raises_input_error(
            f'no column has a usual name for the two texts and the label...Give `fields="{fields}"`'
        ):
            TextSource(path, texts=PAIR)
        assert pairs(TextSource(path, texts=PAIR, fields=fields)) == rows
    unlabelled = write("".join(f"{a}\t{b}\n" for a, b, _ in rows))
    with raises_input_error('for the two texts. Its...Give `fields="text_a=1,text_b=2"`'):
        TextSource(unlabelled, texts=PAIR, need_labels=False)
    json_lines = '{"premise": "a", "hypothesis": "b", "label": 1}\n'
    assert pairs(TextSource(write(json_lines), texts=PAIR)) == [("a", "b", "1")]
    two_pairs = '{"premise": "a", "hypothesis": "b", "text1": "c", "text2": "d", "label": 1}\n'
    with raises_input_error("several columns have a usual name for the two texts"):
        TextSource(write(two_pairs), texts=PAIR)
    one_text = '{"text": "a b", "label": "x", "seen": "yes it is"}\n'
    with raises_input_error("no column has a usual name for the two texts"):
        TextSource(write(one_text), texts=PAIR)


XYZ = "x\ty\tz\n" + "".join(f"{i % 2}\tone {i}\ttwo {i}\n" for i in range(30))


def test_fields_say_which_column_holds_what(write):
    source = TextSource(write(XYZ), texts=PAIR, fields="text_a=z, text_b=y, label=x")
    assert pairs(source)[3] == ("two 3", "one 3", "1")
    by_number = TextSource(write(XYZ), texts=PAIR, header=True, fields="text_a=3,text_b=2")
    assert pairs(by_number)[3] == ("two 3", "one 3", "1")
    assert pairs(TextSource(write(XYZ), fields="text=y,label=1", header=True))[0] == (
        "one 0",
        "0",
    )


def test_rows_without_a_score_are_left_out_and_counted(write):
    table = "score\ttext_a\ttext_b\n5.00\tone text\tits twin\n\tno score\there\n0\tanother\tone\n"
    table += "\tand\tagain\n"
    source = TextSource(write(table), texts=PAIR, form=score)
    examples = list(source)
    assert pairs(examples) == [("one text", "its twin", 5.0), ("another", "one", 0.0)]
    (note,) = text_warnings(examples)
    assert note == (
        f"{source.name}, lines 3 and 5: 2 rows without a score, left out (no score is not a score "
        "of zero)."
    )
    everything = TextSource(write(table), texts=PAIR, form=score, need_labels=False)
    assert [example.label for example in everything] == [5.0, None, 0.0, None]


@pytest.mark.parametrize("first", ["3.00", ""])
def test_a_first_score_that_never_comes_again_is_no_header(first, write):
    rows = [f"{number % 3}\ttext {number}\ttwin {number}" for number in range(30)]
    table = "\n".join([f"{first}\tthe first\tits twin", *rows]) + "\n"
    fields = "label=1,text_a=2,text_b=3"
    source = TextSource(write(table), texts=PAIR, form=score, need_labels=False, fields=fields)
    assert next(iter(source)).label == (float(first) if first else None)
    assert source.columns.label == ("1",)


@pytest.mark.parametrize("value", ["high", "inf", "1e999", "1_000", "１", "1,5"])
def test_what_is_no_score_is_told_by_its_line(write, value):
    table = "score\ttext_a\ttext_b\n1.5\ta\tb\n" + f"{value}\tc\td\n"
    expected = "has a comma. Write a number with a point" if "," in value else "is not a score, a"
    with raises_input_error(f'line 3: "{value}" {expected}'):
        list(TextSource(write(table), texts=PAIR, form=score))


@pytest.mark.parametrize("value", ["nan", "NA", "1,5", "high"])
@pytest.mark.parametrize("place", [0, 7])
def test_one_bad_or_missing_score_among_good_ones_is_told_by_its_line(write, value, place):
    rows = [f"{i % 5}.5\tone text, {i}\tand its twin, {i}" for i in range(20)]
    rows[place] = f"{value}\tone text\tand its twin"
    path, fields = write("\n".join(rows)), "label=1,text_a=2,text_b=3"
    if value in ("nan", "NA"):  # as pandas reads them
        source = TextSource(path, texts=PAIR, form=score, fields=fields)
        assert place + 1 not in [example.line for example in source]
        assert f"line {place + 1}: 1 row without a score" in source.notes()[0]
    else:
        with raises_input_error(f'line {place + 1}: "{value}" '):
            list(TextSource(path, texts=PAIR, form=score, fields=fields))


def test_several_labels(write):
    table = "text\tlabel\none two\tx|y\nthree\t\nfour\t z |x|z\n"
    source = TextSource(write(table), form=several_labels)
    assert [example.label for example in source] == [("x", "y"), (), ("z", "x")]
    lines = '{"text": "a", "label": ["x", 3]}\n{"text": "b", "label": []}\n'
    source = TextSource(write(lines), form=several_labels)
    assert [example.label for example in source] == [("x", "3"), ()]
    usual = '{"text": "a", "labels": ["x", "y"], "label": "z"}\n'
    assert list(TextSource(write(usual), form=several_labels))[0].label == ("x", "y")
    assert list(TextSource(write(usual)))[0].label == "z"


LABELS = "".join(f"one text\tanother text\tlabel {i % 2}\n" for i in range(30))
GAP = [f"{i}\tone text, {i}\tand its twin, {i}\t{i % 5}.5" for i in range(20)]
GAP[3] = "3\tone text\tand its twin\tmany"
SCORES = {"texts": PAIR, "form": score}


@pytest.mark.parametrize(
    "fields, message",
    [
        ("text=y", '`fields` names "text". It should be text_a, text_b, label'),
        ("text_a", 'the part "text_a". It should be NAME=COLUMN'),
        ("text_a=y,text_a=z", 'names "text_a" twice'),
        ("text_a=none,text_b=y", 'no column "none". Its columns are "x", "y", "z"'),
        ("text_a=y,text_b=y,label=x", "two texts and label cannot be the same column"),
    ],
)
def test_bad_fields_are_named(write, fields, message):
    with raises_input_error(message):
        TextSource(write(XYZ), texts=PAIR, fields=fields, header=True)


@pytest.mark.parametrize(
    "content, options, message",
    [
        (
            XYZ,
            {"label_column": "x", "fields": "label=x"},
            "either `label_column`, or `fields` with",
        ),
        ("score\ttext_a\ttext_b\n\ta\tb\n", SCORES, "has no score in ... of any record"),
        # A number of the row is not proposed as a score with a gap.
        ("\n".join(GAP), SCORES, '`fields="text_a=2,text_b=3,label=…"`'),
        (LABELS, SCORES, "no column has a usual name for the two texts and the score...label=…"),
        ("a text\tham\n", {"texts": PAIR}, "as pairs of texts: line 1 has 2 columns"),
        (
            '{"text": "a", "labels": ["x"]}',
            {},
            "is a list, and not a label (`multi_label=True` or --multi-label reads several "
            "labels).",
        ),
        (
            '{"text": "a", "label": [[1]]}',
            {"form": several_labels},
            "line 1: ... should be a list of",
        ),
    ],
)
def test_bad_files_and_columns_are_named(write, content, options, message):
    with raises_input_error(message):
        list(TextSource(write(content), **options))
