"""The FLOPs of training, counted by hand: 2 for each element of a product and each summand."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.modernbert import ModernBertConfig
from keras_bert.tasks.pretraining.language_models import CausalLM, MaskedCausalLM
from keras_bert.tasks.pretraining.pretrainer import (
    FillMask,
    Pretrainer,
    SentenceOrderPretrainer,
    SpanPretrainer,
)
from keras_bert.tasks.pretraining.replaced_tokens import ReplacedTokenPretrainer
from keras_bert.training import costs as module
from keras_bert.training.costs import flops_per_token, matrix_rate

CONFIG = BertConfig(
    vocab_size=10,
    hidden_size=4,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=8,
)
ROWS = {3: 2, 5: 1}  # two rows of 3 tokens, one of 5


def product(rows, inner, columns):
    return 2 * rows * inner * columns


def blocks(n):
    dense = 4 * product(n, 4, 4) + product(n, 4, 8) + product(n, 8, 4)
    return dense + product(n, 4, n) + product(n, n, 4)  # over both heads together


def vocabulary(p):
    return product(p, 4, 4) + product(p, 4, 10)


def forward(outputs, n):
    """The operations of a row of n tokens, 40 % of them masked, one at most 2."""
    p = {3: 1, 5: 2}[n]
    parts = {
        "masked_lm": vocabulary(p),
        "causal_lm": vocabulary(n - 1),
        "span_boundary": product(p, 2 * 4 + 200, 4) + product(p, 4, 4) + product(p, 4, 10),
        "next_sentence": product(1, 4, 4) + product(1, 4, 2),
        "sentence_order": product(1, 4, 4) + product(1, 4, 2),
    }
    if "replaced_tokens" in outputs:  # a generator of size 1 over embeddings of size 4
        layer_flops = (
            4 * product(n, 1, 1) + product(n, 1, 4) + product(n, 4, 1) + 2 * product(n, 1, n)
        )
        parts["masked_lm"] = product(p, 1, 4) + product(p, 4, 10)
        parts["replaced_tokens"] = (
            product(n, 4, 1) + layer_flops + product(n, 4, 4) + product(n, 4, 1)
        )
    return blocks(n) + sum(parts[name] for name in outputs)


@pytest.mark.parametrize(
    "outputs",
    [
        ("masked_lm",),
        ("causal_lm",),
        ("masked_lm", "next_sentence"),
        ("masked_lm", "sentence_order"),
        ("masked_lm", "span_boundary"),
        ("masked_lm", "replaced_tokens"),
    ],
)
def test_a_token_takes_what_its_rows_take(outputs):
    expected = 3 * sum(forward(outputs, n) * rows for n, rows in ROWS.items()) / (2 * 3 + 5)
    assert flops(outputs) == pytest.approx(expected)


def test_of_masked_and_causal_rows_each_takes_its_own():
    both = flops(("masked_lm", "causal_lm"), causal_fraction=0.25)
    masked, causal = (flops((name,)) for name in ("masked_lm", "causal_lm"))
    assert both == pytest.approx(0.75 * masked + 0.25 * causal)


def test_without_the_lengths_of_rows_nothing_is_known():
    assert flops(("masked_lm",), rows=()) is None
    assert flops(("masked_lm",), rows=(7, 0)) is None


def test_a_layer_with_a_window_has_the_keys_in_it_alone():
    sizes = {"vocab_size": 10, "hidden_size": 4, "num_attention_heads": 2, "intermediate_size": 8}
    sizes |= {"num_hidden_layers": 3, "pad_token_id": 0}  # the first sees whole rows
    config = ModernBertConfig(**sizes, local_attention=4)
    dense = [3 * (4 * product(n, 4, 4) + product(n, 4, 16) + product(n, 8, 4)) for n in (3, 9)]
    attention = [3 * 2 * product(3, 4, 3), 2 * product(9, 4, 9) + 2 * 2 * product(9, 4, 5)]
    counts = config.forward_flops(np.array([3, 9]))
    np.testing.assert_array_equal(counts, np.add(dense, attention))


KINDS = {
    ("masked_lm",): FillMask,
    ("causal_lm",): CausalLM,
    ("masked_lm", "causal_lm"): MaskedCausalLM,
    ("masked_lm", "next_sentence"): Pretrainer,
    ("masked_lm", "sentence_order"): SentenceOrderPretrainer,
    ("masked_lm", "span_boundary"): SpanPretrainer,
    ("masked_lm", "replaced_tokens"): ReplacedTokenPretrainer,
}


@functools.cache
def task(outputs):
    kind = KINDS[outputs]
    causal = kind is CausalLM
    options = {"causal_fraction": 0.5} if kind is MaskedCausalLM else {}
    made = kind(BertEncoder(dataclasses.replace(CONFIG, is_decoder=causal)), **options)
    assert set(made.output) == set(outputs)
    return made


def flops(outputs, rows=(0, 0, 0, 2, 0, 1), causal_fraction=0.0):
    return flops_per_token(
        task(outputs),
        examples_by_length=rows,
        masked_rate=0.4,
        max_predictions=2,
        causal_fraction=causal_fraction,
    )


def test_the_rate_is_that_of_the_fastest_product(monkeypatch):
    seconds = iter([0.5, 0.25, 1.0, 0.5, 0.5])
    monkeypatch.setattr(module, "_seconds", lambda matrix: next(seconds))
    matrix_rate.cache_clear()
    assert matrix_rate("float32") == matrix_rate("float32") == 2 * 1024**3 / 0.25
    matrix_rate.cache_clear()
    monkeypatch.undo()
    assert module._seconds(tf.ones((2, 2))) > 0
