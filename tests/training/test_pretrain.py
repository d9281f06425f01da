"""A pre-training run as a whole: that it learns, what it leaves, and that resume is exact."""

import contextlib
import errno
import functools
import json
import math
import os
import re
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import tensorflow as tf
from safetensors.numpy import load_file

import keras_bert.training.pretrain as module
from keras_bert.base.errors import InputError
from keras_bert.base.signals import Terminated
from keras_bert.checkpoints import load_task
from keras_bert.records import DataFolder
from keras_bert.tasks.pretraining.features import training_dataset
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.training import checkpoint
from keras_bert.training.logs import History
from keras_bert.training.pretrain import pretrain
from keras_bert.training.pretraining_examples import ExamplesOfPhases
from keras_bert.training.settings import PretrainSettings
from tests.messages import raises_input_error
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.seeds import shifted

REPOSITORY = Path(__file__).resolve().parents[2]

# A checkpoint in the middle of an epoch of the data, and an odd number of steps.
SHORT = {"steps": 13, "batch_size": 8, "checkpoint_every": 5, "eval_every": 10, "seed": shifted(4)}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_data_folder(tmp_path_factory.mktemp("data") / "rows", rows=44, eval_examples=11)


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """Longer rows, by their padding."""
    folder = tmp_path_factory.mktemp("longer") / "rows"
    sizes = {"rows": 20, "eval_examples": 7, "max_length": 24}
    return make_data_folder(folder, **sizes, seed=1, unigram_entropy=math.log(30))


@pytest.fixture(scope="module")
def phases(data, longer):
    """The settings of two phases: rows of another length, in batches of another size."""
    return {"data": [data, longer], "steps": [6, 7], "batch_size": [8, 4], "deterministic": True}


@pytest.fixture(scope="module")
def architecture(tmp_path_factory):
    """A very small model, with dropout."""
    path = tmp_path_factory.mktemp("architecture") / "config.json"
    config = {
        "vocab_size": len(VOCABULARY),
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 24,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
    }
    path.write_text(json.dumps(config))
    return path


@pytest.fixture(scope="module")
def run(data, architecture):
    """Calls `pretrain` with the small data and model."""

    def call(output, **settings):
        folder = settings.pop("data", data)
        left_out = ["batch_size"] * ("batch_tokens" in settings)
        short = {name: value for name, value in SHORT.items() if name not in left_out}
        return pretrain(
            data=folder,
            output=output,
            architecture=settings.pop("architecture", architecture),
            **{"keep_last_checkpoint": True, **short, **settings},
        )

    return call


@pytest.fixture(scope="module")
def uninterrupted(run, phases, tmp_path_factory):
    output = tmp_path_factory.mktemp("unbroken") / "run"
    run(output, **phases)
    return output


def last_checkpoint(output):
    """Its variables; the history beside them holds what a clock says."""
    tensors = load_file(max((output / "checkpoints").iterdir()))
    del tensors["state"]
    return tensors


def history(output):
    """The rows without what a clock says."""
    rows = json.loads((output / "metrics.json").read_text())["history"]
    timed = ("seconds", "tokens_per_second", "input_wait", "mfu")
    return [{k: v for k, v in row.items() if k not in timed} for row in rows]


def assert_same_run(output, expected):
    assert (output / "model" / "model.safetensors").read_bytes() == (
        expected / "model" / "model.safetensors"
    ).read_bytes()
    tensors, wanted = last_checkpoint(output), last_checkpoint(expected)
    assert tensors.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(tensors[name], value, err_msg=name)
    assert history(output) == history(expected)


def test_dropout_is_on_and_its_state_is_in_the_checkpoint(uninterrupted):
    states = {k: v for k, v in last_checkpoint(uninterrupted).items() if "seed_generators" in k}
    assert len(states) == 1 + 3  # after the embeddings, and three in the block
    # The first number is the seed, the second counts the draws: one a training step.
    assert all(state[1] == 13 for state in states.values())


class Stopped(Exception):
    pass


def raise_stopped():
    raise Stopped


@contextlib.contextmanager
def in_step(number, happens):
    """While a run trains, something happens once at the end of a step."""
    original = History.on_train_batch_end

    def on_train_batch_end(self, batch, logs=None):
        original(self, batch, logs)
        if self._first_step + batch + 1 == number:
            happens()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(History, "on_train_batch_end", on_train_batch_end)
        yield


