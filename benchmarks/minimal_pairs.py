"""Minimal pairs of English grammar: two sentences that differ in one word, of which one is right.

    python benchmarks/minimal_pairs.py --count 1000 > pairs.tsv

Agreement of subject and verb (also with another noun between them), of determiner and noun, and of
a reflexive pronoun with its subject, from words that novels of the 19th century have. The same
`count` and `seed` give the same pairs.
"""

import argparse
import itertools
import random

NOUNS = {
    "captain": "captains", "sister": "sisters", "brother": "brothers", "doctor": "doctors",
    "servant": "servants", "stranger": "strangers", "friend": "friends", "soldier": "soldiers",
    "lawyer": "lawyers", "teacher": "teachers", "prisoner": "prisoners", "neighbour": "neighbours",
}  # fmt: skip
THINGS = {
    "letter": "letters", "house": "houses", "garden": "gardens", "horse": "horses",
    "book": "books", "room": "rooms", "ship": "ships", "window": "windows", "carriage": "carriages",
}  # fmt: skip
ADJECTIVES = ("old", "young", "poor", "kind", "strange", "great", "little", "good")
GENERAL_ADJECTIVES = ("old", "strange", "great", "little", "good")
PREPOSITIONS = ("near", "behind", "beside", "with")
# Singular and plural of a verb, and what follows it.
VERBS = (
    ("is", "are", ("very happy", "in the house", "too late", "afraid of the sea")),
    ("was", "were", ("at the door", "not at home", "quite silent", "tired of the town")),
    ("has", "have", ("a letter", "gone away", "no money", "lost the way")),
    ("knows", "know", ("the road", "nothing about it", "the whole story")),
    ("comes", "come", ("from the village", "every morning", "to the church")),
)
DETERMINERS = (("this", "these"), ("that", "those"))
SHORT_VERBS = ("saw", "watched", "found", "remembered", "left", "wanted")
REFLEXIVE_VERBS = ("hurt", "blamed", "saw", "defended", "praised", "asked", "amused")
MEN = ("father", "king", "gentleman", "uncle", "husband", "boy")
WOMEN = ("mother", "queen", "lady", "aunt", "wife", "girl")
ENDS = ("", " again", " at last", " that evening", " in the morning", " yesterday")


def _agreement(random):
    singular, plural = random.choice([*NOUNS.items()])
    verb, plural_verb, rest = random.choice(VERBS)
    subject, right, wrong = random.choice(
        [(singular, verb, plural_verb), (plural, plural_verb, verb)]
    )
    between = ""
    if random.random() < 0.5:  # another noun of the other number
        other = random.choice([*THINGS.items()])[subject == singular]
        between = f" {random.choice(PREPOSITIONS)} the {other}"
    start = f"the {random.choice(ADJECTIVES)} {subject}{between}"
    end = random.choice(rest)
    return [f"{start} {which} {end}." for which in (right, wrong)]


def _determiner(random):
    one, many = random.choice(DETERMINERS)
    singular, plural = random.choice([*NOUNS.items(), *THINGS.items()])
    noun, right, wrong = random.choice([(singular, one, many), (plural, many, one)])
    who = random.choice([*MEN, *WOMEN])
    start = f"the {who} {random.choice(SHORT_VERBS)}"
    adjective = random.choice(("", *(f"{word} " for word in GENERAL_ADJECTIVES)))
    end = random.choice(ENDS)
    return [f"{start} {which} {adjective}{noun}{end}." for which in (right, wrong)]


def _reflexive(random):
    pronouns = ("himself", "herself", "themselves")
    subject, right = random.choice(
        [
            (random.choice(MEN), "himself"),
            (random.choice(WOMEN), "herself"),
            (random.choice([*NOUNS.values()]), "themselves"),
        ]
    )
    wrong = random.choice([word for word in pronouns if word != right])
    start = f"the {random.choice(ADJECTIVES)} {subject} {random.choice(REFLEXIVE_VERBS)}"
    end = random.choice(ENDS)
    return [f"{start} {which}{end}." for which in (right, wrong)]


KINDS = {"agreement": _agreement, "determiners": _determiner, "reflexives": _reflexive}


def minimal_pairs(count, *, seed=0):
    """-> `count` different tuples (kind, the right sentence, the wrong one), the kinds in turn."""
    generator, pairs = random.Random(seed), {}
    for kind in itertools.cycle(KINDS):
        if len(pairs) == count:
            return list(pairs)
        while True:
            pair = (kind, *KINDS[kind](generator))
            if pair not in pairs:
                pairs[pair] = None
                break


def accuracy(pairs, scores):
    """The fraction of pairs whose right sentence has the higher score, by kind and of all.

    `scores` are those of both sentences of each pair, (right, wrong).
    """
    rights = {}
    for (kind, *_), (right, wrong) in zip(pairs, scores, strict=True):
        rights.setdefault(kind, []).append(right > wrong)
    accuracy_by_kind = {kind: sum(found) / len(found) for kind, found in rights.items()}
    return {**accuracy_by_kind, "all": sum(map(sum, rights.values())) / len(pairs)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for pair in minimal_pairs(arguments.count, seed=arguments.seed):
        print("\t".join(pair))
