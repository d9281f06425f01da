"""The line "Next: …" of every command: a command that takes what was just made."""

import ast
import dataclasses
import json
import re
import shlex
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert.base.settings import checked
from keras_bert.checkpoints import save_folder
from keras_bert.cli.command import as_run_here, read_flags
from keras_bert.cli.data_commands import new_encoder
from keras_bert.cli.main import main, parse
from keras_bert.cli.overview import start_of_pretraining
from keras_bert.records import DataFolder
from keras_bert.tasks import finetuned_task_types
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS, SpecialTokens
from keras_bert.training.finetuning_settings import finetune_settings
from tests import pretraining_folder
from tests.small_model import make_encoder

WORDS = pretraining_folder.VOCABULARY
SUBWORDS = WordPieceVocabulary([*SPECIAL_TOKENS, "a", "##b"], counts=np.ones(7, np.int64))
TRAINED = {"steps": 1, "parameters": 9, "seconds": 1.0}
FINETUNED = {**TRAINED, "dev": {"examples": 2, "accuracy": 0.5, "macro_f1": 0.5, "matthews": 0.0}}
SHARDS = [{"rows": 1}]
SENSES = SimpleNamespace(
    metrics={
        **{"accuracy": {"layer-2": 0.5}, "most_frequent_sense": 0.5, "layers": "layer-2"},
        **{"examples": 2, "senses": 2, "words": 1},
    }
)
LEARNED = SimpleNamespace(skipped_lines={}, vocabulary=SUBWORDS, words=7, distinct_words=2)
SHARDS_OF = (
    "import json; from apache_beam.io.filesystems import FileSystems as files; "
    'print(*json.load(files.open("gs://b/out.jsonl/shards.json")), sep=chr(10))'
)
EMBED, FINETUNE = "embed --model {} --data FILE --output vectors.parquet", "finetune --task {} "
FINETUNE += "--model 'my model' --train FILE --output DIR"
EXPORT = "export --model 'my model' --output savedmodels/NAME"
CONVERT = "convert --input a --output 'my model'"

