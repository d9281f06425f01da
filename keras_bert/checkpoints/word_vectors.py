"""Files of word vectors, read and written: word2vec's text and binary, GloVe's, fastText's .vec.

- "word2vec": a line with the number of words and the size D, then a line per word with D numbers.
  fastText's `.vec` is the same.
- "word2vec-binary": the same first line, then each word, a space and D float32.
- "glove": lines as of word2vec, without the first one.

Files are read and written in batches, compressed ones (gzip) too. A word may contain spaces: the
last D fields of a line are the numbers.
"""

import contextlib
import gzip
import io
import itertools
import operator
import re
import warnings
import zlib
from pathlib import Path

import numpy as np

from keras_bert.base.errors import InputError, InputWarning
from keras_bert.base.files import check_regular, new_file
from keras_bert.base.formatting import counted
from keras_bert.base.ownership import check_output_file
from keras_bert.checkpoints import ARCHIVE_ENDINGS, VECTOR_FORMATS
from keras_bert.encoders.static import StaticConfig
from keras_bert.encoders.static.encoder import StaticEncoder, normalized
from keras_bert.layers.embeddings import embedding_table
from keras_bert.text.vocabularies.wordpiece import CONTINUATION_PREFIX, WordPieceVocabulary
from keras_bert.text.vocabulary import BERT_TOKENS, MAX_TOKEN_BYTES

_BATCH = 1024  # words
_BYTES = 1 << 20  # that are read at a time
_LONGEST = 1 << 20  # bytes of a line, or of a word in a binary file
_HEADER = re.compile(rb"(\d{1,12}) (\d{1,6})[ \t\r]*\n")
_DECIMAL_COMMAS = re.compile(rb"\S.*?( -?\d*,\d+){2,}[ \t\r]*")
_DECIMALS = re.compile(r"-?\d*\.\d{4,}(e-?\d+)?")
_BEGINNING = 1 << 16
_CUT_SHORT = (EOFError, zlib.error, gzip.BadGzipFile)


def is_word_vectors(path):
    """Whether a path is that of a file that begins as one of word vectors."""
    path = Path(path)
    try:
        if not path.is_file() or path.name.lower().endswith(ARCHIVE_ENDINGS):
            return False
        with _opened(path) as file:
            beginning = file.read(_BEGINNING)
    except (OSError, *_CUT_SHORT):
        return False
    if _HEADER.match(beginning):
        return True
    lines = beginning.split(b"\n")[:2]
    if lines and _DECIMAL_COMMAS.fullmatch(lines[0]):
        return True  # which is an error of its own
    return all(_size_of(line) > 1 for line in lines if line) and any(lines)


