"""Documents come out whole, alike from whatever window, block or compression they are read."""

import gzip
import json
import os
import random
from collections import Counter

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that

from data_gen import documents, files, shards, text_files
from data_gen.documents import blocks, find, read, texts
from data_gen.files import Block
from data_gen.settings import Reading
from tests.messages import raises_input_error
from tests.seeds import shifted

BOOK = """\ufeffA Title

CHAPTER I

The first paragraph of it is wrapped in the way that books of this kind have always been
wrapped, and so is what comes after this line in the same paragraph.

"The second," he said, and went away without another word to anybody who was in the room at
that time of night.
"""
LINES = "The first sentence.\nThe second one!\n\nAnother document?\nYes.\n"


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def all_documents(patterns, **kwargs):
    return [d for w in find(patterns) for block in blocks(w, **kwargs) for d in read(block)]


def test_a_book(tmp_path):
    [document] = all_documents(write(tmp_path, "a", BOOK))
    assert document.format == "book"
    lines = document.text.split("\n")
    assert lines[:2] == ["A Title", "CHAPTER I"]
    assert lines[2].endswith("always been wrapped, and so is what comes after this line in the "
                             "same paragraph.")  # fmt: skip
    assert len(lines) == 4


def test_sentence_lines(tmp_path):
    document_list = all_documents(write(tmp_path, "a", LINES))
    assert {d.format for d in document_list} == {"lines"}
    assert [d.text for d in document_list] == [
        "The first sentence.\nThe second one!",
        "Another document?\nYes.",
    ]


def test_json_lines(tmp_path):
    rows = [{"id": 1, "text": "One.\nTwo."}, {"text": "  "}, {"text": "Thrée 😀 \ud83d"}]
    path = write(tmp_path, "a", "\n".join(map(json.dumps, rows)) + "\n \n\n")
    document_list = all_documents(path)
    assert {d.format for d in document_list} == {"jsonl"}
    assert [d.text for d in document_list] == ["One.\nTwo.", "Thrée 😀 ?"]


def test_wrapped_text_in_json_is_unwrapped(tmp_path):
    path = write(tmp_path, "a", json.dumps({"text": BOOK}))
    [document] = all_documents(path)
    assert len(document.text.split("\n")) == 4


@pytest.mark.parametrize("form, text", [("book", BOOK), ("lines", LINES)])
def test_windows_line_ends_change_nothing(tmp_path, form, text):
    unix = all_documents(write(tmp_path, "a", text.replace("\ufeff", "")))
    windows = all_documents(write(tmp_path, "b", text.replace("\n", "\r\n")))
    assert unix[0].format == windows[0].format == form
    assert [d.text for d in unix] == [d.text for d in windows]
    assert [d.digest for d in unix] == [d.digest for d in windows]


@pytest.mark.parametrize(
    "text, form",
    [
        ("One line alone, with no end", "book"),
        ("A paragraph a line. It has two sentences.\n\nSo has this. Yes.\n", "book"),
        ("no full stops here\nbut sentences of very different length one after the other\nyes\n"
         "and they go on and on as they do in a corpus that somebody has cleaned\n", "lines"),
        ('{"title": "x", "text": "y"}\n', "jsonl"),
        ('{"text": "' + "x" * 300_000, "jsonl"),
        ("{curly} text is not JSON.\n", "book"),
    ],
)  # fmt: skip
def test_the_form_is_told_from_the_content(text, form):
    assert text_files.detect(text.encode()[: text_files.HEAD_BYTES]) == form


def test_the_form_of_real_books(shared_data):
    for path in sorted((shared_data / "books").glob("*.txt")):
        assert text_files.detect(path.read_bytes()[: text_files.HEAD_BYTES]) == "book", path


def test_a_form_can_be_forced(tmp_path):
    path = write(tmp_path, "a", LINES)
    [window] = find([path], "book")
    assert {d.format for b in blocks(window) for d in read(b)} == {"book"}
    with raises_input_error("Invalid `input_format` 'prose'"):
        find([path], "prose")


def long_text(form, size, seed=0):
    """Many documents of words that differ, some of them long, in a form."""
    rng = random.Random(shifted(seed))
    made, total = [], 0
    while total < size:
        sentences = [
            " ".join(f"w{rng.randrange(10**6)}" for _ in range(rng.randrange(1, 30))) + "."
            for _ in range(rng.randrange(1, 40))
        ]
        if form == "jsonl":
            made.append(json.dumps({"text": " ".join(sentences)}))
        else:
            made.append("\n".join(sentences) + rng.choice(["\n", "\n \n\n"]))
        total += len(made[-1])
    return "\n".join(made)


