"""Spans of characters as tags of words: cut as BERT's tokenizer does, and what cuts a word told."""

import json
import unicodedata

import pytest

from keras_bert.inputs.words import words_of_texts
from keras_bert.readers.offsets import words_of_text
from keras_bert.readers.sentences import TaggedSource
from keras_bert.tasks.tagging.tagger import Tagger
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_tokenizer

TEXT = "Is the X-200 back? Ünïcödé 好的 it's $5."
PRODUCT = [7, 12, "PRODUCT"]


def test_words_are_cut_as_the_tokenizer_cuts_them():
    texts = [TEXT, "", "  ", "a", "don't—stop…now", "a\tb\nc\xa0d", "(x)", "東京 tower", "e\u0301a"]
    # Latin, Arabic, Thai, Japanese, Hangul, CJK; spaces, controls, marks of format, currencies.
    starts = (0x20, 0x80, 0xA0, 0x180, 0x600, 0xE00, 0x2000, 0x2040, 0x20A0, 0x3000, 0x3040)
    kinds = [range(start, start + 0x40) for start in (*starts, 0x4E00, 0xAC00, 0x1F600)]
    # An accent behind a punctuation mark is dropped there, and a word of its own here.
    kinds = [[c for c in map(chr, kind) if unicodedata.category(c)[0] != "M"] for kind in kinds]
    rng = make_rng(1)
    texts += ["".join(rng.choice(kinds[k]) for k in rng.integers(14, size=20)) for _ in range(300)]
    _, starts, ends = words_of_texts(texts, make_tokenizer())
    for text, *tokenizer_offsets in zip(texts, starts.to_list(), ends.to_list(), strict=True):
        assert words_of_text(text) == [*zip(*tokenizer_offsets, strict=True)], text


@pytest.mark.parametrize(
    "row",
    [
        {"label": [PRODUCT]},  # doccano
        {"entities": [PRODUCT]},  # spaCy
        {"label": [{"start": 7, "end": 12, "text": "X-200", "labels": ["PRODUCT"]}]},
        {"spans": [{"start": 7, "end": 12, "label": "PRODUCT"}]},  # Prodigy
    ],
)
def test_spans_of_annotation_tools_are_tags(row, both):
    for data in both(("text", *row), [(TEXT, *row.values())] * 2, name="a.jsonl"):
        source = TaggedSource(data)
        example = next(iter(source))
        tagged = [(w, t) for w, t in zip(example.words, example.tags, strict=True) if t != "O"]
        assert tagged == [("X", "B-PRODUCT"), ("-", "I-PRODUCT"), ("200", "I-PRODUCT")]
        assert example.text == TEXT and example.starts[2] == 7 and source.labelled
        assert f'text in "text", spans in "{next(iter(row))}"' in source.description
        assert [*source.notes()] == []


def test_a_file_and_tagged_words_are_the_same_to_a_tagger(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "the X200 is back", "label": [[4, 8, "P"]]}) + "\n")
    example_of_offsets, example_of_words = (
        next(iter(Tagger.read(data)))
        for data in (path, [(["the", "X200", "is", "back"], ["O", "B-P", "O", "O"])])
    )
    assert (example_of_offsets.words, example_of_offsets.tags) == (
        example_of_words.words,
        example_of_words.tags,
    )


def test_a_span_that_cuts_a_word_is_told_with_its_line(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [
        {"text": "the phones", "label": [[4, 9, "P"]]},
        {"text": "a phone ", "label": [[1, 8, "P"]]},  # with white space around it
        {"text": "xphone", "label": [[1, 6, "P"]]},
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    sentences = Tagger.read(path)
    assert [e.tags for e in sentences] == [("O", "B-P"), ("O", "B-P"), ("B-P",)]
    assert sentences.notes() == [
        f"{path}: lines 1 and 3: 2 spans begin or end inside a word, and the whole word is tagged: "
        '"phone" is a part of "phones".'
    ]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[0, 3, "A"], [2, 6, "B"]], 'the spans [0, 3, "A"] and [2, 6, "B"] share the word "one"'),
        ([[3, 4, "A"]], 'the span [3, 4, "A"] has no word in it'),
        ([[0, 3]], "the span [0, 3] has no label"),
        ("one", 'the spans should be a list of [start, end, "label"]'),
        ([[0, 30, "A"]], "beyond the text, which has 7 characters"),
        ([{"start": 0, "end": 2, "text": "one", "label": "A"}], "ends are included"),
    ],
)
def test_spans_that_cannot_be_tags_are_errors(spans, message, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "one two", "label": spans}) + "\n")
    with raises_input_error(f"{path}, line 1: ...{message}"):
        list(TaggedSource(path))


def test_texts_without_spans_are_left_out_or_predicted(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"text": "one", "label": [[0, 3, "A"]]}, {"text": "two", "label": None}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    source = TaggedSource(path)
    assert [e.line for e in source] == [1]
    assert "line 2: 1 sentence without spans, left out" in source.notes()[0]
    assert [e.text for e in TaggedSource(path, need_labels=False)] == ["one", "two"]
    with raises_input_error('or a "text" and its spans as "label": [[start, end, "NAME"]'):
        TaggedSource([{"sentence": "one", "of": 1}])
