"""Learning a unigram model: the same from the same counts, and what its arguments mean."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert.base.errors import InputError
from keras_bert.text import Tokenizer, load_vocabulary
from keras_bert.text.unigram_learner import learn_unigram
from keras_bert.text.vocabulary import SPECIAL_TOKENS

WORDS = (
    "the bank banks banking of river rivers lends lender money Money naïve ﬁne １２ x-ray, 東京"
).split()
COUNTS = {word: 40 - number for number, word in enumerate(WORDS)}
AGAIN = (
    "import sys; sys.path.insert(0, {root!r})\n"
    "from keras_bert.text.unigram_learner import learn_unigram\n"
    "print(learn_unigram({counts}, size=50).sha256)"
)


@pytest.fixture(scope="module")
def vocabulary():
    return learn_unigram(COUNTS, size=50)


def test_tokens_are_in_the_order_of_their_use(vocabulary):
    assert vocabulary.tokens[:5] == SPECIAL_TOKENS
    assert 40 <= len(vocabulary) <= 50
    counts = vocabulary.counts
    assert (np.diff(counts[5:]) <= 0).all() and not counts[[0, 2, 3, 4]].any()
    assert (vocabulary.scores[5:] < 0).all() and not vocabulary.scores[:5].any()
    tokenizer = Tokenizer(vocabulary, lowercase=True)
    total = np.zeros(len(vocabulary), np.int64)
    for ids, count in zip(tokenizer.tokenize(WORDS).to_list(), COUNTS.values(), strict=True):
        np.add.at(total, ids, count)
    assert total.tolist() == counts.tolist()


def test_the_same_in_another_process_from_counts_in_another_order(vocabulary):
    root = str(Path(__file__).parents[2])
    code = AGAIN.format(root=root, counts=dict(reversed(COUNTS.items())))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split()[-1] == vocabulary.sha256


def test_uncased_folds_the_case_and_not_the_accents(vocabulary):
    uncased = Tokenizer(vocabulary, lowercase=True)
    assert vocabulary.lowercase is True
    assert (
        uncased.tokenize(["MONEY naïve"]).to_list() == uncased.tokenize(["money naïve"]).to_list()
    )
    cased = learn_unigram(COUNTS, size=50, lowercase=False)
    assert cased.lowercase is False and "M" in "".join(cased.tokens)
    with pytest.raises(ValueError, match="`lowercase` must be True"):
        Tokenizer(vocabulary, lowercase=False)


def test_arguments(vocabulary):
    few = learn_unigram(COUNTS, size=50, min_frequency=60, unused=2)
    assert few.tokens[-2:] == ("[unused0]", "[unused1]")
    rare = [t for t, n in zip(few.tokens, few.counts, strict=True) if n < 60 and len(t) > 1]
    assert set(rare) <= {*SPECIAL_TOKENS, "[unused0]", "[unused1]"}
    narrow = learn_unigram(COUNTS, size=40, alphabet_limit=12)
    assert narrow.counts[narrow.unk_id] > 0 and "東" not in narrow.tokens
    with pytest.raises(InputError, match="is too small"):
        learn_unigram(COUNTS, size=20)
    with pytest.raises(InputError, match="no words"):
        learn_unigram({}, size=20)
    with pytest.raises(InputError, match="Every word has a character"):
        learn_unigram({"ab": 2, "cd": 2}, size=20, alphabet_limit=1)


def test_a_saved_vocabulary_is_the_same(vocabulary, tmp_path):
    vocabulary.save(tmp_path)
    assert load_vocabulary(tmp_path) == vocabulary
    Tokenizer(vocabulary, lowercase=True).save(tmp_path)
    again = Tokenizer.from_folder(tmp_path)
    assert again.vocabulary == vocabulary and again.lowercase
    assert (
        again.tokenize(WORDS).to_list()
        == Tokenizer(vocabulary, lowercase=True).tokenize(WORDS).to_list()
    )