@pytest.mark.parametrize("form", ["lines", "jsonl"])
def test_windows_and_blocks_cut_between_documents(tmp_path, monkeypatch, form):
    path = write(tmp_path, "a", long_text(form, 100_000))
    whole = all_documents(path)
    assert len(whole) > 30
    monkeypatch.setattr(text_files, "WINDOW_BYTES", 4000)
    monkeypatch.setattr(files, "CHUNK_BYTES", 700)
    windows = find(path)
    assert len(windows) > 10
    all_blocks = [block for window in windows for block in blocks(window, block_bytes=1500)]
    assert len(all_blocks) > 20
    assert [d.text for block in all_blocks for d in read(block)] == [d.text for d in whole]
    assert [(d.start, d.end) for block in all_blocks for d in read(block)] == [
        (d.start, d.end) for d in whole
    ]
    assert sum(block.documents for block in all_blocks) == len(whole)
    assert sum(block.size for block in all_blocks) == sum(d.size for d in whole)


def test_sections_of_a_book_are_the_same_from_its_blocks(shared_data, monkeypatch):
    path = str(shared_data / "books" / "frankenstein.txt")
    whole = all_documents(path, block_bytes=1 << 30)
    assert 10 < len(whole) < 60
    monkeypatch.setattr(files, "CHUNK_BYTES", 10_001)
    assert all_documents(path, block_bytes=50_000) == whole
    # Nothing is lost: the words are those of the file.
    with open(path, encoding="utf-8") as file:
        assert " ".join(d.text for d in whole).split() == file.read().split()


@pytest.mark.parametrize("form", ["lines", "jsonl"])
def test_gzip_is_told_by_its_bytes_and_read_as_a_stream(tmp_path, monkeypatch, form):
    text = long_text(form, 50_000)
    plain = all_documents(write(tmp_path, "a", text))
    path = write(tmp_path, "b", gzip.compress(text[:9000].encode()) +
                 gzip.compress(text[9000:].encode()))  # fmt: skip
    monkeypatch.setattr(text_files, "WINDOW_BYTES", 5000)
    windows = find(path)
    assert len(windows) > 1
    [block] = [block for window in windows for block in blocks(window, block_bytes=100)]
    assert list(read(block)) == plain


def test_block_digests_depend_on_content_alone(tmp_path):
    a = [b for w in find(write(tmp_path, "a", LINES)) for b in blocks(w)]
    b = [b for w in find(write(tmp_path, "b", "\n\n" + LINES)) for b in blocks(w)]
    c = [b for w in find(write(tmp_path, "c", LINES + "More.\n")) for b in blocks(w)]
    assert a[0].digest == b[0].digest != c[0].digest


def test_a_block_counts_its_eval_documents(tmp_path):
    path = write(tmp_path, "a", long_text("lines", 60_000))
    limit = 2**64 // 5
    all_blocks = [b for w in find(path) for b in blocks(w, block_bytes=5000, eval_below=limit)]
    whole = all_documents(path)
    inside = [d for d in whole if d.digest < limit]
    assert sum(b.eval_documents for b in all_blocks) == len(inside) > 0
    assert sum(b.eval_size for b in all_blocks) == sum(d.size for d in inside)
    assert min(b.lowest for b in all_blocks) == min(d.digest for d in whole)
    assert max(b.highest for b in all_blocks) == max(d.digest for d in whole)


def test_documents_longer_than_the_limit_are_cut_at_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_DOCUMENT_BYTES", 2 << 20)
    text = "\n".join(f"Sentence number {i} is here." for i in range(200_000))
    for name, content in (("a", text), ("b", json.dumps({"text": text}))):
        path = write(tmp_path, name, content)
        parts = all_documents(path)
        assert len(parts) == 3
        assert max(d.size for d in parts) <= 2 << 20
        assert "\n".join(d.text.strip() for d in parts) == text
        assert counted(path) == {"long_documents_cut": 2}


def counted(path):
    """The counts of a file's documents, whatever blocks they are in."""
    total = Counter()
    for window in find(path):
        for block in blocks(window):
            total.update(dict(block.counts))
    return total


