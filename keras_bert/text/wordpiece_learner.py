"""Learning a WordPiece vocabulary from word counts."""

from collections import Counter

import numpy as np

from keras_bert.text.merges import learn_merges
from keras_bert.text.vocabulary import SPECIAL_PIECES, UNK
from keras_bert.text.word_counts import checked_counts, limit_alphabet, too_small
from keras_bert.text.wordpiece_vocabulary import CONTINUATION_PREFIX, WordPieceVocabulary

# Merges leave pieces behind that were only steps on the way to longer ones: of 8,000 pieces learned
# from 10 MB of novels 322 are never used. So a tenth more are learned than wanted, and the least
# used ones dropped: a novel left out then has 1.076 pieces a word instead of 1.087.
_SURPLUS = 0.1


def learn_wordpiece(counts, *, size, min_frequency=1, alphabet_limit=1000, unused=0):
    """Learns a WordPiece vocabulary by merges, the way Hugging Face's WordPiece trainer does.

    Args:
        counts: mapping of word -> how often it stands in the text; words as the tokenizer sees
            them (`WordSplitter`). Their order does not matter.
        size: how many pieces to return, special and unused ones counted in. Fewer come back only
            where the text has no more pairs that are frequent enough.
        min_frequency: a merge must be at least this frequent.
        alphabet_limit: keep this many characters, the most frequent ones; words that hold another
            one are [UNK] and teach nothing.
        unused: how many slots named [unused0], [unused1], … to leave for pieces added later.

    Returns a `WordPieceVocabulary` that knows its counts: the special pieces, then the others by
    falling count of use in the text (equal counts by code points), then the unused slots. Every
    character of the alphabet is a piece, at the start of a word and, unless it is only ever a word
    of its own, within one. Among equally frequent pairs the one that is smallest when compared by
    its right piece, then by its left one, is merged first.

    Raises `InputError` where the counts are empty or `size` leaves no room for the alphabet.
    """
    counts = checked_counts(counts)
    alphabet, counts, lost = limit_alphabet(counts, alphabet_limit)
    inner = sorted({character for word, _ in counts if len(word) > 1 for character in word})
    symbols = [*alphabet, *(CONTINUATION_PREFIX + character for character in inner)]
    room = size - len(SPECIAL_PIECES) - unused - len(symbols)
    if room < 0:
        raise too_small(size, alphabet=len(alphabet), needed=size - room)
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
        made = sorted(made, key=lambda piece: (-use[piece], piece))[:room]
    pieces = [*symbols, *made]
    use = _count_use(counts, pieces)
    pieces.sort(key=lambda piece: (-use[piece], piece))
    use[UNK] = lost
    slots = [f"[unused{i}]" for i in range(unused)]
    pieces = [*SPECIAL_PIECES, *pieces, *slots]
    found = np.array([use[piece] for piece in pieces], dtype=np.int64)
    return WordPieceVocabulary(pieces, counts=found)


def _count_use(counts, pieces):
    """How often each piece stands in the text when its words are taken apart."""
    use = Counter(dict.fromkeys(pieces, 0))
    pieces = frozenset(pieces)
    for word, count in counts:
        for piece in longest_pieces(word, pieces):
            use[piece] += count
    return use


def longest_pieces(word, pieces):
    """The pieces of a word, or [UNK]: greedy longest match first (the graph's own, in Python).

    Args:
        word: a str of at least one character.
        pieces: a set of pieces.

    Returns a list of str.
    """
    if word in pieces:
        return [word]
    found = []
    start, length = 0, len(word)
    while start < length:
        prefix = CONTINUATION_PREFIX if start else ""
        for end in range(length, start, -1):
            piece = prefix + word[start:end]
            if piece in pieces:
                found.append(piece)
                start = end
                break
        else:
            return [UNK]
    return found
