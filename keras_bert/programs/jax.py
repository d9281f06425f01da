"""Programs of JAX: compiled functions, devices and processes.

XLA compiles every program, again for each shape of its tensors. Batches are read by `tf.data` on
the CPU.
"""

import contextlib
import functools

import keras
import numpy as np

from keras_bert.base.errors import InputError, reason_of
from keras_bert.layers.kernels.private import assign_without_communication
from keras_bert.programs.jax_steps import (
    COMPILER_OPTIONS,
    FILLING,
    Steps,
    keep_programs,
    states_of_losses,
)
from keras_bert.programs.workers import (
    DevicesOfWorkers,
    Workers,
    begun_before,
    check_workers_named,
    workers_named,
)

# Whether XLA compiles every program, again for each shape of its tensors.
COMPILES_EACH_SHAPE = True
# Whether Keras's optimizer computes an update for each of several batches and then drops it.
UPDATES_EACH_BATCH = True


def compiled(function, *, signature=None, reads=(), assigned=(), prepared=None):
    """A function of tensors, compiled once for each of their shapes.

    Args:
        function: returns tensors, or a structure of them.
        signature: of the arguments of `prepared`, or None.
        reads: the models whose variables it reads, with those of their losses.
        assigned: the variables that it assigns.
        prepared: a function of TensorFlow's from the arguments to those of `function`, or None.
    """
    import jax

    if prepared is not None:
        import tensorflow as tf

        prepared = tf.function(prepared, input_signature=signature, autograph=False)
    keep_programs()
    assigned = list(assigned)
    variables = [v for model in reads for v in (*model.variables, *states_of_losses(model))]

    @jax.jit
    def program(values, changed, arguments):
        mapping = zip((*variables, *assigned), (*values, *changed), strict=True)
        with keras.StatelessScope(list(mapping)) as scope:
            result = function(*arguments)
        return result, [scope.get_current_value(variable) for variable in assigned]

    @functools.wraps(function)
    def call(*arguments):
        arguments = arguments if prepared is None else prepared(*arguments)
        arguments = keras.tree.map_structure(np.asarray, arguments)
        values, changed = ([_own(v.value) for v in group] for group in (variables, assigned))
        result, changed = program(values, changed, arguments)
        for variable, value in zip(assigned, changed, strict=True):
            variable.assign(value)
        return result

    return call


def _own(value):
    """An array of JAX; of one that several processes have copies of, this process's copy."""
    return value if value.is_fully_addressable else value.addressable_data(0)


def rows_of_program(count):
    """The rows of a batch of `count` examples, filled up to a power of two for fewer programs."""
    return 1 << max(0, count - 1).bit_length()


def training_steps(model):
    """The `train_function` of a compiled model in place of Keras's, or None."""
    return Steps(model, Steps.train) if _is_compiled(model) else None


def evaluation_steps(model):
    """The `test_function` of a compiled model in place of Keras's, or None."""
    return Steps(model, Steps.evaluate) if _is_compiled(model) else None


def _is_compiled(model):
    return model.jit_compile and not model.run_eagerly


def wait_for(model):
    """Waits until the device has done the steps of a model that `fit` trains."""
    import jax

    state = getattr(model, "_jax_state", None) or {}
    # Keras makes it a dictionary of its own, in which JAX finds no arrays.
    jax.block_until_ready([value for values in state.values() for value in values])


def make_deterministic():
    """From now on the steps that are compiled for a GPU give the same bits each time."""
    if has_gpu():
        COMPILER_OPTIONS["xla_gpu_exclude_nondeterministic_ops"] = True


@functools.cache
def keep_input_on_cpu():
    """TensorFlow, which reads the batches, leaves the memory of GPUs to JAX."""
    import tensorflow as tf

    with contextlib.suppress(RuntimeError):  # a program has used them before
        tf.config.set_visible_devices([], "GPU")