class WordVectorFile:
    """A file of word vectors that is read in batches.

    Args:
        path: the file; its format is detected from its beginning.

    Attributes: `path`, `format` (of VECTOR_FORMATS), `size` (D), and `count`, the number of words
    that the first line gives, or None.

    Raises:
        InputError: it cannot be read, is empty, or begins with neither a header nor a word and its
            numbers.
    """

    def __init__(self, path):
        self.path = Path(path)
        check_regular(self.path)
        with self._open() as file:
            beginning = file.read(_BEGINNING)
        header = _HEADER.match(beginning)
        first, _, _ = beginning[header.end() if header else 0 :].partition(b"\n")
        if _DECIMAL_COMMAS.fullmatch(first):
            raise self._error("its numbers have decimal commas; write them with points", first)
        if header is not None:
            self.count, self.size = int(header[1]), int(header[2])
            if not self.count or not self.size:
                raise self._error("its first line gives no words or no numbers", header[0])
            self._begin = header.end()
            is_text = _size_of(first) > 0 or not first
            self.format = "word2vec" if is_text else "word2vec-binary"
            self._check_length()
        else:
            self.count, self.size, self.format = None, _size_of(first), "glove"
            self._begin = 0
            if self.size < 2:
                raise self._error("line 1 is not a word and its numbers", first)

    def batches(self):
        """Yields lists of words and their vectors, float32 (n, D), a thousand at a time.

        Raises InputError, which names the line, or in a binary file the number of the vector.
        """
        is_binary = self.format == "word2vec-binary"
        with self._open() as file:
            file.read(self._begin)
            num_words = 0
            for words, vectors in self._binary(file) if is_binary else self._text(file):
                num_words += len(words)
                yield words, vectors
        if self.count is not None and num_words != self.count:
            raise InputError(
                f"Could not read {self.path} as word vectors: its first line gives "
                f"{counted(self.count, 'word')}, but it has {num_words:,}. The file may be cut "
                "short."
            )

    def number_of_words(self):
        """The number of words, duplicates included."""
        if self.count is not None:
            return self.count
        lines, last = 0, b"\n"
        with self._open() as file:
            while some := file.read(_BYTES):
                lines, last = lines + some.count(b"\n"), some
        return lines + (not last.endswith(b"\n"))

    def _text(self, file):
        number = 1 if self._begin else 0  # the line before
        source = _without_last_empty(iter(lambda: file.readline(_LONGEST), b""))
        while True:
            lines = []
            for line in source:
                lines.append(line)
                if len(lines) == _BATCH or len(line) == _LONGEST:
                    break
            if not lines:
                return
            yield self._parsed(lines, first=number + 1)
            number += len(lines)

    def _parsed(self, lines, *, first):
        """Lines -> words, float32 (n, D); `first` is the number of the first line."""
        parts = [line.rstrip(b" \t\r\n").rsplit(b" ", self.size) for line in lines]
        vectors = None
        if all(len(part) == self.size + 1 for part in parts):
            vectors = _numbers(b" ".join(b" ".join(part[1:]) for part in parts))
        if vectors is None or vectors.size != len(parts) * self.size:
            for number, part in enumerate(parts, first):
                self._check_line(part, f"line {number}")
        vectors = vectors.reshape(len(parts), self.size)
        if not np.isfinite(vectors).all():
            row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise self._error(f"line {first + row} has a number that is not finite", lines[row])
        words = [self._word(part[0], f"line {first + row}") for row, part in enumerate(parts)]
        return words, vectors

    def _check_line(self, part, where):
        """Raises the error of a line if its last fields are not D numbers."""
        numbers = [field for field in part[1:] if _is_number(field)]
        if len(part) != self.size + 1 or len(numbers) != self.size:
            raise self._error(f"{where} has {counted(len(numbers), 'number')}", b" ".join(part))

    def _binary(self, file):
        pairs = self._vectors(file)
        while batch := list(itertools.islice(pairs, _BATCH)):
            words, vectors = zip(*batch, strict=True)
            yield list(words), np.stack(vectors)

    def _vectors(self, file):
        """Yields each word of a binary file and its vector."""
        width, data, start = 4 * self.size, b"", 0
        for number in range(1, self.count + 1):
            end = data.find(b" ", start, start + _LONGEST)
            while not 0 <= end < len(data) - width:
                more, rest = file.read(max(_BYTES, width)), data[start:]
                if not more and not rest.strip(b"\n"):
                    return  # fewer words than the first line gives
                if not more or (end < 0 and len(rest) >= _LONGEST):
                    raise self._error(f"vector {number} is cut short", rest[:80])
                data, start = rest + more, 0
                end = data.find(b" ", start, start + _LONGEST)
            word = self._word(data[start:end].lstrip(b"\n"), f"vector {number}")
            vector = np.frombuffer(data, "<f4", self.size, end + 1)
            if not np.isfinite(vector).all():
                raise self._error(f"vector {number} has a number that is not finite")
            yield word, vector
            start = end + 1 + width
        if (data[start:] + file.read(_BYTES)).strip(b"\n"):
            raise self._error(
                f"there are more than {counted(self.count, 'word')}, the number in its first line"
            )

    def _word(self, data, where):
        try:
            word = data.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(
                f"Could not read {self.path} as word vectors: the word in {where} is not UTF-8. "
                "Save the file as UTF-8."
            ) from None
        if not word or "\r" in word or "\n" in word:
            raise self._error(f"{where} has no word before its numbers", data)
        last = word.rpartition(" ")[2]
        if last != word and _DECIMALS.fullmatch(last):
            raise self._error(f"{where} has more than {self.size} numbers", data)
        return word

    def _check_length(self):
        """Raises an error, before anything is read, if there cannot be so many vectors."""
        with self._open() as file:
            if isinstance(file, gzip.GzipFile):
                return  # its length is not known
            length = file.seek(0, io.SEEK_END)
        least = 4 * self.size if self.format == "word2vec-binary" else 2 * self.size
        if length < self._begin + self.count * least:
            raise InputError(
                f"Could not read {self.path} as word vectors: its first line gives "
                f"{counted(self.count, 'word')} of {self.size} numbers, for which the file is too "
                "short. It may be cut short."
            )

    def _error(self, problem, line=b""):
        shown = line[:60].decode("utf-8", errors="replace")
        expected = "Expected a word and its numbers, with one space between them."
        if getattr(self, "size", 0) > 0:
            expected = f"Expected a word and {self.size} numbers."
        received = f" Received: {shown!r}" if shown else ""
        return InputError(
            f"Could not read {self.path} as word vectors: {problem}. {expected}{received}."
        )

    @contextlib.contextmanager
    def _open(self):
        try:
            with _opened(self.path) as file:
                yield file
        except FileNotFoundError:
            raise InputError(f"There is no file {self.path}.") from None
        except _CUT_SHORT:
            raise InputError(
                f"Could not read {self.path} as word vectors: the compressed file is cut short or "
                "damaged."
            ) from None
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror}.") from error


