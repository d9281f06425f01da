"""Learning WordPiece: laws of the result, and the core against the textbook's slow loop."""

import random
from collections import Counter

import numpy as np
import pytest
import tokenizers

from keras_bert.text.learners import learn_merges, learn_wordpiece, learn_words, longest_tokens
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.messages import raises_input_error
from tests.seeds import shifted

WORDS = Counter(
    "the cat sat on the mat and the other cats sat on other mats while the rattling chatter of "
    "chattering rats , that rattled the cats , went on and on .".split()
)


def naive_merges(words, counts, symbols, join, tie_key, new_symbols, min_count):
    """All pairs counted anew for each merge: slow, and plainly right."""
    symbols, words, merges = list(symbols), [list(word) for word in words], []
    wanted = len(symbols) + new_symbols
    while len(symbols) < wanted:
        pairs = Counter()
        for word, count in zip(words, counts, strict=True):
            for pair in zip(word, word[1:], strict=False):
                pairs[pair] += count
        if not pairs:
            break
        (left, right), count = min(
            pairs.items(),
            key=lambda item: (
                -item[1],
                tie_key(symbols[item[0][1]]),
                tie_key(symbols[item[0][0]]),
            ),
        )
        if count < min_count:
            break
        joined = join(symbols[left], symbols[right])
        if joined not in symbols:
            symbols.append(joined)
        made = symbols.index(joined)
        if (left, right) not in merges:
            merges.append((left, right))
        for word in words:
            i = 0
            while i < len(word) - 1:
                if word[i] == left and word[i + 1] == right:
                    word[i : i + 2] = [made]
                i += 1
    total = Counter()
    for word, count in zip(words, counts, strict=True):
        for symbol in word:
            total[symbol] += count
    return symbols, merges, [total[i] for i in range(len(symbols))]


@pytest.mark.parametrize("letters, seed", [("ab", 0), ("ab", 1), ("abc", 2), ("abcdef", 3)])
def test_the_fast_core_agrees_with_the_slow_loop(letters, seed):
    rng = random.Random(shifted(seed))
    words = {tuple(rng.choices(range(len(letters)), k=rng.randint(1, 12))) for _ in range(120)}
    words = sorted(words)
    counts = [rng.choice([1, 1, 2, 3, 7]) for _ in words]
    settings = {"join": str.__add__, "tie_key": lambda s: s, "new_symbols": 90, "min_count": 2}
    fast = learn_merges(words, counts, symbols=letters, **settings)
    symbols, merges, total = naive_merges(words, counts, letters, **settings)
    assert list(fast.merges) == merges
    assert list(fast.symbols) == symbols
    assert fast.counts.tolist() == total
    assert len(merges) > 40


def test_the_order_of_the_words_changes_nothing():
    items = list(WORDS.items())
    results = set()
    for seed in range(5):
        random.Random(shifted(seed)).shuffle(items)
        results.add(learn_wordpiece(dict(items), size=80).tokens)
    assert len(results) == 1


def test_the_size_is_met_exactly_where_the_text_allows():
    assert len(learn_wordpiece(WORDS, size=70)) == 70
    everything = learn_wordpiece(WORDS, size=10_000)
    # With no limit every word ends as one piece.
    assert set(WORDS) <= set(everything.tokens)
    assert len(everything) < 10_000
    assert len(learn_wordpiece(WORDS, size=len(everything))) == len(everything)


def test_tokens_stand_by_falling_count_of_use_after_the_special_ones():
    vocabulary = learn_wordpiece(WORDS, size=80, unused=3)
    assert vocabulary.tokens[:5] == SPECIAL_TOKENS
    assert vocabulary.tokens[-3:] == ("[unused0]", "[unused1]", "[unused2]")
    body = vocabulary.tokens[5:-3]
    use = Counter()
    for word, count in WORDS.items():
        for token in longest_tokens(word, set(body)):
            use[token] += count
    assert list(body) == sorted(body, key=lambda token: (-use[token], token))
    assert vocabulary.counts.tolist() == [0] * 5 + [use[token] for token in body] + [0] * 3
    assert vocabulary.token(5) == "the"


