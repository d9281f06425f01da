"""Steps of AdamW and LAMB against the formulas in numpy."""

import keras
import numpy as np
import pytest

from keras_bert.layers.self_attention import SelfAttention
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.optimizers.schedules import PerUpdate, WarmupLinearDecay
from keras_bert.optimizers.update_rules import LAMB
from tests.messages import raises_input_error
from tests.seeds import make_rng, shifted


def small_model():
    keras.utils.set_random_seed(shifted(1))
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(4, name="dense"),
            keras.layers.LayerNormalization(epsilon=1e-12, name="norm"),
            keras.layers.EinsumDense("bd,dnh->bnh", (2, 2), bias_axes="nh", name="heads"),
        ]
    )
    for variable in model.variables:  # so that decay of a zero or a one would show
        variable.assign(keras.random.normal(variable.shape, seed=shifted(2)) + 1.0)
    return model


def test_a_step_is_adamw_with_global_clipping_and_decays_matrices_only():
    model = small_model()
    rate, decay = 0.1, 0.3
    optimizer = make_optimizer(
        model, learning_rate=rate, warmup=0.0, weight_decay=decay, steps=10**6
    )
    before = [np.array(v) for v in model.trainable_variables]
    generator = make_rng(0)
    gradients = [generator.normal(size=v.shape).astype("float32") * 9 for v in before]
    optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients], model.trainable_variables)

    norm = np.sqrt(sum(np.sum(np.square(g)) for g in gradients))
    assert norm > 1.0
    for variable, old, gradient in zip(model.trainable_variables, before, gradients, strict=True):
        gradient = gradient / norm
        # Moments corrected: m = g, v = g * g; epsilon is added before v is.
        step = rate * gradient / (np.abs(gradient) + 1e-6 / np.sqrt(1 - 0.999))
        decayed = old * (1 - rate * decay) if variable.name == "kernel" else old
        np.testing.assert_allclose(variable, decayed - step, rtol=1e-4, atol=1e-5)


def apply(optimizer, model, gradients):
    tensors = [keras.ops.convert_to_tensor(g) for g in gradients]
    optimizer.apply(tensors, model.trainable_variables)


def draw_gradients(model, *, steps, scale):
    generator = make_rng(0)
    shapes = [v.shape for v in model.trainable_variables]
    return [
        [(scale * generator.normal(size=shape)).astype("float32") for shape in shapes]
        for _ in range(steps)
    ]


def test_lamb_is_the_algorithm_of_the_paper():
    """Decay inside the norm of the step; biases, norms and a tensor of zeros without the ratio."""
    model = small_model()
    model.get_layer("dense").kernel.assign(np.zeros((3, 4)))
    rate, decay = 0.1, 0.3
    optimizer = make_optimizer(
        model, optimizer="lamb", learning_rate=rate, warmup=0.0, weight_decay=decay, steps=10**6
    )
    x = [np.array(v, "float64") for v in model.trainable_variables]
    m, v = ([np.zeros_like(value) for value in x] for _ in range(2))
    for step, gradients in enumerate(draw_gradients(model, steps=5, scale=0.05), 1):
        apply(optimizer, model, gradients)
        for i, (variable, gradient) in enumerate(
            zip(model.trainable_variables, gradients, strict=True)
        ):
            m[i] = 0.9 * m[i] + 0.1 * gradient
            v[i] = 0.999 * v[i] + 0.001 * gradient**2
            update = (m[i] / (1 - 0.9**step)) / (np.sqrt(v[i] / (1 - 0.999**step)) + 1e-6)
            if variable.name == "kernel":
                update = update + decay * x[i]
                size = np.linalg.norm(x[i])
                update = update * (size / np.linalg.norm(update) if size else 1.0)
            x[i] = x[i] - rate * update
            np.testing.assert_allclose(variable, x[i], rtol=2e-4, atol=1e-5)


