"""The settings of many fine-tunings: of a sweep, and of all of GLUE.

The help texts also document the Python arguments.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import InitVar
from itertools import product

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import (
    PathText,
    Report,
    data_setting,
    merged,
    model_setting,
    optimisation_setting,
    required,
    without,
)
from keras_bert.heads import LAST, MIXES
from keras_bert.readers.glue import GLUE, glue_task
from keras_bert.tasks import settings_class
from keras_bert.tasks.classification import PoolingSettings
from keras_bert.training.finetuning_settings import (
    FinetuneSettings,
    LabelledRunSettings,
    check_layers_to_read,
    check_seeds,
    finetune_settings,
    in_few_digits,
)

# The grid of `glue` with `quick`.
QUICK = {"learning_rate": [3e-5], "batch_size": [32], "epochs": [3]}


class SweepSettings(LabelledRunSettings):
    """Settings of `keras_bert.sweep`, without those of the task.

    The defaults follow from `training_defaults`: for BERT base and many examples they are the
    search of Devlin et al. 2018, appendix A.3. If several `layers` are compared, the others' are
    those of `finetune`.
    """

    learning_rate: float | Sequence[float] | None = optimisation_setting(
        None,
        help="the learning rates to try",
        unit="RATE",
        default_help="that of finetune, and 0.6 and 0.4 times it: 5e-5, 3e-5, 2e-5 for base",
        above=0,
        common=True,
    )
    batch_size: int | Sequence[int] = optimisation_setting(
        (16, 32), help="the batch sizes to try", unit="EXAMPLES", at_least=1, common=True
    )
    epochs: int | Sequence[int] | None = optimisation_setting(
        None,
        help="the numbers of epochs to try",
        unit="EPOCHS",
        default_help="2, 3, 4, or as many as make finetune's least number of steps, 1.5 times "
        "and twice as many",
        at_least=1,
        common=True,
    )
    layers: Sequence[str] = model_setting(
        (LAST,),
        help="the layers to try, as those of finetune; with several, the default is finetune's "
        "learning rate, batch size and number of epochs alone",
        unit="LAYERS",
        common=True,
    )

    @classmethod
    def of(cls, given):
        """Makes the settings as `Settings.of`; only here is known what is given beside `layers`."""
        layers = given.get("layers")
        if isinstance(layers, list | tuple) and len(layers) > 1:
            given = {"batch_size": FinetuneSettings.defaults()["batch_size"], **given}
        return super().of(given)

    @property
    def varied(self):
        """The names of the settings that are tried."""
        more = ["layers"] if len(self.layers) > 1 else []
        more += ["seed"] if self.num_seeds > 1 else []
        return ("learning_rate", "batch_size", "epochs", *more)

    def check(self):
        for name in ("learning_rate", "batch_size", "epochs", "layers"):
            if getattr(self, name) == []:
                raise InputError.naming(
                    "{} is empty. Give at least one value to try.", argument(name)
                )
        check_layers_to_read(self)
        check_seeds(self)
        for settings in self.runs().values():
            finetune_settings(self.task).of(settings)

    def runs(self):
        """The settings of `finetune` for each run, by name.

        Learning rates and epochs are None until the recipe of the data has chosen them.
        """
        common = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        common["num_seeds"] = 1
        seeds = range(self.seed, self.seed + self.num_seeds)
        runs = {}
        for layers, rate, size, epochs, seed in product(
            self.layers, self.learning_rate or [None], self.batch_size, self.epochs or [None], seeds
        ):
            name = f"rate-{rate and in_few_digits(rate)}-batch-{size}-epochs-{epochs}"
            name = f"{layers}-{name}" if "layers" in self.varied else name
            name = f"{name}-seed-{seed}" if "seed" in self.varied else name
            tried = {"layers": layers, "learning_rate": rate, "batch_size": size, "epochs": epochs}
            runs[name] = {**common, **tried, "seed": seed}
            if layers not in MIXES:  # which alone has these
                runs[name] |= {"scalar_mix_l2": 0.0, "scalar_mix_layer_norm": False}
        return runs


def sweep_settings(task):
    """The class of all settings of `sweep` for a task."""
    return merged(settings_class(task), SweepSettings)


# Without what GLUE itself determines.
_SweepOfGlueSettings = without(merged(PoolingSettings, SweepSettings), "task", "train", "dev")


class GlueSettings(_SweepOfGlueSettings):
    """Settings of `keras_bert.glue`: those of a sweep that hold for every task of GLUE.

    The default grid is that of Devlin et al. 2018, appendix A.3, whatever the model.
    """

    learning_rate: float | Sequence[float] = optimisation_setting(
        (5e-5, 3e-5, 2e-5), help="the learning rates to try", unit="RATE", above=0, common=True
    )
    epochs: int | Sequence[int] = optimisation_setting(
        (2, 3, 4), help="the numbers of epochs to try", unit="EPOCHS", at_least=1, common=True
    )

    report: InitVar[Report] = None

    output: PathText = required(
        help="the folder of all runs, with metrics.json (the table), run.json, runs/ (a sweep per "
        "task), submission/ and submission.zip",
        unit="FOLDER",
        recorded=False,
    )
    data: PathText = required(
        help="GLUE's folder, as gluebenchmark.com gives it: CoLA/train.tsv and so on",
        unit="FOLDER",
    )
    tasks: Sequence[str] = data_setting(
        tuple(name for name, task in GLUE.items() if task.train is not None),
        help="the tasks to train; MNLI includes MNLI-mm and AX",
        unit="NAME",
        common=True,
    )
    quick: bool = optimisation_setting(
        False,
        help="one setting per task in place of the grid: learning rate 3e-5, batches of 32, 3 "
        "epochs; a learning rate, batch size or epochs that are given count",
        common=True,
    )
    num_seeds: int = optimisation_setting(
        1,
        help="train the best setting of each task with this many consecutive seeds: reports mean "
        "and standard deviation",
        unit="N",
        at_least=1,
        common=True,
    )
    dev_only: bool = data_setting(
        False,
        help="train and evaluate only: needs no test files and writes no submission",
        common=True,
    )

    def __post_init__(self, *arguments):
        tasks = self.tasks if isinstance(self.tasks, list | tuple) else [self.tasks]
        names = [glue_task(name).name for name in tasks]
        object.__setattr__(self, "tasks", list(dict.fromkeys(names)))
        super().__post_init__()

    def check(self):
        if not self.tasks:
            raise InputError.naming("{tasks} is empty. Give at least one task of GLUE.")
        for name in self.tasks:
            if GLUE[name].train is None:
                raise InputError.naming(
                    "GLUE's {} has no training file: it is predicted with the model of MNLI. Give "
                    "MNLI in {tasks}.",
                    name,
                )
        if self.strategy == "multiworker":
            raise InputError.naming(
                "{strategy} multiworker trains one model on several machines, and {glue} trains "
                "one after another. Give each machine its own {tasks}, with {strategy} mirrored."
            )
        check_seeds(self)
        for name in self.tasks:
            self.for_task(name)  # checks the combinations

    @property
    def grid(self):
        """The learning rates, batch sizes and epochs to try, by the names of the settings."""
        defaults, tried = self.defaults(), {name: getattr(self, name) for name in QUICK}
        return {
            name: QUICK[name] if self.quick and sizes == list(defaults[name]) else sizes
            for name, sizes in tried.items()
        }

    @property
    def is_sweep(self):
        """Whether the grid has several combinations."""
        return any(len(tried) > 1 for tried in self.grid.values())

    @property
    def runs_per_task(self):
        """The combinations of the grid, and the seeds of the best one."""
        if not self.is_sweep:
            return self.num_seeds
        seeds = self.num_seeds if self.num_seeds > 1 else 0
        return math.prod(map(len, self.grid.values())) + seeds

    def for_task(self, name):
        """The settings of `sweep` for a task of GLUE, with its folder in place of its files."""
        task = GLUE[name]
        glue_fields = {
            "task": task.task_type,
            "metric": task.metric,
            "train": self.data,
            "dev": self.data,
        }
        return sweep_settings(task.task_type).of(
            {**self.part(_SweepOfGlueSettings), **self.grid, **glue_fields}
        )
