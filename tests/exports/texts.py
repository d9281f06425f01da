"""Texts as users send them, made from a seed: every script, and what is no text at all."""

from tests.seeds import make_rng

PARTS = [
    *"The film was good, and bad. Ada went to Rome! who is in Oslo?".split(),
    *("naïve", "Été", "ÉCOLE", "Zoë", "Łukasz", "Straße", "ﬁn", "½", "İstanbul", "ǅ"),
    *("cafe\u0301", "o\u0308\u0323x", "e" + "\u0301" * 20, "\u0301\u0302"),
    *("北京", "東京タワー", "漢字ab", "한국어", "ｆｕｌｌ", "ＴＯＷＮ，", "\u3000"),
    *("😀", "👩‍👩‍👧", "🇩🇪", "\u200d", "😀good", "1️⃣"),
    *("שלום", "مرحبا", "\u202eabc\u202c", "עברית123", "हिन्दी", "ภาษาไทย"),
    *("[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "##s", "[mask]", "[ MASK ]"),
    *("\x00", "\x01\x02", "a\x00b", "\x7f", "\u200b", "\ufeff", "\ufffd", "\x85", "\u2028"),
    *("\t", "\n", "\r\n", "  ", " ", "-", "...", '"', "'s", "$5,000", "http://x.y/z?q=1"),
    *("x" * 30, "ab" * 60, "y" * 201),
]
# Those that a generator would seldom make.
ODD = [
    *("", " ", "\n\t ", "\u3000", "\u200b\ufeff", "\x00", "a", "good " * 60, "漢" * 90, "😀" * 40),
    *("[MASK]", "[MASK] [MASK]", "[CLS] [SEP]", "a" * 300, "e\u0301" * 50, "\u0301" * 60),
]


def make_texts(count, *, seed):
    """`count` texts: the odd ones, then most of a few parts and some of many."""
    rng = make_rng(seed)
    texts = list(ODD[:count])
    while len(texts) < count:
        parts = rng.choice(PARTS, rng.integers(20, 50) if rng.random() < 0.02 else rng.integers(7))
        spaced = rng.random() < 0.8
        texts.append((" " if spaced else "").join(parts))
    return texts
