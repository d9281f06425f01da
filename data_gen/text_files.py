"""Text files as a source of documents, plain and gzip, and how they are cut into documents.

- "book": a file is one text; blank lines separate paragraphs, whose lines may be hard-wrapped. It
  is cut into *sections*, which are its documents: with one document, random next sentences could
  not come from another. A section ends before a heading once it has 8 KiB, and at the end of the
  paragraph that brings it to 32 KiB.
- "lines": one sentence per line, blank lines between documents (google-research/bert's format).
- "jsonl": JSON Lines, each an object whose `text` is a document.

Where documents are cut depends on the bytes alone. A document has at most 64 MiB; longer ones are
cut at a line or a space. A line of JSON may have 256 MiB.
"""

import codecs
import re

from data_gen import files
from data_gen.files import Block
from keras_bert.base.errors import InputError, Naming
from keras_bert.base.files import NotJson, parse_json

FORMATS = ("book", "lines", "jsonl")
WINDOW_BYTES = 64 << 20
MAX_DOCUMENT_BYTES = 64 << 20
MAX_LINE_BYTES = 256 << 20  # of JSON, which is parsed whole
HEAD_BYTES = 256 << 10  # what `detect` reads
_SECTION_MIN, _SECTION_MAX = 8 << 10, 32 << 10
_BOM = b"\xef\xbb\xbf"

# Names of counters.
DOCUMENTS_CUT = "long_documents_cut"
_SKIPPED = "skipped_lines_"
_REASONS = {
    "not_utf8": "not UTF-8",
    "with_nul": "with a NUL",
    "not_json": "not JSON",
    "without_text": "without a text field",
    "too_long": f"of more than {MAX_LINE_BYTES >> 20} MiB",
}

_BLANK = re.compile(rb"\n[ \t\r\f\v]*\n\s*")
_HEADING = re.compile(
    rb"\s*(?:(?:chapter|book|part|letter|volume|section|act|scene|canto|stave|preface|prologue"
    rb"|epilogue|introduction|appendix)\b[^\n]{0,60}|[ivxlc]{1,8}\.?(?:[ -][^\n]{0,60})?"
    rb"|\d{1,4}\.?)\s*",
    re.IGNORECASE,
)
_CAPITALS = re.compile(rb"\s*[^a-z\n]{2,60}\s*")
_SENTENCE_END = re.compile(r"""[.!?:;…。！？]["'”’»)\]_*]*$""")


class BadLine(InputError):
    """A line without text that can be read; `reason` is a key of `_REASONS`."""

    def __init__(self, sentence, reason):
        super().__init__(sentence)
        self.reason = reason


def spans(window, head):
    """Yields the documents of a window as one block, without counts but for a cut at its start.

    `head` is the file's first `HEAD_BYTES` bytes, not decompressed.
    """
    compressed = files.detect(head) == "gzip"
    if compressed and window.start:
        return  # the first window of a compressed file is the whole of it
    format = window.format
    if format is None:
        if compressed:
            head = next(files.chunks(window.path, compressed=True, size=HEAD_BYTES), b"")
        format = detect(head)
    start, counts, end = 0, (), None
    if window.start:
        start, is_cut = _first_document(window.path, format, window.start)
        counts = ((DOCUMENTS_CUT, 1),) if is_cut else ()
    if window.stop is not None and not compressed:
        end, _ = _first_document(window.path, format, window.stop)
    if end is None or start < end:
        yield Block(window.path, format, start, end, stream=compressed, counts=counts)


def contents(block, reading, counts):
    """Yields (start, end, text) for each document of a block."""
    chunks = files.chunks(block.path, start=block.start, end=block.end, compressed=block.stream)
    before = None
    for start, end, data in split(chunks, block.format):
        # Documents are separated by at least a newline.
        if start == before:
            counts[DOCUMENTS_CUT] += 1
        before = end
        start, end = block.start + start, block.start + end
        data = data.removeprefix(_BOM) if start == 0 else data
        try:
            if len(data) > MAX_LINE_BYTES:
                long = f"has more than {MAX_LINE_BYTES >> 20} MiB, too many for one document"
                raise BadLine(long, "too_long")
            content = _decode(data)
            if block.format == "jsonl":
                content = _json_text(content, reading.text_field)
        except (UnicodeDecodeError, BadLine) as error:
            if reading.bad_lines == "error":
                raise _located(error, block, start) from None
            content, reasons = _without_bad_lines(data, block.format, error)
            for reason in reasons:
                counts[f"{_SKIPPED}{reason}"] += 1
        yield start, end, content


