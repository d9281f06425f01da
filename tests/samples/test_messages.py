"""The labelled sample: counts, balance, no leaks between splits, no shallow way to the label."""

import re
import string
from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csr_array

from keras_bert.samples import MESSAGES
from tests.seeds import make_rng

SIZES = {"train": 720, "dev": 130, "test": 210}
QUICKSTART = (
    "Buy these pills",
    "Win cash prizes",
    "Please find attached the minutes of our meeting",
)


def read(split):
    header, *rows = MESSAGES[split].read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert header == "text\tlabel"
    return [tuple(row.split("\t")) for row in rows]


@pytest.fixture(scope="module")
def splits():
    return {split: read(split) for split in MESSAGES}


@pytest.fixture(scope="module")
def rows(splits):
    return [row for split in splits.values() for row in split]


@pytest.mark.parametrize("split", SIZES)
def test_sizes_and_balance(splits, split):
    labels = Counter(label for _, label in splits[split])
    assert labels == {"spam": SIZES[split] // 2, "ham": SIZES[split] // 2}


def test_rows_are_clean(rows):
    for row in rows:
        assert len(row) == 2, row
        text, label = row
        assert label in ("spam", "ham")
        assert text == " ".join(text.split()), f"stray blanks: {text!r}"
        assert text.isprintable()
        assert 2 <= len(text.split()) <= 70, text


def test_lengths_vary(rows):
    words = [len(text.split()) for text, _ in rows]
    shortest, median, longest = np.percentile(words, [5, 50, 95])
    assert shortest <= 7 and 12 <= median <= 25 and longest >= 28


def test_addresses_and_numbers_are_reserved(rows):
    for text, _ in rows:
        for domain in re.findall(r"[a-z-]+\.(?:com|org|net|info|io|co)\b", text.lower()):
            assert domain in ("example.com", "example.org", "example.net"), text
        for number in re.findall(r"\b\d{3}[- ]\d{4}\b", text):
            assert number.startswith("555-01"), text


def grams(text, size=5):
    text = " ".join(re.findall(r"\w+", text.lower()))
    return frozenset(text[start : start + size] for start in range(max(1, len(text) - size + 1)))


def similarity(one, other):
    return len(one & other) / len(one | other)


def test_no_text_is_nearly_another(rows):
    # Of all pairs, over the whole set, so that no text of a split has its like in another.
    sets = [grams(text) for text, _ in rows]
    columns = {gram: column for column, gram in enumerate(set().union(*sets))}
    places = [
        (row, columns[gram]) for row, grams_of_text in enumerate(sets) for gram in grams_of_text
    ]
    holds = csr_array((np.ones(len(places), int), np.transpose(places)))
    common = (holds @ holds.T).toarray()
    sizes = common.diagonal()
    similarities = np.triu(common / (sizes[:, None] + sizes - common), k=1)
    worst = np.unravel_index(similarities.argmax(), similarities.shape)
    one, other = (sets[row] for row in worst)
    assert similarities.max() == similarity(one, other)
    assert similarities.max() < 0.4, [rows[row][0] for row in worst]


def test_no_template_is_used_again(rows):
    # The same first four words in more than a few texts would be a form that was filled in.
    starts = Counter(tuple(re.findall(r"\w+", text.lower())[:4]) for text, _ in rows)
    assert max(starts.values()) <= 4, starts.most_common(3)


def test_quickstart_sentences_are_unseen(rows):
    for sentence in QUICKSTART:
        for text, _ in rows:
            assert similarity(grams(sentence), grams(text)) < 0.5, (sentence, text)


def shallow_features(text):
    length = len(text)
    words = text.split()
    return [
        length,
        len(words),
        length / len(words),
        sum(character.isupper() for character in text) / length,
        sum(character.isdigit() for character in text) / length,
        sum(character in string.punctuation for character in text) / length,
        *(text.count(mark) for mark in ".,!?:;'%"),
        text[0].isupper(),
        text[-1] in ".!?",
        re.search(r"\b[A-Z]{2,}\b", text) is not None,
        "example." in text,
        "555-01" in text,
    ]


def shallow(rows):
    return np.array([shallow_features(text) for text, _ in rows], float)


def is_spam(rows):
    return np.array([label == "spam" for _, label in rows])


def test_no_single_shallow_feature_tells_the_label(rows):
    features, labels = shallow(rows), is_spam(rows)
    for column in features.T:
        above = column[None, :] > np.unique(column)[:, None]  # (thresholds, texts)
        accuracy = (above == labels).mean(axis=1)
        assert max(accuracy.max(), 1 - accuracy.min()) < 0.62


def logistic_regression(features, labels, *, steps=2000, rate=0.5, decay=1e-3):
    weights = np.zeros(features.shape[1])
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-features @ weights))
        gradient = features.T @ (chance - labels) / len(labels)
        weights -= rate * (gradient + decay * weights)
    return weights


def test_all_shallow_features_together_do_not_tell_the_label(rows):
    features, labels = shallow(rows), is_spam(rows)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    features = np.column_stack([features, np.ones(len(features))])
    folds = make_rng(0).permutation(len(features)) % 5
    correct = []
    for fold in range(5):
        train, test = folds != fold, folds == fold
        weights = logistic_regression(features[train], labels[train])
        correct.append(((features[test] @ weights > 0) == labels[test]).mean())
    assert np.mean(correct) < 0.70
