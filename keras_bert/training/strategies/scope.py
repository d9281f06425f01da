"""The scope of a strategy by its name, in which a run makes its model, trains and evaluates."""

import contextlib
import functools
import json
import os

import tensorflow as tf

from keras_bert.base.errors import InputError, reason_of
from keras_bert.training.strategies.workers import WORKER_LOST, Workers


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
        except WORKER_LOST as error:
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
        raise InputError.naming(
            "The environment variable TF_CONFIG has no workers. For {strategy} multiworker, give "
            "each process the addresses of all and its own index, as docs/distribution.md shows."
        )
    try:
        return Workers()
    except RuntimeError as error:
        if "program startup" not in str(error):
            raise
        raise InputError.naming(
            "{strategy} multiworker must be the first use of TensorFlow in a process. Start a new "
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
