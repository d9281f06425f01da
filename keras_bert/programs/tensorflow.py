"""Programs of TensorFlow: traced functions, the steps of `fit`, strategies and devices.

Under a strategy of `tf.distribute` the steps of `fit` and `evaluate` are ours: those of Keras 3.15
fail there with several steps per execution, and with several workers, since they ask for the mean
over the workers of each step's metrics. Nobody reads these: the metrics themselves are summed over
the replicas when a log step ends.
"""

import contextlib
import functools
import os

import keras
import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError, argument, reason_of
from keras_bert.programs.datasets import parts, sorted_batches
from keras_bert.programs.tensorflow_workers import WORKER_LOST, WorkersStrategy
from keras_bert.programs.workers import (
    DevicesOfWorkers,
    begun_before,
    check_workers_named,
    workers_named,
)

# Whether XLA compiles every program, again for each shape of its tensors.
COMPILES_EACH_SHAPE = False
# Whether Keras's optimizer computes an update for each of several batches and then drops it.
UPDATES_EACH_BATCH = False


def compiled(function, *, signature=None, reads=(), assigned=(), prepared=None):
    """A function of tensors, traced once for all tensors of a signature.

    Args:
        function: returns tensors, or a structure of them.
        signature: the `tf.TypeSpec`s of its arguments, or None: of those it gets.
        reads, assigned: the models that it reads and the variables that it assigns, which other
            backends have to know.
        prepared: a function of TensorFlow's from the arguments to those of `function`, or None.
    """

    def whole(*arguments):
        return function(*prepared(*arguments))

    # Without AutoGraph, which writes Python files into the temporary folder.
    traced = function if prepared is None else whole
    return tf.function(traced, input_signature=signature, autograph=False)


def rows_of_program(count):
    """The rows of a batch of `count` examples, which may be filled up for fewer programs."""
    return count


def training_steps(model):
    """The `train_function` of a compiled model in place of Keras's, or None."""
    return None


def evaluation_steps(model):
    """The `test_function` of a compiled model in place of Keras's, or None."""
    return None


def wait_for(model):
    """Waits until the device has done the steps of a model that `fit` trains."""
    keras.ops.convert_to_numpy(model.optimizer.iterations)


def make_deterministic():
    """From now on operations give the same bits each time; some are slower."""
    tf.config.experimental.enable_op_determinism()


def keep_input_on_cpu():
    """Nothing: TensorFlow reads and computes on the same devices."""


def has_gpu():
    """Whether programs run on a GPU."""
    return bool(tf.config.list_logical_devices("GPU"))


def computes_in_bfloat16():
    """Whether the device is faster in bfloat16: a TPU, or a GPU from Ampere on."""
    details = [
        tf.config.experimental.get_device_details(gpu)
        for gpu in tf.config.list_physical_devices("GPU")[:1]
    ]
    is_ampere = any(of.get("compute_capability", (0, 0)) >= (8, 0) for of in details)
    return is_ampere if has_gpu() else has_accelerator()


def is_out_of_memory(error):
    """Whether an error means that the memory of a device was not enough."""
    return isinstance(error, tf.errors.ResourceExhaustedError)


def has_accelerator():
    """Whether programs run on a GPU or TPU."""
    return has_gpu() or bool(tf.config.list_logical_devices("TPU"))


def replica_count():
    """The number of replicas of the strategy in scope; 1 without one."""
    return tf.distribute.get_strategy().num_replicas_in_sync


def sum_over_replicas(x):
    """The sum of a tensor over the replicas, without a gradient.

    Outside of a traced step, as when Keras infers shapes, it is the tensor itself.
    """
    x = keras.ops.stop_gradient(x)
    if replica_count() == 1:
        return x
    context = tf.distribute.get_replica_context()
    return x if context is None else context.all_reduce(tf.distribute.ReduceOp.SUM, x)


def rows_of_replicas(x):
    """The rows of a tensor of all replicas, in their order; a gradient is that of the own rows.

    Outside of a traced step it is the tensor itself.
    """
    if replica_count() == 1:
        return x
    context = tf.distribute.get_replica_context()
    if context is None:
        return x
    count = tf.shape(x)[0]
    counts = context.all_gather(count[None], axis=0)
    first = tf.reduce_sum(counts[: context.replica_id_in_sync_group])
    whole = context.all_gather(tf.stop_gradient(x), axis=0)
    return tf.concat([whole[:first], x, whole[first + count :]], axis=0)


