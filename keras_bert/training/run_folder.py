"""The output folder of a training run: its files, and whether a command may resume there.

OUTPUT/run.json       every setting, written first: it marks the folder of a command; at the end
                      also hashes of the results and of the model's files
OUTPUT/checkpoints/   for resuming, until the run is finished
OUTPUT/logs/          TensorBoard
OUTPUT/bad_batch.npz  the batch with an infinite or NaN loss, until a run succeeds
OUTPUT/model/         the model folder
OUTPUT/adapter/       the updates of a model with LoRA, and its head
OUTPUT/metrics.json   the results, written last: the run is finished
OUTPUT/pictures/      pictures of the results
OUTPUT/curves.png     the same of pre-training
OUTPUT/runs/NAME/     the runs of a series
OUTPUT/ensemble/      the SavedModel of an ensemble
OUTPUT/submission/    the files to submit to GLUE, and submission.zip
"""

import contextlib
import json
import math
import tomllib
from importlib import metadata
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import (
    clear_leftovers_in,
    delete,
    hash_of_json,
    parse_json,
    read_small,
    system_errors,
    write_json,
)
from keras_bert.base.formatting import as_written, counted, listed
from keras_bert.base.ownership import held_names, lock_folder, reject_input_as_output
from keras_bert.base.signals import interruption_message
from keras_bert.training.run_files import (
    RECORDS,
    broken_promise,
    check_own_records,
    promised_hashes,
    read_metrics,
)

_VERSIONS_OF = ("keras", "tensorflow", "tensorflow-text", "numpy")
_DEFAULT = "tensorflow"  # the backend of a run.json that names none