@contextlib.contextmanager
def full_disk_from(step):
    """Has no room for more than half of the checkpoint after a step, as safetensors says it."""

    def save_file(tensors, path, metadata):
        content = safetensors.numpy.save(tensors, metadata=metadata)
        if int(metadata["step"]) < step:
            path.write_bytes(content)
            return
        path.write_bytes(content[: len(content) // 2])
        words = f"I/O error: {os.strerror(errno.ENOSPC)} (os error {errno.ENOSPC})"
        raise safetensors.SafetensorError(f"Error while serializing: {words}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save_file", save_file)
        yield


def test_a_run_that_finds_the_disk_full_and_is_stopped_ends_bit_for_bit_like_an_uninterrupted_one(
    run, uninterrupted, phases, tmp_path
):
    """One run that goes on after a full disk, an interrupt and a request to end, and from the
    checkpoint before the newest, which is torn; in its first phase and in its second.
    """
    output = tmp_path / "run"
    second = output / "checkpoints" / "step-000000006.safetensors"
    with full_disk_from(step=6), pytest.raises(InputError) as refusal:
        run(output, **phases)
    assert str(refusal.value) == f"{second} cannot be written: No space left on device."
    assert [path.name for path in second.parent.iterdir()] == ["step-000000005.safetensors"]
    assert not (output / "metrics.json").exists()
    # What is done since is done again. Whoever asks gets a checkpoint first.
    for step, before_it, number, raised in (
        (7, 6, signal.SIGINT, KeyboardInterrupt),
        (12, 11, signal.SIGTERM, Terminated),
    ):
        before = signal.getsignal(number)
        said = f"Checkpoint saved at step {step} in {output}. Run the same command"
        ask = functools.partial(signal.raise_signal, number)
        with in_step(step, ask), pytest.raises(raised, match=said):
            run(output, **phases)
        assert signal.getsignal(number) is before
        assert checkpoints(output) == [before_it, step]
        assert not (output / "model").exists() and not (output / "metrics.json").exists()
    torn, said = output / "checkpoints" / "step-000000012.safetensors", []
    content = bytearray(torn.read_bytes())
    content[-5] ^= 1
    torn.write_bytes(content)
    run(output, **phases, report=said.append)
    assert said == [
        f"The checkpoint {torn} is damaged. Resuming from the one before it, of step 11.",
        "Resumed at step 11.",
    ]
    assert_same_run(output, uninterrupted)
    steps = [step for step, _ in scalars(output / "logs" / "train", "masked_lm/loss")]
    assert steps == [row["step"] for row in history(output)[1:]]  # the steps done twice stand once


def checkpoints(output):
    """The steps of which a run keeps a checkpoint."""
    names = sorted(path.name for path in (output / "checkpoints").iterdir())
    return [int(re.fullmatch(r"step-(\d{9})\.safetensors", name)[1]) for name in names]


def scalars(folder, tag):
    (path,) = folder.iterdir()
    return [
        (event.step, float(tf.make_ndarray(value.tensor)))
        for record in tf.data.TFRecordDataset(str(path))
        for event in [tf.compat.v1.Event.FromString(record.numpy())]
        for value in event.summary.value
        if value.tag == tag
    ]


def tags_of(folder):
    (path,) = folder.iterdir()
    return tags_in(path)


def tags_in(path):
    return {
        value.tag
        for record in tf.data.TFRecordDataset(str(path))
        for value in tf.compat.v1.Event.FromString(record.numpy()).summary.value
    }


def test_what_a_run_leaves(uninterrupted, phases):
    names = {"checkpoints", "logs", "metrics.json", "model", "run.json"}
    assert {path.name for path in uninterrupted.iterdir()} == names
    rows = history(uninterrupted)
    assert [row["step"] for row in rows] == list(range(14))
    # A phase ends with an evaluation.
    assert [row["step"] for row in rows if "eval" in row] == [0, 6, 13]
    assert rows[-1]["learning_rate"] == 0.0
    metrics = json.loads((uninterrupted / "metrics.json").read_text())
    assert metrics["eval"] == rows[-1]["eval"] and metrics["eval_at_start"] == rows[0]["eval"]
    # Logits have a deviation of about 1 at the start, which costs about 1/2.
    assert math.log(25) < metrics["eval_at_start"]["masked_lm_loss"] < math.log(25) + 1
    settings = json.loads((uninterrupted / "run.json").read_text())["settings"]
    given = {**SHORT, **phases, "data": [str(folder) for folder in phases["data"]]}
    assert {name: settings[name] for name in given} == given


def test_tensorboard_lays_train_eval_and_the_unigram_entropy_into_one_chart(
    uninterrupted, data, longer
):
    logs = uninterrupted / "logs"
    assert {path.name for path in logs.iterdir()} == {"train", "eval", "unigram_entropy"}
    rows = history(uninterrupted)
    for run_name in ("train", "eval"):
        for tag in ("masked_lm/loss", "next_sentence/accuracy"):
            written = scalars(logs / run_name, tag)
            scores = [
                (row["step"], row[run_name][tag.replace("/", "_")])
                for row in rows
                if row.get(run_name)
            ]
            assert [step for step, _ in written] == [step for step, _ in scores]
            np.testing.assert_allclose(written, scores, rtol=1e-5)
    line = scalars(logs / "unigram_entropy", "masked_lm/loss")
    assert [step for step, _ in line] == [row["step"] for row in rows]
    # That of the last phase, as in metrics.json, and so in curves.png.
    np.testing.assert_allclose([value for _, value in line], math.log(30), rtol=1e-6)
    assert len(scalars(logs / "train", "run/learning_rate")) == len(rows)
    # Each once more, over the tokens: two phases, of the rows' own average lengths.
    for run_name in ("train", "eval", "unigram_entropy"):
        over_steps, over_tokens = (
            scalars(logs / run_name, f"{prefix}masked_lm/loss") for prefix in ("", "over_tokens/")
        )
        tokens = {row["step"]: row["tokens"] for row in rows}
        assert over_tokens == [(tokens[step], value) for step, value in over_steps]
    tokens_per_step = [
        batch * tokens_of_a_row(folder) for folder, batch in ((data, 8), (longer, 4))
    ]
    assert abs(rows[6]["tokens"] - 6 * tokens_per_step[0]) <= 3  # each entry's are rounded
    assert abs(rows[-1]["tokens"] - rows[6]["tokens"] - 7 * tokens_per_step[1]) <= 4


def tokens_of_a_row(folder):
    split = DataFolder.open(folder).card.splits["train"]
    return split.tokens / split.instances


def test_gradients_are_measured_of_each_step(uninterrupted):
    records = json.loads((uninterrupted / "metrics.json").read_text())["history"]
    assert "gradient_norm" not in records[0]  # before the first step
    norms = [record["gradient_norm"] for record in records[1:]]
    assert all(0.1 < norm < 100 for norm in norms) and len(set(norms)) == len(norms)
    written = [value for _, value in scalars(uninterrupted / "logs" / "train", "run/gradient_norm")]
    np.testing.assert_allclose(written, norms, rtol=1e-5)


def test_the_model_folder_gives_the_losses_that_the_run_reported(uninterrupted, longer):
    task = load_task(uninterrupted / "model")
    task.compile_defaults("sgd")
    # The last batch of 4 holds 3 rows: what fills it up must not count.
    dataset = task.dataset(DataFolder.open(longer), split="eval", batch_size=4)
    results = task.evaluate(dataset, return_dict=True, verbose=0)
    reported = history(uninterrupted)[-1]["eval"]
    assert results["masked_lm_cross_entropy"] == pytest.approx(reported["masked_lm_loss"], rel=1e-4)
    assert results["next_sentence_cross_entropy"] == pytest.approx(
        reported["next_sentence_loss"], rel=1e-4
    )
    assert results["masked_lm_accuracy"] == pytest.approx(reported["masked_lm_accuracy"], abs=1e-6)


def test_a_finished_run_is_not_repeated(run, uninterrupted, phases, monkeypatch):
    monkeypatch.setattr(History, "on_epoch_begin", None)  # training would fail
    assert run(uninterrupted, **phases) == json.loads((uninterrupted / "metrics.json").read_text())


def test_a_run_killed_after_its_last_step_only_writes_its_results(
    run, uninterrupted, phases, tmp_path
):
    output = tmp_path / "run"
    output.mkdir()
    for name in ("checkpoints", "run.json"):
        (uninterrupted / name).rename(output / name)
    try:
        run(output, **phases)
    finally:
        (output / "run.json").rename(uninterrupted / "run.json")
        (output / "checkpoints").rename(uninterrupted / "checkpoints")
    assert history(output) == history(uninterrupted)
    assert (output / "model" / "model.safetensors").read_bytes() == (
        uninterrupted / "model" / "model.safetensors"
    ).read_bytes()


@pytest.mark.usefixtures("eager")
def test_a_run_whose_inputs_were_moved_resumes(run, data, architecture, tmp_path):
    output, begun, moved = (tmp_path / name for name in ("run", "begun", "moved"))
    settings = {"steps": 3, "checkpoint_every": 1, "eval_every": 3}

    def inputs(folder):
        files = {"vocab": folder / "vocab.txt", "architecture": folder / "config.json"}
        return {"data": folder, **files}

    shutil.copytree(data, begun)
    shutil.copy(architecture, begun / "config.json")
    with in_step(2, raise_stopped), pytest.raises(Stopped):
        run(output, **settings, **inputs(begun))
    begun.rename(moved)
    assert run(output, **settings, **inputs(moved))["steps"] == 3
    assert json.loads((output / "run.json").read_text())["settings"]["data"] == str(moved)
    (moved / "config.json").write_text((moved / "config.json").read_text().replace("64", "48"))
    with raises_input_error("settings: other content of architecture"):
        run(output, **settings, **inputs(moved))


@pytest.mark.parametrize("damage", ["removed", "truncated"])
def test_a_damaged_model_of_a_finished_run_is_written_again(
    run, uninterrupted, phases, tmp_path, damage, monkeypatch
):
    output = tmp_path / "run"
    shutil.copytree(uninterrupted, output)
    if damage == "removed":
        shutil.rmtree(output / "model")
    else:
        os.truncate(output / "model" / "model.safetensors", 2000)
    monkeypatch.setattr(History, "on_epoch_begin", None)  # training would fail
    told = []
    metrics = run(output, **phases, report=told.append)
    assert any("Resuming from the last checkpoint" in line for line in told)
    assert metrics == json.loads((uninterrupted / "metrics.json").read_text())
    assert_same_run(output, uninterrupted)


def test_it_learns_more_than_word_frequencies(run, tmp_path):
    folder = make_data_folder(tmp_path / "rows", rows=2000, eval_examples=100)
    metrics = run(
        tmp_path / "run",
        data=folder,
        steps=160,
        batch_size=32,
        learning_rate=1e-2,
        eval_every=80,
        checkpoint_every=160,
    )
    assert metrics["eval_at_start"]["masked_lm_loss"] > metrics["unigram_entropy"]
    assert metrics["eval"]["masked_lm_loss"] < 0.6 * metrics["unigram_entropy"]
    assert len(metrics["history"]) == 21  # 20 rows of 8 steps, and the one at the start
    assert_examples_are_learned(metrics["history"])


def assert_examples_are_learned(records):
    """The same places at every evaluation, in whose words the model believes more and more."""
    examples_of_records = [record["examples"] for record in records if "eval" in record]
    assert len(examples_of_records) == 3 and all(
        "examples" not in e for e in records if "eval" not in e
    )
    for examples in zip(*examples_of_records, strict=True):
        assert len({(e["before"], e["after"], e["expected"]) for e in examples}) == 1
    accuracies = [
        sum(e["candidates"][0][0] == e["expected"] for e in examples) / len(examples)
        for examples in examples_of_records
    ]
    assert accuracies[0] < 0.5 < accuracies[-1]


@pytest.mark.usefixtures("eager")
def test_a_loss_that_is_not_a_number_stops_in_a_sentence_and_leaves_its_batch(run, data, tmp_path):
    path = tmp_path / "bad_batch.npz"
    with raises_input_error(f"became infinite or NaN in step 2. ... is saved in {path}. Try a"):
        run(tmp_path, learning_rate=1e30, warmup=0.0, steps=60, eval_every=60, checkpoint_every=60)
    assert not any((tmp_path / "checkpoints").glob("*"))
    options = {"vocabulary": VOCABULARY, "batch_size": 8, "seed": SHORT["seed"], "first_step": 1}
    [(inputs, labels, weights)] = training_dataset(DataFolder.open(data), **options).take(1)
    with np.load(path) as saved:
        for prefix, expected in (("", inputs), ("label/", labels), ("weight/", weights)):
            for name, value in expected.items():
                np.testing.assert_array_equal(saved[f"{prefix}{name}"], value)


def test_what_minutes_come_to_is_resolved_once(run, tmp_path, monkeypatch):
    trained = []

    def planned_for(steps, **more):
        trained.append(steps)
        raise Stopped

    monkeypatch.setattr(module, "plan_steps", planned_for)
    monkeypatch.setattr(module, "steps_in", lambda minutes, *others, **more: [71])
    for _ in range(2):
        with pytest.raises(Stopped):
            run(tmp_path / "run", steps=None, minutes=30)
        monkeypatch.setattr(module, "steps_in", None)  # would fail
    assert trained == [[71], [71]]


def test_a_phase_begins_with_its_own_rows_and_a_step_has_all_parts(data, longer):
    folders = [DataFolder.open(data), DataFolder.open(longer)]
    given = {"data": [data, longer], "steps": [7, 6], "batch_size": [8, 4], "seed": 4}
    settings = PretrainSettings.of(
        {**given, "vocab": "v", "output": "o", "gradient_accumulation": 2}
    )
    tokenizer = Tokenizer.from_vocab(VOCABULARY, lowercase=True)
    task = SimpleNamespace(
        tokenizer=tokenizer,
        input=("input_ids",),
        output=("masked_lm",),
        settings=None,
        context_windows=lambda card, vocabulary: None,
    )
    rows = ExamplesOfPhases.of(folders, task, steps=[7, 6], settings=settings)
    for step, folder, batch_size, first in ((6, 0, 4, 12), (7, 1, 2, 0), (9, 1, 2, 4)):
        batches = rows.at(step).training(step).take(3)
        expected = training_dataset(
            folders[folder],
            vocabulary=VOCABULARY,
            task=task,
            batch_size=batch_size,
            seed=4,
            first_step=first,
        )
        for one, other in zip(batches, expected, strict=False):
            np.testing.assert_array_equal(one[0]["input_ids"], other[0]["input_ids"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "`steps` must be at least 1. Received: 0."),
        ({"steps": None}, "Give one of `steps`, `epochs` and `minutes`"),
        ({"minutes": 5}, "Give one of `steps`"),
        ({"steps": [5, 5], "batch_size": [8, 8, 8]}, "`steps` has 2 values and `batch_size` 3"),
        (
            {"gradient_accumulation": 3},
            "must be a multiple of `gradient_accumulation`, 3. Received: 8",
        ),
        ({"optimizer": "lamb", "layer_decay": 0.9}, "`layer_decay` needs `optimizer` adamw"),
        ({"batch_tokens": 15}, "15 tokens, less than the longest ..., 16. Use a larger value"),
        ({"batch_tokens": 64, "batch_size": 8}, "Give either `batch_size` ... or `batch_tokens`"),
        ({"batch_tokens": 64, "batch_size": 32}, "Give either `batch_size` ... or `batch_tokens`"),
        (
            {"causal_fraction": 0.5, "batch_tokens": 64},
            "Use `batch_size` instead of `batch_tokens`",
        ),
        ({"batch_size": 0}, "`batch_size` must be at least 1. Received: 0."),
        ({"eval_batches": 0}, "`eval_batches` must be at least 1. Received: 0."),
        ({"architecture": "huge"}, "Unknown architecture 'huge'"),
        ({"architecture": "./nowhere.json"}, "There is no file"),
        ({"vocab": "nowhere.txt"}, "nowhere.txt could not be read"),
        ({"learning_rate": -1.0}, "`learning_rate` must be ... Received: -1.0."),
    ],
)
def test_wrong_arguments_are_rejected_before_anything_is_written(run, tmp_path, settings, message):
    with raises_input_error(message):
        run(tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_a_data_folder_that_is_not_finished_is_rejected(run, tmp_path):
    folder = make_data_folder(tmp_path / "rows", rows=9, eval_examples=3)
    (folder / "COMPLETED").unlink()
    with raises_input_error("has no file COMPLETED: its job did not finish"):
        run(tmp_path / "run", data=folder)


def test_a_vocabulary_that_did_not_make_the_rows_is_rejected(run, tmp_path):
    (tmp_path / "vocab.txt").write_text("".join(f"{p}\n" for p in [*VOCABULARY.tokens, "w99"]))
    with raises_input_error("made with another vocabulary"):
        run(tmp_path / "run", vocab=tmp_path / "vocab.txt")
    assert not (tmp_path / "run").exists()
    longer = make_data_folder(tmp_path / "data", rows=9, eval_examples=3)
    text = (longer / "vocab.txt").read_text()
    (longer / "vocab.txt").write_text(text + "w99\n")
    with raises_input_error("made with another vocabulary"):
        run(tmp_path / "run", data=longer)


def test_a_run_that_was_given_its_vocabulary_resumes_without_it(
    run, uninterrupted, phases, data, tmp_path
):
    shutil.copytree(uninterrupted, tmp_path / "run")
    recorded = tmp_path / "run" / "run.json"
    before = json.loads(recorded.read_text())
    assert before["settings"]["vocab"] is None
    before["settings"]["vocab"] = str(data / "vocab.txt")
    recorded.write_text(json.dumps(before))
    told = []
    run(tmp_path / "run", **phases, report=told.append)
    assert "is finished already" in told[-1]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"max_position_embeddings": 12}, "up to 16 tokens, but the model has only 12 positions"),
        ({"vocab_size": 24}, "has vocab_size 24, less than the 25 tokens of"),
    ],
)
def test_an_architecture_too_small_for_the_data_is_rejected(
    run, architecture, tmp_path, change, message
):
    config = {**json.loads(architecture.read_text()), **change}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with raises_input_error(message):
        run(tmp_path / "run", architecture=tmp_path / "config.json")


