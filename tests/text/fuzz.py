"""Texts of any kind of characters, the same in every run."""

import itertools
import random
import unicodedata

from tests.seeds import shifted

WHITE = (
    "\t\n\v\f\r \x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2003\u2009\u200a\u200b\u2028\u2029\u202f"
    "\u205f\u3000\ufeff"
)
EMOJI = "😀 👩‍👩‍👧‍👦 👍🏽 🇩🇪 ❤️ 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ✈︎".split()
WORDS = (
    "the banks naïve Ångström İstanbul ΣΊΣΥΦΟΣ Straße шёл Київ ١٢٣ हिन्दी ไทยนี้ 東京都 がぎぐ 한국어 "
    "עִבְרִית العَرَبِيَّة ﬁne ２０２６ 3.14 don't ’tis e-mail x² ½ Ⅷ ㎏ ☎ \ufb2c ậ Việt \u0344 \u212b"
).split()
BY_CATEGORY = {}
for _character in map(chr, range(1, 0x110000)):
    BY_CATEGORY.setdefault(unicodedata.category(_character), []).append(_character)
del BY_CATEGORY["Cs"], BY_CATEGORY["Cn"]
CODE_POINTS = sorted(itertools.chain.from_iterable(BY_CATEGORY.values()))
CATEGORIES = sorted(BY_CATEGORY)
MARKS = [*BY_CATEGORY["Mn"], *BY_CATEGORY["Mc"], *BY_CATEGORY["Me"]]


def texts(count, *, seed=0, more=()):
    """`count` texts; `more` are strings that shall occur in them often."""
    generator = random.Random(shifted(seed))
    draws = [
        lambda: generator.choice(CODE_POINTS),
        lambda: generator.choice(BY_CATEGORY[generator.choice(CATEGORIES)]),
        lambda: generator.choice(MARKS),
        lambda: generator.choice("aeouAEOU가각कকᄀ") + generator.choice(MARKS),
        lambda: generator.choice(WHITE),
        lambda: " " * generator.choice((1, 1, 1, 2, 3, 7, 30)),
        lambda: generator.choice(WORDS),
        lambda: generator.choice(WORDS),
        lambda: generator.choice(EMOJI),
        lambda: generator.choice(more or WORDS),
    ]
    return [
        "".join(generator.choice(draws)() for _ in range(generator.randrange(1, 13)))
        for _ in range(count)
    ]