def has_gpu():
    """Whether programs run on a GPU."""
    import jax

    return jax.default_backend() == "gpu"


def has_accelerator():
    """Whether programs run on a GPU or TPU."""
    import jax

    return jax.default_backend() != "cpu"


def computes_in_bfloat16():
    """Whether the device is faster in bfloat16: a TPU, or a GPU from Ampere on."""
    import jax

    if not has_gpu():
        return has_accelerator()
    capability = str(getattr(jax.local_devices()[0], "compute_capability", ""))
    return capability.replace(".", "").isdecimal() and float(capability) >= 8


def is_out_of_memory(error):
    """Whether an error means that the memory of a device was not enough."""
    return isinstance(error, RuntimeError | ValueError) and "RESOURCE_EXHAUSTED" in str(error)


def replica_count():
    """1: a step is one program over all devices, whose sums are over the whole batch."""
    return 1


def sum_over_replicas(x):
    """The sum of a tensor over the replicas, without a gradient."""
    return keras.ops.stop_gradient(x)


def rows_of_replicas(x):
    """The rows of a tensor of all replicas, in their order."""
    return x


@contextlib.contextmanager
def scope_of(name, report=None):
    """The context of a run under a strategy by its name.

    "auto" is the cluster of TF_CONFIG; else all GPUs or TPU cores of this machine if there are
    several, else one device. "mirrored" is all of them, or all CPU devices if there are no others;
    "multiworker" those of the cluster; "tpu" the cores of a TPU; "none" is one device.

    Args:
        name: the strategy, as in `RunSettings`.
        report: called with a line if a run has several devices.

    Raises:
        InputError: the devices are missing, or JAX was used before its processes join.
    """
    import jax

    is_cluster = name == "multiworker" or (name == "auto" and len(workers_named()[0]) > 1)
    if is_cluster:
        _join()
    kind = jax.default_backend()
    if name == "tpu" and kind != "tpu":
        raise InputError.naming("{strategy} tpu needs a TPU. JAX has found: {}.", kind)
    is_one = name == "none" or (name == "auto" and kind == "cpu" and not is_cluster)
    own = {f"{device.platform}:{device.id}" for device in jax.local_devices()}
    devices = [d for d in keras.distribution.list_devices() if is_cluster or d in own]
    devices = devices[: 1 if is_one else None]
    if len(devices) == 1:
        yield
        return
    if report is not None:
        report(f"Training on {len(devices)} devices.")
    parallel = keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False)
    with parallel.scope():
        yield


@functools.cache  # a process joins its cluster once
def _join():
    import jax

    check_workers_named()
    addresses, index = workers_named()
    # Without it JAX ends this process when another one has ended, except the first.
    jax.config.update("jax_enable_recoverability", True)
    try:
        jax.distributed.initialize(addresses[0], num_processes=len(addresses), process_id=index)
    except (RuntimeError, ValueError) as error:
        if "before any" in str(error):
            raise begun_before("JAX") from error
        raise InputError(
            f"Could not join the workers of TF_CONFIG: {reason_of(error)}. Check its addresses."
        ) from error
    assign_without_communication()


class _Processes(Workers):
    """The processes that `jax.distributed` has joined."""

    def __init__(self):
        import jax

        self.count = jax.process_count()
        self.is_chief = jax.process_index() == 0

    @staticmethod
    def is_lost(error):
        # JAX raises a ValueError or its own error, with what its transports and service say.
        is_of_jax = isinstance(error, ValueError | RuntimeError)
        return is_of_jax and any(name in str(error) for name in _TRANSPORTS)

    def _all_reduce(self, numbers):
        from jax.experimental import multihost_utils

        return multihost_utils.process_allgather(numbers).sum(axis=0)


# In the messages of JAX's errors when another process has ended.
_TRANSPORTS = ("Gloo", "NCCL", "CoordinationService", "UNAVAILABLE")


