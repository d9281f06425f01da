"""Learning vocabularies, WordPiece and byte-pair encoding, from word counts.

All learn merges: the most frequent pair of neighbouring symbols becomes one symbol, repeatedly
(Sennrich et al. 2016, algorithm 1). Counting all pairs for each merge would take hours; here a
merge visits only the positions of its pair: an index has the positions of each pair, a heap the
order of the pairs, and both are corrected lazily, when a stale entry comes up.
"""

from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.text.vocabularies.bpe import END_OF_WORD, BpeVocabulary
from keras_bert.text.vocabularies.byte_level import LETTERS, ByteLevelVocabulary
from keras_bert.text.vocabularies.wordpiece import CONTINUATION_PREFIX, WordPieceVocabulary
from keras_bert.text.vocabulary import MAX_TOKEN_BYTES, MAX_WORD_LENGTH, SPECIAL_TOKENS, UNK


def checked_counts(counts):
    """Mapping of word -> count -> sorted list of (word, count), so that order cannot matter.

    Words of more than 200 characters, which the tokenizer makes [UNK], are left out.
    """
    checked = []
    for word, count in counts.items():
        if not word or not isinstance(word, str):
            raise ValueError(f"Words are strings of at least one character. Received: {word!r}.")
        if count < 1:
            raise ValueError(f"Counts are positive integers. Received: {word!r}: {count!r}.")
        if len(word) <= MAX_WORD_LENGTH:
            checked.append((word, int(count)))
    if not checked:
        short = f" of at most {MAX_WORD_LENGTH} characters" if counts else ""
        raise InputError(f"The input has no words{short}. A vocabulary needs text to learn from.")
    return sorted(checked)


def limit_alphabet(counts, limit):
    """Keeps the most frequent characters, and the words of these characters alone.

    Args:
        counts: list of (word, count).
        limit: how many characters to keep; among equally frequent ones the lowest code points.

    Returns the characters in the order of their code points, the words that are left, and the total
    count of the others.
    """
    frequency = Counter()
    for word, count in counts:
        for character in word:
            frequency[character] += count
    ranked = sorted(frequency, key=lambda character: (-frequency[character], character))
    alphabet = sorted(ranked[:limit])
    if len(ranked) <= limit:
        return alphabet, counts, 0
    letters = frozenset(alphabet)
    left = [(word, count) for word, count in counts if letters.issuperset(word)]
    return alphabet, left, sum(c for _, c in counts) - sum(c for _, c in left)


def room_for_tokens(size, *, unused, symbols, alphabet):
    """How many more tokens may be learned; InputError if the alphabet alone is too large."""
    needed = len(SPECIAL_TOKENS) + unused + len(symbols)
    if needed > size:
        characters = counted(len(alphabet), "different character")
        raise InputError.naming(
            "A vocabulary of {} is too small: {} of the text take {:,} tokens with the special "
            "ones. Ask for more tokens or set a lower {alphabet_limit}.",
            counted(size, "token"),
            characters,
            needed,
        )
    return size - needed


def by_use(tokens, use):
    """By falling count of use in the text, equal counts by code points."""
    return sorted(tokens, key=lambda token: (-use[token], token))


def _with_special_tokens(tokens, unused):
    return [*SPECIAL_TOKENS, *tokens, *(f"[unused{i}]" for i in range(unused))]


_EDGE = -1  # between two words
_INSIDE = -2  # not the first position of a symbol


@dataclass(frozen=True)
class Merges:
    """The result of `learn_merges`."""

    symbols: tuple[str, ...]  # those to begin with first
    merges: tuple[tuple[int, int], ...]  # (left, right), indices of symbols, in order of learning
    counts: np.ndarray  # int64, how often each symbol occurs in the words when all merges are done


