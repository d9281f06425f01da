"""The strategies that a run can train under: which devices they are, and what is missing for them.

A strategy is one of `tf.distribute`; in its scope a run makes its model, trains and evaluates
(`keras_bert.training.strategies.devices`). docs/distribution.md has what a user does.
"""

import contextlib
import functools
import json
import os

import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.training.strategies.workers import LOST, Workers, ended_with_another


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
