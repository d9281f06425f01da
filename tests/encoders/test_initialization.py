"""The attention of a new encoder before its first step."""

import keras
import numpy as np
import pytest

from keras_bert.encoders import new_encoder, read_config
from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.initialization import OFFSETS, OFFSETS_BEFORE
from tests.seeds import make_rng, shifted

VOCAB = 200


def make(heads, **settings):
    keras.utils.set_random_seed(shifted(5))
    sizes = {
        "vocab_size": VOCAB,
        "hidden_size": 32 * heads,
        "num_hidden_layers": 2,
        "num_attention_heads": heads,
        "intermediate_size": 64,
        "max_position_embeddings": 128,
    }
    encoder = new_encoder(read_config({**sizes, **settings}, source="x"))
    before = {weight.path: np.array(weight) for weight in encoder.weights}
    encoder.initialize_local_attention()
    return encoder, before


def attention_of(encoder, length):
    """The first block's attention (B, N, S, S) for random tokens."""
    ids = make_rng(1).integers(0, VOCAB, (3, length))
    rows = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    return np.array(
        encoder(rows, outputs=["attention_probabilities"])["attention_probabilities"][0]
    )


ELECTRA = {"model_type": "electra", "embedding_size": 64}


@pytest.mark.parametrize(
    "heads, settings",
    [(2, {}), (6, {"model_type": "roberta"}), (4, {"is_decoder": True}), (4, ELECTRA)],
)
def test_the_first_heads_look_at_the_neighbours_at_every_position_and_length(heads, settings):
    encoder, _ = make(heads, **settings)
    for length in (2, 3, 17, encoder.config.max_length):
        attention = attention_of(encoder, length)
        offsets = OFFSETS_BEFORE if encoder.config.is_causal else OFFSETS
        for head, offset in enumerate(offsets[:heads]):
            place = np.arange(length)
            place = place[(place + offset >= 0) & (place + offset < length)]
            assert (attention[:, head, place].argmax(axis=-1) == place + offset).all()


@pytest.mark.parametrize("settings", [{}, {"model_type": "roberta"}, ELECTRA])
def test_a_generator_looks_at_the_neighbours_and_leaves_the_encoder_as_it_is(settings):
    encoder, _ = make(8, **settings)
    generator = encoder.new_generator(0.25)
    generator.initialize_local_attention()
    assert generator.config.num_attention_heads == 4
    for length in (3, 17):
        for one in (encoder, generator):
            attention = attention_of(one, length)
            for head, offset in enumerate(OFFSETS):
                place = np.arange(length)
                place = place[(place + offset >= 0) & (place + offset < length)]
                assert (attention[:, head, place].argmax(axis=-1) == place + offset).all()


def test_all_else_starts_as_berts_does():
    encoder, before = make(6)
    changed = {
        weight.path.split("bert_encoder/")[-1]
        for weight in encoder.weights
        if not np.array_equal(weight, before[weight.path])
    }
    embeddings = {"token", "position", "segment"}
    kernels = {"query_key_value", "projection"}
    assert changed == {f"embeddings/{name}_embedding/embeddings" for name in embeddings} | {
        f"block_0/attention/{name}/kernel" for name in kernels
    }
    attention = encoder.blocks[0].attention
    fused = attention.query_key_value.kernel
    query, key, value = np.split(np.array(fused), 3, axis=1)
    assert not np.array_equal(value, attention.projection.kernel)
    outputs = slice(len(OFFSETS) * attention.head_size, None)  # of the other heads
    query_before, key_before, value_before = np.split(before[fused.path], 3, axis=1)
    np.testing.assert_array_equal(query[:, outputs], query_before[:, outputs])
    np.testing.assert_array_equal(key[:, outputs], key_before[:, outputs])
    # Of the heads that look at the neighbours, all that does not read positions.
    heads, positions = slice(outputs.start), slice(attention.head_size, None)
    np.testing.assert_array_equal(query[positions, heads], query_before[positions, heads])
    np.testing.assert_array_equal(key[positions, heads], key_before[positions, heads])
    assert np.isclose(value, value_before).mean() < 0.01


def test_the_same_seed_gives_the_same_start():
    first, second = make(2)[0], make(2)[0]
    for one, other in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("width, heads", [(4, 2), (8, 8)])
def test_an_encoder_without_room_for_positions_starts_as_berts_does(width, heads):
    keras.utils.set_random_seed(shifted(5))
    encoder = BertEncoder(
        BertConfig(
            vocab_size=VOCAB,
            hidden_size=width,
            num_hidden_layers=1,
            num_attention_heads=heads,
            intermediate_size=8,
        )
    )
    before = [np.array(weight) for weight in encoder.weights]
    encoder.initialize_local_attention()
    for one, other in zip(before, encoder.weights, strict=True):
        np.testing.assert_array_equal(one, other)
