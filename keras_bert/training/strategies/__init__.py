"""The strategies of `tf.distribute` that a run can train under, and runs of several workers.

A run makes its model, trains and evaluates in the scope of one (see `devices` beside this module).
docs/distribution.md is the user's guide.
"""

import contextlib
import functools
import json
import os

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError, reason_of
from keras_bert.base.signals import says
from keras_bert.training.run_folder import RunFolder

# What TensorFlow raises in the other workers when one ends.
_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)
# All sums over workers are in float32, which represents 16 bits exactly.
_BITS = np.uint16
_BITS_AT_ONCE = 1 << 22


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

    def any(self, value):
        """Whether the value of any worker is true."""
        return bool(self._all_reduce(np.array([value], np.float32))[0])

    def broadcast(self, value=None):
        """The chief's JSON value on every worker."""
        text = json.dumps(value).encode() if self.is_chief else b""
        size = int.from_bytes(self._broadcast_bytes(len(text).to_bytes(8, "little")), "little")
        return json.loads(self._broadcast_bytes(text.ljust(size)))

    def broadcast_array(self, array):
        """The chief's array on every worker, bit by bit; each passes one of its shape and type."""
        content = self._broadcast_bytes(np.ascontiguousarray(array).tobytes())
        return np.frombuffer(content, array.dtype).reshape(array.shape)

    def tally(self, flags):
        """On how many workers each of several flags is true; all workers pass as many."""
        return self._all_reduce(np.array(flags, np.float32)).astype(int).tolist()

    def barrier(self):
        """Returns when all workers have called it, so that the chief may end.

        The first to return may end before another one has, which is no error.
        """
        with contextlib.suppress(*_LOST):
            self.any(False)

    def _broadcast_bytes(self, content):
        """The chief's bytes on every worker; each passes as many."""
        even = content.ljust(len(content) + len(content) % 2)
        numbers = np.frombuffer(even, _BITS).astype(np.float32) * self.is_chief
        parts = range(0, len(numbers), _BITS_AT_ONCE)
        sums = [self._all_reduce(numbers[start : start + _BITS_AT_ONCE]) for start in parts]
        return b"".join(part.astype(_BITS).tobytes() for part in sums)[: len(content)]

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
    """The context of a run under a strategy by its name.

    "auto" is the cluster of TF_CONFIG; else the TPU of TPU_NAME; else all GPUs where there are
    several; else one device. "mirrored" is all GPUs of this machine, or all of its logical CPU
    devices if it has none; "none" is one device.

    Args:
        name: the strategy, as in `RunSettings`.
        report: called with a line where a run has several devices.

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
        except _LOST as error:
            raise InputError(
                "Another worker has ended. Run the same command on all workers again."
            ) from error


def is_written_here():
    """Whether this process writes the output of a run: not as a worker other than the chief."""
    return not _multiworker.cache_info().currsize or _multiworker().is_chief


def _chosen(name):
    if name != "auto":
        return name
    if len(_workers_named()) > 1:
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
    if not _workers_named():
        raise InputError(
            "The environment variable TF_CONFIG has no workers. For `strategy` multiworker, give "
            "each process the addresses of all and its own index, as docs/distribution.md shows."
        )
    try:
        return Workers()
    except RuntimeError as error:
        if "program startup" not in str(error):
            raise
        raise InputError(
            "`strategy` multiworker must be the first use of TensorFlow in a process. Start a new "
            "process."
        ) from error
    except (ValueError, tf.errors.OpError) as error:
        raise InputError(
            f"Could not join the workers of TF_CONFIG: {reason_of(error)}. Check its addresses."
        ) from error


def _workers_named():
    """The addresses of all workers in the environment variable TF_CONFIG, if it is set."""
    config = os.environ.get("TF_CONFIG", "")
    try:
        cluster = json.loads(config or "{}").get("cluster", {})
        return [address for job in ("chief", "worker") for address in cluster.get(job, ())]
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(
            "The environment variable TF_CONFIG does not describe a cluster. docs/distribution.md "
            f"has an example. Received: {config}."
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


class FollowedRun:
    """What a worker other than the chief has in place of a `RunFolder`: no folder.

    Attributes:
        finished: whether the run was finished before.
    """

    damage = None  # the chief handles that of its folder

    def __init__(self, workers, metrics):
        self._workers = workers
        self._metrics = metrics
        self.finished = metrics is not None

    def read_metrics(self):
        """Returns the results of a finished run."""
        return self._metrics

    def finish(self):
        """Waits until the chief has written the results, and returns them."""
        results = self._workers.broadcast()
        self._workers.barrier()
        return results

    @staticmethod
    def how_far():
        """How to resume, for the user."""
        return (
            "Interrupted. Run the same command on all workers again to resume from the chief's "
            "last checkpoint."
        )


@contextlib.contextmanager
def run_of(settings, *, command, inputs, rewrites_model=False):
    """`RunFolder.of` where this process writes, else a `FollowedRun`.

    All workers call it; their settings and inputs must be the same.

    Raises:
        InputError: as `RunFolder.of`, on all workers; this worker has other settings or inputs than
            the chief; or another worker has ended.
    """
    workers = tf.distribute.get_strategy()
    folder = RunFolder.of(settings, command=command, inputs=inputs, rewrites_model=rewrites_model)
    if not isinstance(workers, Workers):
        with folder as run:
            yield run
        return
    common = _common(settings, inputs)
    with _led(workers, folder, common) if workers.is_chief else _followed(workers, common) as run:
        try:
            yield run
        except _LOST as error:
            raise InputError(f"Another worker has ended. {run.how_far()}") from error


@contextlib.contextmanager
def _led(workers, folder, common):
    """The chief's `RunFolder`, with broadcasts to the other workers."""
    with contextlib.ExitStack() as stack:
        try:
            run = stack.enter_context(folder)
        except InputError as error:
            workers.broadcast({"rejected": str(error)})
            workers.barrier()
            raise
        metrics = run.read_metrics() if run.finished else None
        workers.broadcast({"common": common, "metrics": metrics})
        differing = zip(common, workers.tally([False] * len(common)), strict=True)
        if names := [name for name, count in differing if count]:
            workers.barrier()
            raise InputError(
                f"All workers of a run need the same {names[0]}. Received: "
                f"{common[names[0]]!r} here, on the chief, and something else on another worker."
            )
        if metrics is not None:
            workers.barrier()
        yield run
        if metrics is None:
            with contextlib.suppress(*_LOST):  # the run is finished, even if a worker has ended
                workers.broadcast(run.read_metrics())
            workers.barrier()


@contextlib.contextmanager
def _followed(workers, common):
    """The `FollowedRun` of a worker other than the chief."""
    chief = workers.broadcast()
    if "rejected" in chief:
        workers.barrier()
        raise InputError(chief["rejected"])
    differing = [common.get(name) != value for name, value in chief["common"].items()]
    workers.tally(differing)  # so that the chief knows, too
    if chief["metrics"] is not None or any(differing):
        workers.barrier()
    if any(differing):
        name, value = list(chief["common"].items())[differing.index(True)]
        raise InputError(
            f"All workers of a run need the same {name}. Received: {common.get(name)!r} here, and "
            f"{value!r} on the chief."
        )
    run = FollowedRun(workers, chief["metrics"])
    with says(run.how_far):
        yield run


def _common(settings, inputs):
    """What all workers must have in common, as JSON: settings without paths, and inputs."""
    paths = settings.path_names()
    values = {name: value for name, value in settings.recorded().items() if name not in paths}
    values |= {f"{name} (content)": value for name, value in inputs.items()}
    return json.loads(json.dumps(values))
