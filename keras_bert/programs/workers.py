"""Several processes that train together, the workers, whatever the backend."""

import contextlib
import json
import os

import numpy as np

from keras_bert.base.errors import InputError

# All sums over workers are in float32, which represents 16 bits exactly.
_BITS = np.uint16
_BITS_AT_ONCE = 1 << 22


class Workers:
    """The processes that train together.

    The methods are collective operations: all workers must call them, in one order.

    Attributes:
        count: how many workers there are.
        is_chief: whether this process is the one that writes.
    """

    count: int
    is_chief: bool

    @staticmethod
    def is_lost(error):
        """Whether an error means that another worker has ended."""
        raise NotImplementedError

    def _all_reduce(self, numbers):
        """float32 (N,) -> the sum over all workers."""
        raise NotImplementedError

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
        with self.or_lost():
            self.any(False)

    @contextlib.contextmanager
    def or_lost(self):
        """A context that ends, too, if another worker has ended."""
        try:
            yield
        except Exception as error:
            if not self.is_lost(error):
                raise

    def _broadcast_bytes(self, content):
        """The chief's bytes on every worker; each passes as many."""
        even = content.ljust(len(content) + len(content) % 2)
        numbers = np.frombuffer(even, _BITS).astype(np.float32) * self.is_chief
        parts = range(0, len(numbers), _BITS_AT_ONCE)
        sums = [self._all_reduce(numbers[start : start + _BITS_AT_ONCE]) for start in parts]
        return b"".join(part.astype(_BITS).tobytes() for part in sums)[: len(content)]


class DevicesOfWorkers:
    """The part of the `Devices` of every backend that is about workers.

    Attributes:
        workers: the number of processes that train together.
        is_chief: whether this process is the one that writes.
    """

    def __init__(self, workers):
        self._workers = workers
        self.workers = workers.count if workers else 1
        self.is_chief = workers is None or workers.is_chief

    def restored(self, checkpoint, variables, report=None):
        """Restores the newest checkpoint on all workers; returns (step, state), or None without.

        Only the chief has a `checkpoint`. `variables` are by name, in one order.
        """
        if self._workers is None:
            return None if checkpoint.latest is None else checkpoint.restore(report)
        position, arrays = None, {}
        if self.is_chief and checkpoint.latest is not None:
            *position, arrays = checkpoint.read(report)
        position = self._workers.broadcast(position)
        if position is None:
            return None
        self._share(variables, arrays)
        return tuple(position)

    def _share(self, variables, arrays):
        """Gives the variables of all workers the chief's `arrays` by name, or its own values."""
        for name, variable in variables.items():
            array = arrays[name] if name in arrays else np.array(variable)
            variable.assign(self._workers.broadcast_array(array))

    def any(self, value):
        """Whether the value of any worker is true."""
        return value if self._workers is None else self._workers.any(value)


def workers_named():
    """(The addresses of all workers, the index of this one) of the environment's TF_CONFIG.

    The first worker is the chief. Without TF_CONFIG the list is empty and the index is None.
    """
    config = os.environ.get("TF_CONFIG", "")
    try:
        config_object = json.loads(config or "{}")
        cluster, task = config_object.get("cluster", {}), config_object.get("task", {})
        jobs = {job: list(cluster.get(job, ())) for job in ("chief", "worker")}
        index = task.get("index")
        if task.get("type") == "worker" and index is not None:
            index += len(jobs["chief"])
        return [*jobs["chief"], *jobs["worker"]], index
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(
            "The environment variable TF_CONFIG does not describe a cluster. docs/distribution.md "
            f"has an example. Received: {config}."
        ) from error


def check_workers_named():
    """Raises `InputError` if TF_CONFIG has no workers."""
    if not workers_named()[0]:
        raise InputError.naming(
            "The environment variable TF_CONFIG has no workers. For {strategy} multiworker, give "
            "each process the addresses of all and its own index, as docs/distribution.md shows."
        )


def begun_before(backend):
    """The `InputError` if a backend was used before its workers join."""
    return InputError.naming(
        "{strategy} multiworker must be the first use of {} in a process. Start a new process.",
        backend,
    )
