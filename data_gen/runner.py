"""Runs a Beam job: with which runner and options, and what a user sees when it fails."""

import contextlib
import io
import logging
import os
import re
import sys
import tempfile
import threading

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from tqdm import tqdm

from data_gen.worker_pool import WorkerPool
from keras_bert.base.errors import InputError
from keras_bert.base.terminal import drawn_on, shows_bars

_SECONDS = 0.5


class Progress:
    """A progress bar on the terminal while the body of a `with` runs; none where there is none.

    It is there from the beginning, since the files of a large input take a while to list. Workers
    are other processes, on Dataflow other machines; what they have in common with this one is the
    folder that they write into. It is looked at only where that is cheap, on a local disk.
    """

    def __init__(self):
        self._folder = None
        self._what = "Listing the input"
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._done.set()
        self._thread.join()

    def follow(self, folder, *, files):
        """From here on the job reads so many files, and writes into an `OutputFolder`."""
        self._what = f"Reading {files:,} file{'' if files == 1 else 's'}"
        self._folder = folder

    def _watch(self):
        with tqdm(
            desc=self._what,
            unit=" shards",
            disable=not shows_bars(),
            leave=False,
            file=drawn_on(sys.stderr),
        ) as bar:
            while not self._done.wait(_SECONDS):
                bar.set_description_str(self._what, refresh=False)
                if self._folder is not None and "://" not in self._folder.path:
                    finished, total = self._folder.shards()
                    if total:
                        bar.set_description_str("Writing shards", refresh=False)
                        bar.total = total
                    bar.n = finished
                bar.refresh()


# Beam's own words around what a worker raised: in this process, and in another one.
_WHERE = re.compile(r" \[while running '[^']*'\]")
_FROM_WORKER = re.compile(
    rf"^{re.escape(InputError.__module__)}\.InputError: (.+?)(?: \[while running|$)", re.M
)
_NOTE_LINES = 40
_LOST = (
    "a worker process was killed, perhaps by the system for want of memory: begin again, with "
    "fewer workers (direct_num_workers) if it happens again"
)


def run(build, beam_options=(), *, meanwhile=None):
    """Builds and runs a pipeline, and waits for its end.

    Args:
        build: function of a `beam.Pipeline` that adds the job's steps to it.
        beam_options: Beam's own flags as a list of strings; a later one overrides an earlier one.
            Without `--runner` the job runs here, on `FnApiRunner`; it is named because the
            `DirectRunner` of today's Beam downloads another runner where it can. More workers than
            one (`--direct_num_workers`) are processes unless `--direct_running_mode` says
            otherwise.
        meanwhile: function that is called while such processes load TensorFlow; not called where
            the work is done here, or elsewhere.

    Returns the job's counters, name -> number.

    Raises `InputError` for an option that Beam does not know, and for one that a step raised, in
    whatever process it ran. Where Beam's log is kept quiet (a level above WARNING), nothing that
    workers print is shown; the end of it is added to an exception that is no `InputError`.
    """
    found = options(beam_options)
    with _quiet() as log, _workers(found, log) as pool, _not_interactive():
        runner = FnApiRunner(pool.environment) if pool else None
        if pool and meanwhile:
            meanwhile()
        pipeline = beam.Pipeline(runner=runner, options=found)
        # For steps in other languages, which there are none of here: a kill would leave it.
        os.rmdir(pipeline.local_tempdir)
        build(pipeline)
        try:
            result = pipeline.run()
            result.wait_until_finish()
        except InputError as error:
            raise InputError(_WHERE.sub("", str(error))) from None
        except RuntimeError as error:
            raised = _FROM_WORKER.search(str(error))
            if raised:
                raise InputError(raised.group(1)) from None
            if pool and pool.has_lost_a_worker:
                raise InputError(_LOST) from None
            if log:
                log.seek(0)
                lines = log.read().decode("utf-8", "replace").splitlines()
                error.add_note("\n".join(lines[-_NOTE_LINES:]))
            raise
        counters = result.metrics().query()["counters"]
    return {counter.key.metric.name: counter.result for counter in counters}


def options(beam_options):
    """Beam's flags as `PipelineOptions`; `InputError` where one is none of Beam's."""
    flags = ["--runner=FnApiRunner", *beam_options]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            found = PipelineOptions(flags)
            every = found.get_all_options(retain_unknown_options=True)
            known = found.get_all_options()
    except SystemExit:  # argparse has printed all options of Beam, and then what is wrong
        said = printed.getvalue().rstrip().rpartition("error: ")[2]
        raise InputError(f"Apache Beam does not take an option: {said}") from None
    unknown = every.keys() - known.keys()
    if unknown:
        # Beam takes "-4" after an option that it does not know for another one.
        given = [flag.split("=")[0] for flag in beam_options if flag.startswith("--")]
        first = next((flag for flag in given if flag[2:] in unknown), f"--{min(unknown)}")
        raise InputError(
            f"There is no option {first}, neither of this command nor of Apache Beam; see --help "
            "for this command's own."
        )
    workers = found.view_as(DirectOptions).direct_num_workers
    if workers < 0:
        raise InputError(
            f"--direct_num_workers is {workers}; it should be 1 or more, or 0 for one per "
            "processor."
        )
    return found


@contextlib.contextmanager
def _workers(found, log):
    """A `WorkerPool`, or None where other workers are asked for."""
    direct = found.view_as(DirectOptions)
    mode_given = "direct_running_mode" in found.get_all_options(drop_default=True)
    if (
        found.view_as(StandardOptions).runner != "FnApiRunner"
        or (mode_given and direct.direct_running_mode != "multi_processing")
        or direct.direct_num_workers == 1
    ):
        yield None
        return
    direct.direct_running_mode = "in_memory"  # or the runner would take processes of its own
    with WorkerPool(log) as pool:
        yield pool


@contextlib.contextmanager
def _not_interactive():
    """Has Beam name steps in a notebook as it does anywhere, and not after the cell's number.

    For that it would import its interactive runner, which wants pandas, for every step of a job.
    """
    named_by = beam.pipeline.alter_label_if_ipython
    beam.pipeline.alter_label_if_ipython = lambda transform, pvalueish: None
    try:
        yield
    finally:
        beam.pipeline.alter_label_if_ipython = named_by


@contextlib.contextmanager
def _quiet():
    """Where Beam's log is quiet: keeps it wholly so, and gives a file for what workers print."""
    logger = logging.getLogger("apache_beam")
    level = logger.level
    if logger.getEffectiveLevel() <= logging.WARNING:
        yield None
        return
    with tempfile.TemporaryFile() as log:  # without a name, so that a kill leaves nothing
        logger.setLevel(logging.CRITICAL)  # it also logs every error that is raised to us
        try:
            yield log
        finally:
            logger.setLevel(level)
