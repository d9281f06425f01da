"""The run of several processes that train together, whose folder one of them writes."""

import contextlib
import json

from keras_bert.base.errors import InputError
from keras_bert.base.signals import interruption_message


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
        except Exception as error:
            if not workers.is_lost(error):
                raise
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
            with workers.or_lost():  # even then the run is finished
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
