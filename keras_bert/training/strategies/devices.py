"""The devices that a run trains on, as its loop sees them: who writes, who gets which rows.

What `fit` and `evaluate` call for a step is ours under a strategy of `tf.distribute`: Keras 3.15's
own fails there with several steps an execution, and with several workers: it asks for
the mean over all of them of each figure of a step, along an axis that numbers do not have. Nobody
reads these. An entry's figures are added up over the replicas by the metrics themselves.
"""

from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.inputs.batches import parts, sorted_batches
from keras_bert.training.checkpoint import named_variables
from keras_bert.training.monitoring.flops import matrix_rate
from keras_bert.training.strategies.strategy import Workers


def replicated_training(model, strategy):
    """What stands for `model.train_function`: takes an iterator, which has as many batches.

    It does `model.steps_per_execution` steps before it comes back.
    """
    together = _together(model.train_step, strategy)

    @tf.function(autograph=False)
    def steps(iterator):
        def step(number):
            together(iterator.get_next())
            return number + 1

        tf.while_loop(
            lambda number: number < model.steps_per_execution,
            step,
            [tf.constant(0)],
            parallel_iterations=1,  # sums of two steps at a time would wait for one another
        )

    metrics = _unread_metrics(model)

    def train(iterator):
        steps(iterator)
        return metrics

    return train


def replicated_evaluation(model, strategy):
    """What stands for `model.test_function`; it ends early with the data."""
    together = _together(model.test_step, strategy)
    metrics = _unread_metrics(model)

    def test(iterator):
        for _ in range(model.steps_per_execution):
            try:
                batch = next(iterator)
            except StopIteration:
                break
            together(batch)
        return metrics

    return test


def _together(step, strategy):
    """A step of each replica with its part of a batch."""
    return tf.function(
        lambda batch: strategy.run(step, (batch,)), autograph=False, reduce_retracing=True
    )


def _unread_metrics(model):
    """The names by which Keras knows that it is to ask the metrics themselves."""
    return dict.fromkeys(model.get_metrics_result())


