"""Students that learn the answers of a teacher: by the call and by the command."""

import json

import pytest

import keras_bert as kb
from keras_bert.inference.evaluate import evaluate
from tests.checkpoints.conftest import shake
from tests.encoders.every_kind import HEADERS, write_examples
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

WORDS = [f"w{number}" for number in range(9)]
SIZES = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2}


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(WORDS)


def texts(count, *, seed=0):
    rng = make_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(4, 8))) for _ in range(count)]


# Task type -> the arguments of a teacher with random weights, whose answers differ by the words.
TEACHERS = {
    "classifier": {"labels": ["a", "b"]},
    "pair-classifier": {"labels": ["a", "b"]},
    "regression": {},
    "tagger": {"labels": ["O", "B-X", "I-X"]},
    "text-embedding": {"normalize": True},
}


def write_teacher(task_type, tokenizer, folder, **changes):
    cls = kb.tasks.task_class(task_type) if hasattr(kb, "tasks") else None
    from keras_bert.tasks import task_class

    cls = cls or task_class(task_type)
    arguments = {**TEACHERS[task_type], **changes}
    task = cls(make_encoder(tokenizer, **SIZES), tokenizer, max_length=24, **arguments)
    shake(task).save(folder)
    return folder


def config_file(path, **changes):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = {"model_type": "bert", "vocab_size": 200, "intermediate_size": 16, **sizes, **changes}
    path.write_text(json.dumps({"max_position_embeddings": 40, **config}))
    return path


def write_data(path, task_type, of_texts):
    ending = "tsv" if task_type in HEADERS else "txt"
    return write_examples(path / f"labelled.{ending}", task_type, of_texts)


@pytest.mark.parametrize("task_type", TEACHERS)
def test_a_student_is_made_and_its_export_answers_as_predict(task_type, tokenizer, tmp_path):
    teacher = write_teacher(task_type, tokenizer, tmp_path / "teacher")
    data = write_data(tmp_path, task_type, texts(40))
    metrics = kb.distill(
        teacher=teacher,
        data=data,
        architecture=config_file(tmp_path / "config.json"),
        output=tmp_path / "run",
        epochs=2,
        batch_size=8,
    )
    assert metrics["distillation"]["answers"] >= 30
    student = kb.load_task(tmp_path / "run")
    assert student.TASK_TYPE == task_type and student.config.hidden_size == 8
    evaluate(model=tmp_path / "run", data=data)
