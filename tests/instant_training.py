"""Training and evaluation that take no time, for tests of what a run does around them."""

import keras


def instant_fit(
    self, x=None, y=None, *, steps_per_epoch, initial_epoch, epochs, callbacks, **options
):
    """Stands for `keras.Model.fit`: a step takes its batch and is an addition.

    The losses are ones, and the accuracy is a number that the step settles.
    """
    batches = None if x is None else iter(x)
    self.stop_training = False
    callbacks.on_train_begin()
    for epoch in range(initial_epoch, epochs):
        callbacks.on_epoch_begin(epoch)
        for variable in self.trainable_variables:
            variable.assign_add(0.125 * keras.ops.ones(variable.shape, variable.dtype))
        for step in range(steps_per_epoch):
            if batches is not None:
                next(batches)
            callbacks.on_train_batch_end(step)
            if self.stop_training:
                break
        callbacks.on_epoch_end(epoch, {"loss": 1.0, "val_loss": 1.0, "val_accuracy": epoch / 9})
        if self.stop_training:
            break
    callbacks.on_train_end()


def make_fit_instant(monkeypatch):
    monkeypatch.setattr(keras.Model, "fit", instant_fit)


def make_evaluation_instant(monkeypatch):
    monkeypatch.setattr(
        keras.Model, "evaluate", lambda self, rows, **options: {"loss": 2.0, "accuracy": 0.0}
    )
