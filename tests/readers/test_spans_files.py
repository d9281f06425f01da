"""Texts with spans from files of all forms, and from Python."""

import itertools

import pytest
from seqeval.metrics.sequence_labeling import get_entities

from keras_bert import Tagger
from keras_bert.base.errors import InputError
from keras_bert.readers.spans import SpanSource, spans_of_tags
from tests.messages import raises_input_error
from tests.readers.test_tfds import LABEL, NUMBER, TEXT, prepare, several

CONLL = "EU B-ORG\nand O\nNew B-LOC\nYork I-LOC\n\nRome B-LOC\n"


def spans_of(tags):
    return [(*span,) for span in spans_of_tags(tags, error=AssertionError)]


def test_tags_are_spans_by_conllevals_rules():
    """seqeval's lenient reading is that of conlleval, but for its end, which is the last word."""
    tags = ["O", "B-x", "I-x", "I-y", "E-x", "S-x"]
    for sequence in itertools.product(tags, repeat=5):
        their_spans = [
            (start, end + 1, label) for label, start, end in get_entities(list(sequence))
        ]
        assert spans_of(sequence) == their_spans, sequence


def test_tags_may_have_no_type_and_other_names():
    assert spans_of(["B", "I", "O", "B", "B"]) == [(0, 2, None), (3, 4, None), (4, 5, None)]
    assert spans_of(["B-a", "L-a", "U-a", "I-a"]) == spans_of(["B-a", "E-a", "S-a", "I-a"])
    assert spans_of([]) == []


def test_conll_json_lines_and_plain_lines(tmp_path):
    file = tmp_path / "a.conll"
    file.write_text(CONLL)
    first, second = opened = list(SpanSource(file))
    assert first.words == ("EU", "and", "New", "York") and first.text == "EU and New York"
    assert first.spans == ((0, 1, "ORG"), (2, 4, "LOC"))
    assert (second.line, second.spans) == (6, ((0, 1, "LOC"),))
    file = tmp_path / "a.jsonl"
    file.write_text('{"words": ["Rome"], "spans": [[0, 1, "LOC"]]}\n\n{"text": "x", "spans": []}\n')
    source = SpanSource(file)
    assert source.description == f"{file}: JSON Lines, words, spans"
    assert [(e.line, e.words, e.spans) for e in source] == [
        (1, ("Rome",), opened[1].spans),
        (3, None, ()),
    ]
    file.write_text('{"words": ["EU", "and"], "tags": ["B-ORG", "O"]}\n')
    assert [e.spans for e in SpanSource(file)] == [((0, 1, "ORG"),)]
    file = tmp_path / "a.txt"
    file.write_text("to Rome and back.\n\nHome.\n")
    texts = list(SpanSource(file, need_labels=False))
    assert [(e.text, e.words, e.spans) for e in texts] == [
        (line, None, None) for line in ("to Rome and back.", "", "Home.")
    ]