@contextlib.contextmanager
def scope_of(name, report=None):
    """The context of a run under a strategy by its name.

    "auto" is the cluster of TF_CONFIG; else the TPU of TPU_NAME; else all GPUs if there are
    several; else one device. "mirrored" is all GPUs of this machine, or all of its logical CPU
    devices if it has none; "none" is one device.

    Args:
        name: the strategy, as in `RunSettings`.
        report: called with a line if a run has several devices.

    Raises:
        InputError: the devices are missing, TensorFlow was initialized without the strategy, or
            another worker has ended.
    """
    strategy = _OPENED[_chosen(name)]()
    if strategy is None:
        yield
        return
    if report is not None and strategy.num_replicas_in_sync > 1:
        report(f"Training on {strategy.num_replicas_in_sync} devices.")
    with strategy.scope():
        try:
            yield
        except WORKER_LOST as error:
            raise InputError(
                "Another worker has ended. Run the same command on all workers again."
            ) from error


def is_written_here():
    """Whether this process writes the output of a run: not as a worker other than the chief."""
    return not _multiworker.cache_info().currsize or _multiworker().is_chief


def workers_in_scope():
    """The `Workers` of the strategy in scope, or None."""
    strategy = tf.distribute.get_strategy()
    return strategy if isinstance(strategy, WorkersStrategy) else None


def _chosen(name):
    if name != "auto":
        return name
    if len(workers_named()[0]) > 1:
        return "multiworker"
    if os.environ.get("TPU_NAME"):
        return "tpu"
    return "mirrored" if len(tf.config.list_physical_devices("GPU")) > 1 else "none"


@functools.cache  # TensorFlow confuses the sums of two of them
def _mirrored():
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    devices = [device.name for device in tf.config.list_logical_devices(kind)]
    return tf.distribute.MirroredStrategy(devices) if len(devices) > 1 else None


@functools.cache  # a process joins its cluster once
def _multiworker():
    check_workers_named()
    try:
        return WorkersStrategy()
    except RuntimeError as error:
        if "program startup" not in str(error):
            raise
        raise begun_before("TensorFlow") from error
    except (ValueError, tf.errors.OpError) as error:
        raise InputError(
            f"Could not join the workers of TF_CONFIG: {reason_of(error)}. Check its addresses."
        ) from error


