"""A run that several workers train: one of them, the chief, owns its folder and writes."""

import contextlib
import json

import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.signals import says
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.strategies.strategy import LOST, Workers, ended_with_another


class FollowedRun:
    """What a worker that is not the chief has in place of a `RunFolder`: no folder.

    Attributes:
        finished: whether the run had come to its end before.
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
        """How to go on, in a sentence."""
        return "stopped; the same command on all workers goes on from the chief's last checkpoint."


@contextlib.contextmanager
def run_of(settings, *, command, inputs, rewrites_model=False):
    """`RunFolder.of` where this process writes, and a `FollowedRun` where another one does.

    All workers ask for it, and go on where the chief's folder is free for the run and all were
    given the same.

    Raises:
        InputError: as `RunFolder.of`, on all workers; this one was given something else than the
            chief; or another worker has ended.
    """
    workers = tf.distribute.get_strategy()
    if not isinstance(workers, Workers):
        with RunFolder.of(
            settings, command=command, inputs=inputs, rewrites_model=rewrites_model
        ) as run:
            yield run
        return
    if workers.is_chief:
        begun = _led(workers, settings, command, inputs, rewrites_model)
    else:
        begun = _followed(workers, settings, inputs)
    with begun as run:
        try:
            yield run
        except LOST as error:
            raise ended_with_another(run.how_far()) from error


@contextlib.contextmanager
def _led(workers, settings, command, inputs, rewrites_model):
    """The chief's `RunFolder`, of which the others are told."""
    with contextlib.ExitStack() as stack:
        try:
            run = stack.enter_context(
                RunFolder.of(
                    settings, command=command, inputs=inputs, rewrites_model=rewrites_model
                )
            )
        except InputError as error:
            workers.broadcast({"rejected": str(error)})
            workers.barrier()
            raise
        before = run.read_metrics() if run.finished else None
        given = _given(settings, inputs)
        workers.broadcast({"given": given, "metrics": before})
        if before is not None:
            workers.barrier()
        yield run
        if before is None:
            with contextlib.suppress(*LOST):  # the run is finished, whoever has ended
                workers.broadcast(run.read_metrics())
            workers.barrier()


@contextlib.contextmanager
def _followed(workers, settings, inputs):
    said = workers.broadcast()
    if "rejected" in said or said["metrics"] is not None:
        workers.barrier()
    if "rejected" in said:
        raise InputError(said["rejected"])
    mine = _given(settings, inputs)
    for name, value in said["given"].items():
        if mine.get(name) != value:
            raise InputError(
                f"The workers of a run need the same: {name} is {mine.get(name)!r} on this one, "
                f"and {value!r} on the chief."
            )
    run = FollowedRun(workers, said["metrics"])
    with says(run.how_far):
        yield run


def _given(settings, inputs):
    """Settings and fingerprints of inputs by name, as JSON holds them; files may lie elsewhere."""
    paths = settings.path_names()
    named = {name: value for name, value in settings.recorded().items() if name not in paths}
    return json.loads(json.dumps({**named, **{f"{n} (content)": v for n, v in inputs.items()}}))
