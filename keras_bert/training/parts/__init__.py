"""Features of a run, one file each: the settings, what it does in `fit`, and what it reports.

The settings of a command import these files. So at module level they import nothing that loads
numpy or Keras, which is imported inside their methods.
"""

import contextlib
from typing import Any


class Part:
    """One feature of a run; every method does nothing by default.

    A part has no state of its own. What it remembers over a restart is in the records of the run,
    which every checkpoint has, in run.json (`run.folder.resolve`), or in a file that follows from
    the records, such as the best weights so far. `PARTS` of each command has them in order.

    Class attributes:
        FILES: what it writes into the run's folder.
        chief_only: whether it acts on the chief of several workers alone. All workers ask
            `is_over`.
        may_end: whether the run may end before its last step because of it.
    """

    FILES: tuple[str, ...] = ()
    chief_only = True
    may_end = False

    @classmethod
    def of(cls, run: Any) -> "Part | None":
        """The part of a `Run`; None if its settings leave it out."""
        return cls()

    def prepare(self, run):
        """Changes the model or its examples before the model is compiled (in fine-tuning)."""

    def callbacks(self, run):
        """Returns callbacks for `fit`, a list; `run.history` comes before them."""
        return []

    def while_training(self, run):
        """A context around `fit`."""
        return contextlib.nullcontext()

    def is_over(self, records):
        """Whether a run with these records has ended; asked after each of them and on resuming."""
        return False

    def select(self, run, records):
        """Decides after the last step what is saved, and says why the run has ended."""

    def save(self, run):
        """Writes its files, after the model folder and before metrics.json."""

    def findings(self, run):
        """Sentences for `warnings` of metrics.json, which the user is told (in fine-tuning)."""
        return ()

    def metrics(self, run, records):
        """Its keys of metrics.json."""
        return {}

    def notes(self, run):
        """Lines for the user at the end."""
        return ()
