"""The steps before a model, in the graph: normalizers and added tokens, with offsets.

A text goes through them as the pieces between its added tokens. Where each byte of the normalized
pieces comes from is kept as two columns, so that steps of any order lead back to the text.
"""

from typing import NamedTuple

import tensorflow as tf
import tensorflow_text as tf_text

from keras_bert.text.normalization import characters, ranges, utf8_width
from keras_bert.text.normalizers import QUOTES, REPLACEMENTS
from keras_bert.text.ragged import row_ids, select
from keras_bert.text.vocabularies.spaced import WHITE_SPACE

EDGE = b"\xff"  # a byte that no text has
SPACE_CLASS = "".join(rf"\x{{{ord(character):x}}}" for character in WHITE_SPACE)

# Marks and parts of letters that came into Unicode after the tables of `tokenizers`, to which each
# is a character that no other one is reordered around or composed with.
_ALONE = ranges(
    "7fd 897-89f 8ca-8d3 9fe c3c d3b-d3c eba 1715 1abf-1ace 1df6-1dfa a82c 105d2 105da 10d24-10d27 "
    "10d69-10d6d 10eab-10eac 10efd-10eff 10f46-10f50 10f82-10f85 11070 1133b 113b8 113bb 113c2 "
    "113c9 113ce-113d0 1145e 11839-1183a 11930 1193d-1193e 11943 119e0 11a34 11a47 11a99 11d42 "
    "11d44-11d45 11d97 11f41-11f42 1611e-16120 16129 1612f 16d67 16ff0-16ff1 1e08f 1e130-1e136 "
    "1e2ae 1e2ec-1e2ef 1e4ec-1e4ef 1e5ee-1e5ef"
)


def words_between_white_space(texts):
    """Splits texts of valid UTF-8 at white space: string (B,) -> ragged string (B, None)."""
    words = tf.strings.split(tf.strings.regex_replace(texts, f"[{SPACE_CLASS}]+", " "), " ")
    return select(words, words.values != "")


class Normalized(NamedTuple):
    """Normalized texts, and the bytes that theirs come from."""

    texts: tf.Tensor  # string (B,)
    # Of each byte of all texts, int64 (N,): where in the original texts, as one string, the
    # characters begin and end that it was made of.
    first: tf.Tensor
    after: tf.Tensor


def normalized(texts, names):
    """Texts of valid UTF-8, string (B,), by the normalizers with these names -> `Normalized`."""
    result = Normalized(texts, *_own_bytes(texts))
    for name in names:
        step = _STEPS[name](result.texts)
        # A byte begins where the first, and ends where the last of the bytes it was made of does.
        first = tf.gather(result.first, step.first)
        after = tf.gather(result.after, step.after - 1)
        result = Normalized(step.texts, first, after)
    return result


def _own_bytes(texts):
    """The columns of texts that were not changed."""
    first = tf.range(tf.reduce_sum(tf.cast(tf.strings.length(texts), tf.int64)))
    return first, first + 1


def _composed(form):
    """The normalizer of a form of Unicode that composes characters, and so depends on context."""

    def normalize(texts):
        # Each of _ALONE is a text of its own.
        parts = tf.strings.split(
            tf.strings.regex_replace(texts, _ALONE, EDGE + rb"\0" + EDGE), EDGE
        )
        changed, source_map = tf_text.normalize_utf8_with_offsets_map(parts.values, form)
        sizes = tf.cast(tf.strings.length(changed), tf.int64)
        # For 0 to all bytes of a part, where it is in the source; inside of what was changed, the
        # end of that.
        edges = tf.ragged.range(sizes + 1)
        source = tf_text.find_source_offsets(source_map, edges).values
        lengths = tf.cast(tf.strings.length(parts.values), tf.int64)
        part_starts = tf.cumsum(lengths, exclusive=True)
        is_last = edges.values == tf.gather(sizes, row_ids(edges))
        source += tf.gather(part_starts, row_ids(edges))
        at = tf.where(~is_last)[:, 0]
        before, after = tf.gather(source, at), tf.gather(source, at + 1)
        begins = before < after  # else it is inside
        group = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        first = tf.gather(tf.boolean_mask(before, begins), group)
        return Normalized(tf.strings.reduce_join(parts.with_values(changed), axis=1), first, after)

    return normalize


