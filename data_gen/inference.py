"""Predictions or embeddings of many files, as a Beam job that writes a shard for each file.

    files ── read, compute, write a shard each ──▶ what was written ──▶ shards.json

A shard has the bytes that the same command writes for its file in one process. The model is packed
into the output folder, where workers can read it, and deleted at the end. A worker loads it once,
and works on one file at a time.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam

from data_gen import runner
from data_gen.files import chunks, content_hash, is_local, new_file, sizes
from data_gen.output_folder import OutputFolder, check_owner, owner_of
from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import counted
from keras_bert.base.ownership import reject_input_as_output
from keras_bert.base.settings import Report
from keras_bert.base.signals import interruption_message

RECORD = "shards.json"
_MODEL = "model.tar"
_FILES_SHOWN = 5  # of which notes are shown
_ENDINGS = {
    "predict": (".jsonl", ".csv", ".parquet"),
    "embed": (".parquet",),
    "index": (".tar",),
}


class ShardsFolder(OutputFolder):
    """The `OutputFolder` of a job that writes a shard for each file."""

    SHARD = re.compile(r"part-\d{5,}-of-(?P<total>\d{5,})\.(?:jsonl|csv|parquet|tar)")
    OURS = re.compile(rf"{SHARD.pattern}|{re.escape(RECORD)}|{re.escape(_MODEL)}")

    def record(self) -> list[dict[str, Any]]:
        """Describes each written file: its `input`, `output`, `rows`, `bytes` and `notes`."""
        return json.loads(self.read(RECORD))

    def difference(self, names):
        return None if self.has_the_same_inputs() else " of other files, settings or another model"

    def find_damage(self, names):
        if RECORD not in names:
            return f"{RECORD} is missing"
        for shard in self.record():
            name = shard["output"]
            if name not in names:
                return f"{name} is missing"
            if (size := self.size([name])) != shard["bytes"]:
                return f"{name} has {size} bytes of {shard['bytes']}"
        return None


@dataclasses.dataclass(frozen=True)
class _Job:
    """The settings that every worker receives.

    Attributes:
        command: "predict", "embed" or "index".
        output: the folder.
        count: the number of files.
        settings: those of the command, without the model, the files and the output.
    """

    command: str
    output: str
    count: int
    settings: dict[str, Any]

    def name(self, index):
        """The name of the shard of a file."""
        return f"part-{index:05d}-of-{self.count:05d}{Path(self.output).suffix.lower()}"

    def load(self, folder):
        """The model of a folder, as `write` takes it."""
        if self.command == "index":
            from keras_bert.search.embedders import open_embedder

            return open_embedder(folder)
        if self.command == "embed":
            from keras_bert.inference.embed import open_model, open_text_embedder

            return open_text_embedder(folder) or open_model(folder)
        from keras_bert.inference.predict import as_task

        task = as_task(folder)
        if self.settings.get("one_text"):
            task.update_settings(one_text=True)
        return task

    def write(self, model, *, source, target, report):
        """Writes the shard `target` of the file `source`; returns its number of rows."""
        if self.command == "index":
            from keras_bert.search.parts import write_part

            options = {"settings": self.settings, "report": report}
            return write_part(model, source=source, target=target, **options)
        given = {"model": model, "data": source, "output": target, "report": report}
        if self.command == "embed":
            from keras_bert.inference.embed_to_file import embed_to_file

            return embed_to_file(**given, **self.settings)["texts"]
        from keras_bert.inference.predict import predict

        return predict(**given, **self.settings)


def predict_files(
    *,
    model: str | os.PathLike,
    data: str | Sequence[str],
    output: str | os.PathLike,
    force: bool = False,
    settings: Mapping[str, Any] | None = None,
    beam_options: Sequence[str] = (),
    report: Report = None,
) -> list[dict[str, Any]]:
    """Predicts for the examples of many files, as a Beam job, and writes a shard for each file.

        kb.predict_files(model="run", data="texts/*.csv", output="labelled.jsonl",
                         beam_options=["--runner=PortableRunner", "--job_endpoint=jm:8099"])

    The output is a folder with COMPLETED, written last, and `shards.json`. Its ending is the form
    of the shards, as it is the form of the file that `predict` writes. Nothing is done if the
    output is complete already.

    Args:
        model: a fine-tuned model folder, the output of finetune, or hf://owner/name.
        data: a path or a glob, or a list of them, on any file system of Beam's.
        output: the folder, NAME.jsonl, NAME.csv or NAME.parquet.
        force: replace an output that an earlier job left.
        settings: others of `keras_bert.predict`, such as {"text_column": "message"}.
        beam_options: Beam's own flags, a list of strings. The default is one worker in this
            process.
        report: a function that is called with a line of text on how a file was read, and on what
            was left out of it.

    Returns:
        For each file, in the order of their paths, a dictionary: `input` and `output`, the names
        of the file and of its shard, `rows` and `bytes` of the shard, and `notes`, what was
        reported on the file.

    Raises:
        InputError: bad input, settings, options or output; no COMPLETED is written then.
        KeyboardInterrupt: it was interrupted; the message has the number of shards written.
    """
    return _run(
        "predict", model=model, data=data, output=output, force=force, settings=settings,
        beam_options=beam_options, report=report,
    )  # fmt: skip


def embed_files(
    *,
    model: str | os.PathLike,
    data: str | Sequence[str],
    output: str | os.PathLike,
    force: bool = False,
    settings: Mapping[str, Any] | None = None,
    beam_options: Sequence[str] = (),
    report: Report = None,
) -> list[dict[str, Any]]:
    """Embeds the texts of many files, as a Beam job, and writes a Parquet file for each file.

    As `predict_files`, with the settings of `keras_bert.embed_to_file`. The output is a folder
    NAME.parquet.
    """
    return _run(
        "embed", model=model, data=data, output=output, force=force, settings=settings,
        beam_options=beam_options, report=report,
    )  # fmt: skip


def index_files(
    *,
    model: str | os.PathLike,
    data: str | Sequence[str],
    output: str | os.PathLike,
    force: bool = False,
    settings: Mapping[str, Any] | None = None,
    beam_options: Sequence[str] = (),
    report: Report = None,
) -> int:
    """Builds one index of the texts of many files, as a Beam job; returns the number of texts.

    Workers write the index of each file into the folder OUTPUT.tar, which is on a file system that
    they reach. This process merges them in the order of the files' names, and deletes that folder
    at the end. The vectors are those of `Index.build` of each file, with any number of workers.

    Args: as of `predict_files`; `output` is a folder of this machine, and `settings` are those of
    `IndexSettings`.

    Raises InputError: see `predict_files`; two files have a text of the same id, or the output is
    there already.
    """
    from keras_bert.base.ownership import check_output_folder
    from keras_bert.search.embedders import name_of
    from keras_bert.search.parts import merge_parts
    from keras_bert.search.segments import is_index, is_unfinished

    output = str(output).rstrip("/")
    check_output_folder(output, is_ours=is_index, force=force or is_unfinished(output))
    parts = f"{output}.tar"
    shards = _run(
        "index", model=model, data=data, output=parts, force=force, settings=settings,
        beam_options=beam_options, report=report,
    )  # fmt: skip
    made_of = hashlib.sha256(json.dumps(shards).encode()).hexdigest()
    pairs = [
        (shard["input"], functools.partial(_copy, f"{parts}/{shard['output']}")) for shard in shards
    ]
    index = merge_parts(output, pairs, model=name_of(model), made_of=made_of, force=force)
    with ShardsFolder(parts, force=True, inputs="nothing") as folder:
        folder.discard()
    return len(index)


def _run(command, *, model, data, output, force, settings, beam_options, report):
    output, settings = str(output).rstrip("/"), dict(settings or {})
    endings = _ENDINGS[command]
    if Path(output).suffix.lower() not in endings:
        raise InputError.naming(
            "The output of a job is a folder whose name ends in {}, the form of its files: give "
            "{output} such a name. Received: {}.",
            " or ".join(endings),
            output,
        )
    for name in ("glue", "text"):
        if settings.get(name) is not None:
            raise InputError.naming(
                "{} is not read by a job. Leave it out, or run without a runner.", argument(name)
            )
    model = _check(command, model, settings)
    with runner.Progress("Listing the input") as progress:
        files = sizes(data)
        paths = sorted(files)
        job = _Job(command, output, len(paths), settings)
        inputs = _hash_of_inputs(job, model, {path: files[path] for path in paths})
        reject_input_as_output([*paths, model], output)
        with ShardsFolder(output, force=force, inputs=inputs) as folder:
            if folder.finished:
                if report is not None:
                    report(f"The output {output} is finished already. Nothing to do.")
                return folder.record()
            if folder.damage is not None and report is not None:
                report(f"The output {output} is made again: {folder.damage}.")
            progress.follow(folder, files=len(paths))
            with interruption_message(folder.interruption):
                _pack(model, folder.file(_MODEL))
                runner.run(
                    functools.partial(_add_steps, paths=paths, job=job),
                    ["--direct_num_workers=1", *beam_options],
                    progress=progress,
                )
                folder.delete([_MODEL])
                record = folder.record()
                folder.finish()
    if report is not None:
        _report_notes(record, report)
    return record


def _report_notes(record, report):
    with_notes = [shard for shard in record if shard["notes"]]
    for shard in with_notes[:_FILES_SHOWN]:
        for note in shard["notes"]:
            report(note)
    if others := with_notes[_FILES_SHOWN:]:
        report(f"{RECORD} has the notes on {counted(len(others), 'other file')}.")


def _check(command, model, settings):
    """The model's folder, after everything is checked that can be without the files."""
    from keras_bert.checkpoints import find_model_folder

    folder = find_model_folder(model)
    given = settings | {"model": str(folder), "data": "a file"}
    if command == "predict":
        from keras_bert.inference.predict import open_task
        from keras_bert.inference.settings import PredictSettings, predict_settings

        open_task(PredictSettings, predict_settings, given)
    elif command == "index":
        from keras_bert.search import IndexSettings
        from keras_bert.search.embedders import open_embedder

        IndexSettings.of(settings)
        open_embedder(folder)
    else:
        from keras_bert.inference.embed import open_embedder
        from keras_bert.inference.vector_settings import EmbedderSettings, EmbedToFileSettings

        checked = EmbedToFileSettings.of(given | {"output": "a.parquet"})
        open_embedder(str(folder), **checked.part(EmbedderSettings))
    return folder