def skipped_lines(counters):
    """The numbers of lines that were left out, by reason, from a job's counters."""
    return {
        words: counters[_SKIPPED + reason]
        for reason, words in _REASONS.items()
        if counters.get(_SKIPPED + reason)
    }


def detect(head):
    """The format of a file, detected from its first bytes."""
    text = head.decode("utf-8", errors="replace").lstrip("\ufeff")
    first = text.lstrip().split("\n", 1)[0]
    if re.match(r'\{\s*("|\})', first) and (_is_json(first) or len(first) > HEAD_BYTES // 2):
        return "jsonl"
    lines = [line.rstrip() for line in text.split("\n")[:-1] or [text]]
    # Lines that another one follows: in wrapped text they end anywhere, at nearly one length.
    inner = [line for line, after in zip(lines, lines[1:], strict=False) if line and after]
    if not inner:
        return "book"
    ending = sum(bool(_SENTENCE_END.search(line)) for line in inner) / len(inner)
    lengths = sorted(map(len, inner))
    median, high = lengths[len(inner) // 2], lengths[len(inner) * 9 // 10]
    wrapped = high <= 120 and median >= 0.85 * high
    if ending >= 0.6 or (ending < 0.02 and not wrapped):
        return "lines"
    return "book"


def split(chunks, format):
    """Cuts a stream (iterable of bytes) into its documents.

    Yields (start, end, bytes): offsets from the start of the stream, and the document; for "jsonl"
    its line, or the beginning of a line that is too long. Blank documents are left out.
    """
    if format == "jsonl":
        return _lines(chunks)
    units = (part for unit in _units(chunks) for part in cut(unit))
    return units if format == "lines" else _sections(units)


def text_of(content, format):
    """A decoded document as text in which no sentence crosses a newline.

    Joins hard-wrapped lines, so that the line breaks that are left separate sentences ("lines") or
    paragraphs (other formats).
    """
    if format == "lines" or "\n" not in content:
        return content
    if format != "book" and not _is_wrapped(content):
        return content
    paragraphs = re.split(r"\n[ \t\r\f\v]*\n\s*", content)
    return "\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)


def _json_text(line, field):
    """The text of a line of JSON; `BadLine` has what is wrong with it, without its position."""
    try:
        value = parse_json(line)
    except NotJson as error:
        raise BadLine(f"is not JSON: {error}", "not_json") from None
    if not isinstance(value, dict) or not isinstance(value.get(field), str):
        sentence = Naming(
            'has no text: each line must be an object such as {{"{}": "…"}}, unless {text_field} '
            "names another field",
            field,
        )
        raise BadLine(sentence, "without_text")
    # A lone surrogate (half an escape such as "\\ud83d") cannot be written as UTF-8.
    return value[field].encode("utf-8", errors="replace").decode("utf-8")


def position_to_cut(data):
    """Finds where to cut data too long for a document: after a line, a space, a character."""
    for mark in (b"\n", b" "):
        end = data.rfind(mark, MAX_DOCUMENT_BYTES - (1 << 20), MAX_DOCUMENT_BYTES)
        if end >= 0:
            return end + 1
    end = MAX_DOCUMENT_BYTES
    while data[end] & 0xC0 == 0x80 and end > MAX_DOCUMENT_BYTES - 4:
        end -= 1  # inside a character of several bytes
    return end


def _lines(chunks):
    start, parts, size = 0, [], 0  # of the current line
    for chunk in chunks:
        for number, part in enumerate(chunk.split(b"\n")):
            if number:
                yield from _line(start, size, parts)
                start, parts, size = start + size + 1, [], 0
            if size <= MAX_LINE_BYTES:
                parts.append(part)
            size += len(part)
    yield from _line(start, size, parts)


def _line(start, size, parts):
    line = b"".join(parts)
    if not line.isspace() and line:
        yield start, start + size, line


def _units(chunks):
    offset, rest = 0, b""
    for chunk in chunks:
        data = rest + chunk
        start = 0
        for match in _BLANK.finditer(data):
            if match.end() == len(data):
                break  # the white space may continue in the next chunk
            unit = data[start : match.start()]
            if unit and not unit.isspace():
                yield offset + start, offset + match.start(), unit
            start = match.end()
        offset, rest = offset + start, data[start:]
        if len(rest) > 2 * MAX_DOCUMENT_BYTES:
            end = position_to_cut(rest)
            yield offset, offset + end, rest[:end]
            offset, rest = offset + end, rest[end:]
    rest = rest.rstrip()
    if rest:
        yield offset, offset + len(rest), rest


def cut(unit):
    """A (start, end, bytes) that is too long for a document in several; any other as it is."""
    start, end, data = unit
    while len(data) > MAX_DOCUMENT_BYTES:
        size = position_to_cut(data)
        yield start, start + size, data[:size]
        start, data = start + size, data[size:]
    yield start, end, data


def _sections(paragraphs):
    start, end, parts = 0, 0, []
    for first, last, paragraph in paragraphs:
        if parts and end - start >= _SECTION_MIN and _is_heading(paragraph):
            yield start, end, b"\n\n".join(parts)
            parts = []
        if not parts:
            start = first
        parts.append(paragraph)
        end = last
        if end - start >= _SECTION_MAX:
            yield start, end, b"\n\n".join(parts)
            parts = []
    if parts:
        yield start, end, b"\n\n".join(parts)


def _is_heading(paragraph):
    return len(paragraph) <= 100 and bool(
        _HEADING.fullmatch(paragraph) or _CAPITALS.fullmatch(paragraph)
    )


def _is_json(line):
    try:
        return isinstance(parse_json(line), dict)
    except NotJson:
        return False


def _is_wrapped(text):
    return "\n\n" in text and detect(text[:_SECTION_MAX].encode()) == "book"


def _first_document(path, format, offset):
    """Finds the first document at or after `offset` of a file, and whether it was cut.

    A function of these alone. A document is cut, at a line or where it is, if none begins within a
    window's length.
    """
    data, before = b"", offset - 1
    if format == "jsonl":
        return _next_line(path, before), False
    for chunk in files.chunks(path, start=before):
        data += chunk
        match = _BLANK.search(data)
        if match and match.end() < len(data):
            return before + match.end(), False
        if len(data) >= WINDOW_BYTES:
            break
    else:
        return before + len(data), False
    newline = data.find(b"\n")
    if newline >= 0:
        return before + newline + 1, True
    inside = 1
    while data[inside] & 0xC0 == 0x80 and inside < 4:  # not the first byte of a character
        inside += 1
    return before + inside, True


def _next_line(path, offset):
    """Finds the next line, which may be far away; or the end of the file."""
    for chunk in files.chunks(path, start=offset):
        newline = chunk.find(b"\n")
        if newline >= 0:
            return offset + newline + 1
        offset += len(chunk)
    return offset


def _decode(data):
    zero = data.find(b"\0")
    if zero >= 0:
        raise UnicodeDecodeError("utf-8", data, zero, zero + 1, "NUL")
    text = data.decode("utf-8")
    return text.replace("\r\n", "\n") if "\r" in text else text


def _without_bad_lines(data, format, error):
    """Returns what is left of a document, and the reason for each line that is left out."""
    if format == "jsonl":
        return "", [_reason(error)]
    good, reasons = [], []
    for line in data.split(b"\n"):
        try:
            good.append(_decode(line))
        except UnicodeDecodeError as error:
            reasons.append(_reason(error))
    return "\n".join(good), reasons


def _reason(error):
    if isinstance(error, BadLine):
        return error.reason
    return "with_nul" if _bad_byte(error) == 0 else "not_utf8"


def _bad_byte(error):
    return error.object[error.start]


def _located(error, block, start):
    """The error with its line number, which is counted from the beginning of the file."""
    number, offset, rest = 1, 0, b""
    for chunk in files.chunks(block.path, compressed=block.stream):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            offset += len(line) + 1
            if offset > start and _is_bad(line, error):
                return _at_line(error, block, number)
            number += 1
        if len(rest) > MAX_DOCUMENT_BYTES:  # the line may have no end
            end = position_to_cut(rest)
            if offset + end > start and _is_bad(rest[:end], error):
                break
            offset, rest = offset + end, rest[end:]
    return _at_line(error, block, number)


def _is_bad(line, error):
    if isinstance(error, BadLine):
        return True  # the line's JSON is wrong, and the line begins at the start
    try:
        _decode(line)
    except UnicodeDecodeError:
        return True
    return False


def _at_line(error, block, number):
    if files.head(block.path, 2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return InputError(f"{block.path} is UTF-16. Save it as UTF-8.")
    problem = error
    if isinstance(error, UnicodeDecodeError):
        byte = _bad_byte(error)
        problem = "contains a NUL byte" if byte == 0 else f"is not UTF-8 (byte 0x{byte:02x})"
    return InputError.naming(
        '{}, line {} {}. Fix the line, or leave such lines out with {bad_lines="skip"}.',
        block.path,
        number,
        problem,
    )
