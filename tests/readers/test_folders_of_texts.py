"""A folder, or a glob, of .txt and .md files: one text each."""

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
    (folder / "stamp.png").write_bytes(b"not a letter")
    (folder / ".hidden").write_text("nor this")
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


def test_markdown_is_read_too_and_what_is_not_read_is_said(letters):
    (letters / "d.MD").write_text("# A title")
    (letters / "older").mkdir()
    source = TextSource(letters, need_labels=False)
    said = "4 files with one text each (2 others not read: older, stamp.png)"
    assert said in source.description
    assert [example.text for example in source][-1] == "# A title"
    assert [e.line for e in TextSource(letters / "*.MD", need_labels=False)] == ["d.MD"]


def test_what_a_folder_of_classes_has_besides_texts_is_said(letters, tmp_path):
    (tmp_path / "README").write_text("what this is")
    (letters / "c.txt").write_text("again")
    said = "a folder of texts for each class (2 others not read: README, letters/stamp.png)"
    source = TextSource(tmp_path)
    assert said in source.description and {example.label for example in source} == {"letters"}


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
    with raises_input_error("is a folder without .txt or .md files. Give the path of a text file"):
        TextSource(tmp_path / "empty", need_labels=False)
    with raises_input_error("No file matches"):
        TextSource(tmp_path / "*.nothing", need_labels=False)
    with raises_input_error(
        "stamp.png. A glob, or a folder, is of .txt or .md files with one text"
    ):
        TextSource(letters / "*", need_labels=False)
