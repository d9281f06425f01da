"""The batch with an infinite or NaN loss, which is kept for the user in OUTPUT/bad_batch.npz."""

import contextlib

from keras_bert.training.parts import Part


class BadBatch(Part):
    """Writes the batch of a step whose loss is infinite or NaN.

    The batches of a step depend on nothing but the step, so they can be made again.
    """

    FILES = ("bad_batch.npz",)

    @contextlib.contextmanager
    def while_training(self, run):
        from keras_bert.training.logs import NotFinite, save_batch

        try:
            yield
        except NotFinite as error:
            if error.step is None:
                raise
            source, before = run.source, error.step - 1
            batches = source.at(before).training(before).take(source.batches_per_step)
            save_batch(run.folder.bad_batch, batches.as_numpy_iterator())
            raise error.with_batch(run.folder.bad_batch) from None