def _by_character(function):
    """A normalizer that is a function of texts and makes the same of a character in every text."""

    def normalize(texts):
        letters = characters(texts)
        unique, which = tf.unique(letters.points)
        alone = function(tf.strings.unicode_encode(unique[:, None], "UTF-8"))
        sizes = tf.gather(tf.strings.length(alone), which)  # (C,)
        # A character that vanishes belongs to the one before it, if its text has one.
        is_first = tf.scatter_nd(
            tf.searchsorted(letters.positions, letters.text_positions)[:, None],
            tf.ones_like(letters.text_positions),
            [tf.size(letters.points) + 1],
        )[:-1]
        is_base = (sizes > 0) | (is_first > 0)
        ends = letters.positions + utf8_width(letters.points)
        group_ends = tf.math.segment_max(ends, tf.cumsum(tf.cast(is_base, tf.int64)) - 1)
        after = tf.gather(group_ends, tf.cumsum(tf.cast(is_base, tf.int64)) - 1)
        source = tf.repeat(tf.range(tf.size(sizes)), sizes)  # (N,)
        return Normalized(
            function(texts), tf.gather(letters.positions, source), tf.gather(after, source)
        )

    return normalize


def _lower(texts):
    # A sigma is the same at the end of a word. A to Z and U+0130 first, as in `fold`: what comes
    # after them follows the machine's locale.
    texts = tf.strings.regex_replace(texts, "\u03a3", "\u03c3")
    texts = tf.strings.lower(tf.strings.regex_replace(texts, "\u0130", "i\u0307"))
    # What follows ends a text at a NUL.
    parts = tf.strings.split(tf.strings.regex_replace(texts, r"\x00", EDGE), EDGE)
    lower = tf.strings.lower(parts.values, encoding="utf-8")
    is_last = tf.ragged.range(parts.row_lengths()).values == tf.gather(
        parts.row_lengths() - 1, row_ids(parts)
    )
    lower = tf.strings.join([lower, tf.where(is_last, b"", b"\x00")])
    return tf.strings.reduce_join(parts.with_values(lower), axis=1)


def _as_quotes(pair):
    """The normalizer that makes a double quote of each of these pairs of bytes."""

    def normalize(texts):
        marked = tf.strings.bytes_split(tf.strings.regex_replace(texts, pair, 2 * EDGE))
        is_pair = marked.values == EDGE
        is_second = is_pair & (tf.cumsum(tf.cast(is_pair, tf.int64)) % 2 == 0)
        first = tf.where(~is_second)[:, 0]
        after = first + 1 + tf.cast(tf.gather(is_pair, first), tf.int64)
        return Normalized(tf.strings.regex_replace(texts, pair, '"'), first, after)

    return normalize


def _single_spaces(texts):
    """The normalizer that makes a space of each run of white space, and of each line end or tab."""
    letters = characters(texts)
    text = tf.searchsorted(letters.text_positions, letters.positions, side="right")
    follows = tf.concat([[False], text[1:] == text[:-1]], axis=0)[: tf.size(text)]
    is_space = tf.reduce_any(letters.points[:, None] == _WHITE_SPACE, axis=1)
    follows_space = tf.concat([[False], is_space[:-1]], axis=0)[: tf.size(text)] & follows
    precedes_space = tf.concat([(is_space & follows)[1:], [False]], axis=0)[: tf.size(text)]
    is_end = tf.reduce_any(letters.points[:, None] == [ord(c) for c in "\n\r\t"], axis=1)
    is_replaced = is_space & (follows_space | precedes_space | is_end)
    is_kept = ~(is_replaced & follows_space)
    widths = utf8_width(letters.points)
    ends = tf.math.segment_max(
        letters.positions + widths, tf.cumsum(tf.cast(is_kept, tf.int64)) - 1
    )
    kept_letters = tf.where(is_kept)[:, 0]
    sizes = tf.where(
        tf.gather(is_replaced, kept_letters),
        tf.ones_like(kept_letters),
        tf.gather(widths, kept_letters),
    )
    source = tf.repeat(tf.range(tf.size(sizes)), sizes)  # of each byte
    return Normalized(
        tf.strings.regex_replace(texts, rf"[{SPACE_CLASS}]{{2,}}|[\n\r\t]", " "),
        tf.gather(tf.gather(letters.positions, kept_letters), source),
        tf.gather(ends, source),
    )


