"""Texts, tables and vectors of small indexes, and what is found in one."""

import numpy as np
import pandas

from tests.seeds import make_rng

WORDS = ("cat", "dog", "bird", "fish", "sat", "ran", "flew", "the", "old", "new", "red")


def sentences(count, seed=0):
    rng = make_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(2, 9))) for _ in range(count)]


def table(count, seed=0, prefix="t"):
    texts = sentences(count, seed)
    return pandas.DataFrame(
        {
            "id": [f"{prefix}{number}" for number in range(count)],
            "text": texts,
            "source": ["mail" if number % 3 else "web" for number in range(count)],
            "year": [2000 + number % 4 for number in range(count)],
        }
    )


def vectors(count, seed=0, width=6):
    return make_rng(seed).normal(size=(count, width)).astype(np.float32)


def found(index, *given, **options):
    """(id, score) of the results of each query."""
    queries = {}
    for row in index.search(*given, **options):
        queries.setdefault(row["query"], []).append((row["id"], row["score"]))
    return [*queries.values()]
