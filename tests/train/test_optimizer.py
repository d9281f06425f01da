"""The schedule's values by hand, and one AdamW step against the formula in numpy."""

import keras
import numpy as np
import pytest

from keras_bert.errors import InputError
from keras_bert.train.optimizer import make_optimizer
from keras_bert.train.schedule import WarmupLinearDecay


def rates(schedule, steps):
    return [float(schedule(step)) for step in range(steps)]


def test_the_rate_rises_to_the_peak_and_falls_to_zero_and_no_step_is_lost():
    schedule = WarmupLinearDecay(peak=0.4, warmup_steps=4, steps=8)
    np.testing.assert_allclose(
        rates(schedule, 10), [0.1, 0.2, 0.3, 0.4, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0], rtol=1e-6
    )


def test_without_warmup_it_starts_at_the_peak():
    schedule = WarmupLinearDecay(peak=1.0, warmup_steps=0, steps=4)
    np.testing.assert_allclose(rates(schedule, 5), [1.0, 0.75, 0.5, 0.25, 0.0], rtol=1e-6)


def test_the_schedule_survives_serialisation():
    schedule = WarmupLinearDecay(peak=0.4, warmup_steps=4, steps=8)
    config = keras.saving.serialize_keras_object(schedule)
    assert rates(keras.saving.deserialize_keras_object(config), 9) == rates(schedule, 9)


@pytest.mark.parametrize(
    "values", [{"peak": 0.0}, {"warmup_steps": 8}, {"warmup_steps": -1}, {"steps": 0}]
)
def test_the_schedule_refuses_what_has_no_meaning(values):
    with pytest.raises(ValueError, match="Received: peak="):
        WarmupLinearDecay(**{"peak": 0.4, "warmup_steps": 4, "steps": 8, **values})


def small_model():
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(4, name="dense"),
            keras.layers.LayerNormalization(epsilon=1e-12, name="norm"),
            keras.layers.EinsumDense("bd,dnh->bnh", (2, 2), bias_axes="nh", name="heads"),
        ]
    )
    for variable in model.variables:  # so that decay of a zero or a one would show
        variable.assign(keras.random.normal(variable.shape, seed=2) + 1.0)
    return model


def test_a_step_is_adamw_with_global_clipping_and_decays_matrices_only():
    model = small_model()
    rate, decay = 0.1, 0.3
    optimizer = make_optimizer(
        model, learning_rate=rate, warmup=0.0, weight_decay=decay, steps=10**6
    )
    before = [np.array(v) for v in model.trainable_variables]
    generator = np.random.default_rng(0)
    gradients = [generator.normal(size=v.shape).astype("float32") * 9 for v in before]
    optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients], model.trainable_variables)

    norm = np.sqrt(sum(np.sum(np.square(g)) for g in gradients))
    assert norm > 1.0
    for variable, old, gradient in zip(model.trainable_variables, before, gradients, strict=True):
        gradient = gradient / norm
        step = rate * gradient / (np.abs(gradient) + 1e-6)  # moments corrected: m = g, v = g * g
        kept = old * (1 - rate * decay) if variable.name == "kernel" else old
        np.testing.assert_allclose(variable, kept - step, rtol=2e-3, atol=1e-5)


def test_the_training_step_is_traced_once(monkeypatch):
    """Twice, where the optimizer's variables are made in it: seconds at the start of every run."""
    model = small_model()
    optimizer = make_optimizer(model, learning_rate=0.1, warmup=0.0, weight_decay=0.0, steps=4)
    model.compile(optimizer, loss="mse")
    step, traces = model.train_step, []
    monkeypatch.setattr(model, "train_step", lambda data: traces.append(data) or step(data))
    model.fit(np.ones((4, 3)), np.ones((4, 2, 2)), batch_size=2, verbose=0)
    assert int(optimizer.iterations) == 2 and len(traces) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"steps": 0}, "number of steps is 0"),
        ({"learning_rate": 0.0}, "learning rate is 0.0"),
        ({"learning_rate": float("nan")}, "learning rate is nan"),
        ({"warmup": 1.0}, "warm-up is 1.0"),
        ({"weight_decay": -0.1}, "weight decay is -0.1"),
    ],
)
def test_numbers_out_of_range_are_refused_in_a_sentence(changed, message):
    settings = {"learning_rate": 1e-4, "warmup": 0.1, "weight_decay": 0.01, "steps": 10, **changed}
    with pytest.raises(InputError, match=message):
        make_optimizer(small_model(), **settings)
