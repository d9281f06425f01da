"""Learning rate and epochs where none are given: one table, for commands and for Python."""

import pytest

from keras_bert.checkpoints import load, save_folder
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.training_defaults import LEAST_STEPS, training_defaults
from tests.small_model import make_encoder, make_tokenizer


@pytest.mark.parametrize("is_pretrained", [True, False])
def test_the_rate_falls_with_the_size_and_is_higher_for_random_weights(is_pretrained):
    rates = [
        training_defaults(hidden_size=size, is_pretrained=is_pretrained).learning_rate
        for size in (128, 256, 384, 768, 1024, 4096)
    ]
    assert rates == sorted(rates, reverse=True)
    random = training_defaults(hidden_size=768, is_pretrained=False).learning_rate
    assert training_defaults(hidden_size=768, is_pretrained=True).learning_rate == 5e-5 < random


def test_epochs_are_three_or_as_many_as_make_the_least_number_of_steps():
    defaults = training_defaults(hidden_size=384, is_pretrained=True)
    for examples, batch_size in ((10_000, 32), (447, 32), (100, 32), (5, 8)):
        steps = -(-examples // batch_size)
        epochs = defaults.epochs(examples=examples, batch_size=batch_size)
        assert epochs * steps >= LEAST_STEPS
        assert epochs == 3 or (epochs - 1) * steps < LEAST_STEPS
    assert defaults.epochs(examples=10_000, batch_size=32) == 3


@pytest.mark.usefixtures("eager")
def test_an_encoder_knows_whether_its_weights_are_trained(tmp_path):
    tokenizer = make_tokenizer(["good", "bad"])
    encoder = make_encoder(tokenizer)
    assert not encoder.is_pretrained
    save_folder(encoder, tokenizer, tmp_path / "model")
    loaded, _ = load(tmp_path / "model")
    assert loaded.is_pretrained and loaded.rebuilt().is_pretrained
    task = Classifier(encoder, tokenizer, labels=["a", "b"])
    batches = task.dataset([("good", "a"), ("bad", "b")], batch_size=2, epochs=None)
    assert len(batches) == LEAST_STEPS
    task.compile_defaults(steps=len(batches), run_eagerly=True)
    assert max(float(task.optimizer._learning_rate(step)) for step in range(20)) == pytest.approx(
        training_defaults(hidden_size=encoder.config.hidden_size, is_pretrained=False).learning_rate
    )
    task.fit(batches.take(1), verbose=0)
    assert encoder.is_pretrained
