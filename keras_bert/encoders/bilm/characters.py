"""The characters of tokens, as ELMo reads them: bytes of UTF-8 between marks."""

import numpy as np

# After the 256 bytes. Every id is one more: 0 is left for the padding of sequences.
BEGIN_SEQUENCE, END_SEQUENCE, BEGIN_WORD, END_WORD, PADDING = range(256, 261)


def character_ids(words, *, length):
    """The characters of words: strings, or ids of marks -> int32 (W, length).

    A word is `BEGIN_WORD`, its bytes, as many as there is room for, `END_WORD`, and padding; a mark
    such as `BEGIN_SEQUENCE` is one byte. All are one more than their number; None is a row of 0.
    """
    ids = np.zeros((len(words), length), np.int32)
    for row, word in zip(ids, words, strict=True):
        if word is None:
            continue
        content = [word] if isinstance(word, int) else word.encode("utf-8")[: length - 2]
        characters = [BEGIN_WORD, *content, END_WORD]
        row[:] = PADDING + 1
        row[: len(characters)] = np.array(characters) + 1
    return ids


def spelling_of(vocabulary):
    """What the characters of a vocabulary's tokens follow from, as JSON values.

    They are `tokens`, and the roles `begin` (such as [CLS]), `end` ([SEP]) and `padding` ([PAD]),
    each a token or None.
    """
    roles = vocabulary.special_tokens
    return {
        "tokens": list(vocabulary.tokens),
        "begin": roles.cls,
        "end": roles.sep,
        "padding": roles.pad,
    }


def character_table(spelling, *, rows, length, widest):
    """The characters of each token of a vocabulary: int32 (rows, C).

    A token is read as the vocabulary writes it ("##ing"). The tokens that begin and end a sequence
    are marks, and padding is 0, as is a row without a token.

    Args:
        spelling: of `spelling_of`.
        rows: the number of rows, at least that of the tokens.
        length: the characters of a token.
        widest: the width of the widest filter. C is the longest token and this, where that is less
            than `length`: windows of padding alone, which are left out, are all alike.
    """
    marks = {
        spelling["begin"]: BEGIN_SEQUENCE,
        spelling["end"]: END_SEQUENCE,
        spelling["padding"]: None,
    }
    words = [marks.get(token, token) for token in spelling["tokens"]]
    words += [None] * (rows - len(words))
    table = character_ids(words, length=length)
    longest = np.max(np.sum((table > 0) & (table <= PADDING), axis=1))
    return table[:, : min(length, longest + widest)]
