"""Words are read as the text that joins them by spaces, by every algorithm."""

import collections
import functools
import unicodedata

import numpy as np
import pytest
import tokenizers

from keras_bert.inputs.words import words_given, words_of_texts
from keras_bert.text import Tokenizer
from keras_bert.text.encodings.byte_level import byte_level_words
from keras_bert.text.learners import learn_bpe, learn_byte_level_bpe, learn_wordpiece
from keras_bert.text.unigram_learner import learn_unigram
from keras_bert.text.vocabularies.byte_level import ByteLevelVocabulary, to_letters
from keras_bert.text.vocabularies.unigram import UnigramVocabulary

SENTENCES = [
    "Pay me .",
    "The bank 's money , 2024 and $ 19 : don't pay ( the Bank ) !",
    '( 7 ) . . -- " x-y " \' s',
    "東京 都 は 首都 です 。",
    "我 在 北京 大学 , 2024 年",
    "ฉัน อยู่ กรุงเทพ ไทย นี้ รักสงบ",
    "naïve café Straße ﬁ ½ ① 😀 x²",
    "zzyzx 7zz $5 ñ",
    "one",
    "",
]
WORDS = [sentence.split() for sentence in SENTENCES]
# The words that every algorithm splits as the spaces do.
PLAIN = [["Pay", "me", "."], ["$", "19", "(", "bank", ")", "!"], ["東", "は", "。"], ["The", "me"]]


@functools.cache
def vocabulary(algorithm, prefix_space):
    """One that has few words, so that marks, numbers and rare words have a space of their own."""
    lines = ["Pay the bank me money don't The and pay café"] * 4 + SENTENCES
    counts = collections.Counter(word for line in lines for word in line.split())
    if algorithm == "unigram":
        learned = learn_unigram(counts, size=130, alphabet_limit=100, lowercase=False)
        options = {"prefix_space": prefix_space, "removes_spaces": learned.removes_spaces}
        return UnigramVocabulary(
            learned.tokens, learned.scores, charsmap=learned.charsmap, **options
        )
    if algorithm == "byte-level-bpe":
        words = byte_level_words(lines[:4]).flat_values.numpy()
        learned = learn_byte_level_bpe(collections.Counter(map(to_letters, words)), size=300)
        return ByteLevelVocabulary(learned.tokens, learned.merges, prefix_space=prefix_space)
    return {"wordpiece": learn_wordpiece, "bpe": learn_bpe}[algorithm](counts, size=200)


ALGORITHMS = [
    *(("wordpiece", False), ("bpe", False), ("byte-level-bpe", False), ("byte-level-bpe", True)),
    *(("unigram", False), ("unigram", True)),
]


@pytest.fixture(scope="module", params=ALGORITHMS, ids=lambda param: f"{param[0]}-{param[1]}")
def tokenizer(request):
    return Tokenizer(vocabulary(*request.param), lowercase=False)


@pytest.mark.parametrize("skips_spaces", [True, False])
def test_the_tokens_of_words_are_those_of_their_text(tokenizer, skips_spaces):
    tokenizer.skips_spaces = skips_spaces
    given = words_given(WORDS, tokenizer)
    text_tokens, starts, _ = words_of_texts(SENTENCES, tokenizer)
    assert given.ids.to_list() == text_tokens.ids.to_list()
    rows = (given.firsts, given.spaces, text_tokens.firsts, text_tokens.spaces, starts)
    for text, words, firsts, spaces, *columns_of_text in zip(
        SENTENCES, WORDS, *(row.to_list() for row in rows), strict=True
    ):
        at = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])[: len(words)].tolist()
        firsts_at = dict(
            zip(columns_of_text[2], zip(*columns_of_text[:2], strict=True), strict=True)
        )
        # A word that the tokenizer splits into several begins with the first of them.
        assert set(at) <= firsts_at.keys(), text
        assert list(zip(firsts, spaces, strict=True)) == [firsts_at[start] for start in at], text
        assert not any(spaces) or skips_spaces


def test_a_word_has_the_space_before_it_and_no_other_words(tokenizer):
    """So that its first and last token, and the mean and the sum over its tokens, are its own."""
    tokenizer.skips_spaces = True
    given, skipped = words_given(WORDS, tokenizer), 0
    rows = (given.ids, given.firsts, given.spaces)
    for words, ids, firsts, spaces in zip(WORDS, *(row.to_list() for row in rows), strict=True):
        parts = np.split(ids, firsts[1:]) if words else []
        for word, part, space in zip(words, parts, spaces, strict=True):
            if tokenizer.vocabulary.unk_id not in part:
                text = tokenizer.detokenize(part).replace(" ", "")
                assert text in (word, unicodedata.normalize("NFKC", word))
                assert not space or tokenizer.detokenize(part[:1]) in ("", " ")
                assert tokenizer.detokenize(part[space:]).strip()
            skipped += space
    assert (skipped > 10) == tokenizer.vocabulary.OWN_SPACES


def test_words_of_plain_texts_are_the_same(tokenizer):
    given = words_given(PLAIN, tokenizer)
    text_tokens, starts, ends = words_of_texts([" ".join(words) for words in PLAIN], tokenizer)
    assert given.firsts.to_list() == text_tokens.firsts.to_list()
    for words, *bounds in zip(PLAIN, starts.to_list(), ends.to_list(), strict=True):
        text = " ".join(words)
        assert [text[start:end] for start, end in zip(*bounds, strict=True)] == words


def test_a_word_without_a_token_has_one(tokenizer):
    words = [["\u200b", "me"], ["me", "\u200b"], ["\u200b"], ["me", "\u3000", "."], ["me"]]
    given = words_given(words, tokenizer)
    for text_words, ids, firsts in zip(
        words, given.ids.to_list(), given.firsts.to_list(), strict=True
    ):
        assert len(firsts) == len(text_words) and firsts[0] == 0
        assert min(np.diff([*firsts, len(ids)])) > 0
    alone = words_given([["me"]], tokenizer).ids.to_list()
    assert given.ids.to_list()[-1:] == alone


@pytest.mark.parametrize("algorithm", ["byte-level-bpe", "unigram"])
def test_words_are_read_as_transformers_reads_them(algorithm, tmp_path):
    """`is_split_into_words` with `add_prefix_space`, by the library that it calls."""
    tokenizer = Tokenizer(vocabulary(algorithm, True), lowercase=False)
    tokenizer.skips_spaces = False  # as for folders of other programs
    tokenizer.save(tmp_path)
    their_tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    given = words_given(WORDS, tokenizer)
    for words, ids, firsts in zip(WORDS, given.ids.to_list(), given.firsts.to_list(), strict=True):
        expected = their_tokenizer.encode(words, is_pretokenized=True, add_special_tokens=False)
        assert ids == expected.ids
        tagged_words_prediction = expected.word_ids
        assert firsts == [tagged_words_prediction.index(word) for word in range(len(words))]