_WHITE_SPACE = [ord(character) for character in WHITE_SPACE]
_STEPS = {
    **{name: _as_quotes(REPLACEMENTS[name][1]) for name in QUOTES},
    "single_spaces": _single_spaces,
    "nfc": _composed("NFC"),
    "nfkc": _composed("NFKC"),
    "nfd": _by_character(lambda texts: tf_text.normalize_utf8(texts, "NFD")),
    "nfkd": _by_character(lambda texts: tf_text.normalize_utf8(texts, "NFKD")),
    "lowercase": _by_character(_lower),
    "strip_accents": _by_character(lambda texts: tf.strings.regex_replace(texts, r"\p{M}", "")),
}


class AddedTokens(tf.Module):
    """Cuts texts at added tokens.

    Args:
        tokens: a sequence of `AddedToken`, which may be empty.
        id: function of a token's content, its id.
    """

    def __init__(self, tokens, id):
        super().__init__()
        # The longest of those that begin at the same place; what takes white space comes last, so
        # that a token of white space alone is cut out before.
        tokens = sorted(tokens, key=lambda token: (token.lstrip, -len(token.content)))
        self._is_empty = not tokens
        self._pattern = "|".join(map(_pattern, tokens))
        self._takes_space = any(token.lstrip or token.rstrip for token in tokens)
        with tf.init_scope():
            self._contents = tf.constant([token.content for token in tokens], tf.string)
            self._ids = tf.constant([id(token.content) for token in tokens], tf.int32)

    def cut(self, texts):
        """string (B,) -> pieces, ragged string (B, None), and their ids, int32 (P,), -1 for text.

        The pieces of a text, one after another, are the text.
        """
        if self._is_empty:
            whole = tf.ones_like(texts, tf.int64)
            return tf.RaggedTensor.from_row_lengths(texts, whole, validate=False), tf.fill(
                tf.shape(texts), -1
            )
        marked = tf.strings.regex_replace(texts, self._pattern, EDGE + rb"\0" + EDGE)
        pieces = tf.strings.split(marked, EDGE)
        is_added = tf.ragged.range(pieces.row_lengths()).values % 2 == 1
        at = tf.where(is_added)[:, 0]
        unique, which = tf.unique(tf.gather(pieces.values, at))
        same = unique[:, None] == self._contents
        if self._takes_space:
            bare = tf.strings.regex_replace(unique, f"^[{SPACE_CLASS}]+|[{SPACE_CLASS}]+$", "")
            same |= (bare[:, None] == self._contents) & ~tf.reduce_any(same, axis=1)[:, None]
        ids = tf.gather(self._ids, tf.argmax(tf.cast(same, tf.int32), axis=1))
        ids = tf.tensor_scatter_nd_update(
            tf.fill(tf.shape(is_added), -1), at[:, None], tf.gather(ids, which)
        )
        return pieces, ids


def _pattern(token):
    """The regular expression of an added token."""
    content = "".join(rf"\x{{{ord(character):x}}}" for character in token.content)
    before, after = (
        f"[{SPACE_CLASS}]*" if strips else "" for strips in (token.lstrip, token.rstrip)
    )
    return f"{before}{content}{after}"


def steps_of(vocabulary):
    """The `Steps` before a vocabulary's model, or None for no steps.

    Special tokens are not among the added ones: in a user's text they are ordinary text.
    """
    added = [token for token in vocabulary.added_tokens if not token.special]
    if not (vocabulary.normalizers or added):
        return None
    return Steps(vocabulary.normalizers, added, vocabulary.id)


