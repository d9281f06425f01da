"""A training run as its parts see it, and its end, which fine-tuning and pre-training share."""

import dataclasses
from collections.abc import Callable
from typing import Any

from keras_bert.checkpoints import save_folder
from keras_bert.programs import Devices
from keras_bert.training.parts import Part


@dataclasses.dataclass(kw_only=True)
class Run:
    """A run and everything that it consists of; its parts read and change it.

    Attributes:
        folder: the `RunFolder`, or the `FollowedRun` of a worker that does not write.
        settings: the `RunSettings`.
        task: the `Task` that is trained, and in the end the one that is saved.
        plan: the `Plan` of its steps.
        report: called with each line about the run.
        devices: the `Devices` that it trains on.
        source: the `BatchSource`.
        model: what is compiled and trained: the task, its head alone, or its vectors.
        trained: the task that was trained; `task` is another if it was loaded again in float32.
        evaluates_first: evaluate before the first step, too.
        constants: horizontal lines in TensorBoard (see `TensorBoardHistory`).
        parts: its parts, in the order of `PARTS` of the command.
        was_stopped: whether a user's callback has ended the training.
        history: the `History`, once the training has begun.
        metrics: what metrics.json has so far, while the parts add theirs.
    """

    folder: Any
    settings: Any
    task: Any
    plan: Any
    report: Callable[[str], None]
    devices: Devices = dataclasses.field(default_factory=Devices)
    source: Any = None
    model: Any = None
    trained: Any = None
    evaluates_first: bool = False
    constants: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    parts: list[Part] = dataclasses.field(default_factory=list)
    was_stopped: bool = False
    history: Any = None
    metrics: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self.model = self.model or self.task
        self.trained = self.trained or self.task

    def take_parts(self, kinds):
        """Makes its parts: of each kind one, unless the settings leave it out."""
        made = [kind.of(self) for kind in kinds]
        self.parts = [part for part in made if part is not None]

    @property
    def active_parts(self):
        """The parts that act in this process: all of them on the chief."""
        return [part for part in self.parts if self.devices.is_chief or not part.chief_only]


def finish(run, records):
    """Selects and saves the model, and writes the results; returns the contents of metrics.json."""
    for part in run.active_parts:
        part.select(run, records)
    if not run.devices.is_chief:
        return run.folder.finish()
    save_folder(run.task, run.task.tokenizer, run.folder.model, overwrite=True)
    for part in run.parts:
        part.save(run)
    for part in run.parts:
        run.metrics |= part.metrics(run, records)
    for part in run.parts:
        for line in part.notes(run):
            run.report(line)
    return run.folder.finish(run.metrics)
