"""Spans and pairs of spans in JSON Lines: what is read, and what is refused with its place."""

import json

import pytest

from keras_bert.base.errors import InputError
from keras_bert.readers.spans import SpanPairSource, spanned_words

WORDS = ["the", "Bank", "of", "England", "building"]
PAIR = {"words": WORDS, "head": [0, 5], "tail": [3, 4], "label": "part_of"}


class Source:
    name = "a.jsonl"

    def may_lack(self, key):
        return False

    def error(self, line, message):
        return InputError(f"{self.name}, line {line}: {message}")


def read(row, need_labels=True):
    return spanned_words(row, 7, source=Source(), need_labels=need_labels)


def test_words_and_nested_spans():
    spans = [[0, 5, "FAC"], {"start": 1, "end": 4, "label": "ORG"}, [3, 4]]
    example = read({"words": WORDS, "spans": spans})
    assert example.text == "the Bank of England building"
    assert [example.text[s:e] for s, e in zip(example.starts, example.ends, strict=True)] == WORDS
    assert example.spans == ((0, 5, "FAC"), (1, 4, "ORG"), (3, 4, None))


def test_words_find_their_places_in_the_text_that_they_were_taken_from():
    example = read({"text": "  a-b  b", "words": ["a", "-", "b", "b"], "spans": [[1, 3, "x"]]})
    assert (example.starts, example.ends) == ((2, 3, 4, 7), (3, 4, 5, 8))
    with pytest.raises(InputError, match='line 7: the "words" are not in the "text"'):
        read({"text": "a b", "words": ["b", "a"], "spans": []})


def test_a_text_has_spans_by_characters_and_our_own_answers_can_be_read_again():
    example = read({"text": "in Rome", "spans": [{"start": 3, "end": 7, "label": "LOC"}]})
    assert example.words is None and example.spans == ((3, 7, "LOC"),)
    answer = {"start": 3, "end": 7, "words": [1, 2], "text": "Rome", "label": "LOC", "score": 0.9}
    example = read({"text": "in Rome", "words": ["in", "Rome"], "spans": [answer]})
    assert example.spans == ((1, 2, "LOC"),)


def test_spans_may_be_missing_where_they_are_not_needed():
    assert read({"text": "x"}, need_labels=False).spans is None
    assert read({"text": "x", "spans": []}, need_labels=False).spans == ()


@pytest.mark.parametrize(
    "row, message",
    [
        ({"words": WORDS}, r'no "spans" among the keys \(words\)'),
        ({"spans": []}, 'no "words" and no "text" among the keys'),
        ({"words": "the bank", "spans": []}, '"words" should be a list of strings'),
        ({"words": ["a", ""], "spans": []}, "none of them empty"),
        ({"text": 3, "spans": []}, '"text" should be a string'),
        ({"text": "a\0", "spans": []}, "without NUL"),
        ({"words": WORDS, "spans": {"a": 1}}, '"spans" should be a list'),
        ({"words": WORDS, "spans": [[1, 6, "x"]]}, r"beyond the text, which has 5 words"),
        ({"words": WORDS, "spans": [[-1, 2, "x"]]}, r"is beyond the text, which has 5 words"),
        ({"words": WORDS, "spans": [[3, 2, "x"]]}, r"ends before it begins or is empty"),
        ({"words": WORDS, "spans": [[3, 3, "x"]]}, "its end is the first word after it"),
        ({"text": "abc", "spans": [[0, 4, "x"]]}, "which has 3 characters"),
        ({"words": WORDS, "spans": [["0", 2, "x"]]}, "with start and end whole numbers"),
        ({"words": WORDS, "spans": [[True, 2, "x"]]}, "with start and end whole numbers"),
        ({"words": WORDS, "spans": [[1]]}, r'should be \[start, end, "label"\]'),
        ({"words": WORDS, "spans": ["PER"]}, 'the span "PER" should be'),
        ({"words": WORDS, "spans": [[1, 2, 5]]}, "a label that is not a text"),
        ({"words": WORDS, "spans": [[1, 2, " "]]}, "a label that is not a text"),
    ],
)
def test_what_cannot_be_is_rejected_with_its_line(row, message):
    with pytest.raises(InputError, match=f"^a.jsonl, line 7: .*{message}"):
        read(row)


def test_pairs_of_a_file_and_of_a_sequence(tmp_path):
    file = tmp_path / "pairs.jsonl"
    unlabelled = {"text": "Ada wrote it", "head": [0, 3], "tail": {"start": 10, "end": 12}}
    file.write_text(f"{json.dumps(PAIR)}\n\n{json.dumps(unlabelled)}\n")
    opened = SpanPairSource(file, need_labels=False)
    first, second = opened
    assert (first.head[:2], first.tail[:2], first.label) == ((0, 5), (3, 4), "part_of")
    assert (second.words, second.head[:2], second.label, second.line) == (None, (0, 3), None, 3)
    assert opened.description == f"{file}: JSON Lines, pairs of spans"
    assert list(SpanPairSource([PAIR, unlabelled], need_labels=False))[0] == first


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"label": ["of"]}, r"\['of'\] is a list, and not a label"),
        ({"head": [2, 9]}, r"head \[2, 9\] is beyond the text, which has 5 words"),
        ({"tail": [2, 1]}, r"tail \[2, 1\] ends before it begins"),
    ],
)
def test_a_pair_that_cannot_be_is_rejected_with_its_line(changes, message, tmp_path):
    file = tmp_path / "pairs.jsonl"
    file.write_text(f"{json.dumps(PAIR)}\n{json.dumps({**PAIR, **changes})}\n")
    with pytest.raises(InputError, match=rf"pairs.jsonl, line 2: {message}"):
        list(SpanPairSource(file))
    with pytest.raises(InputError, match=f"^the given table, row 1: {message}"):
        SpanPairSource([{**PAIR, **changes}])


def test_other_files_hold_no_pairs(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("a\tb\n")
    with pytest.raises(InputError, match="pairs.tsv as pairs of spans: line 1 is not a JSON"):
        SpanPairSource(file)
    with pytest.raises(InputError, match='the given table, row 1: no "tail" among the columns'):
        SpanPairSource([{"text": "a", "head": [0, 1]}])
    with pytest.raises(ValueError, match="must be dictionaries"):
        SpanPairSource(["a"])
