"""The strategies that a run can train under: which devices they are, and what is missing for them.

A strategy is one of `tf.distribute`; in its scope a run makes its model, trains and evaluates
(`keras_bert.training.strategies.devices`). docs/distribution.md has what a user does.
"""

import contextlib
import functools
import json
import os

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError

# What TensorFlow raises in those that are left when a worker ends.
LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)
# Every way of adding up over workers takes float32, in which 16 bits stand exactly.
_BITS = np.uint16
_BITS_AT_ONCE = 1 << 22


def ended_with_another(how_far):
    """The error of a worker that has lost another one; `how_far` is as of `RunFolder`."""
    return InputError(f"Another worker of the run has ended, so this one is {how_far}")


class Workers(tf.distribute.MultiWorkerMirroredStrategy):
    """The strategy of the cluster that TF_CONFIG describes.

    The methods are collective operations: all workers must call them, in one order.

    Attributes:
        count: how many workers there are.
        is_chief: whether this process is the one that writes.
    """

    def __init__(self):
        super().__init__()
        resolver = self.cluster_resolver
        jobs = resolver.cluster_spec().as_dict()
        self.count = sum(len(jobs.get(job, ())) for job in ("chief", "worker"))
        first = "chief" if "chief" in jobs else "worker"
        self.is_chief = (resolver.task_type, resolver.task_id) == (first, 0)

    def any(self, wish):
        """Whether any worker has a wish."""
        return bool(self._all_reduce(np.array([wish], np.float32))[0])

    def broadcast(self, value=None):
        """The chief's value, as JSON can hold it, on every worker."""
        text = json.dumps(value).encode() if self.is_chief else b""
        size = int.from_bytes(self._broadcast_bytes(len(text).to_bytes(8, "little")), "little")
        return json.loads(self._broadcast_bytes(text.ljust(size)))

    def broadcast_array(self, array):
        """The chief's array on every worker, bit by bit; each gives one of its shape and type."""
        content = self._broadcast_bytes(np.ascontiguousarray(array).tobytes())
        return np.frombuffer(content, array.dtype).reshape(array.shape)

    def barrier(self):
        """Returns when all workers have come here, so that the chief may end.

        Who returns first may have ended before another one hears of that: nothing more is to come.
        """
        with contextlib.suppress(*LOST):
            self.any(False)

    def _broadcast_bytes(self, content):
        """The chief's bytes on every worker; each gives as many."""
        even = content.ljust(len(content) + len(content) % 2)
        numbers = np.frombuffer(even, _BITS).astype(np.float32) * self.is_chief
        parts = range(0, len(numbers), _BITS_AT_ONCE)
        found = [self._all_reduce(numbers[start : start + _BITS_AT_ONCE]) for start in parts]
        return b"".join(part.astype(_BITS).tobytes() for part in found)[: len(content)]

    def _all_reduce(self, numbers):
        """float32 (N,) -> the sum over all workers."""
        return self.experimental_local_results(self._sums(numbers))[0].numpy()

    @functools.cached_property
    def _sums(self):
        of_a_worker = self.num_replicas_in_sync // self.count

        def add(numbers):
            context = tf.distribute.get_replica_context()
            is_first = context.replica_id_in_sync_group % of_a_worker == 0
            mine = numbers * tf.cast(is_first, tf.float32)
            return context.all_reduce(tf.distribute.ReduceOp.SUM, mine)

        signature = [tf.TensorSpec([None], tf.float32)]
        return tf.function(
            lambda numbers: self.run(add, [numbers]), input_signature=signature, autograph=False
        )


@contextlib.contextmanager
def scope_of(name, report=None):
    """The context in which everything of a run belongs, for a strategy by its name.

    "auto" is the cluster that TF_CONFIG describes; else the TPU that TPU_NAME names; else all GPUs
    where there are several; else one device. "mirrored" is all GPUs of this machine, or where it
    has none all of its logical CPU devices; "none" is one device.

    Args:
        name: the strategy, as in `RunSettings`.
        report: a function that is told in a line where a run has several devices.

    Raises:
        InputError: the devices are not there, TensorFlow has begun without the strategy, or another
            worker has ended.
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
        except LOST as error:
            raise ended_with_another("stopped; the same command on all begins again.") from error


def is_written_here():
    """Whether this process writes what a run leaves: not where it has followed another worker."""
    return not _multiworker.cache_info().currsize or _multiworker().is_chief


def _chosen(name):
    if name != "auto":
        return name
    if len(_workers_named()) > 1:
        return "multiworker"
    if os.environ.get("TPU_NAME"):
        return "tpu"
    return "mirrored" if len(tf.config.list_physical_devices("GPU")) > 1 else "none"


@functools.cache  # TensorFlow mixes up the sums of two of them
def _mirrored():
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    devices = [device.name for device in tf.config.list_logical_devices(kind)]
    return tf.distribute.MirroredStrategy(devices) if len(devices) > 1 else None


@functools.cache  # a process joins its cluster once
def _multiworker():
    if not _workers_named():
        raise InputError(
            "The environment variable TF_CONFIG names no workers; for `strategy` multiworker give "
            "each process the addresses of all and its own number, as docs/distribution.md shows."
        )
    try:
        return Workers()
    except RuntimeError as error:
        if "program startup" not in str(error):
            raise
        raise InputError(
            "`strategy` multiworker must be the first thing that TensorFlow does in a process; "
            "start a new one."
        ) from error
    except (ValueError, tf.errors.OpError) as error:
        raise InputError(
            f"The workers of TF_CONFIG cannot be joined: {str(error).splitlines()[0]}"
        ) from error


def _workers_named():
    """The addresses of all workers in the environment variable TF_CONFIG, where it is set."""
    said = os.environ.get("TF_CONFIG", "")
    try:
        cluster = json.loads(said or "{}").get("cluster", {})
        return [address for job in ("chief", "worker") for address in cluster.get(job, ())]
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(
            f"The environment variable TF_CONFIG describes no cluster: {said}; "
            "docs/distribution.md shows what it should be."
        ) from error


@functools.cache  # what is in a TPU's memory is lost when it is initialised again
def _tpu():
    name = os.environ.get("TPU_NAME", "local")
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise InputError(
            f"There is no TPU {name!r} for this TensorFlow: {str(error).splitlines()[0]}; the "
            "environment variable TPU_NAME names it, and docs/distribution.md says which versions "
            "drive one."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


_OPENED = {
    "none": lambda: None,
    "mirrored": _mirrored,
    "multiworker": _multiworker,
    "tpu": _tpu,
}
