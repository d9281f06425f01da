"""Several processes that train together, by TensorFlow's strategy for them."""

import functools

import tensorflow as tf

from keras_bert.programs.workers import Workers

# What TensorFlow raises in the other workers when one ends.
WORKER_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)


class WorkersStrategy(Workers, tf.distribute.MultiWorkerMirroredStrategy):
    """The strategy of the cluster that TF_CONFIG describes."""

    def __init__(self):
        super().__init__()
        resolver = self.cluster_resolver
        jobs = resolver.cluster_spec().as_dict()
        self.count = sum(len(jobs.get(job, ())) for job in ("chief", "worker"))
        first = "chief" if "chief" in jobs else "worker"
        self.is_chief = (resolver.task_type, resolver.task_id) == (first, 0)

    @staticmethod
    def is_lost(error):
        return isinstance(error, WORKER_LOST)

    def _all_reduce(self, numbers):
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
