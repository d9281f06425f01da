"""The output folder of a training run: what is in it, and whether a command may go on with it.

OUTPUT/run.json       every setting, written first: the mark by which a command knows its folder
OUTPUT/checkpoints/   what the run resumes from
OUTPUT/logs/          TensorBoard
OUTPUT/bad_batch.npz  the batch in which the loss was not a number any more, until a run goes well
OUTPUT/model/         the model folder
OUTPUT/metrics.json   the results, written last: the run is finished
OUTPUT/pictures/      what the results look like
OUTPUT/curves.png     the same of pre-training
OUTPUT/runs/NAME/     where the output is that of several runs, each one's folder
"""

import contextlib
import json
import math
import tomllib
from importlib import metadata
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import (
    NotJson,
    clear_leftovers_in,
    delete,
    held_names,
    owned,
    parse_json,
    read_small,
    reject_input_as_output,
    system_errors,
    write_json,
)
from keras_bert.base.formatting import counted, listed
from keras_bert.base.signals import says

_RECORDS = (
    "metrics.json",
    "checkpoints",
    "logs",
    "runs",
    "model",
    "pictures",
    "curves.png",
    "bad_batch.npz",
    "readable_rows",
    "run.json",
)  # metrics.json, which promises the model, goes first, and run.json last
_VERSIONS_OF = ("keras", "tensorflow", "tensorflow-text", "numpy")


