"""AdaGrad on the rows of a batch, against its formula and PyTorch's."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.optimizers.optimizer import with_gradient_norm
from keras_bert.optimizers.update_rules import Adagrad
from tests.peers import torch
from tests.seeds import make_rng

V, D, STEPS = 9, 4, 5


@pytest.fixture(scope="module")
def steps():
    rng = make_rng(0)
    return [
        (rng.integers(0, V - 2, 6), rng.normal(size=(6, D)).astype("float32")) for _ in range(STEPS)
    ]


def by_formula(table, steps):
    table, sums = table.astype("float64"), np.zeros((V, D))
    for ids, row_gradients in steps:
        gradient = np.zeros((V, D))
        np.add.at(gradient, ids, row_gradients)
        sums += gradient**2
        table = table - 0.1 * gradient / (np.sqrt(sums) + 1e-10)
    return table


def by_pytorch(table, steps):
    parameter = torch.nn.Parameter(torch.from_numpy(table.copy()))
    reference = torch.optim.Adagrad([parameter], lr=0.1)
    for ids, row_gradients in steps:
        parameter.grad = torch.sparse_coo_tensor(
            torch.from_numpy(ids)[None], torch.from_numpy(row_gradients), (V, D)
        )
        reference.step()
    return parameter.detach().numpy()


@pytest.mark.parametrize("by", [by_formula, pytest.param(by_pytorch, marks=pytest.mark.peers)])
def test_it_is_pytorchs_and_leaves_other_rows_alone(by, steps):
    table = make_rng(1).normal(size=(V, D)).astype("float32")
    sparse, dense = keras.Variable(table), keras.Variable(table)
    optimizers = [Adagrad(0.1), Adagrad(0.1)]
    for optimizer, variable in zip(optimizers, (sparse, dense), strict=True):
        optimizer.build([variable])
    for ids, row_gradients in steps:
        slices = tf.IndexedSlices(tf.constant(row_gradients), tf.constant(ids), tf.constant([V, D]))
        optimizers[0].apply([slices], [sparse])
        optimizers[1].apply([tf.convert_to_tensor(slices)], [dense])
    expected = by(table, steps)
    np.testing.assert_allclose(sparse.numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dense.numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(sparse.numpy()[-2:], table[-2:])


def test_gradients_are_clipped_by_the_norm_of_rows_that_are_added_up():
    table = np.zeros((V, D), "float32")
    one, other = keras.Variable(table), keras.Variable(table)
    row_gradients = tf.ones((3, D))
    slices = tf.IndexedSlices(row_gradients, tf.constant([2, 2, 2]), tf.constant([V, D]))
    for variable, gradient in ((one, slices), (other, tf.convert_to_tensor(slices))):
        # With an ε so large the step shows the size of the gradient.
        optimizer = Adagrad(1.0, epsilon=1e3, global_clipnorm=1.0)
        optimizer.build([variable])
        optimizer.apply([gradient], [variable])
    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)
    assert one.numpy()[2, 0] == pytest.approx(-0.5e-3, rel=1e-2)


def test_a_step_touches_the_rows_of_a_batch_alone(steps):
    """It measures the norm and clips without an operation on a whole table."""
    variable = keras.Variable(np.zeros((V, D), "float32"))
    optimizer = with_gradient_norm(Adagrad)(0.1, global_clipnorm=1.0)
    optimizer.build([variable])

    @tf.function
    def step(ids, row_gradients):
        optimizer.apply([tf.IndexedSlices(row_gradients, ids, tf.constant([V, D]))], [variable])

    graph = step.get_concrete_function(*map(tf.constant, steps[0])).graph
    tables = [op.name for op in graph.get_operations() for x in op.outputs if x.shape == (V, D)]
    assert not tables
    step(*map(tf.constant, steps[0]))
    ids, gradients = steps[0]
    sums = np.zeros((V, D))
    np.add.at(sums, ids, gradients)
    norm = np.linalg.norm(sums)
    assert float(optimizer.gradient_norm.result()) == pytest.approx(norm, rel=1e-5)


def test_a_program_of_xla_and_collected_batches_have_the_same_step(steps):
    table = make_rng(1).normal(size=(V, D)).astype("float32")
    plain, compiled, collected = (keras.Variable(table) for _ in range(3))
    variables = (plain, compiled, collected)
    optimizers = [Adagrad(0.1), Adagrad(0.1), Adagrad(0.1, gradient_accumulation_steps=2)]
    for optimizer, variable in zip(optimizers, variables, strict=True):
        optimizer.build([variable])

    def slices(ids, row_gradients):
        return tf.IndexedSlices(row_gradients, ids, tf.constant([V, D]))

    @tf.function(jit_compile=True)
    def step(ids, row_gradients):
        optimizers[1].apply([slices(ids, row_gradients)], [compiled])

    for ids, gradients in steps:
        optimizers[0].apply([slices(tf.constant(ids), tf.constant(gradients))], [plain])
        step(tf.constant(ids), tf.constant(gradients))
        for _ in range(2):
            optimizers[2].apply([slices(tf.constant(ids), tf.constant(gradients))], [collected])
    np.testing.assert_allclose(compiled.numpy(), plain.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(collected.numpy(), plain.numpy(), rtol=1e-5, atol=1e-6)