class RunFolder:
    """The output folder of one run of `command` (`"pretrain"`, `"finetune"`).

    A new or empty folder gets a run.json. A folder with a run of the same command, settings and
    inputs is resumed: `resumed` is True, and `finished` is whether there is anything left to do.
    Everything else raises `InputError`. With `force`, what the command left there before is deleted
    first, and nothing else.

    Args:
        path: the folder.
        command: the command that writes it.
        settings: every setting that the result depends on, as JSON can hold it (paths as strings),
            without the output folder and `force`.
        inputs: maps the name of an input to a fingerprint of its content, so that a run does not
            resume with other data under the same name.
        defaults: those of settings that this or an earlier version does not have.
        locations: settings that only locate inputs; they may change if fingerprints do not.
        has_model: whether the run writes OUTPUT/model; only those of a series may, in OUTPUT/runs.
        keeps_checkpoint: whether a finished run keeps its last checkpoint.

    Attributes:
        damage: what is wrong with the results or the model of a run that ended, a phrase that names
            the file, or None. Such a run is not `finished`.
    """

    def __init__(
        self,
        path,
        *,
        command,
        settings,
        inputs,
        force=False,
        defaults=None,
        locations=frozenset(),
        has_model=True,
        keeps_checkpoint=False,
    ):
        self.path = Path(path)
        self.command = command
        self.checkpoints = self.path / "checkpoints"
        self.best = self.checkpoints / "best.safetensors"  # weights, until there is `model`
        self.logs = self.path / "logs"
        self.bad_batch = self.path / "bad_batch.npz"
        self.model = self.path / "model"
        self.adapter = self.path / "adapter"
        self.runs = self.path / "runs"
        self._metrics = self.path / "metrics.json"
        self._run = self.path / "run.json"
        self._defaults = defaults or {}
        self._locations = locations
        self._has_model = has_model
        self._keeps_checkpoint = keeps_checkpoint
        # Through JSON, so that it compares equal to what is read back (tuples, int keys).
        now = json.loads(json.dumps({"settings": settings, "inputs": inputs}))

        before = check_output(self.path, command=command, force=force)
        if before is not None and force:
            for name in RECORDS:
                delete(self.path / name)
            before = None
        self.resumed = before is not None
        if self.resumed:
            self._reject_other_settings(before, now)
            if before["settings"] != now["settings"]:  # inputs were moved
                write_json(self._run, {**before, "settings": now["settings"]})
        else:
            with system_errors(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
            write_json(
                self._run, {"command": command, **now, **_backend(), "versions": _versions()}
            )
        self.damage = self._find_damage()
        if self.resumed and not self.finished:
            self._reject_other_backend(before)
        if self.finished:
            self._tidy()
        for folder in (self.path, self.checkpoints):
            clear_leftovers_in(folder)

    @classmethod
    @contextlib.contextmanager
    def of(cls, settings, *, command, inputs, rewrites_model=False, has_model=True):
        """Owns the folder of a run with these `RunSettings` for the body of a `with`.

        Raises `InputError` as the class does, if another run is using the folder, and if it
        has `damage`, which only a command that `rewrites_model` from the last checkpoint can
        repair, if the run has kept it. An interrupt that ends the body gets the sentence of
        `how_far`.
        """
        path = Path(settings.output)
        _reject_file(path)
        check_output(path, command=command, force=settings.force, inputs=settings.paths())
        with lock_folder(path), system_errors(path):
            run = cls(
                path,
                command=command,
                settings=settings.recorded(),
                inputs=inputs,
                force=settings.force,
                defaults=settings.defaults() | settings.removed_defaults(),
                locations=settings.path_names() | {"architecture"},  # which may be a config.json
                has_model=has_model,
                keeps_checkpoint=settings.keep_last_checkpoint,
            )
            if run.damage is not None and not (rewrites_model and run.has_checkpoint):
                raise InputError.naming(
                    "The run in {} is finished, but {}. Restore it from a copy, or use "
                    "{force=True} to train again.",
                    path,
                    run.damage,
                )
            try:
                with interruption_message(run.how_far):
                    yield run
            except InputError:
                run.discard_unless_begun()
                raise

    @property
    def finished(self):
        """Whether the run ended, with its results and its model undamaged."""
        return self._metrics.is_file() and self.damage is None

    @property
    def has_checkpoint(self):
        """Whether the folder has a checkpoint."""
        from keras_bert.training.checkpoint import latest_checkpoint  # which loads numpy

        return latest_checkpoint(self.checkpoints) is not None

    def discard_unless_begun(self):
        """Deletes the run.json of a new run that has written nothing else.

        Then the command may be given with other settings.
        """
        if not self.resumed and held_names(self.path) == [self._run.name]:
            delete(self._run)

    def reopen(self):
        """Deletes the results and the model of a run that ended, so that it resumes."""
        check_own_records(self.path, [self.model.name], command=self.command)
        for path in (self._metrics, self.model):
            delete(path)
        self.damage = None

    def how_far(self):
        """How far an interrupted run came, and how to resume, for the user."""
        from keras_bert.training.checkpoint import latest_checkpoint, step_of  # which loads numpy

        if self.runs.is_dir():
            finished = counted(len(list(self.runs.glob("*/metrics.json"))), "finished run")
            reached = f"{self.path} has {finished}."
        elif (latest := latest_checkpoint(self.checkpoints)) is not None:
            reached = f"Checkpoint saved at step {step_of(latest)} in {self.path}."
        else:
            reached = f"No checkpoint yet in {self.path}."
        return f"Interrupted. {reached} Run the same command again to resume."

    def resolved(self, name):
        """The value that `resolve` stored under a name, or None."""
        return _parse_run(self._run).get("resolved", {}).get(name)

    def resolve(self, name, value):
        """Stores in run.json what the run has determined itself; returns it.

        It is not a setting: it depends on this machine, and a resumed run has to use it, too.
        """
        run = _parse_run(self._run)
        write_json(self._run, {**run, "resolved": {**run.get("resolved", {}), name: value}})
        return value

    def read_metrics(self):
        """Returns the results of a finished run; `InputError` if they are not of its command."""
        return read_metrics(self._metrics, command=self.command)

    def check_model(self, advice):
        """Raises `InputError`, with an advice, if the model is missing or damaged."""
        damage = self._model_damage()
        if damage is not None:
            raise InputError(
                f"The runs in {self.path} are finished, but {damage}. To repair it, {advice}."
            )

    def _find_damage(self):
        if not self._metrics.is_file():
            return None
        try:
            metrics = read_metrics(self._metrics)
        except InputError as error:
            return str(error).rstrip(".")
        published = _parse_run(self._run).get("published", {})  # an earlier version has none
        if published.get("metrics", _hash(metrics)) != _hash(metrics):
            return f"{self._metrics} was changed after the run"
        return self._model_damage() or broken_promise(self.path, published)

    def _model_damage(self):
        """Says what is wrong with the model, if it can be told without its hashes."""
        if not self._has_model:
            return None
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
        """Writes the model card and the results, which end the run, and returns them.

        Infinite and NaN numbers, which JSON does not have, become None.
        """
        metrics = _finite(metrics)
        if self.model.is_dir():
            from keras_bert.checkpoints.model_card import write_card

            write_card(self.model, settings=_parse_run(self._run)["settings"], metrics=metrics)
        published = {"metrics": _hash(metrics), **promised_hashes(self.path)}
        write_json(self._run, {**_parse_run(self._run), "published": published})
        write_json(self._metrics, metrics)
        self._tidy()
        return metrics

    def _tidy(self):
        """Deletes what a finished run does not need."""
        from keras_bert.training.checkpoint import checkpoints_in  # which loads numpy

        checkpoints = checkpoints_in(self.checkpoints)
        if self._keeps_checkpoint:
            checkpoints = checkpoints[:-1]
        for leftover in (self.best, self.bad_batch, *checkpoints):
            delete(leftover)
        with contextlib.suppress(OSError):  # it is not there, or not empty
            self.checkpoints.rmdir()

    def _reject_other_settings(self, before, now):
        contents = _different(before["inputs"], now["inputs"])
        before, now = ({**self._defaults, **run["settings"]} for run in (before, now))
        differences = [
            f"{name} {as_written(before.get(name))}, now {as_written(now.get(name))}"
            for name in _different(before, now)
            if contents or name not in self._locations
        ]
        differences += [f"other content of {name}" for name in contents]
        if differences:
            raise InputError.naming(
                "{} contains a run with different settings: {}. Use the original settings to "
                "resume, another {output}, or {force=True} to overwrite it.",
                self.path,
                "; ".join(differences),
            )

    def _reject_other_backend(self, before):
        begun, now = (run.get("backend", _DEFAULT) for run in (before, _backend()))
        if begun != now:
            raise InputError.naming(
                "The run in {} was begun on the Keras backend {}, and other weights would come of "
                "it on {}. Set KERAS_BACKEND={} to resume, or use another {output}, or "
                "{force=True} to overwrite it.",
                self.path,
                begun,
                now,
                begun,
            )


def check_output(path, *, command, force=False, inputs=()):
    """Returns the run.json of a command's run in a folder; None without such a run.

    Raises `InputError` if `command` cannot start one there, or if with `force` a file would be
    deleted that no run writes, or one of the `inputs`.
    """
    path = Path(path)
    _reject_file(path)
    if force:
        reject_input_as_output(_all_read(inputs), path)
    if (path / "run.json").is_file():
        run = _parse_run(path / "run.json")
        if run["command"] == command:
            if force:
                check_own_records(path, command=command)
            return run
    names = held_names(path) if path.exists() else []
    if force:
        if foreign := [name for name in names if name in RECORDS]:
            raise InputError.naming(
                "The output folder {} contains a {} that {} did not write, and {force} deletes "
                "only what it wrote itself. Use another folder.",
                path,
                foreign[0],
                command,
            )
    elif names:
        raise InputError(
            f"The output folder {path} contains something else ({listed(names, most=3)}). Use a "
            "new or an empty folder."
        )
    return None


def _all_read(paths):
    """Paths that a run reads, with the base models of adapters."""
    from keras_bert.checkpoints.model_folder import folders_read  # which loads Keras

    return [read for path in paths for read in folders_read(path)]


def _reject_file(path):
    if path.exists() and not path.is_dir():
        raise InputError(f"The output {path} is a file. Expected a folder.")


def _finite(value):
    """A JSON-like value with None in place of infinite and NaN numbers."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _hash(metrics):
    """A hash of the results, as JSON holds them."""
    return hash_of_json(json.loads(json.dumps(metrics)))


def _different(before, now):
    """The sorted names under which two dictionaries differ."""
    return [
        name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)
    ]


def read_settings(path, *, command):
    """Returns the settings in a run.json that `command` wrote, or in a TOML file for it."""
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"There is no settings file {path}. Expected a run.json, or the "
            "TOML file of keras-bert init."
        )
    run = _parse_run(path)
    if run["command"] != command:
        raise InputError(
            f"{path} contains the settings of {run['command']}. Expected the run.json of a "
            f"{command} run."
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
            f"{path} is not a settings file of a run. Expected: command, settings and inputs."
        )
    for key in ("resolved", "published"):  # which an earlier version may lack
        if not isinstance(run.get(key, {}), dict):
            raise InputError(f'{path} is damaged: "{key}" should be a JSON object.')
    return run


def _backend():
    """The line of run.json on the Keras backend: none on TensorFlow."""
    from keras_bert.programs import BACKEND  # which loads Keras

    return {} if BACKEND == _DEFAULT else {"backend": BACKEND}


def _versions():
    versions = {}
    for name in (*_VERSIONS_OF, *_backend().values()):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # TensorFlow has several distributions
    return versions
