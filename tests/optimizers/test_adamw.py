"""AdamW in few operations: Keras's numbers, and that it is few."""

import collections

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.optimizers.update_rules import AdamW
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

SETTINGS = {"weight_decay": 0.3, "beta_1": 0.9, "beta_2": 0.99, "epsilon": 1e-6}
SHAPES = [(5, 3), (3, 4), (4,)]  # the last one does not decay


def draw(steps=1):
    """Variables, and for each step their gradients."""
    rng = make_rng(0)
    variables = [keras.Variable(rng.normal(size=shape).astype("float32")) for shape in SHAPES]
    steps = [[rng.normal(size=shape).astype("float32") for shape in SHAPES] for _ in range(steps)]
    return variables, steps


def moved(optimizer, *, jit_compile=False):
    """The variables, and the moments, after some steps."""
    variables, gradients = draw(steps=6)
    optimizer.exclude_from_weight_decay(var_list=variables[2:])
    optimizer.build(variables)
    step = tf.function(lambda *given: optimizer.apply(given), jit_compile=jit_compile)
    for given in gradients:
        step(*map(tf.constant, given))
    return [np.array(variable) for variable in (*variables, *optimizer.variables)]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"weight_decay": 0.0},
        {"global_clipnorm": 0.5},
        {"global_clipnorm": 100.0},  # never reached
        {"clipnorm": 0.5},
        {"amsgrad": True, "clipvalue": 0.5},
        {"gradient_accumulation_steps": 2, "global_clipnorm": 0.5},
        {"use_ema": True},
    ],
)
def test_its_numbers_are_those_of_keras_s_own(more):
    settings = {**SETTINGS, **more}
    our_changes, keras_changes = (
        moved(AdamW(0.1, **settings)),
        moved(keras.optimizers.AdamW(0.1, **settings)),
    )
    for one, other in zip(our_changes, keras_changes, strict=True):
        # Keras has 1 - β once in float64 and once, in the correction, in float32.
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-6)


def test_a_compiled_step_is_keras_s_own_to_the_last_bit():
    our_changes, keras_changes = (
        moved(kind(0.1, global_clipnorm=0.5, **SETTINGS), jit_compile=True)
        for kind in (AdamW, keras.optimizers.AdamW)
    )
    for one, other in zip(our_changes, keras_changes, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_step_has_few_passes_over_the_weights():
    """The law of the class: were TensorFlow or Keras to change, it would be slow again unseen."""
    variables, (gradients,) = draw()
    optimizer = AdamW(0.1, global_clipnorm=0.5, **SETTINGS)
    optimizer.build(variables)
    step = tf.function(lambda: optimizer.apply(list(map(tf.constant, gradients))))
    operations = step.get_concrete_function().graph.get_operations()
    passes = collections.Counter(op.type for op in operations if any(map(has_axes, op.inputs)))
    count = len(SHAPES)
    # The decay is read, multiplied and assigned; what packs norms has a vector of three numbers.
    assert passes["L2Loss"] == count
    assert passes["Mul"] == 2 * count  # clipping and decay
    assert not {"Square", "Sqrt", "RealDiv", "Sub", "AssignSubVariableOp"} & set(passes)
    assert passes["ResourceApplyAdam"] == count


def has_axes(tensor):
    return bool(tensor.shape.rank)


def test_it_survives_serialisation():
    optimizer = AdamW(0.1, global_clipnorm=0.5, **SETTINGS)
    config = keras.saving.serialize_keras_object(optimizer)
    assert keras.saving.deserialize_keras_object(config).get_config() == optimizer.get_config()


def test_no_gradient_of_an_encoder_is_a_list_of_rows():
    encoder = make_encoder(make_tokenizer())
    ids = np.array([[3, 1, 3], [3, 0, 1]], "int32")
    rows = {"input_ids": ids, "input_mask": ids**0, "segment_ids": ids // 3}
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(rows)["sequence_output"] ** 3)
    gradients = tape.gradient(loss, encoder.trainable_variables)
    tensors = [gradient for gradient in gradients if gradient is not None]
    assert len(tensors) > 10 and all(isinstance(gradient, tf.Tensor) for gradient in tensors)