class RunFolder:
    """The output folder of one run of `command` (`"pretrain"`, `"finetune"`).

    `settings` is every setting that the result depends on, as JSON can hold it (paths as strings),
    without the output folder and `force`. `inputs` maps the name of an input to a fingerprint of
    its content, so that a run is not continued on other data under the same name. `defaults` are
    those of settings that an earlier version may not have recorded. `places` are the settings that
    only say where the inputs are: they may change where the fingerprints are the same.

    A fresh or empty folder is begun (run.json is written). A folder in which the same command ran
    with the same settings and inputs is gone on with: `resumed` is True, and `finished` says
    whether there is anything left to do. Everything else raises `InputError`: other settings, a
    folder of another command, a folder that holds something else. With `force`, what this command
    left there before is deleted first, and nothing else ever is.

    Attributes:
        damage: what is wrong with the results or the model of a run that came to its end, in a
            phrase that names the file, or None. Such a run is not `finished`.
    """

    def __init__(
        self, path, *, command, settings, inputs, force=False, defaults=None, places=frozenset()
    ):
        self.path = Path(path)
        self.command = command
        self.checkpoints = self.path / "checkpoints"
        self.best = self.checkpoints / "best.safetensors"  # weights, until there is `model`
        self.logs = self.path / "logs"
        self.bad_batch = self.path / "bad_batch.npz"
        self.readable_examples = self.path / "readable_rows"
        self.model = self.path / "model"
        self.runs = self.path / "runs"
        self._metrics = self.path / "metrics.json"
        self._run = self.path / "run.json"
        self._defaults = defaults or {}
        self._places = places
        # Through JSON, so that it compares equal to what is read back (tuples, int keys).
        wanted = json.loads(json.dumps({"settings": settings, "inputs": inputs}))

        found = check_output(self.path, command=command, force=force)
        if found is not None and force:
            for name in _RECORDS:
                delete(self.path / name)
            found = None
        self.resumed = found is not None
        if self.resumed:
            self._reject_other_settings(found, wanted)
            if found["settings"] != wanted["settings"]:  # of inputs that were moved
                write_json(self._run, {**found, "settings": wanted["settings"]})
        else:
            with system_errors(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
            write_json(self._run, {"command": command, **wanted, "versions": _versions()})
        self.damage = self._find_damage()
        if self.finished:
            self._tidy()
        for folder in (self.path, self.checkpoints):
            clear_leftovers_in(folder)

    @classmethod
    @contextlib.contextmanager
    def of(cls, settings, *, command, inputs, rewrites_model=False):
        """Owns the folder of a run with these `RunSettings` for the body of a `with`.

        Raises `InputError` as the class does, where another run is in the folder, and where it has
        `damage`, which only a command that `rewrites_model` from the last checkpoint can repair. An
        interrupt that ends the body is given the sentence that `how_far` returns.
        """
        path = Path(settings.output)
        if path.exists() and not path.is_dir():
            raise InputError(f"The output {path} is a file; give a folder.")
        if settings.force:
            reject_input_as_output(settings.paths(), path)
        with owned(path), system_errors(path):
            run = cls(
                path,
                command=command,
                settings=settings.recorded(),
                inputs=inputs,
                force=settings.force,
                defaults=settings.defaults(),
                places=settings.path_names() | {"architecture"},  # which may be a config.json
            )
            if run.damage is not None and not rewrites_model:
                raise InputError(
                    f"The run in {path} is finished, but {run.damage}. Restore it from a copy, or "
                    "give `force=True` to train again."
                )
            with says(run.how_far):
                yield run

    @property
    def finished(self):
        """Whether the run came to its end, and what it made is still there."""
        return self._metrics.is_file() and self.damage is None

    def reopen(self):
        """Deletes the results and the model of a run that came to its end, so that it resumes."""
        for path in (self._metrics, self.model):
            delete(path)
        self.damage = None

    def how_far(self):
        """What a run that is stopped here has reached, and how to go on, in a sentence."""
        from keras_bert.training.checkpoint import latest_checkpoint, step_of  # which loads numpy

        if self.runs.is_dir():
            done = counted(len(list(self.runs.glob("*/metrics.json"))), "run")
            return f"stopped; {done} of those in {self.path} finished, the same command goes on."
        latest = latest_checkpoint(self.checkpoints)
        if latest is None:
            return f"stopped before the first checkpoint in {self.path}; the same command goes on."
        return (
            f"stopped; the checkpoint in {self.path} is of step {step_of(latest)}, from which the "
            "same command goes on."
        )

    def resolved(self, name):
        """What `settle` kept under a name, or None."""
        return _parse_run(self._run).get("resolved", {}).get(name)

    def settle(self, name, value):
        """Keeps in run.json what was settled while the run was at work; returns it.

        It is no setting: it came of this machine, and a run that goes on here has to keep to it.
        """
        run = _parse_run(self._run)
        write_json(self._run, {**run, "resolved": {**run.get("resolved", {}), name: value}})
        return value

    def read_metrics(self):
        """Returns the results of a finished run."""
        return read_metrics(self._metrics)

    def check_model(self, advice):
        """Raises `InputError`, which ends in an advice, where the model is missing or damaged."""
        damage = self._model_damage()
        if damage is not None:
            raise InputError(f"The runs in {self.path} are finished, but {damage}; {advice}.")

    def _find_damage(self):
        """What `damage` is."""
        if not self._metrics.is_file():
            return None
        try:
            read_metrics(self._metrics)
        except InputError as error:
            return str(error).rstrip(".")
        return self._model_damage()

    def _model_damage(self):
        if not self.model.is_dir():
            return f"the model {self.model} is missing"
        from keras_bert.checkpoints.pretrained_checkpoint import (
            PretrainedCheckpoint,  # which loads Keras
        )

        try:
            PretrainedCheckpoint(self.model)
        except InputError as error:
            return f"the model is damaged: {str(error).rstrip('.')}"
        return None

    def finish(self, metrics):
        """Writes the model's card and the results, the last thing of a run, and returns them.

        A number of them that is infinite or NaN, for which JSON has no word, becomes None.
        """
        metrics = _finite(metrics)
        if self.model.is_dir():
            from keras_bert.training.monitoring.model_card import write_card

            write_card(self.model, settings=_parse_run(self._run)["settings"], metrics=metrics)
        write_json(self._metrics, metrics)
        self._tidy()
        return metrics

    def _tidy(self):
        """Deletes what a finished run does not need: of its checkpoints all but the newest."""
        from keras_bert.training.checkpoint import checkpoints_in  # which loads numpy

        older = checkpoints_in(self.checkpoints)[:-1]
        for leftover in (self.best, self.bad_batch, self.readable_examples, *older):
            delete(leftover)

    def _reject_other_settings(self, found, wanted):
        before, now = {**self._defaults, **found["settings"]}, wanted["settings"]
        contents = _different(found["inputs"], wanted["inputs"])
        others = [
            f"with {name} {before.get(name)!r}, and now it is {now.get(name)!r}"
            for name in _different(before, now)
            if contents or name not in self._places
        ]
        others += [f"on other content of {name}" for name in contents]
        if others:
            raise InputError(
                f"The run in {self.path} was begun {'; '.join(others)}; give the same again to go "
                "on, another output folder, or `force=True` to begin anew."
            )


def check_output(path, *, command, force=False):
    """Returns the run.json of the run that `command` began in a folder; None where there is none.

    Raises `InputError` where it cannot begin one there. A command that reads much first asks for it
    before.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"The output {path} is a file; give a folder.")
    if (path / "run.json").is_file():
        run = _parse_run(path / "run.json")
        if run["command"] == command:
            return run
    held = held_names(path) if path.exists() else []
    in_the_way = [name for name in held if name in _RECORDS] if force else held
    if in_the_way and force:
        raise InputError(
            f"The output folder {path} holds a {in_the_way[0]} that {command} did not write, and "
            "`force` deletes only what it wrote itself; give another folder."
        )
    if in_the_way:
        raise InputError(
            f"The output folder {path} holds something else ({listed(held, most=3)}); give a new "
            "or an empty folder."
        )
    return None


def _finite(value):
    """A JSON-like value with None in the place of numbers that are infinite or NaN."""
    if isinstance(value, dict):
        return {name: _finite(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(held) for held in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _different(before, now):
    """The names, in order, under which two dictionaries hold something else."""
    return [
        name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)
    ]


def read_metrics(path):
    """Returns what a run's metrics.json holds; `InputError` where the file is damaged."""
    try:
        metrics = parse_json(read_small(path))
    except NotJson as error:
        metrics, why = None, f"not JSON ({error})"
    else:
        why = "not the results of a run"
    if not isinstance(metrics, dict) or not metrics:
        raise InputError(f"{path} is damaged: it is {why}.")
    return metrics


def read_settings(path, *, command):
    """Returns the settings in a run.json that `command` wrote, or in a TOML file for it."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no settings file {path}; give the run.json of a run.")
    run = _parse_run(path)
    if run["command"] != command:
        raise InputError(
            f"{path} holds the settings of {run['command']}, not of {command}; give the run.json "
            f"of a {command} run."
        )
    return run["settings"]


def _parse_run(path):
    try:
        if path.suffix == ".toml":
            run = {"inputs": {}, **tomllib.loads(read_small(path).decode("utf-8"))}
        else:
            run = parse_json(read_small(path))
    except ValueError as error:
        raise InputError(f"{path} is not a settings file of a run: {error}.") from error
    shape = {"command": str, "settings": dict, "inputs": dict}
    if not isinstance(run, dict) or any(
        not isinstance(run.get(key), kind) for key, kind in shape.items()
    ):
        raise InputError(
            f"{path} is not a settings file of a run: it should hold command, settings and inputs."
        )
    return run


def _versions():
    versions = {}
    for name in _VERSIONS_OF:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # TensorFlow has several distributions; the one called so is not installed
    return versions
