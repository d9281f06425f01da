"""The norm of a step's gradients: what is reported, and that measuring it changes nothing."""

import keras
import numpy as np
import pytest

from keras_bert.optimizers.optimizer import GradientNorm, make_optimizer
from tests.seeds import make_rng, shifted


def small_model():
    keras.utils.set_random_seed(shifted(3))
    x = keras.Input((3,))
    return keras.Model(x, keras.layers.Dense(2)(keras.layers.Dense(4, activation="gelu")(x)))


SETTINGS = {"learning_rate": 0.1, "warmup": 0.0, "weight_decay": 0.1, "steps": 9}


@pytest.mark.parametrize("more", [{}, {"clip_norm": 0}, {"fractions": [1.0, 1.0, 0.5, 0.5]}])
def test_it_is_that_of_all_variables_before_the_cut_and_the_weights_are_the_same(more):
    rng = make_rng(0)
    models = [small_model(), small_model()]
    gradients = [
        [rng.normal(size=v.shape).astype("float32") for v in models[0].trainable_variables]
        for _ in range(2)
    ]
    plain, measuring = (
        make_optimizer(model, **SETTINGS, **more, measures_gradients=measures)
        for model, measures in zip(models, (False, True), strict=True)
    )
    for step in gradients:
        for optimizer, model in zip((plain, measuring), models, strict=True):
            given = [keras.ops.convert_to_tensor(gradient) for gradient in step]
            optimizer.apply(given, model.trainable_variables)
    for one, other in zip(*(model.variables for model in models), strict=True):
        np.testing.assert_array_equal(one, other)
    norms = [np.sqrt(sum(np.sum(gradient**2.0) for gradient in step)) for step in gradients]
    assert min(norms) > 1  # so that they are cut
    assert float(measuring.gradient_norm.result()) == pytest.approx(np.mean(norms), rel=1e-5)
    # It is no part of what a checkpoint holds.
    assert len(measuring.variables) == len(plain.variables)


def test_parts_of_a_step_are_measured_together():
    model = small_model()
    optimizer = make_optimizer(model, **SETTINGS, gradient_accumulation=2, measures_gradients=True)
    variables = model.trainable_variables
    for scale in (1.0, 3.0):
        optimizer.apply([scale * keras.ops.ones(v.shape) for v in variables], variables)
    size = sum(int(np.prod(v.shape)) for v in variables)
    assert float(optimizer.gradient_norm.result()) == pytest.approx(2 * np.sqrt(size), rel=1e-5)


def test_of_no_step_there_is_none():
    metric = GradientNorm()
    metric.update_state(2.0)
    metric.reset_state()
    assert np.isnan(float(metric.result()))