def test_lamb_adapts_query_key_and_value_each_by_itself():
    """Fused in one kernel they move as three tensors do; one of zeros has the ratio 1."""
    keras.utils.set_random_seed(shifted(1))
    options = {"hidden_size": 4, "num_heads": 2, "initializer_range": 0.5}
    fused = SelfAttention(**options, dropout=0.0, output_dropout=0.0)
    fused.build()
    kernel = fused.query_key_value.kernel
    query = keras.random.normal((4, 4), seed=shifted(2))
    kernel.assign(np.hstack([query, np.zeros((4, 4)), np.full((4, 4), 3.0)]))
    apart = [keras.Variable(part) for part in np.split(np.array(kernel), 3, axis=1)]
    settings = {"weight_decay": 0.3, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6}
    one, three = LAMB(0.1, **settings), LAMB(0.1, **settings)
    one.build([kernel])
    three.build(apart)
    for gradient in make_rng(0).normal(size=(3, 4, 12)).astype("float32"):
        one.apply([keras.ops.convert_to_tensor(gradient)], [kernel])
        parts = np.split(gradient, 3, axis=1)
        three.apply([keras.ops.convert_to_tensor(part) for part in parts], apart)
        # A sum of a step's terms rounds by the largest of them, of the size of the weights.
        rounding = 8 * np.finfo(np.float32).eps * np.abs(kernel).max()
        np.testing.assert_allclose(np.array(kernel), np.hstack(apart), rtol=0, atol=rounding)


def test_keras_own_lamb_decays_apart_from_the_ratio():
    """Why there is one of ours; should Keras mend it, ours can go."""
    model = small_model()
    keras_lamb = keras.optimizers.Lamb(0.1, weight_decay=0.3, epsilon=1e-6)
    our_lamb = LAMB(0.1, weight_decay=0.3, beta_1=0.9, beta_2=0.999, epsilon=1e-6)
    kernel = np.array(model.get_layer("dense").kernel)
    after = []
    for optimizer in (keras_lamb, our_lamb):
        model.get_layer("dense").kernel.assign(kernel)
        apply(optimizer, model, draw_gradients(model, steps=1, scale=1.0)[0])
        after.append(np.array(model.get_layer("dense").kernel))
    # One step of each is as long as the rate times the tensor; only theirs also shrinks it by 3 %.
    size = np.linalg.norm(kernel)
    assert abs(np.linalg.norm(after[1] - kernel) / size - 0.1) < 1e-5
    assert abs(np.linalg.norm(after[0] - 0.97 * kernel) / size - 0.97 * 0.1) < 1e-5