def _hash_of_inputs(job, model, files):
    """A hash of all that the output depends on: settings, model, and the files in their order."""
    from keras_bert.checkpoints.model_folder import fingerprint_of_folder

    contents = [content_hash(path, size) for path, size in files.items()]
    made_from = [job.command, repr(sorted(job.settings.items())), fingerprint_of_folder(model)]
    return hashlib.sha256("\n".join([*made_from, *contents]).encode()).hexdigest()


def _pack(folder, path):
    with new_file(path) as packed, tarfile.open(packed, "w", dereference=True) as archive:
        archive.add(folder, arcname="model")


def _add_steps(pipeline, *, paths, job):
    """Adds the steps of a job to a pipeline."""
    _ = (
        pipeline
        | "Files" >> beam.Create([*enumerate(paths)])
        | "SpreadFiles" >> beam.GroupByKey()
        | "WriteShard" >> beam.ParDo(WriteShardOfFile(job))
        | "Together" >> beam.GroupBy(lambda shard: 0)
        | "WriteRecord" >> beam.Map(_write_record, path=f"{job.output}/{RECORD}")
    )


def _write_record(grouped, *, path):
    shards = sorted(grouped[1], key=lambda shard: shard["output"])
    with new_file(path) as file:
        file.write_text(json.dumps(shards, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


class WriteShardOfFile(beam.DoFn):
    """Takes (index, [path]), writes the shard of the file, and yields what was written."""

    def __init__(self, job):
        super().__init__()
        self._job = job
        # Not in a worker: one that a cluster starts later would take the folder's next owner.
        self._owner = owner_of(job.output)

    def process(self, item):
        index, (path,) = item
        name, notes = self._job.name(index), []
        with (
            _one_at_a_time,
            tempfile.TemporaryDirectory() as temporary,
            _local_copy(path, temporary) as source,
        ):
            target = os.path.join(temporary, name)
            rows = self._job.write(
                _model_of(self._job, self._owner),
                source=source,
                target=target,
                report=lambda note: notes.append(note.replace(source, path)),
            )
            with new_file(f"{self._job.output}/{name}") as shard:
                shutil.copyfile(target, shard)
                check_owner(self._job.output, self._owner)
            size = os.path.getsize(target)
        yield {"input": path, "output": name, "rows": rows, "bytes": size, "notes": notes}


_one_at_a_time = threading.RLock()  # Beam calls a step from several threads
_loaded_model: tuple[Any, Any] = (None, None)  # of this process: its job and owner, and the model


def _model_of(job, owner):
    """The model of a job, which this process keeps until it works on another one."""
    global _loaded_model
    if _loaded_model[0] != (job, owner):
        _loaded_model = None, None  # before the next one is loaded
        with tempfile.TemporaryDirectory() as temporary:
            packed = os.path.join(temporary, _MODEL)
            _copy(f"{job.output}/{_MODEL}", packed)
            with tarfile.open(packed) as archive:
                archive.extractall(temporary, filter="data")
            _loaded_model = (job, owner), job.load(os.path.join(temporary, "model"))
    return _loaded_model[1]


@contextlib.contextmanager
def _local_copy(path, folder):
    """The path of a file on this machine, which errors call as the input is called."""
    if is_local(path):
        yield path
        return
    copy = os.path.join(folder, os.path.basename(path))
    _copy(path, copy)
    try:
        yield copy
    except InputError as error:
        raise InputError(str(error).replace(copy, path)) from None


def _copy(path, target):
    with open(target, "wb") as file:
        file.writelines(chunks(path))
