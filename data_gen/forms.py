"""The forms that text comes in, and how a stream of bytes is cut into documents.

- "book": a file is one text; blank lines part paragraphs, whose lines may be hard-wrapped. It is
  cut into *sections*, which are documents from here on: without them a book would be one document,
  and a random next sentence could not come from another. A section ends before a heading once it
  has 8 KiB, and at the end of the paragraph that brings it to 32 KiB.
- "lines": one sentence a line, blank lines between documents (google-research/bert's form).
- "jsonl": JSON Lines, each an object whose `text` is a document.

Where documents are cut depends on the bytes alone. A document is at most 64 MiB; what is longer is
cut at a line or a space. A line of JSON may have 256 MiB.
"""

import re

from keras_bert.base import files
from keras_bert.base.errors import InputError

FORMS = ("book", "lines", "jsonl")
MAX_DOCUMENT_BYTES = 64 << 20
MAX_LINE_BYTES = 256 << 20  # of JSON, which is parsed whole
HEAD_BYTES = 256 << 10  # what `detect` looks at

_SECTION_MIN, _SECTION_MAX = 8 << 10, 32 << 10


class BadLine(InputError):
    """A line that holds no text that can be read; `reason` is a short name for counters."""

    def __init__(self, sentence, reason):
        super().__init__(sentence)
        self.reason = reason


_BLANK = re.compile(rb"\n[ \t\r\f\v]*\n\s*")
_NEWLINE = re.compile(rb"\n")
SEPARATORS = {"book": _BLANK, "lines": _BLANK, "jsonl": _NEWLINE}
_HEADING = re.compile(
    rb"\s*(?:(?:chapter|book|part|letter|volume|section|act|scene|canto|stave|preface|prologue"
    rb"|epilogue|introduction|appendix)\b[^\n]{0,60}|[ivxlc]{1,8}\.?(?:[ -][^\n]{0,60})?"
    rb"|\d{1,4}\.?)\s*",
    re.IGNORECASE,
)
_CAPITALS = re.compile(rb"\s*[^a-z\n]{2,60}\s*")
_SENTENCE_END = re.compile(r"""[.!?:;…。！？]["'”’»)\]_*]*$""")


def detect(head):
    """Tells the form of a file from its beginning (bytes)."""
    text = head.decode("utf-8", errors="replace").lstrip("\ufeff")
    first = text.lstrip().split("\n", 1)[0]
    if re.match(r'\{\s*("|\})', first) and (_is_json(first) or len(first) > HEAD_BYTES // 2):
        return "jsonl"
    lines = [line.rstrip() for line in text.split("\n")[:-1] or [text]]
    # Lines that another one follows: in wrapped text they break off anywhere, at nearly one length.
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


def split(chunks, form):
    """Cuts a stream (iterable of bytes) into its documents.

    Yields (start, end, bytes): offsets from the start of the stream, and the document; for "jsonl"
    its line, which `parse_json` reads, and of one that is too long its beginning, which is too long
    itself. Documents of white space alone are left out.
    """
    if form == "jsonl":
        return _lines(chunks)
    units = (token for unit in _units(chunks) for token in _cut(unit))
    return units if form == "lines" else _sections(units)


def text_of(content, form):
    """A decoded document as text in which a newline is a border that no sentence crosses.

    Joins hard-wrapped lines, so that what is left of the line breaks parts sentences (form
    "lines") or paragraphs (others).
    """
    if form == "lines" or "\n" not in content:
        return content
    if form != "book" and not _is_wrapped(content):
        return content
    paragraphs = re.split(r"\n[ \t\r\f\v]*\n\s*", content)
    return "\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)


def parse_json(line, field="text"):
    """The text of a line of JSON; `BadLine` says what is wrong with it, but not where."""
    try:
        value = files.parse_json(line)
    except files.NotJson as error:
        raise BadLine(f"is not JSON: {error}", "not_json") from None
    if not isinstance(value, dict) or not isinstance(value.get(field), str):
        sentence = (
            f'has no text: each line must be an object such as {{"{field}": "…"}}, unless '
            "`text_field` names another field"
        )
        raise BadLine(sentence, "without_text")
    # A lone surrogate (half an escape such as "\\ud83d") cannot be written as UTF-8.
    return value[field].encode("utf-8", errors="replace").decode("utf-8")


def _lines(chunks):
    start, parts, size = 0, [], 0  # of the line that is being read
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
                break  # the white space may go on in the next chunk
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


def _cut(unit):
    start, end, data = unit
    while len(data) > MAX_DOCUMENT_BYTES:
        size = position_to_cut(data)
        yield start, start + size, data[:size]
        start, data = start + size, data[size:]
    yield start, end, data


def position_to_cut(data):
    """Where to cut what is longer than a document may be: after a line, a space, a letter."""
    for mark in (b"\n", b" "):
        end = data.rfind(mark, MAX_DOCUMENT_BYTES - (1 << 20), MAX_DOCUMENT_BYTES)
        if end >= 0:
            return end + 1
    end = MAX_DOCUMENT_BYTES
    while data[end] & 0xC0 == 0x80 and end > MAX_DOCUMENT_BYTES - 4:
        end -= 1  # inside a character of several bytes
    return end


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
        return isinstance(files.parse_json(line), dict)
    except files.NotJson:
        return False


def _is_wrapped(text):
    return "\n\n" in text and detect(text[:_SECTION_MAX].encode()) == "book"