def _without_last_empty(lines):
    """The lines up to the last one that is not empty."""
    empty = []
    for line in lines:
        if line.strip():
            yield from empty
            empty = []
            yield line
        else:
            empty.append(line)


def load_word_vectors(path):
    """Loads a file of word vectors -> (`StaticEncoder`, `Tokenizer`).

    The ids are in the order of the file. Special tokens of BERT that it lacks come after its words,
    with vectors of zeros. The text is lower-cased if no word has a capital. Of a word that occurs
    twice the first vector is used; a warning counts the others.

    Raises:
        InputError: as `WordVectorFile`, or the file has only special tokens.
    """
    from keras_bert.text.tokenizer import Tokenizer

    file = WordVectorFile(path)
    special = [token for token in BERT_TOKENS.tokens]
    table = np.zeros((file.number_of_words() + len(special), file.size), np.float32)
    ids, duplicates, left_out = {}, 0, 0
    for words, vectors in file.batches():
        for word, vector in zip(words, vectors, strict=True):
            if word in ids:
                duplicates += 1
            elif not _can_be_token(word):
                left_out += 1
            else:
                table[len(ids)] = vector
                ids[word] = len(ids)
    for token in special:
        ids.setdefault(token, len(ids))
    _warn(path, duplicates, left_out)
    lowercase = not any(word != word.lower() for word in ids if word not in special)
    vocabulary = WordPieceVocabulary(ids)
    encoder = StaticEncoder(StaticConfig(vocab_size=len(ids), hidden_size=file.size))
    encoder.embedding.embeddings.assign(table[: len(ids)])
    return encoder, Tokenizer(vocabulary, lowercase=lowercase)


def save_word_vectors(model, tokenizer, path, *, format, overwrite=False):
    """Writes the vectors of a `StaticEncoder`, or of a task over one, as a file.

    Special tokens are written as words. The numbers of text have nine digits, which are exact.

    Args:
        model, tokenizer: what `load` gives.
        path: the file to write.
        format: one of VECTOR_FORMATS.
        overwrite: whether to replace a file of word vectors.

    Raises:
        InputError: another encoder, a file that may not be replaced, or a word with a space for a
            binary file.
    """
    if format not in VECTOR_FORMATS:
        raise ValueError(f"`format` must be one of {VECTOR_FORMATS}. Received: {format!r}.")
    encoder = getattr(model, "encoder", model)
    if not isinstance(encoder, StaticEncoder):
        raise InputError(
            f"Only static vectors can be written as {format}. Received: a "
            f"{encoder.config.model_type} encoder."
        )
    table = embedding_table(encoder.embedding, dtype="float32")
    table = np.asarray(normalized(table) if encoder.config.normalize else table)
    words = tokenizer.vocabulary.tokens

    def batches():
        for begin in range(0, len(words), _BATCH):
            yield words[begin : begin + _BATCH], table[begin : begin + _BATCH]

    _write(batches, path, format=format, shape=(len(words), table.shape[1]), overwrite=overwrite)


