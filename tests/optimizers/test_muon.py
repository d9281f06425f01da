"""Muon against its formula in numpy, and AdamW if it is that."""

import keras
import numpy as np
import pytest

from keras_bert.optimizers.muon import Muon
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.tasks.classification.classifier import Classifier
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

RATE, DECAY = 0.01, 0.3


@pytest.fixture
def task():
    tokenizer = make_tokenizer(["good", "bad"])
    encoder = make_encoder(tokenizer, num_hidden_layers=2)
    return Classifier(encoder, tokenizer, labels=["a", "b"], max_length=8)


def orthogonal(x):
    """Keras's five steps of Newton and Schulz, in float64."""
    if x.shape[0] > x.shape[1]:
        return orthogonal(x.T).T
    x = x / np.linalg.norm(x)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x


def gradients_of(task, *, steps):
    rng = make_rng(1)
    shapes = [variable.shape for variable in task.trainable_variables]
    return [[rng.normal(size=shape) * 0.01 for shape in shapes] for _ in range(steps)]


def updated(task, gradients, **options):
    """The weights after some updates; those of the task stay."""
    before = [np.array(variable) for variable in task.trainable_variables]
    given = {"learning_rate": RATE, "warmup": 0.0, "weight_decay": DECAY, "clip_norm": 0.0}
    optimizer = make_optimizer(task, **{**given, **options}, steps=None)
    for some in gradients:
        tensors = [keras.ops.convert_to_tensor(g.astype("float32")) for g in some]
        optimizer.apply(tensors, task.trainable_variables)
    after = [np.array(variable) for variable in task.trainable_variables]
    for variable, value in zip(task.trainable_variables, before, strict=True):
        variable.assign(value)
    return optimizer, after


@pytest.mark.parametrize("fraction", [None, 0.5])
def test_hidden_matrices_have_orthogonal_updates_and_all_others_those_of_adamw(task, fraction):
    gradients = gradients_of(task, steps=3)
    variables = task.trainable_variables
    options = {} if fraction is None else {"fractions": [fraction] * len(variables)}
    optimizer, after = updated(task, gradients, optimizer="muon", **options)
    assert isinstance(optimizer, Muon)
    _, after_adamw = updated(task, gradients, **options)
    rate, hidden = RATE * (fraction or 1), 0
    for number, variable in enumerate(variables):
        if not optimizer.is_hidden[number]:
            np.testing.assert_allclose(after[number], after_adamw[number], rtol=1e-4, atol=1e-6)
            continue
        hidden += 1
        x, momentum = np.array(variable, np.float64), 0.0
        parts = getattr(variable, "num_parts", 1)
        for some in gradients:
            momentum = 0.95 * momentum + some[number]
            x -= rate * DECAY * x
            for part in range(parts):
                columns = np.s_[:, part * x.shape[1] // parts : (part + 1) * x.shape[1] // parts]
                update = (some[number] + 0.95 * momentum)[columns]
                x[columns] -= rate * 0.2 * max(update.shape) ** 0.5 * orthogonal(update)
        np.testing.assert_allclose(after[number], x, rtol=1e-3, atol=1e-5)
    assert hidden == 2 * 4  # query, key and value in one; output; two of the feed-forward layer
    names = {
        v.path for v, is_hidden in zip(variables, optimizer.is_hidden, strict=True) if is_hidden
    }
    assert not any("embedding" in name or "classifier" in name for name in names)


def test_it_survives_serialisation(task):
    optimizer, _ = updated(task, [], optimizer="muon")
    config = keras.saving.serialize_keras_object(optimizer)
    again = keras.saving.deserialize_keras_object(config)
    assert isinstance(again, Muon) and again.get_config() == optimizer.get_config()


def test_a_model_without_hidden_matrices_is_an_error():
    from keras_bert.encoders.static import StaticConfig
    from keras_bert.encoders.static.encoder import StaticEncoder

    tokenizer = make_tokenizer(["good", "bad"])
    encoder = StaticEncoder(StaticConfig(vocab_size=len(tokenizer), hidden_size=4))
    task = Classifier(encoder, tokenizer, labels=["a", "b"], max_length=8, pooling="mean")
    with raises_input_error("muon is for the matrices of layers, and this model has none"):
        make_optimizer(
            task, learning_rate=RATE, warmup=0.0, weight_decay=0.0, steps=9, optimizer="muon"
        )