def is_written_here():
    """Whether this process writes the output of a run: not as a worker other than the chief."""
    return not _join.cache_info().currsize or _Processes().is_chief


def workers_in_scope():
    """The `Workers` of the strategy in scope, or None."""
    is_of_several = _join.cache_info().currsize and keras.distribution.distribution() is not None
    return _Processes() if is_of_several else None


class Devices(DevicesOfWorkers):
    """One device, or those of the `keras.distribution` in scope: see that of TensorFlow.

    A step is one program over all devices of all workers: there is one replica.

    Attributes: `replicas`, `count`, `workers`, `is_chief`, `prefetches`.
    """

    def __init__(self):
        super().__init__(workers_in_scope())
        self.replicas, self.prefetches = 1, False
        distribution = keras.distribution.distribution()
        self.count = 1 if distribution is None else distribution.device_mesh.devices.size

    def check_batch_size(self, size, *, setting="batch_size"):
        """Nothing: batches of any size have a part for each device."""

    def prepare(self, model, dataset):
        """Builds the metrics of a compiled model, as `fit` would from the first batch."""
        model._symbolic_build(iterator=iter([(0, 0, dataset.as_numpy_iterator())]))

    def renew_steps(self, model):
        """Compiles the steps of a model again when they are next called."""
        model.train_function = training_steps(model)
        model.test_function = evaluation_steps(model)

    def distributed(self, dataset):
        """The dataset from which all devices get as many rows of each batch; None stays None.

        A worker gets the rows of its own devices.
        """
        if self.count == 1 or dataset is None:
            return dataset
        import jax

        index = jax.process_index() if self.workers > 1 else 0
        return _filled(dataset, self.count, worker=index, workers=self.workers)

    @property
    def processors(self):
        """The number of processors that compute together."""
        # Several devices of one processor are as fast as one.
        return self.count if has_accelerator() else self.workers

    def batches_in(self, dataset):
        """The number of batches of a dataset; None if Keras finds it out without a warning."""

    def restored(self, checkpoint, variables, report=None):
        """See `DevicesOfWorkers`; without a checkpoint all workers get the chief's first weights.

        Those that they have made themselves may differ in the last bit on another processor.
        """
        restored = super().restored(checkpoint, variables, report)
        if restored is None and self._workers is not None:
            self._share(variables, {})
        return restored

    def separate_seeds(self, model):
        """Nothing: the devices' parts of a batch have parts of its random numbers."""

    def own_parts(self, lengths, *, batch_size):
        """Batches with which this process computes all examples: a list of lists of one."""
        from keras_bert.programs.datasets import sorted_batches

        return [[numbers] for numbers in sorted_batches(lengths, batch_size=batch_size)]

    def one_each(self, dataset):
        """The dataset of which the replicas of this process get one element each."""
        return dataset

    def on_replicas(self, function, signature, reads=(), assigned=()):
        """A function of a dataset's elements -> one of those of `one_each`, a list of results."""
        compute = compiled(function, reads=reads, assigned=assigned)
        return lambda batch: [compute(*batch)]


def _filled(dataset, count, *, worker, workers):
    """The rows of a worker of a dataset in which a number of devices get as many of each batch.

    The last row is repeated. The input `FILLING` says by its shape how often, so that a step knows
    it when it is compiled.
    """
    import tensorflow as tf

    from keras_bert.programs.datasets import resolved

    def filled(x, *targets):
        rows = tf.shape(next(iter(x.values())))[0]
        filling = -rows % count
        own = (rows + filling) // workers

        def part_of_worker(value):
            whole = tf.concat([value, tf.repeat(value[-1:], filling, axis=0)], axis=0)
            return whole[own * worker : own * (worker + 1)]

        x, *targets = tf.nest.map_structure(part_of_worker, (x, *targets))
        return {**x, FILLING: tf.zeros([own, filling], tf.int8)}, *targets

    return resolved(dataset.map(filled))