def test_lamb_survives_serialisation():
    optimizer = LAMB(0.1, weight_decay=0.3, beta_1=0.8, beta_2=0.99, epsilon=1e-5)
    config = keras.saving.serialize_keras_object(optimizer)
    assert keras.saving.deserialize_keras_object(config).get_config() == optimizer.get_config()


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_a_step_of_several_batches_is_that_of_their_mean_gradient(name):
    """Rates, moments, decay and clipping go by the update, whatever it takes to make one."""
    settings = {"learning_rate": 0.1, "warmup": 0.5, "weight_decay": 0.3, "steps": 4}
    whole, parts = small_model(), small_model()
    at_once = make_optimizer(whole, optimizer=name, **settings)
    collected = make_optimizer(parts, optimizer=name, gradient_accumulation=3, **settings)
    # Each batch's gradient is beyond the clipping norm of 1, and their mean is not always.
    batches = draw_gradients(whole, steps=12, scale=0.4)
    for step in range(4):
        three = batches[3 * step : 3 * step + 3]
        before = [np.array(v) for v in parts.trainable_variables]
        for gradients in three[:2]:
            apply(collected, parts, gradients)
        for variable, old in zip(parts.trainable_variables, before, strict=True):
            np.testing.assert_array_equal(variable, old)
        np.testing.assert_allclose(collected.learning_rate, at_once.learning_rate)
        apply(collected, parts, three[2])
        apply(at_once, whole, [np.mean(g, axis=0) for g in zip(*three, strict=True)])
        assert int(collected.iterations) == int(at_once.iterations) == step + 1
        for one, other in zip(whole.trainable_variables, parts.trainable_variables, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_keras_asks_a_schedule_by_batches():
    """Why there is `PerUpdate`; should Keras mend it, it must go, or it would divide twice."""
    asked = []
    schedule = WarmupLinearDecay(peak=1.0, warmup_steps=0, steps=4)
    optimizer = keras.optimizers.SGD(schedule, gradient_accumulation_steps=2)
    model = small_model()
    for gradients in draw_gradients(model, steps=3, scale=1.0):
        asked.append((float(optimizer.learning_rate), int(optimizer.iterations)))
        apply(optimizer, model, gradients)
    assert asked == [(1.0, 0), (0.75, 0), (0.5, 1)]


def test_a_schedule_by_updates_survives_serialisation():
    schedule = PerUpdate(schedule=WarmupLinearDecay(peak=0.4, warmup_steps=2, steps=4), batches=2)
    config = keras.saving.serialize_keras_object(schedule)
    loaded = keras.saving.deserialize_keras_object(config)
    loaded = [float(loaded(batch)) for batch in range(9)]
    np.testing.assert_allclose(loaded, [0.2, 0.2, 0.4, 0.4, 0.4, 0.4, 0.2, 0.2, 0.0], rtol=1e-6)


@pytest.mark.parametrize("name", ["adamw", "lamb"])
@pytest.mark.parametrize("batches", [1, 2])
def test_the_training_step_is_traced_once(name, batches, monkeypatch):
    """Twice, if the optimizer's variables are made in it: seconds at the start of every run."""
    model = small_model()
    optimizer = make_optimizer(
        model,
        learning_rate=0.1,
        warmup=0.0,
        weight_decay=0.0,
        steps=4,
        optimizer=name,
        gradient_accumulation=batches,
    )
    model.compile(optimizer, loss="mse")
    step, traces = model.train_step, []
    monkeypatch.setattr(model, "train_step", lambda data: traces.append(data) or step(data))
    model.fit(np.ones((4, 3)), np.ones((4, 2, 2)), batch_size=2, verbose=0)
    assert int(optimizer.iterations) == 2 // batches and len(traces) == 1


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_an_embedding_s_gradient_of_rows_is_as_good(name):
    """TensorFlow gives only the rows that were looked up; collected, they are added up."""
    after = []
    for batches in (1, 2):
        keras.utils.set_random_seed(shifted(1))
        model = keras.Sequential([keras.Input((2,)), keras.layers.Embedding(5, 3)])
        optimizer = make_optimizer(
            model,
            learning_rate=0.1,
            warmup=0.0,
            weight_decay=0.1,
            steps=4,
            optimizer=name,
            gradient_accumulation=batches,
        )
        model.compile(optimizer, loss="mse")
        x = np.array([[0, 1], [1, 3]])
        model.fit(x, np.ones((2, 2, 3)), batch_size=2 // batches, shuffle=False, verbose=0)
        after.append(np.array(model.trainable_variables[0]))
    np.testing.assert_allclose(*after, atol=1e-5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"steps": 0}, "Invalid `steps`. Expected at least 1. Received: 0"),
        ({"learning_rate": 0.0}, "`learning_rate`. ... Received: 0.0"),
        ({"learning_rate": float("nan")}, "`learning_rate`. ... Received: nan"),
        ({"warmup": 1.0}, "`warmup`. ... Received: 1.0"),
        ({"weight_decay": -0.1}, "`weight_decay`. ... Received: -0.1"),
        ({"optimizer": "sgd"}, "Choose from: adamw, lamb, muon, adagrad. Received: 'sgd'"),
        ({"gradient_accumulation": 0}, "`gradient_accumulation`. ... Received: 0"),
        ({"schedule": "square"}, "Choose from: linear, ...constant, wsd. Received: 'square'"),
        ({"optimizer": "lamb", "fractions": [0.5] * 6}, "need the optimizer adamw. Received: lamb"),
    ],
)
def test_numbers_out_of_range_are_rejected_in_a_sentence(changed, message):
    settings = {"learning_rate": 1e-4, "warmup": 0.1, "weight_decay": 0.01, "steps": 10, **changed}
    with raises_input_error(message):
        make_optimizer(small_model(), **settings)