@pytest.mark.parametrize(
    "text",
    ["I met Anna in Berlin .\n", "E-mail me today\n", "I met Anna\n\nI met Bob\n"],
)
def test_a_sentence_that_begins_with_what_could_be_a_tag_is_plain_text(text, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text(text)
    examples = list(SpanSource(file, need_labels=False))
    assert [(e.text, e.words) for e in examples] == [(line, None) for line in text.splitlines()]


def test_a_prepared_dataset_has_tags(tmp_path, monkeypatch):
    features = {"tokens": several(TEXT), "ner": several(LABEL)}
    rows = [{"tokens": ["to", "New", "York"], "ner": [0, 1, 2]}]
    prepare(tmp_path, "conll2003", features, rows, labels={"ner": ["O", "B-LOC", "I-LOC"]})
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    source = SpanSource("tfds:conll2003:train", schema=None)
    assert source.description.endswith('words in "tokens", tags in "ner"')
    (example,) = source
    assert (example.text, example.spans) == ("to New York", ((1, 3, "LOC"),))
    assert source.notes() == []
    rows = [{"tokens": ["New", "York"], "ner": [1, 2]}, {"tokens": ["to", "York"], "ner": [0, 2]}]
    prepare(tmp_path, "broken", features, rows, labels={"ner": ["O", "B-LOC", "I-LOC"]})
    source = SpanSource("tfds:broken:train", schema=None, invalid_tags="repair")
    assert [example.spans for example in source] == [((0, 2, "LOC"),), ((1, 2, "LOC"),)]
    assert "tfds:broken:train: 1 tag invalid in the scheme bio" in source.notes()[0]
    with raises_input_error('record 2: the tag I-LOC of "York" is invalid there'):
        list(SpanSource("tfds:broken:train", schema=None, invalid_tags="error"))


def test_a_prepared_dataset_has_spans_in_one_another(tmp_path, monkeypatch):
    """They were refused, for want of a feature with tags."""
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    span = {"featuresDict": {"features": {"start": NUMBER, "end": NUMBER, "label": LABEL}}}
    features = {"words": several(TEXT), "spans": several(span)}
    row = {
        "words": ["the", "Bank", "of", "Riga"],
        "spans/start": [0, 3],
        "spans/end": [4, 4],
        "spans/label": [1, 0],
    }
    row_without_spans = {"words": ["to"], "spans/start": [], "spans/end": [], "spans/label": []}
    prepare(tmp_path, "nested", features, [row, row_without_spans], {"spans-label": ["LOC", "ORG"]})
    source = SpanSource("tfds:nested:train")
    assert source.description == "tfds:nested:train: a prepared tfds split, words, spans"
    assert source.labelled and source.notes() == []
    assert [example.spans for example in source] == [((0, 4, "ORG"), (3, 4, "LOC")), ()]
    with raises_input_error("`tag_column` is for files with tags"):
        SpanSource("tfds:nested:train", tag_column="x")
    places = {"featuresDict": {"features": {"start": NUMBER, "end": NUMBER}}}
    features = {"text": TEXT, "spans": several(places)}
    row = {"text": "in Riga", "spans/start": [3], "spans/end": [7]}
    prepare(tmp_path, "places", features, [row, {**row, "spans/end": [8]}])
    source = iter(SpanSource("tfds:places:train"))
    assert next(source).spans == ((3, 7, None),)
    with raises_input_error("record 2: the span ... is beyond the text"):
        next(source)


BROKEN = {
    "conll": ("EU B-ORG\nAnn B-PER\n\nto O\nRome I-LOC\nand I-PER\n", 5),
    "bilou": ("EU U-ORG\nAnn U-PER\n\nto O\nRome I-LOC\nand U-PER\n", 5),
    "jsonl": (
        '{"words": ["EU", "Ann"], "tags": ["B-ORG", "B-PER"]}\n'
        '{"words": ["to", "Rome", "and"], "tags": ["O", "I-LOC", "I-PER"]}\n',
        2,
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_tags_that_break_their_scheme_are_told_as_the_tagger_tells_them(kind, tmp_path):
    content, line = BROKEN[kind]
    path = tmp_path / f"a.{kind}"
    path.write_text(content)
    source = SpanSource(path)
    assert [example.spans for example in source] == [
        ((0, 1, "ORG"), (1, 2, "PER")),
        ((1, 2, "LOC"), (2, 3, "PER")),
    ]
    scheme, count = ("bilou", "1 tag") if kind == "bilou" else ("bio", "2 tags")
    (note,) = source.notes()
    assert note == (
        f"{path}: {count} invalid in the scheme {scheme}, the first one in line "
        f'{line} (I-LOC at "Rome"); the chunks are read as conlleval reads them.'
    )
    assert Tagger.notes(list(Tagger.read(path))) == [note]
    for need_labels in (True, False):
        refusing = SpanSource(path, invalid_tags="error", need_labels=need_labels)
        with raises_input_error(f'line {line}: the tag I-LOC of "Rome" is invalid'):
            next(iter(refusing))


def test_given_texts_are_strings_words_or_objects():
    given = ["to Rome", ["to", "Rome"], {"words": ["to", "Rome"], "spans": [[1, 2, "LOC"]]}]
    texts = list(SpanSource(given, need_labels=False))
    assert [text.text for text in texts] == ["to Rome"] * 3
    assert [text.words for text in texts] == [None, ("to", "Rome"), ("to", "Rome")]
    assert [text.spans for text in texts] == [None, None, ((1, 2, "LOC"),)]
    with pytest.raises(InputError, match='^Text 1 of those given: no "spans" among the keys'):
        SpanSource(given)
    with pytest.raises(ValueError, match="must be a string, a list of words"):
        SpanSource([5])
    with raises_input_error("`tag_column` is for files"):
        SpanSource(given, tag_column="2")


ROME = '{"words": ["Rome"], "spans": []}\n{"words": ["Rome"], "spans": 3}\n'


@pytest.mark.parametrize(
    "name, content, options, message",
    [
        (
            "a.conll",
            "EU B-ORG\nand X-ORG\n",
            {"tag_column": "2"},
            'a.conll, line 2: the tag "X-ORG" should be O, B-…',
        ),
        ("a.jsonl", ROME, {}, 'a.jsonl, line 2: "spans" should be a list'),
        ("a.jsonl", ROME, {"word_column": "form"}, "`word_column` is for files with tags"),
    ],
)
def test_what_cannot_be_is_rejected_with_its_place(tmp_path, name, content, options, message):
    (tmp_path / name).write_text(content)
    with raises_input_error(message):
        list(SpanSource(tmp_path / name, **options))