def test_documents_cut_between_windows_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "WINDOW_BYTES", 1 << 20)
    text = "One short one.\n\n" + "\n".join("A sentence like this." for _ in range(400_000))
    path = write(tmp_path, "a", text + "\n\nThe last.\nNo more.\n")
    parts = all_documents(path)
    assert "\n".join(d.text for d in parts) == text.replace("\n\n", "\n") + "\nThe last.\nNo more."
    assert counted(path) == {"long_documents_cut": len(parts) - 3} and len(parts) > 4
    assert not counted(write(tmp_path, "b", LINES))


def test_a_line_of_50_mb(tmp_path):
    text = "word " * 10_000_000
    path = write(tmp_path, "a", "One.\nTwo.\n\n" + text + "\n\nThree.\nFour.\n")
    document_list = all_documents(path)
    assert [d.text.split()[0] for d in document_list] == ["One.", "word", "Three."]
    assert document_list[1].size == len(text) - 1


def test_texts_are_bounded_and_lose_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "TEXT_CHARACTERS", 300)
    text = long_text("lines", 20_000) + "\n\n" + "x" * 1000
    path = write(tmp_path, "a", text)
    tokens = [token for w in find(path) for block in blocks(w) for token in texts(block)]
    assert max(map(len, tokens)) <= 300
    assert "".join(tokens).replace(" ", "").replace("\n", "") == "".join(text.split())


def test_read_texts_in_beam(tmp_path):
    path = write(tmp_path, "a", LINES)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        read_texts = pipeline | documents.ReadTexts(find(path))
        expected = "The first sentence.\nThe second one!\nAnother document?\nYes."
        assert_that(read_texts, lambda got: got == [expected] or pytest.fail(str(got)))