class Devices:
    """One device, or those of the strategy of `tf.distribute` that is in scope, its replicas.

    Every replica has a copy of all variables and computes its part of each batch. Replicas may
    belong to several processes, the workers, of which one, the chief, writes.

    Attributes:
        replicas: how many there are, over all workers.
        workers: how many processes train together.
        is_chief: whether this process is the one that writes.
    """

    def __init__(self):
        self._strategy = tf.distribute.get_strategy() if tf.distribute.has_strategy() else None
        self.replicas = self._strategy.num_replicas_in_sync if self._strategy else 1
        self._workers = self._strategy if isinstance(self._strategy, Workers) else None
        self.workers = self._workers.count if self._workers else 1
        self.is_chief = self._workers is None or self._workers.is_chief

    def check_sequences(self, rows, *, by="batch_size"):
        """Raises `InputError` where batches of so many rows have no part for each device.

        Parts may differ by a row, but not on a TPU, whose shapes are all the same. `by` is the
        setting that their size comes of.
        """
        if rows < self.replicas:
            raise InputError(
                f"Batches have as few as {rows} rows here, and {self.replicas} devices take a part "
                f"of each; give a larger `{by}`, more examples, or train on fewer devices."
            )
        if isinstance(self._strategy, tf.distribute.TPUStrategy) and rows % self.replicas:
            raise InputError(
                f"Batches have {rows} rows here, of which the {self.replicas} parts of a TPU take "
                f"equal shares; give a `batch_size` that is a multiple of {self.replicas}."
            )

    def prepare(self, model, dataset):
        """Settles for a compiled model what Keras would settle when `fit` sees a `dataset`.

        To make the figures' variables, Keras would take a batch out of the data, which it can do
        neither with several workers nor where the parts of a batch are of several shapes. Its steps
        are replaced, too (see `keras_bert.training.strategies.devices`).
        """
        if self._strategy is None:
            return
        batch = tf.nest.map_structure(
            lambda spec: keras.KerasTensor(spec.shape, spec.dtype.name), dataset.element_spec
        )
        model._symbolic_build(data_batch=batch)
        model._distribute_strategy = None  # then it takes the one in scope, and builds nothing
        if model.train_function is None:
            self.renew_steps(model)

    def renew_steps(self, model):
        """Has the steps of a model traced anew when they are next called."""
        model.train_function = model.test_function = None  # then Keras makes them
        if self._strategy is not None:
            model.train_function = replicated_training(model, self._strategy)
            model.test_function = replicated_evaluation(model, self._strategy)

    def distributed(self, dataset):
        """The dataset in which each replica gets its part of every batch; None stays None.

        What one device would train on in a step is what all of them train on together: replica r
        of n gets the rows [B r / n, B (r + 1) / n) of B.
        """
        if self._strategy is None or dataset is None:
            return dataset

        def of_worker(context):
            count = context.num_replicas_in_sync // context.num_input_pipelines
            first = context.input_pipeline_id * count
            return parts(dataset, range(first, first + count), of=self.replicas)

        return self._strategy.distribute_datasets_from_function(of_worker)

    def matrix_rate(self, dtype):
        """FLOP/s of all devices in large matrix products of a type; None on a TPU: not known."""
        if isinstance(self._strategy, tf.distribute.TPUStrategy):
            return None
        # Several logical devices of one processor have no more of it than one.
        has_gpu = bool(tf.config.list_logical_devices("GPU"))
        return matrix_rate(dtype) * (self.replicas if has_gpu else self.workers)

    def batches_in(self, dataset):
        """How many batches Keras must be told that a dataset has; None where it finds out itself.

        It does not see the end of distributed ones coming, and warns.
        """
        if self._strategy is None or dataset is None:
            return None
        return int(dataset.cardinality())

    def restored(self, checkpoint, model, report=None):
        """What `checkpoint.restore(report)` gives: (step, state), or None: there is no checkpoint.

        The chief alone has a `checkpoint`; of the other workers' files nothing is read.
        """
        found = None
        if self.is_chief and checkpoint.latest is not None:
            found = checkpoint.restore(report)
        if self._workers is None:
            return found
        found = self._workers.broadcast(found)
        if found is not None:
            for variable in named_variables(model).values():
                variable.assign(self._workers.broadcast_array(np.array(variable)))
        return found

    def any(self, wish):
        """Whether any worker has a wish."""
        return wish if self._workers is None else self._workers.any(wish)

    def separate_seeds(self, model):
        """Gives replica r the first one's seeds plus r, so that each draws its own dropout.

        A checkpoint has those of the first one, and so has every replica after it was restored.
        """
        states = [v for v in model.variables if v.name == "seed_generator_state"]
        if self._strategy is None or not states:
            return

        @tf.function(autograph=False)
        def separate():
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            for state in states:
                state.assign(state + tf.cast(tf.stack([number, 0]), state.dtype))

        for state in states:
            state.assign(np.array(state))
        self._strategy.run(separate)

    def own_parts(self, lengths, *, batch_size):
        """The rows of steps in which this process computes all rows, whatever other workers do.

        Shapes: lengths (N,) int -> a list of steps, each a list of arrays of row numbers, one for
        each replica of this process; from the shortest to the longest row. None is empty where
        there are as many rows, and rows in a step, as replicas.
        """
        if self._strategy is None:
            return [[numbers] for numbers in sorted_batches(lengths, batch_size=batch_size)]
        count, steps = self.replicas // self.workers, -(-len(lengths) // batch_size)
        split = np.array_split(np.argsort(lengths, kind="stable"), steps * count)
        return [split[first : first + count] for first in range(0, len(split), count)]

    def one_each(self, dataset):
        """The dataset in which each replica of this process gets one element after the other."""
        if self._strategy is None:
            return dataset
        return self._strategy.distribute_datasets_from_function(lambda context: dataset)

    def on_replicas(self, function, signature):
        """A function of what a dataset gives -> one of what `one_each` makes of it.

        `signature` is the dataset's `element_spec`. What comes of it gives a list, with what each
        replica of this process gives.
        """
        if self._strategy is None:
            traced = tf.function(function, input_signature=signature, autograph=False)
            return lambda batch: [traced(*batch)]

        @tf.function(autograph=False, reduce_retracing=True)
        def together(batch):
            return self._strategy.run(function, batch)

        return lambda batch: self._strategy.experimental_local_results(together(batch))


def out_of_scope(function, *arguments):
    """Calls a function where no strategy is in scope, which a scope within a scope cannot be.

    There a model is made on one device, by this process alone.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:  # a scope belongs to its thread
        return thread.submit(function, *arguments).result()
