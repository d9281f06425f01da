"""Files of annotation tools and other programs: read rightly, left out and counted, or named."""

import itertools
import json

import pytest

from keras_bert.readers.labels import several_labels
from keras_bert.readers.sentences import TaggedSource
from keras_bert.readers.spans import SpanSource
from keras_bert.readers.squad import QuestionSource
from keras_bert.readers.texts import TextSource
from tests.messages import raises_input_error
from tests.readers.forms import TEXTS, columns, cycle


@pytest.mark.parametrize(
    "key, words, kept",
    [
        ("answer", ("accept", "reject", "ignore"), "accept"),  # Prodigy
        ("status", ("submitted", "discarded", "pending"), "submitted"),  # Argilla
    ],
)
def test_answers_that_are_not_accepted_are_left_out_and_counted(key, words, kept, both):
    rows = columns(cycle("joy", "fear"), cycle(*words))
    expected = [(row[0], row[1]) for row in rows if row[2] == kept]
    left_out = [f'8 rows without an accepted "{key}", left out ("{word}").' for word in words[1:]]
    for name in ("a.csv", "a.jsonl"):
        for data in both(("text", "label", key), rows, name=name):
            source = TextSource(data)
            assert [(e.text, e.label) for e in source] == expected
            assert [note.partition(": ")[2] for note in source.notes()] == left_out
            assert len([*TextSource(data, need_labels=False)]) == len(rows)
            # The column may be the label, which is said.
            key_as_label = TextSource(data, text_column="text", label_column=key)
            assert len([*key_as_label]) == len(rows)
    spans = [(TEXTS[0], [[0, 3, "X"]], word) for word in words]
    for data in both(("text", "spans", key), spans, name="a.jsonl"):
        assert len([*SpanSource(data)]) == 1
    for other in (cycle("pending", "closed"), cycle("pending", "completed"), cycle("yes", "no")):
        for data in both(("text", "label", key), columns(cycle("a", "b"), other)):
            assert len([*TextSource(data)]) == len(TEXTS)


@pytest.mark.parametrize(
    "row",
    [
        {"label": [[4, 8, "THING"]]},  # doccano
        {"entities": [{"id": 1, "label": "THING", "start_offset": 4, "end_offset": 8}]},
        {"label": [{"start": 4, "end": 8, "text": "boat", "labels": ["THING"]}]},  # Label Studio
    ],
)
def test_spans_of_other_tools(row, both):
    rows = [("The boat left", *row.values())] * 2
    for data in both(("text", *row), rows, name="a.jsonl"):
        assert [e.spans for e in SpanSource(data)] == [((4, 8, "THING"),)] * 2


def test_choices_of_label_studio(both):
    rows = columns(lambda n: json.dumps({"choices": ["a", f"b{n % 2}"]}), lambda n: n)
    for data in both(("text", "sentiment", "id"), rows):
        source = TextSource(data, form=several_labels)
        assert [e.label for e in source][:2] == [("a", "b0"), ("a", "b1")]
        with raises_input_error("is a list, and not a label"):
            list(TextSource(data))


def test_options_that_were_accepted_in_prodigy(both):
    options = [{"id": label, "text": label.title()} for label in ("joy", "fear")]
    rows = [(text, options, ["joy", "fear"][: n % 3], "accept") for n, text in enumerate(TEXTS)]
    names = ("text", "options", "accept", "answer")
    for data in both(names, rows, name="a.jsonl"):
        several = TextSource(data, form=several_labels)
        assert [e.label for e in several][:3] == [(), ("joy",), ("joy", "fear")]
        with raises_input_error("['joy', 'fear'] is a list, and not a label"):
            list(TextSource(data))
    for data in both(names, [row for row in rows if len(row[2]) < 2], name="a.jsonl"):
        source = TextSource(data)
        assert {e.label for e in source} == {"joy"}
        assert "8 rows without a label, left out" in source.notes()[0]


def label_studio(*results, skipped=False):
    """A text with an annotation that has these results, as Label Studio's JSON has it."""
    results = [{"id": "x", "to_name": "text", "type": "x", **result} for result in results]
    annotation = {"id": 1, "completed_by": 1, "result": results, "was_cancelled": skipped}
    return {"data": {"text": "The boat left"}, "annotations": [annotation], "predictions": []}


def label_studio_forms(rows, tmp_path):
    rows = [{"id": number, **row} for number, row in enumerate(rows)]
    for name, text in (
        ("a.json", json.dumps(rows, indent=1)),
        ("a.jsonl", "\n".join(map(json.dumps, rows))),
    ):
        (tmp_path / name).write_text(text)
        yield tmp_path / name
    yield rows


def test_label_studio_s_json(tmp_path):
    chosen = [
        {"from_name": "sentiment", "value": {"choices": choices}}
        for choices in (["good"], ["bad"], ["good", "bad"])
    ]
    pending = {"data": {"text": "Nobody saw this"}, "annotations": []}
    rows = [pending, label_studio(chosen[0], skipped=True), *map(label_studio, chosen)]
    rows[3]["annotations"] *= 2  # by two people
    for data in label_studio_forms(rows[:4], tmp_path):
        source = TextSource(data)
        assert 'label: "good"' in source.shown()
        assert [e.label for e in source] == ["good", "bad", "bad"]
        assert [note.partition(": ")[2] for note in source.notes()] == [
            f'1 row without an accepted "annotation_status", left out ("{word}").'
            for word in ("pending", "discarded")
        ]
        assert len([*TextSource(data, need_labels=False)]) == 5
    for data in label_studio_forms(rows, tmp_path):
        source = TextSource(data, form=several_labels)
        assert [e.label for e in source] == [("good",), ("bad",), ("bad",), ("good", "bad")]
    span = {"start": 4, "end": 8, "text": "boat", "labels": ["THING"]}
    spans_prediction = label_studio({"from_name": "ner", "value": span}, {"type": "relation"})
    for data in label_studio_forms([pending, spans_prediction, label_studio()], tmp_path):
        assert [e.spans for e in SpanSource(data)] == [((4, 8, "THING"),), ()]
    for broken in ({**pending, "annotations": [1]}, {"data": {}, "annotations": [{"result": 1}]}):
        for data in label_studio_forms([broken], tmp_path):
            with raises_input_error("no column has a usual name for the text"):
                list(TextSource(data))


