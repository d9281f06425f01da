"""Learning rate and epochs if none are given: one table, for commands and for Python."""

from types import SimpleNamespace

import pytest

from keras_bert.checkpoints import load, save_folder
from keras_bert.tasks import finetuned_task_types, task_class
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.training_defaults import HEAD_LEARNING_RATE, training_defaults
from keras_bert.training.finetuning_settings import finetune_settings
from keras_bert.training.finetuning_task import TaskRecipe
from tests.small_model import make_encoder, make_tokenizer


@pytest.mark.parametrize("is_pretrained", [True, False])
def test_the_rate_falls_with_the_size_and_is_higher_for_random_weights(is_pretrained):
    rates = [
        training_defaults(hidden_size=size, is_pretrained=is_pretrained)
        for size in (128, 256, 384, 768, 1024, 4096)
    ]
    assert rates == sorted(rates, reverse=True)  # and of the same rate, the steps
    random = training_defaults(hidden_size=768, is_pretrained=False).learning_rate
    assert training_defaults(hidden_size=768, is_pretrained=True).learning_rate == 5e-5 < random


def test_epochs_are_three_or_as_many_as_make_the_least_number_of_steps():
    defaults = training_defaults(hidden_size=384, is_pretrained=True)
    for examples, batch_size in ((10_000, 32), (447, 32), (100, 32), (5, 8)):
        steps = -(-examples // batch_size)
        epochs = defaults.epochs(examples=examples, batch_size=batch_size)
        assert epochs * steps >= defaults.least_steps
        assert epochs == 3 or (epochs - 1) * steps < defaults.least_steps
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
    assert len(batches) == task.training_defaults.least_steps == 600
    task.compile_defaults(steps=len(batches), run_eagerly=True)
    assert peak(task) == pytest.approx(
        training_defaults(hidden_size=encoder.config.hidden_size, is_pretrained=False).learning_rate
    )
    task.fit(batches.take(1), verbose=0)
    assert encoder.is_pretrained


def peak(task):
    """The highest learning rate of a task that `compile_defaults` has compiled."""
    return max(float(task.optimizer._learning_rate(step)) for step in range(60))


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("is_pretrained", [False, True])
@pytest.mark.parametrize("task_type", finetuned_task_types())
def test_commands_and_compile_defaults_take_the_same(task_type, is_pretrained, is_frozen):
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, hidden_size=256, num_attention_heads=2)
    encoder.is_pretrained, encoder.trainable = is_pretrained, not is_frozen
    class_of_task = task_class(task_type)
    labels = {"labels": ["B-a", "I-a", "O"]} if class_of_task.MIN_LABELS else {}
    head = {"dense": "8"} if task_type == "text-embedding" else {}  # it has no other weights
    task = class_of_task(encoder, tokenizer, **labels, **head)
    task.compile_defaults(steps=100)

    recipe = TaskRecipe(
        task_class=class_of_task,
        start=SimpleNamespace(is_random=not is_pretrained),
        earlier=None,
        options={},
        inferred_arguments=labels,
        columns=None,
        max_length=8,
        hidden_size=256,
    )
    given = {"task": task_type, "model": "m", "train": "t", "output": "o", **head}
    settings = finetune_settings(task_type).of({**given, "freeze_encoder": is_frozen})
    told = []
    settings, defaults = recipe.with_defaults(settings, 320, told.append)
    assert settings == defaults
    expected = class_of_task.RATE_FACTOR * {True: 3e-4, False: 5e-4}[is_pretrained]
    expected = 1e-3 if is_frozen else float(f"{expected:.1e}")
    assert settings.learning_rate == expected == pytest.approx(peak(task))
    assert settings.epochs == task.training_defaults.epochs(
        examples=320, batch_size=settings.batch_size
    )
    assert len(told) == 1 and f"learning_rate {expected:g}" in told[0]


def test_a_text_embedder_has_a_third_of_the_rate_of_its_encoder_and_the_whole_of_a_head():
    factor = task_class("text-embedding").RATE_FACTOR
    for size, rate in ((384, 1e-4), (768, 1.7e-5)):
        options = {"hidden_size": size, "is_pretrained": True, "rate_factor": factor}
        assert training_defaults(**options).learning_rate == rate
        assert training_defaults(**options, is_frozen=True).learning_rate == HEAD_LEARNING_RATE