# A command, the function that it calls, what that function returns, and the next step.
STEPS = [
    (
        "vocab --input 'a b.jsonl' *.txt --output v --size 7 --text-field body --bad-lines skip "
        "--cased",
        "data_gen.vocabulary.learn_vocabulary",
        LEARNED,
        "pretraining-data --input 'a b.jsonl' '*.txt' --vocab v --output data --text-field body "
        "--bad-lines skip --cased",
    ),
    (
        "vocab --input a --output v --size 7",
        "data_gen.vocabulary.learn_vocabulary",
        LEARNED,
        "pretraining-data --input a --vocab v --output data",
    ),
    (
        "finetune --model m --train t --output 'my model'",
        "keras_bert.training.finetune.finetune",
        FINETUNED,
        "predict --model 'my model' --data FILE",
    ),
    (
        "evaluate --model 'my model' --data t",
        "keras_bert.inference.evaluate.evaluate",
        {"accuracy": 0.5},
        EXPORT,
    ),
    (
        "evaluate --model 'my model' --data .",  # a folder, of pre-training data
        "keras_bert.inference.evaluate.evaluate",
        {"masked_lm_loss": 0.5},
        FINETUNE.format("classifier"),
    ),
    (
        "evaluate --model 'my model' --data .",
        "keras_bert.inference.evaluate.evaluate",
        {"causal_lm_loss": 0.5},
        "generate --model 'my model' --prompt …, or keras-bert " + FINETUNE.format("classifier"),
    ),
    (
        "evaluate --model 'my model' --data .",
        "keras_bert.inference.evaluate.evaluate",
        {"cbow_loss": 0.5},
        "nearest --model 'my model' --word WORD, or keras-bert " + FINETUNE.format("classifier"),
    ),
    (
        "compare --models m 'my model' --data t",
        "keras_bert.inference.compare.compare",
        {"metric": "f1", "metrics": {}, "only_old": [], "only_new": [], "changed": {}},
        EXPORT,
    ),
    (
        "predict --model 'my model' --text a",
        "keras_bert.inference.predict.predict",
        [{"label": "x"}],
        EXPORT,
    ),
    (
        "predict --model 'my model' --data t --output o.csv",
        "keras_bert.inference.predict.predict",
        1,
        EXPORT,
    ),
    (
        "predict --model m --data t --output gs://b/out.jsonl --runner=FnApiRunner",
        "data_gen.inference.predict_files",
        SHARDS,
        f"python -c '{SHARDS_OF}'",
    ),
    (
        "zero-shot --model 'my model' --text a --labels x --labels y",
        "keras_bert.inference.zero_shot.zero_shot",
        [{"label": "x"}],
        FINETUNE.format("classifier"),
    ),
    (
        "embed --model m --data t --output v.parquet",
        "keras_bert.inference.embed_to_file.embed_to_file",
        {"texts": 1, "tokens": 1, "width": 8},
        "python -c 'import pyarrow.parquet as p; print(p.read_table(\"v.parquet\").slice(0, 1))'",
    ),
    (
        "fill-mask --model 'my model' --text '[MASK]'",
        "keras_bert.inference.fill_mask.fill_mask",
        [[("a", 0.5)]],
        FINETUNE.format("classifier"),
    ),
    (
        "follows --model 'my model' --text-a a --text-b b",
        "keras_bert.inference.fill_mask.follows",
        [("a", "b", 0.5)],
        FINETUNE.format("pair-classifier"),
    ),
    (
        "surprisal --model 'my model' --text a --perplexity",
        "keras_bert.inference.surprisal.pseudo_perplexity",
        2.0,
        FINETUNE.format("classifier"),
    ),
    (
        "generate --model 'my model' --prompt a --prompt b",
        "keras_bert.inference.generate.generate",
        [SimpleNamespace(prompt="a", text="b")],
        EXPORT,
    ),
    (
        "senses --model 'my model' --train 'a t.csv' --header yes --keep-na",
        "keras_bert.inference.senses.senses",
        SENSES,
        "senses --model 'my model' --train 'a t.csv' --header yes --keep-na --layers layer-2 "
        "--output NAME.safetensors",
    ),
    (
        "senses --model 'my model' --train t --output s.safetensors",
        "keras_bert.inference.senses.senses",
        SENSES,
        "senses --model 'my model' --predict s.safetensors --text …",
    ),
    (
        "nearest --model 'my model' --word a",
        "keras_bert.inference.nearest.nearest",
        [("b", 0.5)],
        FINETUNE.format("classifier"),
    ),
    *(
        (
            f"{CONVERT} --to {to}",
            "keras_bert.checkpoints.convert.convert",
            {"wrote": "a", "found": "b", "left_out": []},
            step,
        )
        for to, step in (
            ("huggingface", EMBED.format("'my model'")),
            ("allennlp", EMBED.format("'my model'")),
            ("glove", "nearest --model 'my model' --word WORD"),
            (
                "keras-nlp",
                "python -c 'import keras_nlp; "
                'keras_nlp.models.BertBackbone.from_preset("my model").summary()\'',
            ),
        )
    ),
    (
        "push --model m --to hf://me/spam --revision v2",
        "keras_bert.checkpoints.convert.push",
        "address",
        EMBED.format("hf://me/spam@v2"),
    ),
]


def next_steps(printed):
    """The commands of the line "Next: …", as lists of words; each one parses."""
    (line,) = [line for line in printed.splitlines() if line.startswith("Next: ")]
    commands = [shlex.split(one) for one in line.removeprefix("Next: ").split(", or ")]
    for program, *words in commands:
        if program == "keras-bert":
            read_flags(parse(words))
        else:
            assert program == "python" and ast.parse(words[1])
    return commands


@pytest.mark.parametrize(("command", "function", "result", "step"), STEPS)
def test_the_next_step_takes_what_was_made(
    command, function, result, step, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(function, lambda *_, **__: result)
    monkeypatch.setattr("keras_bert.cli.training_commands.draw", lambda output: None)
    monkeypatch.setattr("keras_bert.cli.training_commands._print_tensorboard", lambda logs: None)
    assert main(shlex.split(command)) == 0
    step = step if step.startswith("python") else f"keras-bert {step}"
    assert next_steps("".join(capsys.readouterr())) == list(map(shlex.split, step.split(", or ")))


@pytest.mark.parametrize("task", finetuned_task_types())
def test_the_next_step_after_a_model_of_each_task_type(task, tmp_path, monkeypatch, capsys):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"keras_bert": {"task": task}}))
    result = {"wrote": "a", "found": "b", "left_out": []}
    monkeypatch.setattr("keras_bert.checkpoints.convert.convert", lambda **_: result)
    assert main(["convert", "--input", "a", "--output", str(model)]) == 0
    expected = ["keras-bert", "predict", "--model", str(model), "--data", "FILE"]
    assert next_steps(capsys.readouterr().out) == [expected]


def card_of(objective, length=128, special=None):
    special = SpecialTokens(mask="[MASK]") if special is None else special
    return SimpleNamespace(objective=objective, max_length=length, special_tokens=special)


