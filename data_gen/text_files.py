"""Text files as a source of documents: books, sentence lines and JSON Lines, plain and gzip."""

import codecs

from data_gen import files, forms
from data_gen.reading import Block
from keras_bert.base.errors import InputError

WINDOW_BYTES = 64 << 20
# Names of counters.
DOCUMENTS_CUT = "long_documents_cut"
_SKIPPED = "skipped_lines_"
_IN_WORDS = {
    "not_utf8": "not UTF-8",
    "with_nul": "with a NUL",
    "not_json": "not JSON",
    "without_text": "without a text field",
    "too_long": f"of more than {forms.MAX_LINE_BYTES >> 20} MiB",
}

_BOM = b"\xef\xbb\xbf"


def spans(window, head):
    """Yields the documents of a window as one block, counted but for what was cut at its start.

    `head` is the file's first `forms.HEAD_BYTES` bytes as they are.
    """
    compressed = files.kind(head) == "gzip"
    if compressed and window.start:
        return  # the first window of a compressed file is the whole of it
    form = window.form
    if form is None:
        if compressed:
            head = next(files.chunks(window.path, compressed=True, size=forms.HEAD_BYTES), b"")
        form = forms.detect(head)
    start, counts, end = 0, (), None
    if window.start:
        start, is_cut = _begin(window.path, form, window.start)
        counts = ((DOCUMENTS_CUT, 1),) if is_cut else ()
    if window.stop is not None and not compressed:
        end, _ = _begin(window.path, form, window.stop)
    if end is None or start < end:
        yield Block(window.path, form, start, end, stream=compressed, counts=counts)


def contents(block, reading, counts):
    """Yields (start, end, text) for each document of a block."""
    chunks = files.chunks(block.path, start=block.start, end=block.end, compressed=block.stream)
    before = None
    for start, end, data in forms.split(chunks, block.form):
        # At least a newline stands between two documents.
        if start == before:
            counts[DOCUMENTS_CUT] += 1
        before = end
        start, end = block.start + start, block.start + end
        data = data.removeprefix(_BOM) if start == 0 else data
        try:
            if len(data) > forms.MAX_LINE_BYTES:
                long = f"has more than {forms.MAX_LINE_BYTES >> 20} MiB, too many for one document"
                raise forms.BadLine(long, "too_long")
            content = _decode(data)
            if block.form == "jsonl":
                content = forms.parse_json(content, reading.text_field)
        except (UnicodeDecodeError, forms.BadLine) as error:
            if reading.bad_lines == "error":
                raise _located(error, block, start) from None
            content, reasons = _without_bad_lines(data, block.form, error)
            for reason in reasons:
                counts[f"{_SKIPPED}{reason}"] += 1
        yield start, end, content


def skipped_lines(counters):
    """Of a job's counters those of lines that were left out: reason in words -> number."""
    return {
        words: counters[_SKIPPED + reason]
        for reason, words in _IN_WORDS.items()
        if counters.get(_SKIPPED + reason)
    }


def _begin(path, form, offset):
    """Where the first document begins at or after a byte of a file: a function of these alone.

    If none begins within a window's length, one is cut: at a line, or where it is. Returns the
    place, and whether a document was cut there.
    """
    data, before = b"", offset - 1
    if form == "jsonl":
        return _next_line(path, before), False
    for chunk in files.chunks(path, start=before):
        data += chunk
        match = forms.SEPARATORS[form].search(data)
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
    """Where a line begins after a byte of a file, which may be far from it; or the file's end."""
    for chunk in files.chunks(path, start=offset):
        place = chunk.find(b"\n")
        if place >= 0:
            return offset + place + 1
        offset += len(chunk)
    return offset


def _decode(data):
    zero = data.find(b"\0")
    if zero >= 0:
        raise UnicodeDecodeError("utf-8", data, zero, zero + 1, "NUL")
    text = data.decode("utf-8")
    return text.replace("\r\n", "\n") if "\r" in text else text


def _without_bad_lines(data, form, error):
    """What is left of a document, and for each line that is not why."""
    if form == "jsonl":
        return "", [_reason(error)]
    good, reasons = [], []
    for line in data.split(b"\n"):
        try:
            good.append(_decode(line))
        except UnicodeDecodeError as error:
            reasons.append(_reason(error))
    return "\n".join(good), reasons


def _reason(error):
    if isinstance(error, forms.BadLine):
        return error.reason
    return "with_nul" if _bad_byte(error) == 0 else "not_utf8"


def _bad_byte(error):
    return error.object[error.start]


def _located(error, block, start):
    """The error as a sentence with the line, which is looked for from the file's beginning."""
    number, offset, rest = 1, 0, b""
    for chunk in files.chunks(block.path, compressed=block.stream):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            offset += len(line) + 1
            if offset > start and _is_bad(line, error):
                return _sentence(error, block, number)
            number += 1
        if len(rest) > forms.MAX_DOCUMENT_BYTES:  # it may have no end: piece by piece
            end = forms.position_to_cut(rest)
            if offset + end > start and _is_bad(rest[:end], error):
                break
            offset, rest = offset + end, rest[end:]
    return _sentence(error, block, number)


def _is_bad(line, error):
    if isinstance(error, forms.BadLine):
        return True  # what is wrong is the line's JSON, and it begins at the start
    try:
        _decode(line)
    except UnicodeDecodeError:
        return True
    return False


def _sentence(error, block, number):
    if files.head(block.path, 2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return InputError(f"{block.path} is UTF-16: save it as UTF-8")
    what = str(error)
    if isinstance(error, UnicodeDecodeError):
        byte = _bad_byte(error)
        what = "holds a NUL byte" if byte == 0 else f"is not UTF-8 (byte 0x{byte:02x})"
    return InputError(
        f"{block.path}, line {number} {what}: mend the line, or leave such lines out with "
        '`bad_lines="skip"`'
    )
