"""Files of word vectors: word2vec's text and binary, GloVe's, fastText's .vec."""

import gzip
import itertools
import tracemalloc

import numpy as np
import pytest

import keras_bert as kb
from keras_bert.base.errors import InputWarning
from keras_bert.checkpoints import VECTOR_FORMATS, load, save_folder
from keras_bert.checkpoints.convert import convert
from keras_bert.checkpoints.word_vectors import (
    WordVectorFile,
    convert_word_vectors,
    is_word_vectors,
    load_word_vectors,
    save_word_vectors,
)
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from keras_bert.training.finetuning_task import StartingPoint
from tests import small_model
from tests.messages import raises_input_error
from tests.seeds import make_rng

WORDS = ["the", "New York", ". . .", "naïve", "\u00a0", "0.5", "日本"]
D = 5


@pytest.fixture(scope="module")
def vectors():
    return make_rng(0).normal(size=(len(WORDS), D)).astype(np.float32)


def text_of(words, vectors, *, header, end=""):
    """A file as the programs write it: `end` is what they have before a line end."""
    lines = [f"{len(words)} {vectors.shape[1]}"] if header else []
    rows = zip(words, vectors, strict=True)
    lines += [f"{word} {' '.join(repr(float(x)) for x in row)}{end}" for word, row in rows]
    return "".join(f"{line}\n" for line in lines).encode()


def binary_of(words, vectors, *, end=b""):
    """word2vec.c has a line end after each vector, gensim has none."""
    rows = zip(words, vectors.astype("<f4"), strict=True)
    body = b"".join(word.encode() + b" " + row.tobytes() + end for word, row in rows)
    return f"{len(words)} {vectors.shape[1]}\n".encode() + body


def files(vectors):
    """name -> (the bytes of a file as its program writes it, its words)."""
    plain = [word.replace(" ", "_") for word in WORDS]
    return {
        "gensim.txt": (text_of(WORDS, vectors, header=True), WORDS),
        "word2vec.txt": (text_of(WORDS, vectors, header=True, end=" "), WORDS),
        "wiki.vec": (text_of(WORDS, vectors, header=True), WORDS),
        "glove.txt": (text_of(WORDS, vectors, header=False), WORDS),
        "windows.txt": (text_of(WORDS, vectors, header=False, end="\r"), WORDS),
        "word2vec.bin": (binary_of(plain, vectors, end=b"\n"), plain),
        "gensim.bin": (binary_of(plain, vectors), plain),
        "wiki.vec.gz": (gzip.compress(text_of(WORDS, vectors, header=True)), WORDS),
    }


