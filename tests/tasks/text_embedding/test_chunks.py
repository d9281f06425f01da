"""Large batches in chunks: the update of the whole batch, with activations computed again."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.inputs.batches import without_autograph
from keras_bert.layers.kernels import chunks
from keras_bert.tasks.text_embedding import BINARY, LABELS, PAIRS, SCORES
from tests.messages import raises_input_error
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied

WORDS = [f"w{number}" for number in range(20)]
TOKENIZER = make_tokenizer(WORDS)
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
BATCH = 7


def texts(count, seed=0):
    rng = make_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(count)]


ANCHORS, POSITIVES, NEGATIVES = (texts(BATCH, seed) for seed in (1, 2, 3))
ROWS = {
    PAIRS: [
        {"anchor": f"{a} w0", "positive": f"{b} w1", "negative": None if n == 2 else c}
        for n, (a, b, c) in enumerate(zip(ANCHORS, POSITIVES, NEGATIVES, strict=True))
    ],
    SCORES: [
        {"text_a": a, "text_b": b, "score": n % 3}
        for n, (a, b) in enumerate(zip(ANCHORS, POSITIVES, strict=True))
    ],
    BINARY: [
        {"text_a": a, "text_b": b, "label": n % 2}
        for n, (a, b) in enumerate(zip(ANCHORS, POSITIVES, strict=True))
    ],
    LABELS: [{"text": a, "label": "xy"[n % 2]} for n, a in enumerate(ANCHORS)],
}


def embedder(*, chunk_size, dropout=False, lora=False, dtype=None, recompute=False, **settings):
    encoder = make_encoder(TOKENIZER, num_hidden_layers=2, **({} if dropout else NO_DROPOUT))
    encoder = encoder if dtype is None else encoder.rebuilt(dtype=dtype)
    keras.utils.set_random_seed(shifted(3))
    if lora:
        encoder.enable_lora(2)
    encoder.recomputes = recompute
    given = {"max_length": 12, "normalize": True, **settings}
    task = kb.TextEmbedder(encoder, TOKENIZER, chunk_size=chunk_size, **given)
    for number, state in enumerate(states(task)):
        state.assign([number, 0])
    return task


def states(task):
    return [v for v in task.variables if "seed_generator" in v.path]


def step(form=PAIRS, *, rows=None, steps=1, **settings):
    """-> (losses, weights by path, states of the generators) of steps of gradient descent."""
    task = embedder(form=form, **settings)
    task.compile(keras.optimizers.SGD(0.1), loss=task.compiled_losses(), jit_compile=False)
    (batch,) = task.dataset(rows or ROWS[form], batch_size=BATCH, epochs=1, shuffle=False)
    losses = [without_autograph(task.train_on_batch)(*batch) for _ in range(steps)]
    weights = {v.path: np.array(v, "float64") for v in task.trainable_variables}
    return np.array(losses), weights, [np.array(state) for state in states(task)]


def assert_same(ours, expected, *, atol=2e-6, rtol=2e-6):
    (losses, weights, after), (whole_losses, whole_weights, whole_after) = ours, expected
    np.testing.assert_allclose(losses, whole_losses, rtol=rtol)
    for path, weight in weights.items():
        np.testing.assert_allclose(weight, whole_weights[path], atol=atol, err_msg=path)
    np.testing.assert_array_equal(after, whole_after)


OPTIONS = {
    "in-batch-negatives": (PAIRS, {}),
    "matryoshka": (
        PAIRS,
        {"matryoshka": [16, 4], "matryoshka_weights": [1, 0.5], "symmetric": True},
    ),
    "triplet": (PAIRS, {"loss": "triplet", "normalize": False}),
    "dense": (
        PAIRS,
        {
            **{"dense": "6:tanh", "pooling": "cls+mean", "prompts": {"query": "w3 "}},
            **{"include_prompt": False},
        },
    ),
    "cosent": (SCORES, {}),
    "angle": (SCORES, {"loss": "angle"}),
    "contrastive": (BINARY, {}),
    "labels": (LABELS, {}),
    "lora": (PAIRS, {"lora": True}),
    "layers": (PAIRS, {"layers": "sum-all"}),
}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "name",
    [
        "in-batch-negatives",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in OPTIONS
            if name != "in-batch-negatives"
        ),
    ],
)
def test_the_update_is_that_of_the_whole_batch(name):
    form, options = OPTIONS[name]
    whole = step(form, chunk_size=None, **options)
    assert_same(step(form, chunk_size=3, **options), whole)


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("size", range(1, BATCH + 2))
def test_the_size_of_the_chunks_does_not_matter(size):
    assert_same(step(chunk_size=size), step(chunk_size=None))


@pytest.mark.parametrize("recompute", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_update_of_a_graph_is_that_of_the_whole_batch(recompute):
    whole = step(chunk_size=None, steps=3)
    assert_same(step(chunk_size=2, steps=3, recompute=recompute), whole)
    assert whole[0][0] != whole[0][1]


@pytest.mark.slow
def test_a_single_chunk_has_the_random_numbers_of_the_whole_batch():
    whole = step(chunk_size=None, dropout=True, steps=2)
    assert_same(step(chunk_size=BATCH, dropout=True, steps=2), whole)
    assert all(state[1] == 2 for state in whole[2]) and whole[2]


def stored(run, inputs, values, drawn, specs, size):
    """The chunks one after another, with all of their activations."""
    count, parts = -(-BATCH // size), []
    for number in range(count):
        begin, end = BATCH * number // count, BATCH * (number + 1) // count
        chunk = {name: x[begin:end] for name, x in inputs.items()}
        part, drawn = run(chunk, number, values)
        parts.append(part)
    return {name: keras.ops.concatenate([part[name] for part in parts]) for name in specs}, drawn


@pytest.mark.parametrize(
    "options",
    [
        {"matryoshka": [16, 4], "symmetric": True},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"dtype": "mixed_bfloat16", "lora": True}, marks=pytest.mark.slow),
        pytest.param({"recompute": True}, marks=pytest.mark.slow),
    ],
)
def test_activations_are_computed_again_with_the_same_random_numbers(options, monkeypatch):
    ours = step(chunk_size=3, dropout=True, steps=3, **options)
    monkeypatch.setattr(chunks, "_on_tensorflow", stored)
    # TensorFlow fuses the operations of a loop otherwise, which rounds bfloat16, 2**-8, elsewhere.
    bounds = {"rtol": 2**-6, "atol": 2**-6} if "dtype" in options else {"atol": 1e-5}
    assert_same(ours, step(chunk_size=3, dropout=True, steps=3, **options), **bounds)
    assert all(state[1] == 3 for state in ours[2])


@pytest.mark.usefixtures("eager")
def test_chunks_have_random_numbers_of_their_own():
    task = embedder(chunk_size=1, dropout=True)
    ((inputs, _),) = task.dataset([("w1 w2", "w3")] * 4, batch_size=4, epochs=1, shuffle=False)
    drawn = keras.ops.convert_to_numpy(task(inputs, training=True)["embedding"])
    again = keras.ops.convert_to_numpy(task(inputs, training=True)["embedding"])
    vectors = [*drawn[:, 0], *again[:, 0]]
    assert len({vector.tobytes() for vector in vectors}) == 8
    task = embedder(chunk_size=2, dropout=True)
    one = keras.ops.convert_to_numpy(task(inputs, training=False)["embedding"])
    np.testing.assert_allclose(one, one[[0] * 4], atol=1e-6)


@pytest.mark.usefixtures("eager")
def test_a_layer_that_is_called_several_times_draws_as_often():
    """ALBERT's layers are one, so that each of its generators draws once for a layer."""
    sizes = {"model_type": "albert", "embedding_size": 8, "num_hidden_layers": 3}

    def counts(chunk_size):
        task = kb.TextEmbedder(
            make_encoder(TOKENIZER, **sizes, hidden_dropout_prob=0.1),
            TOKENIZER,
            max_length=12,
            chunk_size=chunk_size,
        )
        ((inputs, _),) = task.dataset(ROWS[PAIRS], batch_size=BATCH, epochs=1, shuffle=False)
        task(inputs, training=True)
        return [int(state[1]) for state in states(task)]

    assert counts(2) == counts(None) and max(counts(None)) == 3


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_weights(tmp_path):
    embedder(chunk_size=None, dropout=True).save(tmp_path / "model")
    given = {
        **{"task": "text-embedding", "model": tmp_path / "model", "train": ROWS[PAIRS] * 1},
        **{"dev": ROWS[PAIRS], "epochs": 4, "batch_size": 4, "checkpoint_every": 3},
        **{"deterministic": True, "seed": shifted(2), "learning_rate": 1e-3},
    }
    whole, part = tmp_path / "whole", tmp_path / "part"
    with copied(whole, part, after_step=3):
        metrics = kb.finetune(**given, chunk_size=3, output=whole)
    kb.finetune(**given, chunk_size=3, output=part)
    assert_same_weights(whole, part)
    assert metrics["steps"] == 8


@pytest.mark.slow
def test_fit_compiles_no_chunks_by_xla():
    task = embedder(chunk_size=3)
    losses = task.fit(ROWS[PAIRS], batch_size=BATCH, epochs=2, verbose=0).history["loss"]
    assert len(losses) == 2 and not task.jit_compile
    ((inputs, _),) = task.dataset(ROWS[PAIRS], batch_size=BATCH, epochs=1, shuffle=False)
    call = lambda: task(inputs, training=True)  # noqa: E731
    with pytest.raises(InputError, match="`chunk_size` is for steps that XLA does not compile"):
        tf.function(call, jit_compile=True, autograph=False)()


def test_what_has_no_chunks_is_said():
    with raises_input_error("`chunk_size` computes the loss of vectors alone. Leave"):
        embedder(chunk_size=2, lm_loss_weight=0.5)
    given = {"task": "text-embedding", "train": ROWS[PAIRS], "dev": ROWS[PAIRS], "output": "o"}
    with raises_input_error("`chunk_size` is for the gradients of the encoder"):
        kb.finetune(**given, model="m", freeze_encoder=True, dense="4", chunk_size=2)
