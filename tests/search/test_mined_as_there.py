"""Hard negatives beside `mine_hard_negatives` of sentence-transformers, for every rule."""

import contextlib
import io
import itertools
import zlib
from types import SimpleNamespace

import keras
import numpy as np
import pytest

import keras_bert as kb
from keras_bert.tasks.text_embedding.losses import batch_triplets
from tests.peers import sentence_transformers, torch
from tests.search.indexes import WORDS, sentences
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

RULES = {
    "absolute_margin": (None, 0.1),
    "relative_margin": (None, 0.05),
    "max_score": (None, 0.8),
    "min_score": (None, 0.1),
    "range": ((0, None), (2, None), (1, 9)),
    "num_negatives": (1, 3),
}


class Theirs:
    """The vectors of our model, as their function asks a model for them."""

    device, model_card_data = "cpu", SimpleNamespace(base_model="ours")

    def __init__(self, task):
        self.task = task

    def encode_query(self, texts, **options):
        return self.task.encode_query(texts)

    def encode_document(self, texts, **options):
        return self.task.encode_document(texts)

    def similarity(self, first, second):
        return sentence_transformers.util.cos_sim(first, second)

    def similarity_pairwise(self, first, second):
        return sentence_transformers.util.pairwise_cos_sim(first, second)


class CrossEncoder:
    """Scores that follow from two texts, and from nothing else."""

    def __call__(self, pairs):
        return [zlib.crc32(f"{a}|{b}".encode()) / 2**32 for a, b in pairs]

    def predict(self, pairs, **options):
        return torch.tensor(self(pairs))


@pytest.fixture(scope="module")
def made():
    """-> (model, pairs of which anchors have one to three, further texts)."""
    tokenizer = make_tokenizer(WORDS)
    task = kb.TextEmbedder(make_encoder(tokenizer), tokenizer, max_length=12, normalize=True)
    texts = [*dict.fromkeys(sentences(70, seed=2))]
    anchors, others = texts[:12], texts[12:]
    # A positive is near its anchor, and some are those of two.
    pairs = [(a, f"{a} {WORDS[n % 3]}") for n, a in enumerate(anchors)]
    pairs += [(a, f"{WORDS[n]} {a}") for n, a in enumerate(anchors[:6])]
    pairs += [(a, p) for a, (_, p) in zip(anchors[6:], pairs[:3], strict=False)]
    return task, pairs, others


def their_negatives(task, pairs, **options):
    """{(anchor, positive): their negatives} of complete rows, from a table of n-tuples."""
    from datasets import Dataset

    anchors, positives = zip(*pairs, strict=True)
    data = Dataset.from_dict({"anchor": anchors, "positive": positives})
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        mined = sentence_transformers.util.mine_hard_negatives(
            data, Theirs(task), output_format="n-tuple", verbose=False, **options
        )
    return {tuple(row.values())[:2]: [*row.values()][2:] for row in mined}


def our_negatives(task, pairs, *, corpus=None, cross_encoder=None, absolute_margin=None, **options):
    mined = kb.mine_negatives(
        data=pairs,
        model=task,
        corpus=corpus,
        filter_by=cross_encoder,
        margin=absolute_margin,
        format="list",
        **options,
    )
    return {(row["anchor"], row["positive"]): row["negatives"] for row in mined.rows}


def check(made, *, has_corpus, **options):
    task, pairs, others = made
    corpus = others if has_corpus else None
    mined = our_negatives(task, pairs, corpus=corpus, **options)
    expected = their_negatives(task, pairs, corpus=corpus, **options)
    complete = {key: n for key, n in mined.items() if len(n) == options["num_negatives"]}
    assert complete == expected and mined.keys() == {*pairs}
    return len(expected)


@pytest.mark.parametrize("has_corpus", [False, True])
def test_every_combination_of_rules(made, has_corpus):
    counts = []
    for *values, (low, high), count in itertools.product(*RULES.values()):
        rules = dict(zip(RULES, values, strict=False))
        options = {"range_min": low, "range_max": high, "num_negatives": count}
        counts.append(check(made, has_corpus=has_corpus, **rules, **options))
    assert len({*counts}) > 3 and max(counts) == len({*made[1]})


def test_the_scores_of_a_cross_encoder(made):
    for margin, relative, highest in ((0.1, None, None), (None, 0.2, 0.9), (None, None, 0.5)):
        rules = {"absolute_margin": margin, "relative_margin": relative, "max_score": highest}
        for low in (0, 2):
            options = {"range_min": low, "num_negatives": 2, "cross_encoder": CrossEncoder()}
            check(made, has_corpus=True, **rules, **options)


def test_random_negatives_are_among_those_that_pass_there(made):
    task, pairs, others = made
    options = {"relative_margin": 0.05, "range_min": 1, "range_max": 30, "corpus": others}
    mined = our_negatives(task, pairs, choose="random", num_negatives=3, **options)
    every = {}
    for count in range(3, 30):
        every |= their_negatives(task, pairs, num_negatives=count, **options)
    assert {key for key, negatives in mined.items() if len(negatives) == 3} == {*every}
    assert all({*mined[key]} <= {*negatives} for key, negatives in every.items())
    hardest = our_negatives(task, pairs, num_negatives=3, **options)
    assert any(mined[key] != hardest[key] for key in mined)


def test_triplets_of_cosines_in_a_batch():
    losses = sentence_transformers.losses
    vectors = make_rng(4).normal(size=(9, 1, 6)).astype("float32")
    labels = np.array([0, 1, 1, 2, 0, 2, 2, 3, 0])
    distance = losses.BatchHardTripletLossDistanceFunction.cosine_distance
    loss = losses.BatchAllTripletLoss(model=None, distance_metric=distance, margin=0.2)
    embeddings = torch.tensor(vectors[:, 0], requires_grad=True)
    expected = loss.batch_all_triplet_loss(torch.tensor(labels), embeddings)
    value = batch_triplets(
        keras.ops.convert_to_tensor(vectors), labels[:, None].astype("float32"), margin=0.2
    )
    assert float(value) == pytest.approx(float(expected), rel=1e-5)