def convert_word_vectors(source, path, *, format, overwrite=False):
    """Writes a file of word vectors in another format, in bounded memory; duplicates are left out.

    Returns the source's format. Raises InputError as `load_word_vectors` and `save_word_vectors`.
    """
    file = WordVectorFile(source)
    seen, is_first = set(), bytearray()
    for words, _ in file.batches():
        for word in words:
            is_first.append(word not in seen)
            seen.add(word)
    count = len(seen)
    del seen
    _warn(source, len(is_first) - count, 0)

    def batches():
        begin = 0
        for words, vectors in file.batches():
            new = np.frombuffer(is_first, bool, len(words), begin)
            begin += len(words)
            yield [word for word, is_new in zip(words, new, strict=True) if is_new], vectors[new]

    _write(batches, path, format=format, shape=(count, file.size), overwrite=overwrite)
    return file.format


def _write(batches, path, *, format, shape, overwrite):
    """Writes the words and vectors of `batches`, a function, or raises `InputError`.

    The formats have no place for a mark. So a file is ours if it has the words and the size that
    are to be written.
    """

    def is_ours(path):
        if not is_word_vectors(path):
            return False
        with contextlib.suppress(InputError):
            before = WordVectorFile(path)
            new, old = (_words_of(source) for source in (batches(), before.batches()))
            return before.size == shape[1] and all(map(operator.eq, new, old))
        return False

    check_output_file(path, is_ours=is_ours, force=overwrite)
    line = "%s " + " ".join(["%.9g"] * shape[1]) + "\n"
    with new_file(path) as temporary, open(temporary, "wb") as file:
        if format != "glove":
            file.write(b"%d %d\n" % shape)
        for words, vectors in batches():
            if format != "word2vec-binary":
                rows = zip(words, vectors.tolist(), strict=True)
                file.write("".join([line % (word, *row) for word, row in rows]).encode())
                continue
            for word, vector in zip(words, vectors.astype("<f4"), strict=True):
                if " " in word:
                    raise InputError(
                        f"{path} cannot have the word {word!r}: a space ends a word in binary "
                        "files. Use the format word2vec or glove."
                    )
                file.write(word.encode() + b" " + vector.tobytes() + b"\n")


def _words_of(batches):
    """Yields each word of batches of words and vectors, and None after the last."""
    for words, _ in batches:
        yield from words
    yield None


def _opened(path):
    """The bytes of a file, unpacked if it is compressed."""
    with open(path, "rb") as file:
        is_compressed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if is_compressed else open(path, "rb")


def _can_be_token(word):
    """Whether a word can be in a vocabulary of ours; one that begins with ## is a continuation."""
    size = len(word.removeprefix(CONTINUATION_PREFIX).encode())
    return "\x00" not in word and 0 < size <= MAX_TOKEN_BYTES


def _warn(path, duplicates, left_out):
    notes = [
        f"{counted(duplicates, 'word')} twice, of which the first vector is used",
        f"{counted(left_out, 'word')} left out, of more than {MAX_TOKEN_BYTES} bytes or with a NUL",
    ]
    notes = [note for note, number in zip(notes, (duplicates, left_out), strict=True) if number]
    if notes:
        warnings.warn(f"{path}: {'; '.join(notes)}.", InputWarning, stacklevel=3)


def _size_of(line):
    """The number of numbers after the word of a line, 0 if it is not one; the first is a word."""
    fields = line.rstrip(b" \t\r\n").split(b" ")
    numbers = 0
    for field in reversed(fields[1:]):
        if not _is_number(field):
            break
        numbers += 1
    return numbers


def _is_number(field):
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field


def _numbers(text):
    """The numbers of a text with spaces between them, float32; None if it has anything else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, np.float32, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
