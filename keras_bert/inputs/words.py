"""Words and their tokens, and sequences of whole words for texts of any length.

Core TensorFlow operations only, besides the tokenizer, so that labelled files and exported models
have the same sequences. Legend of shapes: E texts, W words of a text, T tokens of a text, R
sequences.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.inputs.framing import windows
from keras_bert.text.ragged import per_value, row_ids, select

_TEXTS_PER_CALL = 1000  # of the tokenizer's graph, which share the cost of the call


class TokenizedWords(NamedTuple):
    """The tokens of texts, and which of them begin a word.

    ids: ragged int32 (E, T), without special tokens.
    firsts: ragged int32 (E, W), the number of each word's first token; a word ends before the next
        one's first token.
    spaces: ragged int32 (E, W), how many of the tokens of a word, 0 or 1, are the space before it,
        which is not read as a part of the word.
    """

    ids: tf.RaggedTensor
    firsts: tf.RaggedTensor
    spaces: tf.RaggedTensor

    @classmethod
    def of(cls, ids, firsts, tokenizer):
        """From `ids` and `firsts`, which may be the space before a word or the token after it.

        Such a space belongs to the word, and is not read if the model was trained so
        (`Tokenizer.skips_spaces`).
        """
        if not tokenizer.vocabulary.OWN_SPACES:
            return cls(ids, firsts, firsts.with_values(tf.zeros_like(firsts.values)))
        vocabulary = tokenizer.vocabulary
        is_blank = tf.gather(tf.constant(vocabulary.is_blank), ids.values)  # (T,)
        begins_with_space = tf.gather(tf.constant(vocabulary.begins_with_space), ids.values)
        at = firsts.values + per_value(tf.cast(ids.row_starts(), tf.int32), firsts)  # (W,)
        ends = tf.concat([at[1:], tf.shape(is_blank)], axis=0)
        is_before = tf.gather(is_blank, tf.maximum(at - 1, 0)) & (firsts.values > 0)
        is_before &= ~tf.gather(begins_with_space, at)
        is_first = tf.gather(is_blank, at) & (ends - at > 1)
        spaces = tf.cast(is_before | is_first, tf.int32)
        return cls(
            ids,
            firsts.with_values(firsts.values - tf.cast(is_before, tf.int32)),
            firsts.with_values(spaces if tokenizer.skips_spaces else tf.zeros_like(spaces)),
        )

    def read_tokens(self):
        """Which tokens of all texts are read, bool (T,), and which of them begin a word, (T,)."""
        at = self.firsts.values + per_value(tf.cast(self.ids.row_starts(), tf.int32), self.firsts)
        count = tf.shape(self.ids.values)
        is_space, is_first = (
            tf.tensor_scatter_nd_max(tf.zeros(count, tf.int32), position[:, None], value) > 0
            for position, value in (
                (at, self.spaces.values),
                (at + self.spaces.values, tf.ones_like(at)),
            )
        )
        return ~is_space, is_first


class WordSequences(NamedTuple):
    """Sequences of whole words; a long text has several that overlap.

    Every word is owned by one sequence, where it has much context on both sides. A sequence has the
    words from `first` up to `end` of its text and owns those from `owned` up to `owned_end`, all
    int32 (R,), as is `text`, the number of the text.

    ids: ragged int32 (R, None), without special tokens.
    starts, ends: ragged int32 (R, None), for each word the position of its first token that is read
        and the position after its last one, in the sequence with its special tokens.
    """

    text: tf.Tensor
    first: tf.Tensor
    end: tf.Tensor
    owned: tf.Tensor
    owned_end: tf.Tensor
    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


def words_given(texts, tokenizer):
    """`TokenizedWords` of lists of words, which are read as the text that joins them by spaces.

    A word without a token in that text has those of the word alone, or [UNK].
    """
    ids, lengths, firsts = [], [], []
    for first in range(0, len(texts), _TEXTS_PER_CALL):
        some = texts[first : first + _TEXTS_PER_CALL]
        for results, result in zip((ids, lengths, firsts), _joined(some, tokenizer), strict=True):
            results.append(result)
    ids, lengths, firsts = (
        tf.constant(np.concatenate(parts) if parts else [], dtype)
        for parts, dtype in ((ids, tf.int32), (lengths, tf.int64), (firsts, tf.int32))
    )
    counts = tf.constant([len(words) for words in texts], tf.int64)
    ids = tf.RaggedTensor.from_row_lengths(ids, lengths)
    return TokenizedWords.of(ids, tf.RaggedTensor.from_row_lengths(firsts, counts), tokenizer)


def _joined(texts, tokenizer):
    """Lists of words -> ids (T,), tokens per text (E,), each word's first token in its text (W,).

    All are arrays of integers.
    """
    tokens = tokenizer.tokenize_with_offsets([" ".join(words) for words in texts])
    ids, splits = tokens.ids.values.numpy(), tokens.ids.row_splits.numpy()
    words = [word for text_words in texts for word in text_words]
    counts = np.array([len(text_words) for text_words in texts], np.int64)
    text_of_word = np.repeat(np.arange(len(texts)), counts)
    # Characters of all texts, each with a space after it, one after another.
    ends = np.cumsum([len(word) + 1 for word in words], dtype=np.int64)
    word_splits = np.r_[0, np.cumsum(counts)]
    text_starts = np.r_[0, ends][word_splits]
    token_starts = tokens.starts.values.numpy() + np.repeat(text_starts[:-1], np.diff(splits))
    token_starts = np.maximum.accumulate(token_starts)  # of one character may come in any order
    edges = np.searchsorted(token_starts, np.r_[0, ends])  # of words among the tokens
    firsts, missing = edges[:-1], np.flatnonzero(edges[:-1] == edges[1:])
    if len(missing):
        alone = tokenizer.tokenize([words[word] for word in missing]).to_list()
        alone = [own or [tokenizer.vocabulary.unk_id] for own in alone]
        sizes = np.array([len(own) for own in alone], np.int64)
        ids = np.insert(ids, np.repeat(firsts[missing], sizes), np.concatenate(alone))
        more = np.zeros(len(words), np.int64)
        more[missing] = sizes
        firsts = firsts + np.cumsum(more) - more
        splits = splits + np.r_[0, np.cumsum(more)][word_splits]
    return ids, np.diff(splits), firsts - splits[text_of_word]


def words_of_texts(texts, tokenizer):
    """The words of strings as a tokenizer splits them; also in a graph.

    Words are split at white space, and every punctuation mark is one; characters that the tokenizer
    drops (control characters) are part of none.

    Args:
        texts: a list of strings, or string (E,).
        tokenizer: a `Tokenizer`.

    Returns:
        `TokenizedWords`, and each word's first character in its text and the one after its last:
        two ragged int32 (E, W).
    """
    tokens = tokenizer.tokenize_with_offsets(texts)
    positions = tf.ragged.range(tf.cast(tokens.ids.row_lengths(), tf.int32))
    begins = tokens.word_starts.values
    firsts, starts = select(positions, begins), select(tokens.starts, begins)
    words = TokenizedWords.of(tokens.ids, firsts, tokenizer)
    return words, starts, select(tokens.ends, ends_word(begins))


def tokenized_words(examples, tokenizer):
    """`TokenizedWords` of examples with given `words`, or with a `text` that is split here.

    Returns also a list with the (starts, ends) of the words of each text, in characters, and None
    for examples with words.
    """
    given = [n for n, example in enumerate(examples) if example.words is not None]
    texts = [n for n, example in enumerate(examples) if example.words is None]
    parts = [words_given([examples[n].words for n in given], tokenizer)]
    offsets = [None] * len(examples)
    for first in range(0, len(texts), _TEXTS_PER_CALL):
        some = texts[first : first + _TEXTS_PER_CALL]
        part, starts, ends = words_of_texts([examples[n].text for n in some], tokenizer)
        parts.append(part)
        for n, *text_words in zip(some, starts.to_list(), ends.to_list(), strict=True):
            offsets[n] = text_words
    order = tf.constant(np.argsort([*given, *texts]), tf.int32)
    merged = (tf.gather(tf.concat(part, axis=0), order) for part in zip(*parts, strict=True))
    return TokenizedWords(*merged), offsets


def ends_word(begins):
    """Which tokens end a word, bool (T,): those before the next word's first, and the last one.

    `begins` is of all texts one after another; the first token of a text begins a word.
    """
    return tf.concat([begins[1:], tf.ones_like(begins[:1])], axis=0)


def cut(texts, starts, ends):
    """The characters `starts` up to `ends`, ragged (B, None), of texts (B,): ragged string."""
    # Decoded once, because `tf.strings.substr` would copy a text for each of its words.
    points = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
    base = tf.cast(tf.gather(points.row_starts(), row_ids(starts)), tf.int32)
    positions = tf.ragged.range(base + starts.values, base + ends.values)
    words = tf.strings.unicode_encode(tf.gather(points.values, positions), "UTF-8")
    return starts.with_values(words)


def word_sequences(tokenized, *, template, max_length):
    """Sequences of up to `max_length` tokens, including special tokens, of whole words.

    The sequences of a longer text overlap by half of their tokens, so that a word has about a
    quarter of a sequence as context on each side, as far as the text goes. Words of more tokens
    than that quarter are truncated.

    Args:
        tokenized: `TokenizedWords`.
        template: the `Template` of the sequences.
        max_length: at least one token more than the special ones.

    Returns:
        `WordSequences` in the order of the text; a text without words has one.
    """
    room = template.room(max_length)
    overlap = room // 2
    tokenized = _with_short_words(tokenized, most=max(1, overlap // 2))
    tokens = tf.cast(tokenized.ids.row_lengths(), tf.int32)  # (E,)
    parts = windows(tokens, room, stride=room - overlap, last="short")
    edges = _Edges(tokenized, parts.sequence, before=template.before(0, texts=1))
    return edges.sequences(
        edges.word_at(parts.starts),
        edges.word_after(parts.starts + room),
        owned=edges.word_at(parts.core_starts),
        owned_end=edges.word_at(parts.core_ends),
    )


def sequences_around(tokenized, low, high, *, template, max_length):
    """One sequence per text, of whole words, with those from `low` up to `high` in its middle.

    A sequence is as long as the text allows. Words of more tokens than an eighth of a sequence are
    truncated.

    Shapes: low, high int32 (E,), with at least one word between them.

    Args:
        tokenized: `TokenizedWords`.
        template: the `Template` of the sequences.
        max_length: maximum tokens per sequence; at least one more than the special ones.

    Returns:
        `WordSequences`, which own all of their words, and int32 (E,), by how many tokens the words
        from `low` up to `high` exceed the sequence: 0 if it holds them all.
    """
    room = template.room(max_length)
    tokenized = _with_short_words(tokenized, most=max(1, room // 8))
    tokens = tf.cast(tokenized.ids.row_lengths(), tf.int32)  # (E,)
    text, before = tf.range(tf.size(tokens)), template.before(0, texts=1)
    edges = _Edges(tokenized, text, before=before)
    begin, after = edges.token_of(low), edges.token_of(high)
    spare = tf.maximum(room - (after - begin), 0)
    missing = tf.maximum(after - begin - room, 0)
    begin = tf.clip_by_value(begin - spare // 2, 0, tf.maximum(tokens - room, 0) + missing)
    first, end = edges.word_at(begin), edges.word_after(begin + room)
    return edges.sequences(first, end, owned=first, owned_end=end), missing


class _Edges:
    """The first tokens of words, for the texts of R sequences, among the tokens of all texts.

    Words are numbered over all texts; a sequence's text has those from `low` up to `high`, (R,)
    each. `before` special tokens precede the text in a sequence.
    """

    def __init__(self, tokenized, text, *, before):
        self._before = before
        self._ids, self._text = tokenized.ids.flat_values, text
        splits = tf.cast(tokenized.ids.row_splits, tf.int32)
        word_splits = tf.cast(tokenized.firsts.row_splits, tf.int32)
        text_of_word = tf.cast(row_ids(tokenized.firsts), tf.int32)
        self._starts = tokenized.firsts.flat_values + tf.gather(splits, text_of_word)  # (words,)
        self._spaces = tokenized.spaces.flat_values  # (words,)
        # The first token of each word, and the end of the last one.
        self._edges = tf.concat([self._starts, splits[-1:]], axis=0)
        self._text_start = tf.gather(splits, text)  # (R,)
        self.low, self.high = tf.gather(word_splits, text), tf.gather(word_splits, text + 1)

    def token_of(self, word):
        """The first token of a word of each text, (R,), both numbered within the text."""
        return tf.gather(self._edges, self.low + word) - self._text_start

    def word_at(self, token):
        """The first word that begins at or after a token of each text."""
        word = tf.searchsorted(self._starts, self._text_start + token, out_type=tf.int32)
        return tf.clip_by_value(word, self.low, self.high)

    def word_after(self, token):
        """The first word that ends after a token of each text."""
        word = tf.searchsorted(
            self._edges, self._text_start + token, side="right", out_type=tf.int32
        )
        return tf.clip_by_value(word - 1, self.low, self.high)

    def sequences(self, first, end, *, owned, owned_end):
        """The `WordSequences` of words, numbered over all texts."""
        is_empty = first == end
        token, after = (
            tf.where(is_empty, self._text_start, tf.gather(self._edges, word))
            for word in (first, end)
        )
        words = tf.ragged.range(first, end)
        shift = per_value(self._before - token, words)
        return WordSequences(
            self._text,
            *(word - self.low for word in (first, end, owned, owned_end)),
            tf.gather(self._ids, tf.ragged.range(token, after)),
            words.with_values(
                tf.gather(self._edges, words.values) + tf.gather(self._spaces, words.values) + shift
            ),
            words.with_values(tf.gather(self._edges, words.values + 1) + shift),
        )


def _with_short_words(tokenized, *, most):
    """The same words, truncated to `most` tokens each."""
    texts = tf.cast(row_ids(tokenized.firsts), tf.int32)
    splits = tf.cast(tokenized.ids.row_splits, tf.int32)
    starts = tokenized.firsts.flat_values + tf.gather(splits, texts)
    lengths = tf.concat([starts[1:], splits[-1:]], axis=0) - starts  # (words,)
    position = tf.ragged.range(lengths).flat_values  # (tokens,), of each in its word
    limited = tf.minimum(lengths, most)
    words = tokenized.firsts.with_values(limited)
    ids = tf.boolean_mask(tokenized.ids.flat_values, position < most)
    firsts = tf.cumsum(limited, exclusive=True)
    counts = tf.reduce_sum(words, axis=1)  # (E,)
    before = tf.cumsum(counts, exclusive=True)
    return TokenizedWords(
        tf.RaggedTensor.from_row_lengths(ids, counts),
        tokenized.firsts.with_values(firsts - tf.gather(before, texts)),
        tokenized.spaces.with_values(tf.minimum(tokenized.spaces.flat_values, limited - 1)),
    )