def test_a_new_encoder_takes_the_examples_and_the_vocabulary():
    assert new_encoder(card_of("mlm-nsp", 512), SUBWORDS) == "--architecture tiny"
    assert new_encoder(card_of("mlm-nsp", 513), SUBWORDS) == (
        "--architecture CONFIG_OF_513_POSITIONS.json"
    )
    for objective in ("mlm", "span"):
        assert new_encoder(card_of(objective, 513), SUBWORDS) == "--architecture modern-tiny"
    assert new_encoder(card_of("mlm", 513), WORDS) == "--architecture static"
    without_mask = card_of("mlm", special=SpecialTokens(eos="</s>"))
    assert new_encoder(without_mask, SUBWORDS) == "--architecture tiny --objective causal-lm"


CONTINUED = ["--model", "my model", "--learning-rate", "5e-5"]
NEW = ["--architecture", "static"]
# Of a data folder, of a model with its vocabulary, and the start of pre-training.
MODELS = [
    ({}, {}, CONTINUED),
    ({"objective": "mlm"}, {"model_type": "distilbert"}, CONTINUED),
    ({"objective": "mlm-nsp"}, {"model_type": "distilbert"}, NEW),
    ({"max_length": 41}, {}, NEW),
    ({"lowercase": False}, {}, NEW),
]


@pytest.mark.parametrize(("data", "model", "expected"), MODELS)
def test_data_with_the_vocabulary_of_a_model_continue_it_where_they_can(
    data, model, expected, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    counters = {"bytes_of_text": 9, "documents": 1}
    folder = tmp_path / "data"
    pretraining_folder.make_data_folder(folder, rows=9, eval_examples=0, counters=counters, **data)
    tokenizer = Tokenizer(WORDS, lowercase=True)
    save_folder(make_encoder(tokenizer, **model), tokenizer, tmp_path / "my model")
    card = DataFolder.open("data").card
    monkeypatch.setattr("data_gen.pretraining_data.pretraining_data", lambda **_: card)

    def start(*flags):
        assert main([*flags, "--verbose"]) == 0
        *_, pretrain = next_steps(capsys.readouterr().out)
        assert pretrain[:4] == ["keras-bert", "pretrain", "--data", "data"]
        return pretrain[4:-4]

    job = ["pretraining-data", "--input", "a", "--output", "data", "--vocab"]
    assert start(*job, "my model") == start(*job, "my model/vocab.txt") == expected
    assert start(*job, "data") == start("inspect", "data") == NEW
    assert start_of_pretraining("data") == "--architecture static"
    assert re.fullmatch("--architecture mini --learning-rate .*", start_of_pretraining(None))


@pytest.mark.parametrize(
    ("started", "is_on_path", "expected"),
    [
        (".venv/bin/keras-bert", False, ".venv/bin/keras-bert export; .venv/bin/python a.py"),
        ("{}/.venv/bin/keras-bert", True, "keras-bert export; python a.py"),
        (
            "pkg/keras_bert/__main__.py",
            False,
            ".venv/bin/python -m keras_bert export; .venv/bin/python a.py",
        ),
        ("pkg/keras_bert/__main__.py", True, "keras-bert export; python a.py"),
        ("tests/__main__.py", False, "keras-bert export; python a.py"),
    ],
)
def test_the_next_step_runs_as_the_command_was_started(
    started, is_on_path, expected, tmp_path, monkeypatch
):
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("keras-bert", "python"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [started.format(tmp_path)])
    monkeypatch.setattr("sys.executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder) if is_on_path else "/nowhere")
    assert as_run_here("keras-bert export; python a.py") == expected
    untouched = "my/keras-bert runs/python3"
    assert as_run_here(untouched) == untouched


@pytest.mark.parametrize("task", finetuned_task_types())
def test_every_line_of_a_settings_file_is_a_valid_value(task, tmp_path):
    path = tmp_path / "a.toml"
    assert main(["init", "--task", task, "--output", str(path)]) == 0
    lines = path.read_text().splitlines()
    assert "…" not in "".join(line.partition(" = ")[2] for line in lines if " = " in line)
    fields = {field.name: field for field in dataclasses.fields(finetune_settings(task))}
    for line in lines:
        name, equals, value = line.removeprefix("# ").partition(" = ")
        if line.startswith("# ") and equals and name in fields:
            checked(fields[name], tomllib.loads(line.removeprefix("# "))[name])
    assert not any(line.endswith("-") for line in lines)  # a name that is broken at its hyphen