@pytest.mark.parametrize("name", files(np.zeros((len(WORDS), D))))
def test_what_programs_write_is_read(name, vectors, tmp_path):
    content, words = files(vectors)[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert is_word_vectors(path)
    encoder, tokenizer = load_word_vectors(path)
    assert tokenizer.vocabulary.tokens == (*words, *SPECIAL_TOKENS)
    table = encoder.embedding.embeddings.numpy()
    np.testing.assert_array_equal(table[: len(words)], vectors)
    assert not table[len(words) :].any()
    assert tokenizer.lowercase is not any(word != word.lower() for word in words)


@pytest.mark.parametrize("format", VECTOR_FORMATS)
@pytest.mark.parametrize("source", ["model", "file"])
def test_there_and_back_to_the_bit(format, source, vectors, tmp_path):
    words = [word.replace(" ", "_") for word in WORDS]
    path, copy = tmp_path / "vectors.txt", tmp_path / "copy"
    path.write_bytes(text_of(words, vectors, header=True))
    if source == "file":
        assert convert_word_vectors(path, copy, format=format) == "word2vec"
    else:
        save_word_vectors(*load_word_vectors(path), copy, format=format)
    file = WordVectorFile(copy)
    assert (file.format, file.size) == (format, D)
    encoder, tokenizer = load_word_vectors(copy)
    assert tokenizer.vocabulary.tokens == (*words, *SPECIAL_TOKENS)
    np.testing.assert_array_equal(encoder.embedding.embeddings.numpy()[: len(words)], vectors)


def test_of_a_word_that_is_there_twice_the_first_is_used_and_the_others_are_counted(tmp_path):
    path = tmp_path / "twice.txt"
    path.write_text("a 1 2\nb 3 4\na 5 6\na 7 8\n")
    with pytest.warns(InputWarning, match="2 words twice, of which the first vector is used"):
        encoder, tokenizer = load_word_vectors(path)
    assert tokenizer.vocabulary.tokens[:3] == ("a", "b", "[PAD]")
    np.testing.assert_array_equal(encoder.embedding.embeddings[:2], [[1, 2], [3, 4]])
    with pytest.warns(InputWarning, match="2 words twice"):
        convert_word_vectors(path, tmp_path / "once.txt", format="word2vec")
    assert (tmp_path / "once.txt").read_text() == "2 2\na 1 2\nb 3 4\n"


def test_words_that_no_vocabulary_can_have_are_left_out_and_counted(tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text(f"a 1 2\n{'x' * 300} 3 4\nb\x00 5 6\n")
    with pytest.warns(InputWarning, match="2 words left out, of more than 256 bytes"):
        _, tokenizer = load_word_vectors(path)
    assert tokenizer.vocabulary.tokens == ("a", *SPECIAL_TOKENS)


A_MILLION = 1_000_000
CUT = binary_of(["a", "b"], np.ones((2, 3)))[:-5]
BAD = [
    (b"a 1 2\nb 3\n", "line 2 has 1 number. Expected a word and 2 numbers. Received: 'b 3'"),
    (b"a 1 2\nb 3 x\n", "line 2 has 1 number. Expected a word and 2"),
    (b"a 1 2\nb 0.12345 3.2 4\n", "line 2 has more than 2 numbers"),
    (b"a 1 2\n 3 4\n", "line 2 has no word before its numbers"),
    (b"a 1 2\nb 3 nan\n", "line 2 has a number that is not finite"),
    (b"a 1 2\nb\xff 3 4\n", "the word in line 2 is not UTF-8. Save the file as UTF-8."),
    (b"2 3\na 1 2 3\nb 1 2\n", "line 3 has 2 numbers. Expected a word and 3 numbers."),
    (b"3 2\na 1 2\nb 1 2\n", "first line gives 3 words, but it has 2. The file may be cut short."),
    (b"1 2\na 1 2\nb 1 2\n", "its first line gives 1 word, but it has 2"),
    (b"999999999 300\na 1 2\n", "for which the file is too short. It may be cut short."),
    (b"0 300\n", "its first line gives no words or no numbers"),
    (b"", "line 1 is not a word and its numbers"),
    (b"some text\n", "line 1 is not a word and its numbers. Expected a word and its numbers"),
    (CUT, "for which the file is too short. It may be cut short."),
    (
        binary_of(["a", "b\xff"], np.ones((2, 3))).replace(b"\xc3\xbf", b"\xff"),
        "in vector 2 is not",
    ),
    (binary_of(["a"], np.full((1, 3), np.inf)), "vector 1 has a number that is not finite"),
    (binary_of(["a"], np.ones((1, 3))) + b"more", "more than 1 word, the number in its first line"),
    (gzip.compress(b"a 1 2\n" * 9000, mtime=0)[:-9], "the compressed file is cut short or damaged"),
]


@pytest.mark.parametrize(("content", "message"), BAD, ids=lambda value: str(value)[:40])
def test_a_broken_file_is_one_sentence(content, message, tmp_path):
    path = tmp_path / "broken.txt"
    path.write_bytes(content)
    with raises_input_error(f"{path}...{message}"):
        load_word_vectors(path)


@pytest.mark.slow
def test_another_width_in_line_a_million_is_found_in_bounded_memory(tmp_path):
    path = tmp_path / "large.txt"
    with open(path, "w") as file:
        for first in range(0, A_MILLION - 1, 50_000):
            numbers = range(first, min(first + 50_000, A_MILLION - 1))
            file.writelines(f"w{number} 0.5 -1.25\n" for number in numbers)
        file.write("broken 0.5\n")
    tracemalloc.start()
    with raises_input_error("line 1000000 has 1 number. Expected a word and 2"):
        for _ in WordVectorFile(path).batches():
            pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_other_files_are_not_taken_for_word_vectors(tmp_path):
    path = tmp_path / "file"
    for content in (b"", b"text\n", b"a text\tham\n", b"{}", b"word 1\n", b"\x00\x01", b"1 2"):
        path.write_bytes(content)
        assert not is_word_vectors(path), content
    assert not is_word_vectors(tmp_path) and not is_word_vectors(tmp_path / "nothing")


def test_a_file_is_a_model_by_its_path_and_is_converted_both_ways(vectors, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "wiki.vec"
    path.write_bytes(text_of(WORDS, vectors, header=True))
    encoder, tokenizer = load(path)
    assert encoder.config.model_type == "static" and len(tokenizer) == len(WORDS) + 5
    done = convert(path, tmp_path / "folder")
    assert done == {"found": "word2vec", "wrote": "StaticEncoder", "left_out": []}
    again, _ = load(tmp_path / "folder")
    np.testing.assert_array_equal(again.weights[0], encoder.weights[0])
    done = convert(tmp_path / "folder", tmp_path / "out.txt", to="glove")
    assert done["found"] == "huggingface"
    assert len((tmp_path / "out.txt").read_text().splitlines()) == len(WORDS) + 5
    convert(path, tmp_path / "out.vec", to="word2vec")
    assert (tmp_path / "out.vec").read_text().startswith(f"{len(WORDS)} {D}\nthe ")
    for output, message in (
        ("out.txt", "did not write"),
        ("out.vec", "is there already"),
        ("wiki.vec", "is also the input"),
    ):
        with raises_input_error(message):
            convert(path, tmp_path / output, to="word2vec")


def test_what_a_format_cannot_hold_is_one_sentence(vectors, tmp_path):
    path = tmp_path / "wiki.vec"
    path.write_bytes(text_of(WORDS, vectors, header=True))
    with raises_input_error("cannot have the word 'New York': a space ends a word"):
        convert_word_vectors(path, tmp_path / "out.bin", format="word2vec-binary")
    assert not (tmp_path / "out.bin").exists()
    tokenizer = small_model.make_tokenizer()
    bert = small_model.make_encoder(tokenizer)
    with raises_input_error("Only static vectors can be written as glove"):
        save_word_vectors(bert, tokenizer, tmp_path / "bert.txt", format="glove")


def test_a_binary_file_is_read_whatever_the_boundaries_of_what_is_read_at_once(
    tmp_path, monkeypatch
):
    words = [f"w{number}" for number in range(300)]
    table = make_rng(0).normal(size=(300, 3)).astype(np.float32)
    path = tmp_path / "words.bin"
    path.write_bytes(binary_of(words, table, end=b"\n"))
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr("keras_bert.checkpoints.word_vectors._BYTES", size)
        batches = list(WordVectorFile(path).batches())
        assert list(itertools.chain(*(batch_words for batch_words, _ in batches))) == words
        np.testing.assert_array_equal(np.concatenate([rows for _, rows in batches]), table)


def test_gensim_reads_and_writes_the_same(vectors, tmp_path):
    models = pytest.importorskip("gensim.models")
    words = [word.replace(" ", "_") for word in WORDS if word.strip()]
    their_vectors = models.KeyedVectors(D)
    their_vectors.add_vectors(words, vectors[: len(words)])
    for binary in (False, True):
        path = tmp_path / f"theirs{binary}"
        their_vectors.save_word2vec_format(str(path), binary=binary)
        encoder, tokenizer = load_word_vectors(path)
        assert tokenizer.vocabulary.tokens[: len(words)] == tuple(words)
        np.testing.assert_allclose(encoder.weights[0][: len(words)], vectors[: len(words)])
        format = "word2vec-binary" if binary else "word2vec"
        save_word_vectors(encoder, tokenizer, tmp_path / f"ours{binary}", format=format)
        ours = models.KeyedVectors.load_word2vec_format(
            str(tmp_path / f"ours{binary}"), binary=binary
        )
        np.testing.assert_allclose(ours[words], vectors[: len(words)])


def test_a_folder_of_a_large_vocabulary_keeps_its_words(vectors, tmp_path):
    path = tmp_path / "wiki.vec"
    path.write_bytes(text_of(WORDS, vectors, header=True))
    encoder, tokenizer = load_word_vectors(path)
    save_folder(encoder, tokenizer, tmp_path / "model")
    again, same = load(tmp_path / "model")
    assert same.vocabulary == tokenizer.vocabulary and same.lowercase == tokenizer.lowercase
    assert again.config == encoder.config
    assert same.tokenize(["naïve the 日本"])[0].numpy().tolist() == [3, 0, 5 + 3, 5 + 3]


@pytest.mark.parametrize("header", [True, False])
def test_decimal_commas_are_a_sentence(header, vectors, tmp_path):
    path = tmp_path / "a.vec"
    content = text_of(WORDS[:2], vectors[:2], header=header).replace(b".", b",")
    path.write_bytes(content)
    assert is_word_vectors(path)
    with raises_input_error(
        "a.vec as word vectors: its numbers have decimal commas; write them with points"
    ):
        load(path)


@pytest.mark.parametrize("name", ["wiki.vec", "glove.txt", "word2vec.txt", "windows.txt"])
@pytest.mark.parametrize("end", [b"\n", b"\n\n\n", b"\r\n \n"])
def test_empty_last_lines_are_none(name, end, vectors, tmp_path):
    content, words = files(vectors)[name]
    path = tmp_path / name
    path.write_bytes(content + end)
    encoder, tokenizer = load_word_vectors(path)
    assert tokenizer.vocabulary.tokens == (*words, *SPECIAL_TOKENS)
    assert encoder.config.vocab_size == len(tokenizer.vocabulary)
    lines = content.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"\n", *lines[3:]]))
    with raises_input_error("line 4 has 0 numbers"):
        load_word_vectors(path)


def test_messages_name_the_file_and_not_its_folder_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "words.vec"
    path.write_text("a 1 2\nb 3 4\n")
    with raises_input_error("words.vec describes a StaticEncoder: an encoder without"):
        kb.load_task(path)
    start = StartingPoint(model=str(path))
    assert start.description == f"Starting from the weights in {path}."
    encoder, tokenizer = kb.load(path)
    with raises_input_error(
        "`static_vectors` are concatenated with contextual vectors. Received: a static"
    ):
        kb.Classifier(encoder, tokenizer, labels=["x", "y"], static_vectors=encoder)
