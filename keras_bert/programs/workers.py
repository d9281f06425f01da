"""Several processes that train together, by TensorFlow's strategy for them."""

import contextlib
import functools
import json

import numpy as np
import tensorflow as tf

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
