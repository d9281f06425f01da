"""A task is compiled by its defaults, and each `fit` plans its schedule; the user may compile."""

import warnings

import keras
import numpy as np
import pytest

import keras_bert as kb
from keras_bert.base.errors import InputError, InputWarning
from keras_bert.tasks.compiling import batches_per_epoch
from tests.seeds import shifted
from tests.small_model import make_encoder, make_tokenizer

pytestmark = pytest.mark.usefixtures("eager")

TEXTS = ["a b c", "d", "e f", "g h i j k l", "m n o p", "q r", "s t u v w x y z", "a", "b b"]
LABELS = ["ham", "spam"] * 4 + ["ham"]


class Rates(keras.callbacks.Callback):
    """The learning rate after each step."""

    def on_train_begin(self, logs=None):
        self.rates = []

    def on_train_batch_end(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate))


def new(dtype=None):
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    encoder = encoder if dtype is None else encoder.rebuilt(dtype=dtype)
    return kb.Classifier(encoder, tokenizer, labels=["ham", "spam"])


def fit(task, x=TEXTS, y=LABELS, **options):
    """-> (the learning rates, the sum of the changes of the weights)."""
    watch, before = Rates(), [weight.numpy() for weight in task.trainable_weights]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The training loss did not fall", InputWarning)
        task.fit(x, y, callbacks=[watch], verbose=0, **options)
    moved = sum(
        np.abs(weight.numpy() - value).sum()
        for weight, value in zip(task.trainable_weights, before, strict=True)
    )
    return watch.rates, moved


def test_every_fit_has_a_schedule_of_its_own_and_learns():
    task = new()
    first, moved = fit(task, batch_size=5, epochs=2)
    assert len(first) == 4 and first[0] > 0 and first[-1] == 0 and moved > 0
    again, moved = fit(task, batch_size=5, epochs=2)
    np.testing.assert_allclose(again, first, rtol=1e-6)
    assert moved > 0 and int(task.optimizer.iterations) == 4
    longer, _ = fit(task, batch_size=9, epochs=6)
    assert len(longer) == 6 and longer[-1] == 0 < longer[-2]
    later, _ = fit(task, batch_size=9, epochs=6, initial_epoch=4)  # where the whole was then
    np.testing.assert_allclose(later, longer[4:], rtol=1e-5, atol=1e-12)
    assert int(task.optimizer.iterations) == 8  # with the moments of the fit before
    task.compile_defaults(learning_rate=0.5)
    peak_rates, _ = fit(task, batch_size=9)
    assert peak_rates == [0]
    assert task.optimizer._learning_rate.peak == 0.5


def test_a_fit_that_is_planned_as_the_one_before_compiles_nothing_and_learns_the_same():
    again, anew = new(), new()
    anew.set_weights(again.get_weights())
    programs = []
    for number in range(3):
        anew.compile_defaults()
        for task in (again, anew):
            keras.utils.set_random_seed(shifted(number))  # of the order of the examples
            fit(task, batch_size=5, epochs=2)
        programs.append((again.train_function, again.optimizer))
        for weight, expected in zip(again.weights, anew.weights, strict=True):
            np.testing.assert_array_equal(weight.numpy(), expected.numpy(), err_msg=str(number))
    assert programs[0] == programs[1] == programs[2]
    for change in (
        lambda: None,  # but the number of epochs
        lambda: setattr(again.encoder, "recomputes", True),
        lambda: setattr(again.encoder, "trainable", False),
    ):
        change()
        fit(again, batch_size=5, epochs=1)
        programs.append((again.train_function, again.optimizer))
    assert len({id(optimizer) for _, optimizer in programs[2:]}) == 4


def test_what_is_trained_may_change_between_two_fits():
    task = new()
    task.encoder.trainable = False
    _, moved = fit(task)
    assert moved > 0 and task.optimizer._learning_rate.peak == pytest.approx(1e-3)
    task.encoder.trainable = True
    first = task.encoder.trainable_weights[0].numpy()
    fit(task, epochs=2, initial_epoch=1)  # other moments than those of the head alone
    assert np.abs(task.encoder.trainable_weights[0].numpy() - first).sum() > 0
    task.encoder.enable_lora(2)
    _, moved = fit(task)
    assert moved > 0


