"""The program of a training step on a GPU, lowered on a machine without one."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.checkpoints import save_folder
from keras_bert.layers.kernels.program import for_gpu
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.tagging.tagger import Tagger
from keras_bert.training import finetuning_task
from keras_bert.training.finetune import finetune
from keras_bert.training.finetuning_task import for_xla
from tests.small_model import make_encoder, make_tokenizer
from tests.step_program import (
    VOCABULARY,
    batches,
    check_float16,
    float32_products,
    lowered_step,
    make_task,
    most_logits,
    scatters,
)

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_jitted_step_of_tensorflow_has_nothing_slow(is_causal):
    text = lowered_step(make_task(dropout=0.1, is_causal=is_causal, layers=1))
    assert scatters(text) == ()
    assert float32_products(text, VOCABULARY) == []
    assert most_logits(text, VOCABULARY) <= 1024


def test_a_float16_step_scales_its_loss():
    check_float16(jit_compile=False)


@pytest.mark.slow
def test_a_jitted_step_has_the_losses_of_the_plain_form_whatever_it_knows_of_shapes():
    """Without the sizes, as of batches of several shapes, the loss is not computed by blocks."""

    def loss(shape):
        task = make_task("float32", dropout=0.1, layers=1)
        batch = batches(task)
        signature = tf.nest.map_structure(lambda a: tf.TensorSpec(shape or a.shape, a.dtype), batch)
        dataset = tf.data.Dataset.from_generator(lambda: [batch] * 3, output_signature=signature)
        return task.fit(dataset, verbose=0).history["loss"]

    plain = loss(shape=None)
    with for_gpu():
        np.testing.assert_allclose(loss(shape=None), plain, atol=1e-5)
        np.testing.assert_allclose(loss(shape=(None, None)), plain, atol=1e-5)


def texts_of_lengths(lengths):
    return [(" ".join(["good", "film"][i % 2] for i in range(n)), "ab"[n % 2]) for n in lengths]


def test_fine_tuning_is_compiled_for_a_gpu_where_it_is_long_enough(monkeypatch):
    tokenizer = make_tokenizer(["good", "film"])
    task = Classifier(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, labels=["a", "b"])
    examples = list(task.read(texts_of_lengths([1, 3, 9, 15, 20, 31, 35, 36, 37])))
    sequences = task.features(examples, labelled=True)
    options = {"epochs": 2, "steps_per_epoch": 3}
    tokens = 2 * int(sequences.lengths.sum())
    assert for_xla(task, sequences, **options) is None
    monkeypatch.setattr(finetuning_task, "_TOKENS_PER_PROGRAM", tokens // 3)
    assert for_xla(task, sequences, **options) is None  # on a CPU
    with for_gpu():
        few = for_xla(task, sequences, **options)
        assert for_xla(task, sequences, epochs=1, steps_per_epoch=3) is None
        assert for_xla(task, sequences, epochs=2, steps_per_epoch=2) is None  # two sizes of batches
        tagger = Tagger(task.encoder, tokenizer, labels=["O", "B-X", "I-X"], crf=True)
        assert for_xla(tagger, sequences, **options) is None
    np.testing.assert_array_equal(few.padded_lengths, [16, 16, 16, 32, 32, 40, 40, 40, 40])
    numbers = np.array([0, 3], "int32")
    (inputs, _), (plain, _) = few.batch(numbers), sequences.batch(numbers)
    assert inputs["input_ids"].shape == (2, 32) and plain["input_ids"].shape == (2, 24)
    np.testing.assert_array_equal(inputs["input_ids"][:, :24], plain["input_ids"])


@pytest.mark.slow
def test_a_compiled_fine_tuning_has_the_losses_of_the_plain_one(tmp_path, monkeypatch):
    tokenizer = make_tokenizer(["good", "film"])
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}  # by shapes
    save_folder(make_encoder(tokenizer, **dropout), tokenizer, tmp_path / "model")
    rows = "".join(f"{text}\t{label}\n" for text, label in texts_of_lengths([1, 2, 9, 10] * 2))
    (tmp_path / "train.tsv").write_text(f"text\tlabel\n{rows}")
    files = {name: tmp_path / "train.tsv" for name in ("train", "dev")}
    given = {**files, "model": tmp_path / "model", "batch_size": 4, "epochs": 1}
    plain = finetune(**given, output=tmp_path / "plain")
    monkeypatch.setattr(finetuning_task, "_TOKENS_PER_PROGRAM", 1)
    compiled, compile_task = [], keras.Model.compile

    def compile_noted(self, *arguments, **options):
        compiled.append(options["jit_compile"])
        compile_task(self, *arguments, **options)

    monkeypatch.setattr(keras.Model, "compile", compile_noted)
    with for_gpu():
        fast = finetune(**given, output=tmp_path / "fast")
    assert compiled == [True]
    losses = [[r["train"]["loss"] for r in run["history"]] for run in (plain, fast)]
    np.testing.assert_allclose(*losses, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["not slow", "slow"])
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None,
    reason="NOT TESTED on the JAX backend: jax is not installed",
)
def test_a_step_on_jax_has_nothing_slow_and_the_same_losses(chosen):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", chosen]
    run = subprocess.run(
        [*command, "-p", "tests.no_tensorflow", "tests/lowering_on_jax.py"],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_backend_optimization_level=0",
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert "passed" in run.stdout and "skipped" not in run.stdout, run.stdout[-2000:]
