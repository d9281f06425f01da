"""SentencePiece's model files, read and written without its package.

`sentencepiece_model.proto` of google/sentencepiece has many fields. Those that change what becomes
of a text are read; a model is written with them alone. The package's own module for them does not
load beside the protobuf that TensorFlow needs.
"""

import dataclasses
import struct
from typing import NamedTuple

from keras_bert.base.errors import InputError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # types of pieces
_UNIGRAM, _BPE, _WORD, _CHAR = range(1, 5)  # types of models
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # of the wire format


class Piece(NamedTuple):
    """A token of a SentencePiece model."""

    text: str
    score: float  # of a NORMAL piece, the logarithm of its probability
    type: int = NORMAL


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentencePieceModel:
    """A unigram model (Kudo 2018) in the order of its own ids."""

    pieces: tuple[Piece, ...]
    charsmap: bytes = b""  # the compiled rules of normalization
    prefix_space: bool = True  # a space is put before a text
    removes_spaces: bool = True  # at both ends of a text, and all but one between words
    byte_fallback: bool = False  # unknown characters are pieces of type BYTE

    @classmethod
    def from_bytes(cls, data, *, source):
        """Reads the content of a model's file; `InputError` names `source`."""
        try:
            pieces, trainer, normalizer = [], {}, {}
            for number, value in _fields(data):
                if number == 1:
                    pieces.append(_piece(dict(_fields(value))))
                elif number == 2:
                    trainer = dict(_fields(value))
                elif number == 3:
                    normalizer = dict(_fields(value))
        except (ValueError, IndexError, struct.error, TypeError, AttributeError):
            raise InputError(f"{source} is not a SentencePiece model, or is damaged.") from None
        if not pieces:
            raise InputError(f"{source} is not a SentencePiece model: it has no tokens.")
        if trainer.get(3, _UNIGRAM) != _UNIGRAM:
            name = {_BPE: "BPE", _WORD: "word", _CHAR: "character"}.get(trainer[3], "unknown")
            raise InputError(
                f"{source} is a SentencePiece model of type {name}. Expected a unigram model."
            )
        # White space after a word instead of before it, and as it is instead of as U+2581.
        if trainer.get(24) or not normalizer.get(5, 1):
            raise InputError(
                f"{source} marks white space in another way than with U+2581 before a word. This "
                "model is not supported."
            )
        return cls(
            pieces=tuple(pieces),
            charsmap=normalizer.get(2, b""),
            prefix_space=bool(normalizer.get(3, 1)),
            removes_spaces=bool(normalizer.get(4, 1)),
            byte_fallback=bool(trainer.get(35, 0)),
        )

    def to_bytes(self):
        """The content of a model's file."""
        pieces = b"".join(
            _field(
                1,
                _field(1, piece.text.encode("utf-8"))
                + _tag(2, _FIXED32)
                + struct.pack("<f", piece.score)
                + _field(3, piece.type),
            )
            for piece in self.pieces
        )
        unknown = [number for number, piece in enumerate(self.pieces) if piece.type == UNKNOWN]
        trainer = _field(3, _UNIGRAM) + _field(35, int(self.byte_fallback))
        trainer += b"".join(_field(40, number) for number in unknown)
        normalizer = (
            _field(2, self.charsmap)
            + _field(3, int(self.prefix_space))
            + _field(4, int(self.removes_spaces))
            + _field(5, 1)
        )
        return pieces + _field(2, trainer) + _field(3, normalizer)


def _piece(fields):
    [score] = struct.unpack("<f", fields.get(2, bytes(4)))
    return Piece(fields[1].decode("utf-8"), score, fields.get(3, NORMAL))


def _fields(data):
    """Yields (number, value) of a message: int for a varint, otherwise bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
        else:
            sizes = {_FIXED64: 8, _FIXED32: 4}
            size, at = (sizes[wire], at) if wire in sizes else _length(data, at, wire)
            value, at = data[at : at + size], at + size
            if at > len(data):
                raise ValueError("The message ends within a field.")
        yield number, value


def _length(data, at, wire):
    if wire != _BYTES:
        raise ValueError(f"The wire type must be {_BYTES}. Received: {wire}.")
    return _varint(data, at)


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _tag(number, wire):
    return _encoded(number << 3 | wire)


def _encoded(value):
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _field(number, value):
    """A field of an int (not negative) or of bytes."""
    if isinstance(value, int):
        return _tag(number, _VARINT) + _encoded(value)
    return _tag(number, _BYTES) + _encoded(len(value)) + value


def mapped(charsmap, character):
    """Returns what a compiled map of normalization makes of a character, or None if it stays.

    The map is a double-array trie (darts-clone) and the strings that its values point at.
    """
    if not charsmap:
        return None
    [size] = struct.unpack_from("<I", charsmap)
    units, strings = charsmap[4 : 4 + size], charsmap[4 + size :]

    def unit(number):
        [value] = struct.unpack_from("<I", units, 4 * number)
        return value

    def offset(value):
        return (value >> 10) << ((value & (1 << 9)) >> 6)

    node = offset(unit(0))
    for byte in character.encode("utf-8"):
        node ^= byte
        value = unit(node)
        if value & ((1 << 31) | 0xFF) != byte:
            return None
        node ^= offset(value)
    if not (value >> 8) & 1:
        return None
    start = unit(node) & ((1 << 31) - 1)
    return strings[start : strings.index(b"\0", start)].decode("utf-8")
