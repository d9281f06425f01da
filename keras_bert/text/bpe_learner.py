"""Learning byte-pair encoding from word counts."""

from collections import Counter

import numpy as np

from keras_bert.text.bpe_vocabulary import END_OF_WORD, BpeVocabulary
from keras_bert.text.merges import learn_merges
from keras_bert.text.vocabulary import SPECIAL_PIECES
from keras_bert.text.word_counts import checked_counts, limit_alphabet, too_small

_LAST = b"\xff"  # sorts after every character in UTF-8, whose order is that of the code points


def learn_bpe(counts, *, size, min_frequency=1, alphabet_limit=1000, unused=0):
    """Learns merges as Sennrich et al. (2016) and Jurafsky and Martin's textbook (chapter 2) do.

    A word is its characters and END_OF_WORD, which is a symbol like any other. Among equally
    frequent pairs the smallest one, compared by its right symbol and then by its left one, is
    merged first; END_OF_WORD sorts after every character. The order of the words does not matter.

    Args:
        counts, size, min_frequency, alphabet_limit, unused: as for `learn_wordpiece`.

    Returns a `BpeVocabulary` that knows its counts: the special pieces, then the others by falling
    count of use in the text (equal counts by code points), then the unused slots.

    Raises `InputError` where the counts are empty or `size` leaves no room for the alphabet.
    """
    counts = checked_counts(counts)
    alphabet, known, _ = limit_alphabet(counts, alphabet_limit)
    # Where the text has the mark itself, it is an unknown character.
    alphabet = [character for character in alphabet if character != END_OF_WORD]
    known = [(word, count) for word, count in known if END_OF_WORD not in word]
    symbols = [*alphabet, END_OF_WORD]
    room = size - len(SPECIAL_PIECES) - unused - len(symbols)
    if room < 0:
        raise too_small(size, alphabet=len(alphabet), needed=size - room)
    index = {character: i for i, character in enumerate(alphabet)}
    end = len(alphabet)
    learned = learn_merges(
        [(*(index[character] for character in word), end) for word, _ in known],
        [count for _, count in known],
        symbols=symbols,
        join=str.__add__,
        # Bytes are compared faster than strings, of which some have wide characters.
        tie_key=lambda symbol: symbol.encode().replace(END_OF_WORD.encode(), _LAST),
        new_symbols=room,
        min_count=min_frequency,
    )
    names = learned.symbols
    merges = [(names[left], names[right]) for left, right in learned.merges]
    slots = [f"[unused{i}]" for i in range(unused)]
    vocabulary = BpeVocabulary([*SPECIAL_PIECES, *names, *slots], merges)
    # Merging in the order of learning is how words are encoded, so the learner's own counts are
    # those of the words that it learned from; what is left are those with an unknown character.
    use = Counter(dict(zip(names, learned.counts.tolist(), strict=True)))
    learned_from = frozenset(word for word, _ in known)
    for word, count in counts:
        if word not in learned_from:
            for piece in vocabulary.encode_word(word):
                use[piece] += count
    ordered = sorted(names, key=lambda piece: (-use[piece], piece))
    pieces = [*SPECIAL_PIECES, *ordered, *slots]
    found = np.array([use[piece] for piece in pieces], dtype=np.int64)
    return BpeVocabulary(pieces, merges, counts=found)