def argilla(text, /, *answers, status="completed", **question):
    """A record as Argilla's `to_json` writes it; `answers` are of users, to one question."""
    [(name, values)] = (question or {"sentiment": answers}).items()
    responses = [{"value": value, "user_id": f"u{n}"} for n, value in enumerate(values)]
    return {
        "id": text[:3],
        "fields": {"text": text},
        "metadata": {"source": "web"},
        "suggestions": {name: {"value": "bad", "score": 0.5, "agent": "model"}},
        "responses": {name: responses} if responses else {},
        "vectors": {},
        "status": status,
        "_server_id": "5",
    }


def test_argilla_s_json(tmp_path):
    rows = [
        argilla("The boat left", "good"),
        argilla("Nobody saw this", status="pending"),
        argilla("One of two did", "good", status="pending"),
        argilla("The boat sank", "bad", "good"),  # by two people
    ]
    for data in label_studio_forms(rows, tmp_path):
        source = TextSource(data, label_column="sentiment")
        assert [(e.text, e.label) for e in source] == [
            ("The boat left", "good"),
            ("The boat sank", "bad"),
            ("The boat sank", "good"),
        ]
        assert [note.partition(": ")[2] for note in source.notes()][:1] == [
            '2 rows without an accepted "annotation_status", left out ("pending").'
        ]
        assert len([*TextSource(data, need_labels=False)]) == 5
    several = [argilla("The boat left", ["good", "old"]), argilla("It sank", ["bad"])]
    for data in label_studio_forms(several, tmp_path):
        source = TextSource(data, form=several_labels, label_column="sentiment")
        assert [e.label for e in source] == [("good", "old"), ("bad",)]
    span = {"start": 4, "end": 8, "label": "THING"}
    for data in label_studio_forms([argilla("The boat left", marks=([span],))], tmp_path):
        assert [e.spans for e in SpanSource(data)] == [((4, 8, "THING"),)]
    for data in label_studio_forms([argilla("The boat left", text=("good",))], tmp_path):
        source = TextSource(data, label_column="text.response")  # a question called as the field
        assert [(e.text, e.label) for e in source] == [("The boat left", "good")]


def test_lines_of_fasttext(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("__label__spam Win a prize\n\n__label__ham  See you\n")
    source = TextSource(path)
    assert source.shown() == 'First example: text: "Win a prize", label: "spam".'
    assert [(e.line, e.text, e.label) for e in source] == [
        (1, "Win a prize", "spam"),
        (3, "See you", "ham"),
    ]
    path.write_text("__label__a __label__b Win a prize\n__label__b See you\n")
    assert [e.labels for e in TextSource(path, form=several_labels)] == [("a", "b"), ("b",)]
    path.write_text("__label__a Win a prize\nSee you\n")
    with raises_input_error("line 2: no __label__ at its beginning"):
        list(TextSource(path))


def test_a_folder_for_each_class(tmp_path):
    for label, text in itertools.product(("neg", "pos"), ("one", "two")):
        (tmp_path / label).mkdir(exist_ok=True)
        (tmp_path / label / f"{text}.txt").write_text(f"text {text}\nof {label}\n")
    source = TextSource(tmp_path)
    assert "a folder of texts for each class" in source.description
    assert [(e.line, e.text, e.label) for e in source][1:3] == [
        ("neg/two.txt", "text two\nof neg", "neg"),
        ("pos/one.txt", "text one\nof pos", "pos"),
    ]
    with raises_input_error("neg has one text per file. Expected labelled text"):
        TextSource(tmp_path / "neg")


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.xlsx", b"PK\x03\x04", "is an Excel workbook. Save it as CSV, or pass the table of"),
        ("a.xls", b"\xd0\xcf\x11\xe0", "is an Excel workbook. Save it as CSV"),
        ("a.zip", b"PK\x03\x04", "is a zip archive. Unpack it"),
        ("a.csv", b"PK\x03\x04", "is a zip archive. Unpack it"),
    ],
)
def test_workbooks_and_archives_are_named(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content + bytes(range(256)))
    for read in (TextSource, TaggedSource, SpanSource, QuestionSource):
        with raises_input_error(message):
            read(tmp_path / name)


def test_two_separators_are_a_question(tmp_path):
    path = tmp_path / "a.csv"
    rows = "".join(f"{text}, {text};{n % 2}\n" for n, text in enumerate(TEXTS))
    path.write_text(rows)
    given = {"header": False, "text_column": 1, "label_column": 2}
    with raises_input_error('columns could be separated by "," or by ";"...the line sep=; before'):
        TextSource(path, **given)
    path.write_text(f"sep=;\n{rows}")
    assert [e.label for e in TextSource(path, **given)][:3] == ["0", "1", "0"]
