"""Several processes that train together: their strategy, and the run, whose folder one writes."""

import contextlib
import functools
import json

import numpy as np
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.signals import interruption_message

# What TensorFlow raises in the other workers when one ends.
WORKER_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)
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
        with contextlib.suppress(*WORKER_LOST):
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
        replicas_per_worker = self.num_replicas_in_sync // self.count

        def add(numbers):
            context = tf.distribute.get_replica_context()
            is_first = context.replica_id_in_sync_group % replicas_per_worker == 0
            mine = numbers * tf.cast(is_first, tf.float32)
            return context.all_reduce(tf.distribute.ReduceOp.SUM, mine)

        signature = [tf.TensorSpec([None], tf.float32)]
        return tf.function(
            lambda numbers: self.run(add, [numbers]), input_signature=signature, autograph=False
        )


class FollowedRun:
    """The stand-in for a `RunFolder` of a worker other than the chief: it has no folder.

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
def run_of_workers(workers, folder, settings, inputs):
    """The context of `folder`, a `RunFolder.of`, on the chief, and of a `FollowedRun` elsewhere.

    Raises:
        InputError: as `RunFolder.of`, on all workers; this worker has other settings or inputs than
            the chief; or another worker has ended.
    """
    common = _common(settings, inputs)
    with _led(workers, folder, common) if workers.is_chief else _followed(workers, common) as run:
        try:
            yield run
        except WORKER_LOST as error:
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
            with contextlib.suppress(*WORKER_LOST):  # even then the run is finished
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
    with interruption_message(run.how_far):
        yield run


def _common(settings, inputs):
    """Returns what all workers must share, as JSON: settings without paths, and inputs."""
    paths = settings.path_names()
    common = {name: value for name, value in settings.recorded().items() if name not in paths}
    common |= {f"{name} (content)": value for name, value in inputs.items()}
    return json.loads(json.dumps(common))
