"""The distribution of every trained variable's numbers, as TensorBoard shows it over time."""

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.files import delete


class WeightHistograms(keras.callbacks.Callback):
    """Writes a histogram of each variable at every evaluation, into the run `folder/weights`.

    Each evaluation's stand in a file of its own, so that a session that goes on takes away what the
    one before it wrote of later steps.

    Args:
        folder: the `Path` of the run's logs.
        plan: the `Plan` of the run.
    """

    def __init__(self, folder, plan):
        super().__init__()
        self.folder = folder / "weights"
        self.plan = plan

    def on_epoch_begin(self, epoch, logs=None):
        for path in self.folder.glob("*"):
            step = path.suffix[1:]
            if step.isdecimal() and int(step) > self.plan.first_step_of(epoch):
                delete(path)

    def on_epoch_end(self, epoch, logs=None):
        step = self.plan.step_of(epoch)
        if not self.plan.evaluates(step):
            return
        writer = tf.summary.create_file_writer(str(self.folder), filename_suffix=f".{step}")
        with writer.as_default(step=step):
            for variable in self.model.trainable_variables:
                tf.summary.histogram(f"weights/{variable.path}", np.asarray(variable))
        writer.close()