def test_the_loss_of_float16_is_scaled_in_each_fit():
    task = new("mixed_float16")
    for options in ({}, {"epochs": 2, "initial_epoch": 1}):
        fit(task, **options)
        assert isinstance(task.optimizer, keras.optimizers.LossScaleOptimizer)
    assert int(task.optimizer.inner_optimizer.iterations) <= 2  # steps that overflow do not count


def test_the_optimizer_of_the_user_stays():
    task = new()
    optimizer = keras.optimizers.SGD(0.25)
    task.compile(optimizer, loss=task.default_losses())
    for _ in range(2):
        rates, _ = fit(task)
        assert rates == [0.25] and task.optimizer is optimizer
    task.compile_defaults(steps=2)
    fit(task, batch_size=9)
    fit(task, batch_size=9)  # one schedule over two fits
    with pytest.raises(InputError, match="The learning rate's schedule of 2 steps is over"):
        fit(task)


def test_a_task_that_is_not_compiled_is_evaluated_and_then_trained():
    task = new()
    assert set(task.evaluate(TEXTS, LABELS, verbose=0, return_dict=True)) == {"loss", "accuracy"}
    (batch,) = task.dataset(list(zip(TEXTS, LABELS, strict=True))).as_numpy_iterator()
    assert np.isfinite(new().test_on_batch(*batch)).all()
    for train in (lambda: task.train_on_batch(*batch), lambda: task.fit(TEXTS, LABELS, verbose=0)):
        train()
        assert task.optimizer.name == "adamw"
        task.evaluate(TEXTS, LABELS, verbose=0)
        assert task.optimizer.name == "adamw"


def test_a_schedule_needs_the_number_of_batches():
    task = new()
    (batch,) = task.dataset(list(zip(TEXTS, LABELS, strict=True))).as_numpy_iterator()
    rates, _ = fit(task, (batch for _ in range(2)), None, steps_per_epoch=1, epochs=2)
    assert len(rates) == 2 and rates[-1] == 0
    with pytest.warns(InputWarning, match="learning rate stays at 0.001. Pass `steps_per_epoch`"):
        rates, _ = fit(task, (batch for _ in range(2)), None)
    assert rates == pytest.approx([1e-3] * 2)


@pytest.mark.filterwarnings("error:`compile:UserWarning")
def test_a_keras_file_is_compiled_as_it_was(tmp_path):
    task, path = new(), tmp_path / "a.keras"
    fit(task)
    task.save(path)
    loaded = keras.saving.load_model(path)
    assert fit(loaded)[1] > 0
    task.compile("adam", loss=task.default_losses())
    fit(task)
    task.save(path)
    loaded = keras.saving.load_model(path)
    assert isinstance(loaded.optimizer, keras.optimizers.Adam)
    assert int(loaded.optimizer.iterations) == 1
    fit(loaded)
    assert int(loaded.optimizer.iterations) == 2


class Sequence(keras.utils.PyDataset):
    def __len__(self):
        return 7


def test_the_batches_of_an_epoch():
    import tensorflow as tf

    arrays = {"input_ids": np.zeros((70, 4)), "input_mask": np.zeros((70, 4))}
    for x, options, expected in (
        (arrays, {}, 3),
        (arrays, {"batch_size": 7}, 10),
        (arrays, {"batch_size": 7, "validation_split": 0.5}, 5),
        (arrays, {"batch_size": 7, "validation_split": 0.5, "validation_data": arrays}, 10),
        (arrays, {"steps_per_epoch": 2}, 2),
        (tf.data.Dataset.range(5), {}, 5),
        (tf.data.Dataset.range(5).repeat(), {}, None),
        (tf.data.Dataset.range(5).repeat(), {"steps_per_epoch": 4}, 4),
        (tf.data.Dataset.range(5).filter(lambda x: x > 2), {}, None),
        (Sequence(), {}, 7),
        ((x for x in "ab"), {}, None),
    ):
        assert batches_per_epoch(x, options) == expected
