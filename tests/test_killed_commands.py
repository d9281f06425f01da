"""Each command killed at each of its renames and deletions, and run again: as if never killed.
And each on a full disk: one sentence, and nothing half written.

What comes before a command's publishing is replaced by its result, so that a run takes no time. The
jobs, which load no TensorFlow, are killed at every call in tests/text/killed_vocabularies.py and
tests/data_gen/killed_output_folder.py.
"""

import contextlib
import re
import resource
import shutil
import subprocess
from pathlib import Path

import keras
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from keras_bert.base import files, ownership
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import save_folder
from keras_bert.checkpoints.convert import convert
from keras_bert.exports import saved_model
from keras_bert.exports.saved_model import export_task
from keras_bert.inference.embed import open_embedder
from keras_bert.inference.embed_to_file import embed_to_file
from keras_bert.samples.quickstart import QuickstartSteps, quickstart
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.text_embedding.text_embedder import TextEmbedder
from keras_bert.training.distill import distill
from keras_bert.training.loop import train
from keras_bert.training.parts.bad_batch import BadBatch
from keras_bert.training.parts.keep_best import KeepBest, KeepSettings
from keras_bert.training.parts.tensorboard import TensorBoard
from keras_bert.training.plan import BatchSource, Plan
from keras_bert.training.run import Run
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.settings import RunSettings
from keras_bert.training.static_student import static_student
from tests.instant_training import make_evaluation_instant, make_fit_instant
from tests.kill_points import PUBLISHING, stop_at_every_call
from tests.small_model import make_encoder, make_tokenizer

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch):
    """The machine is not switched off here."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def task():
    tokenizer = make_tokenizer()
    return Classifier(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, labels=["a", "b"])


@pytest.fixture(scope="module")
def model_folder(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    task.save(folder)
    return folder


def snapshot(folder):
    """All that lies in a folder, hidden things too: bytes by the path in it."""
    contents = {}
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else None
        if path.parent.name == "checkpoints" and content:
            content = {name: tensor.tobytes() for name, tensor in load_file(path).items()}
            content.pop("state", None)  # the history, which has how long it took
        if "logs" not in path.parts:
            contents[str(path.relative_to(folder))] = content
    return contents


def kills(place, run, *, begin=lambda: None, events=PUBLISHING):
    """Kills `run()` at each event below the folder `place`, which `begin()` fills.

    After each kill `run` does the rest, and nothing is there that an unbroken run does not leave.
    Returns how many kills there were.
    """

    def prepare():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        begin()

    prepare()
    run()
    whole = snapshot(place)
    assert whole and not any(files.is_temporary(Path(name).name) for name in whole)

    def check(killed):
        run()
        left = snapshot(place)
        assert left.keys() == whole.keys()
        assert all(left[name] == whole[name] for name in whole)

    return stop_at_every_call(place, prepare=prepare, action=run, check=check, events=events)


def is_rejected_on_a_full_disk(place, run):
    """Runs `run()`, which writes below the folder `place`, on a disk with room for next to nothing.

    It is a tmpfs if this process may mount one, and else a limit on the size of files.
    """
    shutil.rmtree(place)
    place.mkdir()
    with _full_disk(place), pytest.raises(InputError) as refusal:
        run()
    said = str(refusal.value)
    assert f"{place}" in said and "keras-bert-" not in said and "\n" not in said
    assert re.search(r"cannot be written: (No space left on device|File too large)\.$", said), said


@contextlib.contextmanager
def _full_disk(place):
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place]
    with contextlib.suppress(FileNotFoundError):
        if not subprocess.run(mount, capture_output=True).returncode:
            try:
                (place / "filled").write_bytes(bytes(60 << 10))
                yield
                assert not [path for path in place.rglob("*") if files.is_temporary(path.name)]
            finally:
                subprocess.run(["umount", "--lazy", place], check=True)
            return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [path for path in place.rglob("*") if files.is_temporary(path.name)]


@pytest.mark.parametrize("to", ["huggingface", "google"])
@pytest.mark.parametrize("replaces", [False, True])
def test_convert(task, model_folder, tmp_path, monkeypatch, to, replaces):
    read = ("huggingface", task, task.tokenizer, [])
    monkeypatch.setattr("keras_bert.checkpoints.convert.read_model", lambda source: read)
    output = tmp_path / "place" / "out"

    def run():
        convert(input=model_folder, output=output, to=to, force=replaces)

    def begin():
        if replaces:
            run()

    assert kills(output.parent, run, begin=begin) >= 2
    is_rejected_on_a_full_disk(output.parent, run)


@pytest.mark.parametrize("replaces", [False, True])
def test_static_student(tmp_path, monkeypatch, replaces):
    """A trained student is a run of fine-tuning, with the files of `test_training`."""
    tokenizer = make_tokenizer()
    teacher = TextEmbedder(make_encoder(tokenizer, num_hidden_layers=1), tokenizer)
    teacher.save(tmp_path / "teacher")
    student = static_student(teacher, dimensions=4)
    monkeypatch.setattr("keras_bert.training.distill.load_task", lambda folder: teacher)
    monkeypatch.setattr(
        "keras_bert.training.distill.static_student", lambda teacher, **options: student
    )
    output = tmp_path / "place" / "out"

    def run():
        # After a kill the output may be there, whole, since it is published at once.
        force = replaces or output.exists()
        distill(teacher=tmp_path / "teacher", static=True, output=output, force=force)

    assert kills(output.parent, run, begin=run if replaces else lambda: None) >= 1
    is_rejected_on_a_full_disk(output.parent, run)


@pytest.mark.parametrize("replaces", [False, True])
def test_embed(task, model_folder, tmp_path, monkeypatch, replaces):
    embedder = open_embedder((task.encoder, task.tokenizer), layers="last", tokens="words-mean")
    monkeypatch.setattr(
        "keras_bert.inference.embed_to_file.open_embedder",
        lambda *given, **settings: embedder,
    )
    texts = tmp_path / "texts.txt"
    texts.write_text("a text\nand another\n")
    output = tmp_path / "place" / "vectors.parquet"

    def run():
        embed_to_file(model=model_folder, data=texts, output=output, layers="last", force=replaces)

    assert kills(output.parent, run, begin=run if replaces else lambda: None) >= 2
    texts.write_text("a text of many words " * 200)
    is_rejected_on_a_full_disk(output.parent, run)


def test_export(task, tmp_path, monkeypatch):
    """A version that is there already is none that an unbroken run leaves: its number is next."""
    models = tmp_path / "place" / "spam"
    files.write_texts(exported := tmp_path / "exported", {"assets": "a", "saved_model.pb": "b"})

    signatures = task.signatures()
    monkeypatch.setattr(
        "keras_bert.exports.saved_model.as_exported", lambda task, precision: (task, None)
    )
    monkeypatch.setattr(Classifier, "signatures", lambda self, **options: signatures)
    is_real = False

    def write(path, signatures):
        with saved_model._temporary_files_beside(path):
            if is_real:
                tf.saved_model.save(tf.Module(), str(path))
            else:
                shutil.copytree(exported, path, dirs_exist_ok=True, copy_function=shutil.copyfile)

    monkeypatch.setattr("keras_bert.exports.saved_model.write_saved_model", write)

    def check(killed):
        before = sorted(ownership.held_names(models)) if models.exists() else []
        assert before in ([], ["1"]) and (before or killed)
        assert export_task(task, models) == models / str(1 + len(before))
        assert sorted(path.name for path in models.iterdir()) == [*before, str(1 + len(before))]
        versions = [snapshot(version) for version in models.iterdir()]
        assert versions[0]["saved_model.pb"] == b"b"
        assert versions.count(versions[0]) == len(versions)

    assert stop_at_every_call(
        tmp_path / "place",
        prepare=lambda: shutil.rmtree(models, ignore_errors=True),
        action=lambda: export_task(task, models),
        check=check,
        events=PUBLISHING,
    ) >= 2  # fmt: skip
    is_real = True
    is_rejected_on_a_full_disk(tmp_path / "place", lambda: export_task(task, models))


class _Nothing(BatchSource):
    def training(self, first_step):
        return None

    def evaluation(self):
        return object()


@pytest.fixture
def instant(monkeypatch):
    make_fit_instant(monkeypatch)
    make_evaluation_instant(monkeypatch)


def settings_of(output, **changes):
    return RunSettings(output=str(output), **changes)


class KeptRunSettings(KeepSettings, RunSettings):
    """The settings of a run that keeps the best model."""

    contrastive = False


def test_training(task, instant, tmp_path):
    """Files that a run publishes, in order: run.json, checkpoints, the best model, the results. A
    pre-training run's are these but for the best model. The weights tell the step: those of a
    checkpoint that was not gone on with would be others.
    """
    output = tmp_path / "place" / "run"
    plan = Plan(steps=4, record=2, evaluate_every=2, checkpoint_every=2)
    begin = [variable.numpy() for variable in task.variables]
    task.compile(keras.optimizers.Adam())
    task.optimizer.build(task.trainable_variables)

    def run():
        for variable, value in zip(task.variables, begin, strict=True):
            variable.assign(value)
        with RunFolder.of(settings_of(output), command="finetune", inputs={"data": "a"}) as folder:
            if folder.finished:
                return
            run = Run(
                folder=folder,
                settings=KeptRunSettings(output=str(output)),
                task=task,
                plan=plan,
                report=lambda line: None,
                source=_Nothing(),
                evaluates_first=True,
            )
            run.take_parts((TensorBoard, BadBatch, KeepBest))
            records = train(run)
            assert folder.best.stat().st_size
            save_folder(task, task.tokenizer, folder.model, overwrite=True)
            folder.finish({"log_steps": [record["step"] for record in records]})

    try:
        assert kills(output.parent, run) >= 20
        is_rejected_on_a_full_disk(output.parent, run)
    finally:
        for variable, value in zip(task.variables, begin, strict=True):
            variable.assign(value)


def test_a_run_that_is_begun_anew(tmp_path):
    output = tmp_path / "place" / "run"

    def of(force):
        return RunFolder.of(settings_of(output, force=force), command="pretrain", inputs={})

    def begin():
        with of(force=False) as folder:
            names = (
                *("checkpoints/step-000000001.safetensors", "logs/train/events.out.tfevents.1"),
                *("model/config.json", "model/model.safetensors"),
            )
            for name in names:
                files.write_text(folder.path / name, "{}")
            folder.finish({})

    def run():
        with of(force=True) as folder:
            assert not folder.resumed

    assert kills(output.parent, run, begin=begin) >= 15


def test_quickstart(tmp_path, monkeypatch):
    """Its steps are the other commands'; here each writes one of its files."""
    output = tmp_path / "place" / "out"

    def step(path, result):
        def write(self, *given, output=None, **settings):
            files.write_text(self.path(path.format(output=output)), path)
            return result

        return write

    pretrained = {
        "eval_at_start": {"masked_lm_loss": 3.0},
        "eval": {"masked_lm_loss": 2.0},
        "train": {"masked_lm_loss": 1.0},
        "unigram_entropy": 2.5,
    }
    for name, path, result in (
        ("write_samples", "text/messages.txt", None),
        ("learn_vocabulary", "vocab.txt", None),
        ("make_records", "pretraining-data/dataset_info.json", None),
        ("pretrain", "pretrained/model/config.json", pretrained),
        ("_finetune", "{output}/model/config.json", None),
        ("export", "savedmodels/spam/1/saved_model.pb", "1"),
    ):
        monkeypatch.setattr(QuickstartSteps, name, step(path, result))
    measured = {"accuracy": 0.5, "examples": 9, "words": 9}
    monkeypatch.setattr(QuickstartSteps, "_evaluate", lambda self, *given: measured)
    monkeypatch.setattr(QuickstartSteps, "ask", lambda self, version: [])
    monkeypatch.setattr("time.perf_counter", lambda: 0.0)

    def begin():
        quickstart(output, seed=1)

    assert kills(output.parent, begin) >= 10
    is_rejected_on_a_full_disk(output.parent, begin)
    assert kills(output.parent, lambda: quickstart(output, force=True), begin=begin) >= 20