class Steps(tf.Module):
    """All steps before a model, and the tokens that it and they make.

    Args:
        normalizers: their names, a sequence of str.
        added_tokens: a sequence of `AddedToken`.
        id: function of a token's content, its id.
    """

    def __init__(self, normalizers, added_tokens, id):
        super().__init__()
        self._normalizers = normalizers
        self._plain, self._in_normalized = (
            AddedTokens([token for token in added_tokens if token.normalized == which], id)
            for which in (False, True)
        )

    def __call__(self, texts, model):
        """Tokens of texts of valid UTF-8, string (B,).

        `model` takes texts (P,) and returns ids, ragged int32 (P, None), starts and ends (int64,
        bytes of all texts as one string). So does this function, of `texts`.
        """
        pieces, piece_ids = self._plain.cut(texts)  # ragged (B, None), (P,)
        piece_sizes = tf.cast(tf.strings.length(pieces.values), tf.int64)
        piece_ends = tf.cumsum(piece_sizes)
        # What was cut out must not be normalized, nor cut again: it is one NUL meanwhile.
        was_cut = piece_ids >= 0
        shift = tf.cumsum(tf.where(was_cut, piece_sizes - 1, 0), exclusive=True)
        step = normalized(tf.where(was_cut, b"\x00", pieces.values), self._normalizers)

        parts, part_ids = self._in_normalized.cut(step.texts)  # ragged (P, None), (Q,)
        piece_of_part = row_ids(parts)
        id_of_piece = tf.gather(piece_ids, piece_of_part)
        part_ids = tf.where(id_of_piece < 0, part_ids, id_of_piece)
        ids, starts, ends = _tokens(parts.values, part_ids, model)

        # Back to the texts: what was cut out of them is whole.
        piece = tf.gather(piece_of_part, row_ids(ids))  # (T,)
        whole, shift = tf.gather(was_cut, piece), tf.gather(shift, piece)
        last = tf.gather(piece_ends, piece)
        first = last - tf.gather(piece_sizes, piece)
        starts = tf.gather(step.first, starts) + shift
        ends = tf.gather(step.after, tf.maximum(ends - 1, 0)) + shift
        splits = tf.gather(ids.row_splits, tf.gather(parts.row_splits, pieces.row_splits))
        return (
            tf.RaggedTensor.from_row_splits(ids.values, splits, validate=False),
            tf.where(whole, first, starts),
            tf.where(whole, last, ends),
        )


def _tokens(parts, added, model):
    """Returns `model`'s result for parts (P,), some of which are added tokens with ids `added`."""
    sizes = tf.cast(tf.strings.length(parts), tf.int64)
    part_starts = tf.cumsum(sizes, exclusive=True)
    is_text = added < 0
    texts = tf.where(is_text, parts, "")
    ids, starts, ends = model(texts)
    text_starts = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64), exclusive=True)
    shift = tf.gather(part_starts - text_starts, row_ids(ids))
    at = tf.where(~is_text)[:, 0]  # (A,)
    # A part has either tokens of the model or one that was added.
    lengths = tf.where(is_text, ids.row_lengths(), 1)
    splits = tf.concat([[0], tf.cumsum(lengths)], axis=0)
    number = tf.range(splits[-1])
    added_at = tf.gather(splits, at)  # (A,)
    is_added = tf.scatter_nd(
        added_at[:, None], tf.ones_like(added_at, tf.bool), tf.shape(number, out_type=tf.int64)
    )
    to = tf.concat([tf.boolean_mask(number, ~is_added), added_at], axis=0)[:, None]
    first = tf.gather(part_starts, at)
    columns = (
        (ids.values, tf.gather(added, at)),
        (starts + shift, first),
        (ends + shift, first + tf.gather(sizes, at)),
    )
    ids, starts, ends = (
        tf.scatter_nd(to, tf.concat(column, axis=0), splits[-1:]) for column in columns
    )
    return tf.RaggedTensor.from_row_splits(ids, splits, validate=False), starts, ends