def test_every_word_of_the_alphabet_can_be_written():
    vocabulary = learn_wordpiece({"ab": 3, "cd": 2, "e": 1}, size=20)
    tokens = set(vocabulary.tokens)
    assert longest_tokens("dcba", tokens) != ["[UNK]"]
    assert "e" in tokens and "##e" not in tokens  # never seen within a word


def test_rare_pairs_are_left_alone():
    frequent = learn_wordpiece(WORDS, size=1000, min_frequency=3)
    assert len(frequent) < len(learn_wordpiece(WORDS, size=1000))
    assert "chatter" not in frequent and "the" in frequent


def test_words_beyond_the_alphabet_limit_teach_nothing_and_count_as_unknown():
    counts = {"aaaa": 10, "aab": 5, "zz": 1}
    vocabulary = learn_wordpiece(counts, size=40, alphabet_limit=2)
    assert not any("z" in token for token in vocabulary.tokens)
    assert vocabulary.counts[vocabulary.unk_id] == 1
    assert vocabulary.counts.dtype == np.int64


def test_words_longer_than_the_tokenizer_reads_are_left_out():
    vocabulary = learn_wordpiece({"a" * 201: 1000, "ab": 1}, size=500)
    assert set(vocabulary.tokens[5:]) == {"a", "b", "##a", "##b", "ab"}


def test_a_size_without_room_for_the_alphabet_is_rejected():
    with raises_input_error("A vocabulary of 20 tokens is too small"):
        learn_wordpiece(WORDS, size=20)
    with raises_input_error("no words"):
        learn_wordpiece({}, size=20)


def test_the_smallest_size_that_the_refusal_names_is_enough():
    with raises_input_error("A vocabulary of 6 tokens is too small") as refusal:
        learn_wordpiece(WORDS, size=6)
    needed = next(int(w) for w in str(refusal.value).split() if w.isdigit() and int(w) > 30)
    assert len(learn_wordpiece(WORDS, size=needed)) == needed


def test_bad_counts_are_rejected():
    for counts in ({"": 1}, {"a": 0}, {"a": -1}):
        with pytest.raises(ValueError, match="Received"):
            learn_wordpiece(counts, size=20)


@pytest.mark.slow
def test_as_good_as_hugging_faces_trainer_on_a_book_left_out(books, shared_data):
    """Mean pieces a word within 1 %; for 30,000 pieces see benchmarks/vocabulary_learning.py."""
    left_out = shared_data / "books" / "emma.txt"
    counts = books.counts(*(path for path in books.paths if path != left_out))
    ours = learn_wordpiece(counts, size=8000)
    their_tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    their_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=8000, special_tokens=list(SPECIAL_TOKENS), show_progress=False
    )
    their_tokenizer.train_from_iterator(
        (" ".join([word] * n) for word, n in counts.items()), trainer
    )
    assert len(ours) == their_tokenizer.get_vocab_size() == 8000
    words = books.counts(left_out)
    lengths = []
    for tokens in (set(ours.tokens), set(their_tokenizer.get_vocab())):
        lengths.append(sum(len(longest_tokens(word, tokens)) * n for word, n in words.items()))
    assert lengths[0] < 1.01 * lengths[1]
    assert lengths[0] < 1.09 * sum(words.values())


def test_whole_words_are_the_most_frequent_ones_and_all_others_are_unknown():
    counts = {"the": 9, "cat": 5, "dog": 5, "rare": 1, "x" * 130 + "é" * 65: 7}
    vocabulary = learn_words(counts, size=8, min_frequency=2)
    assert vocabulary.tokens == (*SPECIAL_TOKENS, "the", "cat", "dog")
    assert vocabulary.counts[vocabulary.unk_id] == 1 + 7  # "é" is two bytes: too long for a token
    assert vocabulary.counts.sum() == sum(counts.values())
    tokenizer = Tokenizer.from_vocab(vocabulary)
    ids = tokenizer.tokenize(["The rare cats, the cat."])[0].numpy().tolist()
    unknown = vocabulary.unk_id
    assert ids == [5, unknown, unknown, unknown, 5, 6, unknown]
    assert learn_words(counts, size=9, unused=1).tokens[-1] == "[unused0]"
    for options, times in (({"size": 5}, 1), ({"size": 9, "min_frequency": 99}, 99)):
        with raises_input_error(
            f"No word occurs {times} times in the input, or `size` leaves no room for words"
        ):
            learn_words(counts, **options)
