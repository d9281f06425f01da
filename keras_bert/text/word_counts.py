"""What learning a vocabulary asks of its word counts, whatever the algorithm."""

from collections import Counter

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.text.vocabulary import MAX_WORD_LENGTH


def checked_counts(counts):
    """Mapping of word -> count -> sorted list of (word, count), so that order cannot matter.

    Words longer than the tokenizer looks at (200 characters) are left out: they are [UNK].
    """
    checked = []
    for word, count in counts.items():
        if not word or not isinstance(word, str):
            raise ValueError(f"Words are strings of at least one character. Received: {word!r}")
        if count < 1:
            raise ValueError(f"Counts are positive integers. Received: {word!r}: {count!r}")
        if len(word) <= MAX_WORD_LENGTH:
            checked.append((word, int(count)))
    if not checked:
        raise InputError(
            f"There are no words{f' of at most {MAX_WORD_LENGTH} characters' if counts else ''} in "
            "the input; a vocabulary needs text to learn from."
        )
    return sorted(checked)


def limit_alphabet(counts, limit):
    """Keeps the most frequent characters and the words that hold no other.

    Args:
        counts: list of (word, count).
        limit: how many characters to keep; among equally frequent ones the lowest code points.

    Returns the characters in the order of their code points, the words that are left, and how
    often words that are not left stand in the text.
    """
    frequency = Counter()
    for word, count in counts:
        for character in word:
            frequency[character] += count
    ranked = sorted(frequency, key=lambda character: (-frequency[character], character))
    alphabet = sorted(ranked[:limit])
    if len(ranked) <= limit:
        return alphabet, counts, 0
    kept = frozenset(alphabet)
    left = [(word, count) for word, count in counts if kept.issuperset(word)]
    return alphabet, left, sum(c for _, c in counts) - sum(c for _, c in left)


def too_small(size, *, alphabet, needed):
    """The InputError for a vocabulary of a size that leaves no room for the alphabet."""
    characters = counted(alphabet, "different character")
    return InputError(
        f"A vocabulary of {counted(size, 'piece')} is too small: {characters} of the text take "
        f"{needed:,} pieces with the special ones; ask for more pieces or set a lower "
        "`alphabet_limit`."
    )
