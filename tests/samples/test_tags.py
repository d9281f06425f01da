"""The tagged sentences: counts, the universal tags, and no sentence of another split."""

import re

import pytest

from keras_bert.readers.sentences import TaggedSource
from keras_bert.samples import MESSAGES, TAGS

UNIVERSAL = {"NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM", "CONJ", "PRT", "X", "."}
SIZES = {"train": (240, 1997), "dev": (40, 340), "test": (150, 1255)}


@pytest.mark.parametrize("split", SIZES)
def test_counts_and_tags(split):
    sentences = list(TaggedSource(TAGS[split]))
    assert (len(sentences), sum(len(sentence.words) for sentence in sentences)) == SIZES[split]
    for sentence in sentences:
        assert len(sentence.words) == len(sentence.tags)
        assert set(sentence.tags) <= UNIVERSAL
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            assert (tag == ".") == (word in set(".,:;!?")), sentence.words
            assert word.isalnum() or tag == ".", word
            assert not word.isdigit() or tag == "NUM", sentence.words


def test_every_word_of_few_readings_has_one_of_them():
    # What a slip of the hand would break: words whose tags are known.
    tags = {"the": "DET", "a": "DET", "an": "DET", "your": "DET", "of": "ADP", "and": "CONJ"}
    tags |= {"you": "PRON", "we": "PRON", "i": "PRON", "is": "VERB", "was": "VERB", "my": "DET"}
    for path in TAGS.values():
        for sentence in TaggedSource(path):
            for word, tag in zip(sentence.words, sentence.tags, strict=True):
                assert tags.get(word.lower(), tag) == tag, sentence.words


def test_every_sentence_is_one_of_the_messages_of_its_split():
    def plain(text):
        return " ".join(re.findall(r"\w+|[^\w\s]", text))

    for split, path in TAGS.items():
        messages = plain(MESSAGES[split].read_text(encoding="utf-8"))
        sentences = [" ".join(tagged.words) for tagged in TaggedSource(path)]
        assert len(set(sentences)) == len(sentences)
        for sentence in sentences:
            assert sentence in messages, sentence