@pytest.mark.parametrize("masking", [pytest.param("static", marks=pytest.mark.slow), "dynamic"])
def test_rows_without_next_sentences_train_masked_tokens_alone(run, tmp_path, masking, capsys):
    folder = make_data_folder(
        tmp_path / "rows", objective="mlm", masking=masking, rows=2000, eval_examples=100
    )
    settings = {"steps": 160, "batch_size": 32, "learning_rate": 1e-2}
    settings |= {"eval_every": 160, "checkpoint_every": 160}
    if masking == "dynamic":
        settings["batch_tokens"] = settings.pop("batch_size") * 16
    metrics = run(tmp_path / "run", data=folder, **settings)
    scores = {"loss", "masked_lm_loss", "masked_lm_accuracy"}
    for part in ("masked", "replaced", "kept"):
        scores |= {f"masked_lm_{part}_loss", f"masked_lm_{part}_accuracy"}
    assert set(metrics["eval"]) == set(metrics["train"]) == scores
    assert metrics["eval_at_start"]["masked_lm_loss"] > metrics["unigram_entropy"]
    assert metrics["eval"]["masked_lm_loss"] < 0.6 * metrics["unigram_entropy"]
    shown = capsys.readouterr().err
    assert "masked-token loss" in shown and "next" not in shown
    for written in ("train", "eval"):
        tags = tags_of(tmp_path / "run" / "logs" / written)
        assert {"masked_lm/loss", "masked_lm/accuracy"} <= tags
        assert not any("next_sentence" in tag for tag in tags)
    assert "masked_lm/loss" in tags_of(tmp_path / "run" / "logs" / "unigram_entropy")
    # The folder is a BertForMaskedLM, and gives the figures that the run reported.
    written = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert written["architectures"] == ["BertForMaskedLM"]
    task = load_task(tmp_path / "run" / "model")
    assert task.encoder.pooler is None
    task.compile_defaults("sgd")
    dataset = task.dataset(DataFolder.open(folder), split="eval", batch_size=7)
    results = task.evaluate(dataset, return_dict=True, verbose=0)
    reported = metrics["eval"]
    assert results["masked_lm_cross_entropy"] == pytest.approx(reported["masked_lm_loss"], rel=1e-4)
    assert results["masked_lm_accuracy"] == pytest.approx(reported["masked_lm_accuracy"], abs=1e-6)


@pytest.mark.usefixtures("eager")
def test_other_settings_are_rejected_and_forced(run, tmp_path):
    folder = make_data_folder(tmp_path / "rows", rows=9, eval_examples=0)
    metrics = run(tmp_path / "run", data=folder, steps=1)
    assert metrics["eval"] is None and metrics["eval_at_start"] is None  # there is no eval split
    assert metrics["train"]["masked_lm_loss"] > 0
    with raises_input_error("settings: steps 1, now 2"):
        run(tmp_path / "run", data=folder, steps=2)
    card = json.loads((folder / "dataset_card.json").read_text())
    (folder / "dataset_card.json").write_text(json.dumps({**card, "seed": 77}))
    with raises_input_error("settings: other content of data"):
        run(tmp_path / "run", data=folder, steps=1)
    assert run(tmp_path / "run", data=folder, steps=2, force=True)["steps"] == 2
