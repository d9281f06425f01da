"""A folder, or a glob, of .txt files: one text each."""

import pytest

from keras_bert.readers.sentences import TaggedSource
from keras_bert.readers.spans import SpanSource
from keras_bert.readers.texts import PAIR, TextSource
from tests.messages import raises_input_error


@pytest.fixture
def letters(tmp_path):
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "b.txt").write_text("Dear Ada,\n\nyours, Bob\n")
    (folder / "a.txt").write_text("Hello")
    (folder / "c.txt").write_text(" \n")
    (folder / "notes.md").write_text("not a letter")
    return folder


@pytest.mark.parametrize("pattern", ["", "*.txt", "[abc].txt"])
def test_a_file_is_a_text(letters, pattern):
    source = TextSource(letters / pattern, need_labels=False)
    assert "3 files with one text each" in source.description
    source.keeps_rows = True
    examples = list(source)
    assert [(e.line, e.text) for e in examples] == [
        ("a.txt", "Hello"),
        ("b.txt", "Dear Ada,\n\nyours, Bob"),
    ]
    assert "c.txt: 1 row without a text, left out" in source.notes()[0]
    assert source.column_names() == ["file", "text"]
    assert source.row_of(examples[0]) == {"file": "a.txt", "text": "Hello"}


def test_taggers_and_spans_read_them_too(letters):
    (letters / "c.txt").unlink()
    for read in (TaggedSource, SpanSource):
        examples = list(read(str(letters / "*.txt"), need_labels=False))
        assert [e.line for e in examples] == ["a.txt", "b.txt"]
        assert examples[0].text == "Hello" and examples[0].words is None
        assert len({e.document for e in examples}) == 2


def test_what_has_no_texts_is_an_error(letters, tmp_path):
    with raises_input_error("has one text per file. Expected labelled text: a text and a label"):
        TextSource(letters)
    with raises_input_error("has one text per file. Expected pairs of texts"):
        TextSource(letters, texts=PAIR, need_labels=False)
    (tmp_path / "empty").mkdir()
    with raises_input_error("is a folder without .txt files. Give the path of a text file"):
        TextSource(tmp_path / "empty", need_labels=False)
    with raises_input_error("No file matches"):
        TextSource(tmp_path / "*.nothing", need_labels=False)
    with raises_input_error("notes.md. A glob, or a folder, is of .txt files with one text each"):
        TextSource(letters / "*", need_labels=False)