def learn_merges(words, counts, *, symbols, join, tie_key, new_symbols, min_count):
    """Learns merges, the most frequent pair first.

    Args:
        words: a sequence of words, each a sequence of indices into `symbols`.
        counts: how often each word occurs in the text, positive integers.
        symbols: strings, the symbols to begin with.
        join: function of two strings, the symbol that their merge makes.
        tie_key: function of a symbol. Among pairs of equal count the one with the smallest
            (tie_key(right), tie_key(left)) is merged first.
        new_symbols: stop when this many symbols have been made (a pair that makes an existing
            symbol is merged, but not counted).
        min_count: stop when no pair is as frequent as this.

    Returns `Merges`. The result does not depend on the order of the words.
    """
    symbols = list(symbols)
    index = {symbol: i for i, symbol in enumerate(symbols)}
    width = [1] * len(symbols)  # positions that a symbol takes up
    keys = [tie_key(symbol) for symbol in symbols]
    at, first, weight = _lay_out(words, counts)
    pair_counts, positions = _index_pairs(at, weight)
    # A pair is one integer: left << 32 | right.
    heap = [
        (-count, keys[pair & 0xFFFFFFFF], keys[pair >> 32], pair)
        for pair, count in pair_counts.items()
    ]
    heapify(heap)
    merges = []
    wanted = len(symbols) + new_symbols
    while heap and len(symbols) < wanted:
        negative, right_key, left_key, pair = heappop(heap)
        count = pair_counts.get(pair, 0)
        if count < min_count:
            if -negative < min_count:
                break  # the others are rarer still
            continue
        if count != -negative:
            heappush(heap, (-count, right_key, left_key, pair))
            continue

        left, right = pair >> 32, pair & 0xFFFFFFFF
        joined = join(symbols[left], symbols[right])
        if len(joined.encode("utf-8")) > MAX_TOKEN_BYTES:
            continue  # no tokenizer could look for it
        merges.append((left, right))
        made = index.setdefault(joined, len(symbols))
        if made == len(symbols):
            symbols.append(joined)
            width.append(width[left] + width[right])
            keys.append(tie_key(joined))
        where = positions.pop(pair)
        if left == right:
            where = sorted(where)  # in "aaa" the first two are merged
        del pair_counts[pair]
        grown = _merge_at(
            where, left, right, made, at, first, weight, width, pair_counts, positions
        )
        for other in grown:
            heappush(
                heap, (-pair_counts[other], keys[other & 0xFFFFFFFF], keys[other >> 32], other)
            )
    return Merges(tuple(symbols), tuple(merges), _count_symbols(at, weight, len(symbols)))


def _merge_at(where, left, right, made, at, first, weight, width, pair_counts, positions):
    """Merges one pair at its positions; returns the pairs that have become more frequent."""
    left_width = width[left]
    made_width = left_width + width[right]
    # neighbour -> where the pair that it makes with the new symbol begins
    befores, afters = defaultdict(list), defaultdict(list)
    for position in where:
        right_position = position + left_width
        if at[position] != left or at[right_position] != right:
            continue  # merged into something else meanwhile
        at[right_position] = _INSIDE
        at[position] = made
        after = position + made_width
        first[after - 1] = position
        before = first[position - 1]
        neighbour = at[before]
        if neighbour >= 0:
            befores[neighbour].append(before)
        neighbour = at[after]
        if neighbour >= 0:
            afters[neighbour].append(position)
    # A pair with the new symbol gains what the pair with the old one loses. All gains come first:
    # if the pair occurred twice in a row, "abab", one of the new pairs is lost again.
    grown, losses = [], []
    for neighbour, occurrences in befores.items():
        grown.append(neighbour << 32 | made)
        losses.append(
            (neighbour << 32 | left, _gain(grown[-1], occurrences, weight, pair_counts, positions))
        )
    for neighbour, occurrences in afters.items():
        grown.append(made << 32 | neighbour)
        losses.append(
            (right << 32 | neighbour, _gain(grown[-1], occurrences, weight, pair_counts, positions))
        )
    for pair, count in losses:
        if pair in pair_counts:  # not if it is the pair that is merged
            pair_counts[pair] -= count
    return grown


def _gain(pair, occurrences, weight, pair_counts, positions):
    """Gives a pair further positions; returns how often they occur in the text."""
    count = sum(map(weight.__getitem__, occurrences))
    if pair in pair_counts:
        pair_counts[pair] += count
        positions[pair].extend(occurrences)
    else:
        pair_counts[pair] = count
        positions[pair] = array("q", occurrences)
    return count


def _lay_out(words, counts):
    """All words in one array of positions, with an edge before, between and after them.

    Returns (at, first, weight): the symbol that begins at a position (or _EDGE or _INSIDE); the
    first position of the symbol that ends at it; the count of the word that it is in.
    """
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    ends = np.cumsum(lengths + 1)
    at = np.full(int(ends[-1]) + 1 if len(words) else 1, _EDGE, dtype=np.int64)
    inside = np.ones(len(at), dtype=np.bool_)
    inside[0] = False
    inside[ends] = False
    at[inside] = np.fromiter((s for word in words for s in word), dtype=np.int64)
    weight = np.zeros(len(at), dtype=np.int64)
    weight[inside] = np.repeat(np.asarray(counts, dtype=np.int64), lengths)
    first = np.arange(len(at), dtype=np.int64)
    return tuple(array("q", column.tobytes()) for column in (at, first, weight))


def _index_pairs(at, weight):
    """pair -> count, and pair -> its positions in rising order."""
    at, weight = (np.frombuffer(column, dtype=np.int64) for column in (at, weight))
    positions = np.flatnonzero((at[:-1] >= 0) & (at[1:] >= 0))
    pairs = at[positions] << 32 | at[positions + 1]
    order = np.argsort(pairs, kind="stable")
    unique, starts = np.unique(pairs[order], return_index=True)
    totals = np.add.reduceat(weight[positions[order]], starts) if len(unique) else unique
    groups = np.split(positions[order], starts[1:])
    return (
        dict(zip(unique.tolist(), totals.tolist(), strict=True)),
        {p: array("q", g.tobytes()) for p, g in zip(unique.tolist(), groups, strict=False)},
    )


