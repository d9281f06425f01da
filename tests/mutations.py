"""Changes of the files that a folder may have: values of JSON, headers, bytes, what is at the path.

Each is (what was changed, a function that makes the new content); see `put`.
"""

import functools
import json
import os
import random
import struct

from tests.seeds import shifted

# In place of any value. JSON knows no bound of numbers, and Python reads Infinity and NaN.
VALUES = [
    *(None, True, 0, -1, 3, 10**400, 0.5, 1e300, float("nan"), float("inf")),
    *("", "x", "0", "\0", "é" * 300, [], [None], [1], ["x"], [[]], {}, {"": None}, {"x": 1}),
]
MISSING = object()
PIPE, FOLDER = "a pipe that nothing is written to", "an empty folder"  # in place of a file
_MEMBERS = 40  # of a list or an object; of more only the first and the last ones are changed


def changes_of_file(path):
    """The changes of a file, by its name: a list."""
    data = path.read_bytes()
    others = [*changes_of_bytes(data, flips=6 if path.suffix == ".json" else 20)]
    others += [(what, lambda what=what: what) for what in (PIPE, FOLDER)]
    changes_of_content = {".json": changes_of_json, ".safetensors": changes_of_safetensors}.get(
        path.suffix
    )
    return [*changes_of_content(data), *others] if changes_of_content else others


def put(path, content):
    """Puts bytes, a PIPE or a FOLDER in the place of a file, or of one of these."""
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()
    if content is PIPE:
        os.mkfifo(path)
    elif content is FOLDER:
        path.mkdir()
    else:
        path.write_bytes(content)


def changes_of_json(data):
    """Yields the changes of every value in a JSON text, and of the whole."""
    for path, is_member in _places(json.loads(data), ()):
        for value in [*VALUES, *([MISSING] if is_member else ())]:
            shown = "missing" if value is MISSING else f"{value!r:.30}"
            yield f"{'/'.join(map(str, path))}: {shown}", functools.partial(_set, data, path, value)


def _places(value, path):
    yield path, False
    if isinstance(value, dict | list):
        keys = [*value] if isinstance(value, dict) else [*range(len(value))]
        for key in keys if len(keys) <= _MEMBERS else [*keys[:2], *keys[-2:]]:
            for place, is_member in _places(value[key], (*path, key)):
                yield place, is_member or (len(place) == len(path) + 1 and isinstance(value, dict))


def _set(data, path, value):
    content = json.loads(data)
    if not path:
        return json.dumps(value).encode()
    holder = content
    for key in path[:-1]:
        holder = holder[key]
    if value is MISSING:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return json.dumps(content).encode()


def changes_of_safetensors(data):
    """Yields changes of the header of a safetensors file."""
    [size] = struct.unpack("<Q", data[:8])
    header, rest = data[8 : 8 + size], data[8 + size :]

    def with_header(make):
        new = make()
        return struct.pack("<Q", len(new)) + new + rest

    for what, make in changes_of_json(header):
        yield what, functools.partial(with_header, make)
    for number in (0, 1, size + 1, 2**40, 2**64 - 1):
        yield f"a header of {number} bytes", lambda n=number: struct.pack("<Q", n) + data[8:]


def changes_of_bytes(data, *, flips=20):
    """Yields changes of bytes: cut, empty, repeated, with other bytes and lines."""
    for size in sorted({0, 1, 7, len(data) // 2, len(data) - 1} & {*range(len(data))}):
        yield f"the first {size} bytes", lambda n=size: data[:n]
    last_line = data[data.rfind(b"\n", 0, -1) + 1 :]
    for what, new in (
        ("the whole twice", data * 2),
        ("NULs", bytes(len(data))),
        ("text", b"not this format\n"),
        ("a line more", data + b"\nmore\n"),
        ("a line twice", data + last_line),
        ("a long line", data + b"x" * 400_000 + b"\n"),
    ):
        yield what, lambda new=new: new
    rng = random.Random(shifted(0))
    for _ in range(flips if data else 0):
        at, byte = rng.randrange(len(data)), rng.randrange(256)
        new = data[:at] + bytes([byte]) + data[at + 1 :]
        yield f"byte {at} is {byte}", lambda new=new: new