@functools.cache  # initializing a TPU again would clear its memory
def _tpu():
    name = os.environ.get("TPU_NAME", "local")
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise InputError(
            f"Could not connect to the TPU {name!r}: {reason_of(error)}. Set the "
            "environment variable TPU_NAME. See docs/distribution.md for the versions that support "
            "one."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


_OPENED = {
    "none": lambda: None,
    "mirrored": _mirrored,
    "multiworker": _multiworker,
    "tpu": _tpu,
}


def replicated_training(model, strategy):
    """A `model.train_function`: takes an iterator, and does `model.steps_per_execution` steps."""
    replicated_step = _replicated(model.train_step, strategy)

    @tf.function(autograph=False)
    def steps(iterator):
        def step(number):
            replicated_step(iterator.get_next())
            return number + 1

        tf.while_loop(
            lambda number: number < model.steps_per_execution,
            step,
            [tf.constant(0)],
            parallel_iterations=1,  # the sums of two concurrent steps would deadlock
        )

    metrics = _unread_metrics(model)

    def train(iterator):
        steps(iterator)
        return metrics

    return train


def replicated_evaluation(model, strategy):
    """A `model.test_function`, which ends early with the data."""
    replicated_step = _replicated(model.test_step, strategy)
    metrics = _unread_metrics(model)

    def test(iterator):
        for _ in range(model.steps_per_execution):
            try:
                batch = next(iterator)
            except StopIteration:
                break
            replicated_step(batch)
        return metrics

    return test


def _replicated(step, strategy):
    """A step of each replica with its part of a batch."""
    return tf.function(
        lambda batch: strategy.run(step, (batch,)), autograph=False, reduce_retracing=True
    )


def _unread_metrics(model):
    """None by name, for which Keras reads the metrics themselves."""
    return dict.fromkeys(model.get_metrics_result())


class Devices(DevicesOfWorkers):
    """One device, or the replicas of the `tf.distribute` strategy in scope.

    Every replica has a copy of all variables and computes its part of each batch. Replicas may
    belong to several processes, the workers, of which one, the chief, writes.

    Attributes:
        replicas: their number over all workers.
        count: the number of devices, which is the same.
        prefetches: whether batches are requested in a thread of their own, before a step is done.
    """

    def __init__(self):
        self._strategy = tf.distribute.get_strategy() if tf.distribute.has_strategy() else None
        self.replicas = self.count = self._strategy.num_replicas_in_sync if self._strategy else 1
        super().__init__(workers_in_scope())
        self.prefetches = self._strategy is not None

    def check_batch_size(self, size, *, setting="batch_size"):
        """Raises `InputError` if batches of so many examples have no part for each device.

        Parts may differ by an example, except on a TPU. `setting` determines the size.
        """
        if size < self.replicas:
            raise InputError.naming(
                "The smallest batch has {} examples, too few for {} devices. Use a larger {}, "
                "more examples, or fewer devices.",
                size,
                self.replicas,
                argument(setting),
            )
        if isinstance(self._strategy, tf.distribute.TPUStrategy) and size % self.replicas:
            raise InputError.naming(
                "Batches have {} examples, which {} TPU cores cannot share equally. Use a "
                "{batch_size} that is a multiple of {}.",
                size,
                self.replicas,
                self.replicas,
            )

    def prepare(self, model, dataset):
        """Builds the metrics of a compiled model, as `fit` would for a `dataset`, and its steps.

        Keras would take a batch from the data, which fails with several workers, and if the
        parts of a batch have several shapes.
        """
        if self._strategy is None:
            return
        batch = tf.nest.map_structure(
            lambda spec: keras.KerasTensor(spec.shape, spec.dtype.name), dataset.element_spec
        )
        model._symbolic_build(data_batch=batch)
        model._distribute_strategy = None  # Keras then takes the one in scope, and builds nothing
        if model.train_function is None:
            self.renew_steps(model)

    def renew_steps(self, model):
        """Traces the steps of a model again when they are next called."""
        model.train_function = model.test_function = None  # then Keras makes them
        if self._strategy is not None:
            model.train_function = replicated_training(model, self._strategy)
            model.test_function = replicated_evaluation(model, self._strategy)

    def distributed(self, dataset):
        """The dataset in which each replica gets its part of every batch; None stays None.

        Replica r of n gets the examples [B r / n, B (r + 1) / n) of B.
        """
        if self._strategy is None or dataset is None:
            return dataset

        def worker_batches(context):
            count = context.num_replicas_in_sync // context.num_input_pipelines
            first = context.input_pipeline_id * count
            return parts(dataset, range(first, first + count), count=self.replicas)

        return self._strategy.distribute_datasets_from_function(worker_batches)

    @property
    def processors(self):
        """The number of processors that compute together; None on a TPU: not known."""
        if isinstance(self._strategy, tf.distribute.TPUStrategy):
            return None
        # Several logical devices of one processor are as fast as one.
        return self.replicas if has_gpu() else self.workers

    def batches_in(self, dataset):
        """The number of batches of a dataset; None if Keras finds it out without a warning."""
        if self._strategy is None or dataset is None:
            return None
        return int(dataset.cardinality())

    def separate_seeds(self, model):
        """Adds r to the seeds of replica r, so that each draws its own dropout.

        A checkpoint has those of the first one, and so has every replica after restoring it.
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
        """Batches with which this process computes all examples, whatever other workers do.

        Shapes: lengths (N,) int -> a list of steps, each a list of index arrays, one for each
        replica of this process, from the shortest to the longest example. No array is empty if
        N and the batch size are at least the number of replicas.
        """
        if self._strategy is None:
            return [[numbers] for numbers in sorted_batches(lengths, batch_size=batch_size)]
        count, steps = self.replicas // self.workers, -(-len(lengths) // batch_size)
        split = np.array_split(np.argsort(lengths, kind="stable"), steps * count)
        return [split[first : first + count] for first in range(0, len(split), count)]

    def one_each(self, dataset):
        """The dataset of which the replicas of this process get one element each."""
        if self._strategy is None:
            return dataset
        return self._strategy.distribute_datasets_from_function(lambda context: dataset)

    def on_replicas(self, function, signature, reads=(), assigned=()):
        """A function of a dataset's elements -> one of those of `one_each`.

        It returns a list, with the result of each replica of this process. `signature` is the
        dataset's `element_spec`; `reads` and `assigned` are as of `compiled`.
        """
        if self._strategy is None:
            traced = compiled(function, signature=signature, reads=reads, assigned=assigned)
            return lambda batch: [traced(*batch)]

        @tf.function(autograph=False, reduce_retracing=True)
        def replicated(batch):
            return self._strategy.run(function, batch)

        return lambda batch: self._strategy.experimental_local_results(replicated(batch))