def _count_symbols(at, weight, size):
    at, weight = (np.frombuffer(column, dtype=np.int64) for column in (at, weight))
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(counts, at[at >= 0], weight[at >= 0])
    return counts


# Some tokens are only steps on the way to longer ones: of 8,000 tokens learned from 10 MB of novels
# 322 are never used. So a tenth more are learned than wanted, and the least used ones dropped: a
# novel that was left out then has 1.076 tokens per word instead of 1.087.
_SURPLUS = 0.1


def learn_wordpiece(counts, *, size, min_frequency=1, alphabet_limit=1000, unused=0):
    """Learns a WordPiece vocabulary by merges, the way Hugging Face's WordPiece trainer does.

    Args:
        counts: mapping of word -> how often it occurs in the text; words as the tokenizer splits
            them (`WordSplitter`). Their order does not matter.
        size: how many tokens to return, special and unused ones counted in. Fewer are returned only
            if the text has no more pairs that are frequent enough.
        min_frequency: a merge must be at least this frequent.
        alphabet_limit: keep this many characters, the most frequent ones; words with another one
            are [UNK], and nothing is learned from them.
        unused: how many slots named [unused0], [unused1], … to leave for tokens added later.

    Returns a `WordPieceVocabulary` with its counts: the special tokens, then the others by falling
    count of use in the text (equal counts by code points), then the unused slots. Every character
    of the alphabet is a token, at the start of a word and, unless it is only ever a word of its
    own, within one. Among equally frequent pairs the one that is smallest when compared by its
    right token, then by its left one, is merged first.

    Raises `InputError` if the counts are empty or `size` leaves no room for the alphabet.
    """
    counts = checked_counts(counts)
    alphabet, counts, lost = limit_alphabet(counts, alphabet_limit)
    inner = sorted({character for word, _ in counts if len(word) > 1 for character in word})
    symbols = [*alphabet, *(CONTINUATION_PREFIX + character for character in inner)]
    room = room_for_tokens(size, unused=unused, symbols=symbols, alphabet=alphabet)
    start = {character: i for i, character in enumerate(alphabet)}
    within = {character: i for i, character in enumerate(inner, len(alphabet))}
    learned = learn_merges(
        [(start[word[0]], *(within[character] for character in word[1:])) for word, _ in counts],
        [count for _, count in counts],
        symbols=symbols,
        join=lambda left, right: left + right.removeprefix(CONTINUATION_PREFIX),
        tie_key=lambda symbol: symbol,
        new_symbols=room + int(room * _SURPLUS),
        min_count=min_frequency,
    )
    made = learned.symbols[len(symbols) :]
    if len(made) > room:
        use = _count_use(counts, learned.symbols)
        made = by_use(made, use)[:room]
    tokens = [*symbols, *made]
    use = _count_use(counts, tokens)
    tokens = _with_special_tokens(by_use(tokens, use), unused)
    use[UNK] = lost
    return WordPieceVocabulary(tokens, counts=[use[token] for token in tokens])


def learn_words(counts, *, size, min_frequency=1, alphabet_limit=1000, unused=0):
    """The most frequent words, whole: a WordPiece vocabulary without parts of words.

    For static vectors of words. A word that it lacks is [UNK].

    Args:
        counts, size, alphabet_limit, unused: as for `learn_wordpiece`.
        min_frequency: a word must be at least this frequent.

    Returns a `WordPieceVocabulary` with its counts, its tokens in the order of `learn_wordpiece`.

    Raises `InputError` if the counts are empty or no word is as frequent.
    """
    counts = checked_counts(counts)
    total = sum(count for _, count in counts)
    _, spelled, _ = limit_alphabet(counts, alphabet_limit)
    use = Counter(
        {
            word: count
            for word, count in spelled
            if count >= min_frequency and len(word.encode()) <= MAX_TOKEN_BYTES
        }
    )
    words = by_use(use, use)[: max(0, size - len(SPECIAL_TOKENS) - unused)]
    if not words:
        raise InputError.naming(
            "No word occurs {:,} times in the input, or {size} leaves no room for words. Use a "
            "lower {min_frequency} or a larger {size}.",
            min_frequency,
        )
    tokens = _with_special_tokens(words, unused)
    use[UNK] = total - sum(use[word] for word in words)
    return WordPieceVocabulary(tokens, counts=[use[token] for token in tokens])


