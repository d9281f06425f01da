"""`--batch-size auto`, and a memory that is not enough, on devices that pretend to have one."""

import json
import weakref

import keras
import pytest
import tensorflow as tf

from keras_bert.cli.main import main
from keras_bert.training import batch_size
from keras_bert.training.batch_size import largest_batch_size
from keras_bert.training.finetune import finetune
from keras_bert.training.pretrain import pretrain
from keras_bert.training.settings import PretrainSettings
from tests.messages import raises_input_error
from tests.pretraining_folder import VOCABULARY, make_data_folder


@pytest.mark.parametrize(
    "room, most, size, asked",
    [
        (100, 4096, 64, [32, 64, 128]),
        (10, 4096, 8, [32, 16, 8]),
        (1000, 100, 64, [32, 64]),
        (1000, 21, 16, [16]),
        (1, 5, 1, [4, 2, 1]),
        (0, 5, None, [4, 2, 1]),
    ],
)
def test_the_largest_power_of_two_that_fits_is_found_by_trying(room, most, size, asked):
    tried = []
    found = largest_batch_size(lambda size: tried.append(size) or size <= room, most=most)
    assert (found, tried) == (size, asked)


@pytest.fixture
def room_for_eight(monkeypatch):
    """A GPU on which a step of more than eight examples does not fit."""
    plain = keras.Model.fit

    def fit(self, batches, **options):
        inputs, *_ = next(iter(batches))
        if inputs["input_ids"].shape[0] > 8:
            raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
        return plain(self, batches, **options)

    monkeypatch.setattr(keras.Model, "fit", fit)
    monkeypatch.setattr(batch_size, "has_accelerator", lambda: True)


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\nfilm\n")
    lines = [f"{word} film\t{word}\n" for word in ["good", "bad"] * 10]
    (folder / "train.tsv").write_text("".join(["text\tlabel\n", *lines]))
    config = {"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1}
    config |= {"num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16}
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 8}))
    files = {"train": folder / "train.tsv", "dev": folder / "train.tsv"}
    return {**files, "architecture": folder / "config.json", "vocab": folder / "vocab.txt"}


@pytest.fixture(scope="module")
def rows(given, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    make_data_folder(folder / "rows", rows=40, eval_examples=4, objective="mlm")
    config = json.loads(given["architecture"].read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": len(VOCABULARY)}))
    return {"data": folder / "rows", "architecture": folder / "config.json", "steps": 1}


@pytest.mark.usefixtures("room_for_eight", "eager")
def test_fine_tuning_finds_its_batch_size_and_a_run_that_resumes_takes_it(given, tmp_path):
    said = []
    run = {**given, "batch_size": "auto", "epochs": 1, "output": tmp_path / "run"}
    metrics = finetune(**run, report=said.append)
    assert "Training with batches of 8, the largest power of two up to 20 that fits." in said
    assert metrics["steps"] == 3  # of 20 examples
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["batch_size"] == 8
    assert finetune(**run) == metrics


@pytest.mark.usefixtures("room_for_eight", "eager")
def test_pre_training_finds_its_batch_size(rows, tmp_path):
    pretrain(**rows, batch_size="auto", output=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["batch_size"] == 8


@pytest.mark.usefixtures("room_for_eight", "eager")
def test_a_memory_that_is_not_enough_is_a_sentence_with_what_fits(given, tmp_path, capsys):
    command = ["finetune", *(f"--{name}={value}" for name, value in given.items())]
    command += ["--epochs=1", "--output", str(tmp_path / "run")]
    assert main([*command, "--batch-size=20"]) == 2
    said = capsys.readouterr().err
    assert "The memory is not enough for steps of 20. Looking for what fits." in said
    assert said.endswith(
        "keras-bert: The memory of the device is not enough for --batch-size 20. What fits: "
        "--batch-size 5. Or use a shorter --max-length, --recompute or a smaller model.\n"
    )
    assert main([*command, "--batch-size=5"]) == 0  # into the same folder


@pytest.mark.usefixtures("room_for_eight", "eager")
def test_steps_of_pre_training_fit_in_parts_too(rows, tmp_path):
    whole = {**rows, "output": tmp_path / "run"}
    with raises_input_error(
        "not enough for `batch_size` 32. What fits: `batch_size` 8, or `gradient_accumulation` 4. "
        "Or use `recompute` or a smaller model."
    ):
        pretrain(**whole, batch_size=32)
    with raises_input_error("`batch_size` 36. What fits: `batch_size` 4. Or"):
        pretrain(**whole, batch_size=36)
    with raises_input_error("`batch_size` 16 12. What fits: `batch_size` 8 6, or `gradient_ac"):
        pretrain(**{**whole, "data": [rows["data"]] * 2}, batch_size=[16, 12], recompute=True)
    assert pretrain(**whole, batch_size=32, gradient_accumulation=4)["steps"] == 1


@pytest.mark.usefixtures("eager")
def test_what_fits_is_tried_when_the_memory_of_the_run_is_free(given, tmp_path, monkeypatch):
    """No model and no optimizer of it is left."""
    of_runs, alive = [], []

    def fit(self, batches, **options):
        alive.append(sum(model() is not None for model in of_runs))
        of_runs.extend(map(weakref.ref, (self, self.optimizer)))
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")

    monkeypatch.setattr(keras.Model, "fit", fit)
    monkeypatch.setattr(batch_size, "has_accelerator", lambda: True)
    with raises_input_error("not enough for a step of one example. Use a shorter `max_length`, "):
        finetune(**given, batch_size=8, output=tmp_path / "run")
    assert alive == [0] * 4  # 8, 4, 2, 1


@pytest.mark.usefixtures("room_for_eight", "eager")
def test_where_nothing_can_be_tried_the_sentence_says_so(given, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_size, "has_accelerator", lambda: False)
    with raises_input_error(
        "The memory of the device is not enough for a step. Use a smaller `batch_size`, such as "
        "10, `batch_size` auto, which finds the largest that fits on a GPU or TPU, a shorter "
        "`max_length`, `recompute` or a smaller model."
    ):
        finetune(**given, batch_size=20, output=tmp_path / "run")


def test_auto_is_for_devices_that_say_that_they_are_full(given, tmp_path):
    with raises_input_error("`batch_size` auto needs a GPU or TPU, ... Give a number."):
        finetune(**given, batch_size="auto", output=tmp_path / "run")
    with raises_input_error("is one size for all phases"):
        PretrainSettings(data=["a", "b"], batch_size=["auto", 8], steps=1, output="c")
    with raises_input_error("Give a number with `gradient_accumulation`"):
        PretrainSettings(data="a", batch_size="auto", gradient_accumulation=2, steps=1, output="c")
    with raises_input_error("`batch_size` is 'large'. It should be a whole number"):
        finetune(**given, batch_size="large", output=tmp_path / "run")
