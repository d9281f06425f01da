"""Examples that lack a part are left out, counted and shown, by every reader and in every form."""

import json

import pytest

from keras_bert.readers.choices import ChoiceSource
from keras_bert.readers.coreference import CoreferenceSource
from keras_bert.readers.labels import several_labels
from keras_bert.readers.predicates import PredicateSource
from keras_bert.readers.sentences import TaggedSource
from keras_bert.readers.spans import SpanPairSource, SpanSource
from keras_bert.readers.squad import QuestionSource, question_warnings
from keras_bert.readers.texts import TextSource
from tests.messages import raises_input_error

pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")

ANSWER = [{"text": "ann", "answer_start": 3}]
# A reader, a whole row, the parts that a row may lack, and what a note calls these.
READERS = [
    (TaggedSource, {"words": ["ann"], "tags": ["O"]}, {"tags": "tags"}, "sentence"),
    (SpanSource, {"words": ["ann"], "spans": [[0, 1]]}, {"spans": "spans"}, "row"),
    (
        SpanPairSource,
        {"words": ["a", "b"], "head": [0, 1], "tail": [1, 2], "label": "x"},
        {"words": "a text", "head": "a head", "tail": "a tail", "label": "a label"},
        "row",
    ),
    (
        PredicateSource,
        {"words": ["a", "b"], "predicate": [0, 1], "tags": ["B-V", "O"]},
        {"predicate": "a predicate", "tags": "tags"},
        "sentence",
    ),
    (
        CoreferenceSource,
        {"words": ["a", "b"], "clusters": [[[0, 1], [1, 2]]]},
        {"clusters": "clusters", "words": "a text"},
        "document",
    ),
    (
        QuestionSource,
        {"question": "who?", "context": "by ann", "answers": ANSWER},
        {"question": "a question", "context": "a context", "answers": "answers"},
        "question",
    ),
    (
        ChoiceSource,
        {"context": "a", "choices": ["b", "c"], "label": 0},
        {"context": "a context", "label": "a label"},
        "row",
    ),
]
CASES = [(*case[:2], *part, case[3]) for case in READERS for part in case[2].items()]


@pytest.mark.parametrize("form", ["jsonl", "absent", "json", "parquet"])
@pytest.mark.parametrize("reader, row, key, part, noun", CASES)
def test_objects(reader, row, key, part, noun, form, tmp_path):
    absent = {name: value for name, value in row.items() if name != key}
    rows = [row, absent if form == "absent" else {**row, key: None}, row]
    path = tmp_path / f"a.{form.replace('absent', 'jsonl')}"
    if form == "parquet":
        pandas.DataFrame(rows).to_parquet(path)
    elif form == "json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(f"{json.dumps(r)}\n" for r in rows))
    source = reader(path)
    assert len([*source]) == 2
    location = {"json": "item", "parquet": "row"}.get(form, "line")
    assert source.notes() == [f"{path}, {location} 2: 1 {noun} without {part}, left out."]
    with raises_input_error(
        f'{location} 2: a {noun} without {part}. Set `missing="skip"` to leave such {noun}s'
    ):
        list(reader(path, missing="error"))


@pytest.mark.parametrize("reader, row, key, part, noun", CASES)
def test_nothing_left(reader, row, key, part, noun, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**row, key: None}) + "\n")
    with raises_input_error(
        f"has no {part.removeprefix('a ')}...of any record (line 1), so there is nothing to"
    ):
        list(reader(path))


CONLL = "ann\tB-X\n\nbo\t\nran\t\n\nleft\tO\n"
LONG = "sentence_id,word,tag\n1,ann,B-X\n2,bo,\n2,ran,\n3,left,O\n"


def test_sentences_without_tags(tmp_path):
    conllu = CONLL.replace("\t\n", "\t_\n").replace("\n\n", "\n \n").splitlines()
    conllu = "".join(
        "1\t{}\t_\t{}{}\n".format(*line.split("\t"), "\t_" * 6) if line.strip() else "\n"
        for line in conllu
    )
    for name, content in (("a.conll", CONLL), ("a.conllu", conllu), ("a.csv", LONG)):
        path = tmp_path / name
        path.write_text(content)
        for data in (path, pandas.read_csv(path)) if name == "a.csv" else (path,):
            source = TaggedSource(data)
            assert [s.words for s in source] == [("ann",), ("left",)]
            (note,) = source.notes()
            assert note.endswith(
                f"{1 if data is not path else 3}: 1 sentence without tags, left out."
            )
            unlabelled = TaggedSource(data, need_labels=False)
            assert [s.tags for s in unlabelled] == [("B-X",), None, ("O",)]
            with raises_input_error('a sentence without tags. Set `missing="skip"`'):
                list(TaggedSource(data, missing="error"))
    path.write_text("sentence_id,word,tag\n1,ann,O\n1,bo,\n")
    with raises_input_error('line 3: no tag in "tag"'):
        list(TaggedSource(path))


def test_questions_of_squad(tmp_path):
    good, bad = {"id": "g", "question": "who?", "answers": ANSWER}, {"id": "b", "question": "who?"}
    path = tmp_path / "a.json"
    for questions, count in (([good, bad], 1), ([good, bad, good, bad], 2)):
        data = [{"paragraphs": [{"context": "by ann", "qas": questions}]}]
        path.write_text(json.dumps({"data": data}))
        examples = [*(source := QuestionSource(path))]
        (note,) = source.notes()
        where = "article 1, paragraph 1, question 2"
        again = " and article 1, paragraph 1, question 4: 2 questions"
        more = again if count == 2 else ": 1 question"
        assert note == f"{path}, {where}{more} without answers, left out."
        assert question_warnings(examples)[-1] == note
        with raises_input_error(f"{where}: a question without answers"):
            list(QuestionSource(path, missing="error"))


# Several labels in one cell.

CELLS = ["bug, billing", "login", "billing, login"]


@pytest.mark.parametrize("mark", [", ", "; ", ","])
def test_labels_that_could_be_one_or_several_are_a_question(mark, tmp_path):
    cells = [cell.replace(", ", mark) for cell in CELLS]
    frame = pandas.DataFrame({"text": ["one text", "two texts", "three"], "labels": cells})
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    separator = mark.strip()
    for data in (path, frame, frame.to_dict("records")):
        row = 0 if data is frame else 1  # of the index, or of the list
        with raises_input_error(
            f'{row}: "{cells[0]}" could be one label or several...`label_separator=","`...'
            if data is not path
            else f'line 2: "{cells[0]}" could be one label or several, and no cell has |'
        ):
            list(TextSource(data, form=several_labels))
        several = TextSource(data, form=several_labels, label_separator=separator)
        expected = [("bug", "billing"), ("login",), ("billing", "login")]
        assert [e.label for e in several] == expected
        again = TextSource(data, form=several_labels, schema=several.schema)
        assert [e.label for e in again] == expected
        one = TextSource(data, form=several_labels, label_separator="|")
        assert [e.label for e in one] == [(cell,) for cell in cells]
        with_labels = TextSource(data, form=several_labels, labels=cells)
        assert [e.label for e in with_labels] == [(cell,) for cell in cells]
    frame.loc[1, "labels"] = "login|bug"
    labels = [e.label for e in TextSource(frame, form=several_labels)]
    assert labels == [(cells[0],), ("login", "bug"), (cells[2],)]
    with raises_input_error("`label_separator` is for several labels per text"):
        TextSource(frame, label_separator=",")