SKIP = Reading(bad_lines="skip")
BAD = [
    (
        "latin.txt",
        "Fine.\nGood.\n\nOne caf\xe9.\n".encode("latin-1"),
        "line 4 is not UTF-8 (byte 0xe9)",
        "not_utf8",
    ),
    ("nul.txt", b"One sentence.\nTwo.\n\nBut\0this.\nFine.\n", "line 4 contains a NUL", "with_nul"),
    ("x.jsonl", b'{"text": "a"}\n{"text": \n', "line 2 is not JSON", "not_json"),
    (
        "deep.jsonl",
        b'{"text": "a"}\n' + b"[" * 99999,
        "line 2 is not JSON: it is n",
        "not_json",
    ),
    ("long.jsonl", b'{"text": "a"}\n{"a": %b}' % (b"1" * 5000), "line 2 is not JSON", "not_json"),
    ("y.jsonl", b'{"text": "a"}\n\n{"txt": "b"}\n', "line 3 has no text", "without_text"),
    ("z.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', "line 2 is not UTF-8", "not_utf8"),
]


@pytest.mark.parametrize("name, data, message, reason", BAD)
@pytest.mark.parametrize("compressed", [False, True])
def test_a_bad_line_is_named(tmp_path, name, data, message, reason, compressed):
    path = write(tmp_path, name, gzip.compress(data) if compressed else data)
    with raises_input_error(f"{name}, {message}"):
        all_documents(path)


@pytest.mark.parametrize("name, data, message, reason", BAD)
def test_bad_lines_can_be_skipped_and_are_counted(tmp_path, name, data, message, reason):
    path = write(tmp_path, name, data)
    all_blocks = [b for w in find(path) for b in blocks(w, reading=SKIP)]
    assert [block.counts for block in all_blocks if block.counts] == [
        ((f"skipped_lines_{reason}", 1),)
    ]
    text = " ".join(d.text for b in all_blocks for d in read(b, reading=SKIP))
    assert text and "caf" not in text and "\0" not in text


def test_a_line_of_json_without_end_is_told_and_not_held(tmp_path, monkeypatch):
    """Only its beginning is: five gigabytes would take as much memory."""
    monkeypatch.setattr(text_files, "MAX_LINE_BYTES", 5000)
    monkeypatch.setattr(text_files, "MAX_DOCUMENT_BYTES", 2 << 20)
    parts_in_memory = []
    split = text_files.split
    monkeypatch.setattr(
        text_files, "split", lambda *given: (parts_in_memory.append(u) or u for u in split(*given))
    )
    long = b'{"text": "' + b"x" * (12 << 20) + b'"}\n'
    path = write(tmp_path, "a.jsonl", b'{"text": "a"}\n' + long + b'{"text": "b"}\n')
    with raises_input_error("a.jsonl, line 2 has more than 0 MiB, too many for one"):
        all_documents(path)
    parts_in_memory.clear()
    all_blocks = [b for w in find(path) for b in blocks(w, reading=SKIP)]
    assert Counter(dict(c for b in all_blocks for c in b.counts)) == {"skipped_lines_too_long": 1}
    assert [d.text for b in all_blocks for d in read(b, reading=SKIP)] == ["a", "b"]
    assert max(len(data) for _, _, data in parts_in_memory) <= 5000 + files.CHUNK_BYTES


def test_a_bad_byte_far_into_a_line_is_found_without_holding_the_line(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_DOCUMENT_BYTES", 2 << 20)
    data = b"One.\n" + b"word " * (1 << 20) + b"caf\xe9\nTwo.\n"
    with raises_input_error("a.txt, line 2 is not UTF-8"):
        all_documents(write(tmp_path, "a.txt", data))


def test_globs_of_the_folder_itself_and_names_that_look_like_globs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.tsv", "a1.tsv", "a[1].tsv"):
        (tmp_path / name).write_text("a text\n")
    assert set(files.sizes("*.tsv")) == {"a.tsv", "a1.tsv", "a[1].tsv"}
    assert set(files.sizes("?.tsv")) == {"a.tsv"}
    assert set(files.sizes("a[1].tsv")) == {"a[1].tsv"}
    (tmp_path / "a[1].tsv").unlink()
    assert set(files.sizes("a[1].tsv")) == {"a1.tsv"}
    (tmp_path / "*.tsv").write_text("a text\n")
    assert set(files.sizes("*.tsv")) == {"a.tsv", "a1.tsv", "*.tsv"}


@pytest.mark.parametrize(
    "name, message",
    [
        ("absent.txt", "There is no file ...absent.txt"),
        ("*.txt", "No file matches ...*.txt"),
        ("folder", "folder is a folder. Expected the files in it"),
        ("pipe", "pipe is a pipe or a device"),
        ("empty", "empty is empty"),
    ],
)
def test_wrong_paths_are_named(tmp_path, name, message):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, "empty", "")
    for given in (str(tmp_path / name), [str(tmp_path / name)]):
        with raises_input_error(message):
            find(given)


def test_a_damaged_gzip_is_named(tmp_path):
    path = write(tmp_path, "a.gz", gzip.compress(LINES.encode() * 100)[:-20])
    with raises_input_error("a.gz is not a complete gzip file"):
        all_documents(path)


def test_white_space_alone_is_no_document(tmp_path):
    assert all_documents(write(tmp_path, "a", " \n\n \t\n")) == []


def test_a_block_is_a_small_descriptor(tmp_path):
    import pickle

    path = write(tmp_path, "a", long_text("lines", 60_000))
    [block] = [b for w in find(path) for b in blocks(w)]
    assert isinstance(block, Block) and len(pickle.dumps(block)) < 500


def test_many_small_files_cost_little_each(tmp_path, monkeypatch):
    """Each is listed in one go with the others, and opened twice to scan and once to read it."""
    number = 2000
    for n in range(number):
        (tmp_path / f"{n}.txt").write_text(f"Line {n}.\n")
    opened, listed = [], []
    open_file, match = files.open_file, files.FileSystems.match
    monkeypatch.setattr(files, "open_file", lambda path: opened.append(path) or open_file(path))
    monkeypatch.setattr(
        files.FileSystems, "match", lambda patterns: listed.append(patterns) or match(patterns)
    )
    windows = find([f"{tmp_path}/*.txt"])
    assert len(windows) == number and len(listed) == 1 and not opened
    all_blocks = [block for window in windows for block in blocks(window, eval_below=2**63)]
    assert len(all_blocks) == number and len(opened) == 2 * number
    items = shards.plan(all_blocks, shard_bytes=1 << 20, eval_below=2**63)
    assert [item.split for item in items] == ["train", "eval"]
    texts = [document.text for item in items for block in item.blocks for document in read(block)]
    assert sorted(texts) == sorted(f"Line {n}." for n in range(number))
    assert len(opened) == 3 * number