def _count_use(counts, tokens):
    """How often each token occurs in the text when its words are split into them."""
    use = Counter(dict.fromkeys(tokens, 0))
    tokens = frozenset(tokens)
    for word, count in counts:
        for token in longest_tokens(word, tokens):
            use[token] += count
    return use


def longest_tokens(word, tokens):
    """A word's tokens, of a set, or [UNK]: greedy longest match first (as in the graph)."""
    if word in tokens:
        return [word]
    longest = []
    start, length = 0, len(word)
    while start < length:
        prefix = CONTINUATION_PREFIX if start else ""
        for end in range(length, start, -1):
            token = prefix + word[start:end]
            if token in tokens:
                longest.append(token)
                start = end
                break
        else:
            return [UNK]
    return longest


_LAST = b"\xff"  # sorts after every character in UTF-8, whose order is that of the code points


def learn_bpe(counts, *, size, min_frequency=1, alphabet_limit=1000, unused=0):
    """Learns merges as Sennrich et al. (2016) and Jurafsky and Martin's textbook (chapter 2) do.

    A word is its characters and END_OF_WORD, which is a symbol like any other. Among equally
    frequent pairs the smallest one, compared by its right symbol and then by its left one, is
    merged first; END_OF_WORD sorts after every character. The order of the words does not matter.

    Args:
        counts, size, min_frequency, alphabet_limit, unused: as for `learn_wordpiece`.

    Returns a `BpeVocabulary` with its counts, its tokens in the order of `learn_wordpiece`.

    Raises `InputError` if the counts are empty or `size` leaves no room for the alphabet.
    """
    counts = checked_counts(counts)
    alphabet, spelled, _ = limit_alphabet(counts, alphabet_limit)
    # If the text has the mark itself, it is an unknown character.
    alphabet = [character for character in alphabet if character != END_OF_WORD]
    spelled = [(word, count) for word, count in spelled if END_OF_WORD not in word]
    symbols = [*alphabet, END_OF_WORD]
    room = room_for_tokens(size, unused=unused, symbols=symbols, alphabet=alphabet)
    index = {character: i for i, character in enumerate(alphabet)}
    end = len(alphabet)
    learned = learn_merges(
        [(*(index[character] for character in word), end) for word, _ in spelled],
        [count for _, count in spelled],
        symbols=symbols,
        join=str.__add__,
        # Bytes are compared faster than strings, of which some have wide characters.
        tie_key=lambda symbol: symbol.encode().replace(END_OF_WORD.encode(), _LAST),
        new_symbols=room,
        min_count=min_frequency,
    )
    names = learned.symbols
    merges = [(names[left], names[right]) for left, right in learned.merges]
    vocabulary = BpeVocabulary(_with_special_tokens(names, unused), merges)
    # Merging in the order of learning is how words are encoded, so the learner's own counts are
    # those of the words that it learned from; words with an unknown character are left.
    use = Counter(dict(zip(names, learned.counts.tolist(), strict=True)))
    learned_from = frozenset(word for word, _ in spelled)
    for word, count in counts:
        if word not in learned_from:
            for token in vocabulary.encode_word(word):
                use[token] += count
    tokens = _with_special_tokens(by_use(names, use), unused)
    return BpeVocabulary(tokens, merges, counts=[use[token] for token in tokens])


def learn_byte_level_bpe(counts, *, size, min_frequency=1, unused=0):
    """Learns merges of bytes, as `learn_bpe` learns those of characters.

    Args:
        counts: mapping of word -> how often it occurs in the text; words as `byte_level_words`
            splits a text into them, each as the letters of its bytes (`to_letters`).
        size, min_frequency, unused: as for `learn_wordpiece`.

    Returns a `ByteLevelVocabulary` with its counts and BERT's special tokens, its tokens in the
    order of `learn_wordpiece`. All 256 bytes are tokens.

    Raises `InputError` if the counts are empty or `size` is less than the bytes take.
    """
    counts = checked_counts(counts)
    room = size - len(SPECIAL_TOKENS) - unused - len(LETTERS)
    if room < 0:
        raise InputError(
            f"A byte-level vocabulary of {counted(size, 'token')} is too small: the bytes and the "
            f"special tokens take {size - room}. Ask for more tokens."
        )
    index = {letter: i for i, letter in enumerate(LETTERS)}
    learned = learn_merges(
        [[index[letter] for letter in word] for word, _ in counts],
        [count for _, count in counts],
        symbols=LETTERS,
        join=str.__add__,
        tie_key=str.encode,
        new_symbols=room,
        min_count=min_frequency,
    )
    names = learned.symbols
    use = Counter(dict(zip(names, learned.counts.tolist(), strict=True)))
    tokens = _with_special_tokens(by_use(names, use), unused)
    merges = [(names[left], names[right]) for left, right in learned.merges]
    return ByteLevelVocabulary(tokens, merges, counts=[use[token] for token in tokens])
