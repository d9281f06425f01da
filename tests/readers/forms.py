"""Invented texts, and tables of them, for tests of files as people have them."""

import itertools

WORDS = "boat lake hill tree road wind".split()
TEXTS = [f"the {' '.join(row)} {n}" for n, row in enumerate(itertools.product(WORDS, repeat=2))][
    :24
]


def columns(*more):
    """Rows of a text and of what functions of its number give."""
    return [(text, *(cell(n) for cell in more)) for n, text in enumerate(TEXTS)]


def cycle(*values):
    return lambda n: values[n % len(values)]
