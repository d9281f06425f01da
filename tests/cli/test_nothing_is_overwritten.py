"""No command overwrites what a user has: all commands and outputs, by hashes before and after."""

import hashlib
import os
import shutil

import pyarrow
import pytest
from pyarrow import parquet
from safetensors.numpy import save_file

import keras_bert as kb
from keras_bert.base.files import write_json
from keras_bert.checkpoints import save_folder
from keras_bert.cli.main import COMMANDS, main
from tests.small_model import make_encoder, make_tokenizer

pytestmark = pytest.mark.usefixtures("eager")
TEXTS = "text,label\n" + "a b,ham\nb,spam\n" * 6


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folders: an encoder, a classifier, a masked LM, and static vectors."""
    folder, tokenizer = tmp_path_factory.mktemp("models"), make_tokenizer()
    encoder = make_encoder(tokenizer)
    save_folder(encoder, tokenizer, folder / "encoder")
    task = kb.Classifier(encoder, tokenizer, labels=["ham", "spam"])
    save_folder(task, tokenizer, folder / "task")
    task = kb.TextEmbedder(encoder, tokenizer)
    save_folder(task, tokenizer, folder / "embedder")
    task = kb.FillMask(make_encoder(tokenizer, pooler=False), tokenizer)
    save_folder(task, tokenizer, folder / "mlm")
    config = kb.StaticConfig(vocab_size=len(tokenizer), hidden_size=3)
    save_folder(kb.StaticEncoder(config), tokenizer, folder / "static")
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch, models):
    """A working folder with models, files to read, and a user's file for each type of output."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(models, tmp_path / "m")
    for name, text in {
        "in.csv": TEXTS,
        "in.txt": "a b\nb a\n" * 20,
        "mine.csv": "id,label,score,tags,answer\n1,x,2,y,z\n",
        "pairs.csv": "anchor,positive\na,a b\nb,b a\n",
        "mine.jsonl": '{"label": "x"}\n',
        "mine.txt": "the 1 2 3\nof 4 5 6\n",
        "mine.toml": '[project]\nname = "mine"\n',
        "vocab.txt": "".join(f"{token}\n" for token in make_tokenizer().vocabulary.tokens),
        "others.counts.tsv": "a\t1\n",
        "mine.tflite": "mine",
        "mine.png": "\x89PNG mine",
    }.items():
        (tmp_path / name).write_text(text)
    parquet.write_table(pyarrow.table({"text": ["a"], "label": ["x"]}), tmp_path / "mine.parquet")
    save_file({}, tmp_path / "mine.safetensors", metadata={"whose": "mine"})
    return tmp_path


def hashes(folder):
    """{path: SHA-256} of all files, those behind links too."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def run_folder(path, command, *more):
    """The folder of a finished run, with further files."""
    for name in (
        "metrics.json",
        "model/config.json",
        "checkpoints/step-000000001.safetensors",
        *more,
    ):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("{}")
    write_json(path / "run.json", {"command": command, "settings": {}, "inputs": {}})


def finished(command, *more):
    return lambda here: run_folder(here / "out", command, *more)


def linked(name, to):
    return lambda here: (here / name).symlink_to(to)


def hard_linked(name, to):
    return lambda here: os.link(here / to, here / name)


def embedded(here):
    """A file of `embed`."""
    kb.embed_to_file(model="m/encoder", data="in.txt", output="own.parquet")


def indexed(here):
    """An index of texts."""
    kb.Index.build("m/embedder", "in.txt", output="i")


def adapter(here):
    """An adapter whose base model is in an output."""
    run_folder(here / "out", "finetune")
    shutil.rmtree(here / "out" / "model")
    shutil.move(here / "m" / "encoder", here / "out" / "model")
    encoder, tokenizer = kb.load(here / "out" / "model")
    encoder.enable_lora(2)
    kb.checkpoints.save_adapter(encoder, tokenizer, here / "lora", base=here / "out" / "model")


def job_output(here):
    """The output of a job on many files."""
    (here / "out.jsonl").mkdir()
    (here / "out.jsonl" / "part-00000-of-00001.jsonl").write_text('{"text": "a"}\n')
    (here / "out.jsonl" / "COMPLETED").write_text("")


def vocabulary_alone(here):
    (here / "own").mkdir()
    shutil.copy("vocab.txt", "own/vocab.txt")


def quickstart_of_another(here):
    (here / "out" / "text").mkdir(parents=True)
    (here / "out" / "text" / "mine.txt").write_text("mine")
    write_json(here / "out" / "settings.json", {"command": "quickstart", "seed": 1})


MINE = "mine-negatives --index i --data pairs.csv"
PREDICT = "predict --model m/task --data in.csv --force --output"
COMPARE = "compare --models m/task m/task --samples 100 --data in.csv --force --output"
FINETUNE = "finetune --epochs 1 --train in.csv --dev in.csv --output out --force --model"
SWEEP = "sweep --train in.csv --dev in.csv --output out --force --model m/encoder"
PRETRAIN = "pretrain --steps 1 --output out --force --data"
DISTILL = "distill --teacher m/embedder --data in.txt --keep-layers 0 --output out --force"
GLUE = "glue --data . --output out --force --model m/encoder"
VOCAB = "vocab --size 99 --force --input"
DATA = "pretraining-data --vocab vocab.txt --force --input"
# (the command line, what is there before, a part of the message).
OVERWRITES = [
    *(
        (f"{PREDICT} mine.{ending}", None, "did not write")
        for ending in ("csv", "jsonl", "parquet")
    ),
    (f"{PREDICT} f.csv", lambda here: (here / "f.csv").mkdir(), "is a folder"),
    (f"{PREDICT} in.csv", None, "also the input"),
    (f"{PREDICT} ./m/../in.csv", None, "also the input"),
    (f"{PREDICT} link.csv", linked("link.csv", "in.csv"), "also the input"),
    (f"{PREDICT} hard.csv", hard_linked("hard.csv", "in.csv"), "also the input"),
    (f"{PREDICT} dangling.csv", linked("dangling.csv", "nowhere.csv"), "does not exist"),
    (
        "predict --model m/task --data out.jsonl/*.jsonl --output out.jsonl --force "
        "--runner DirectRunner",
        job_output,
        "also the input",
    ),
    ("embed --model m/encoder --data in.txt --force --output mine.parquet", None, "did not write"),
    (
        "embed --model m/encoder --data own.parquet --force --output own.parquet",
        embedded,
        "also the",
    ),
    (f"{PREDICT} own.parquet", embedded, "did not write"),
    (f"{COMPARE} mine.parquet", None, "did not write"),
    (f"{COMPARE} mine.csv", None, "did not write"),
    (f"{COMPARE} in.csv", None, "also the input"),
    ("senses --model m/encoder --train in.csv --output mine.safetensors", None, "did not write"),
    (
        "senses --model m/encoder --train in.csv --output m/encoder/model.safetensors",
        None,
        "did not write",
    ),
    ("index --model m/embedder --data in.txt --output m --force", None, "also the input"),
    ("index --model m/embedder --data in.txt --output m/embedder --force", None, "also the input"),
    ("index --index i --format qdrant --output mine.jsonl --force", indexed, "did not write"),
    ("search i a --output mine.csv --force", indexed, "did not write"),
    ("search i a --output mine.parquet --force", indexed, "did not write"),
    (f"{MINE} --output mine.csv --force", indexed, "did not write"),
    (f"{MINE} --output mine.parquet --force", indexed, "did not write"),
    (f"{MINE} --output pairs.csv --force", None, "also the input"),
    ("surprisal --model m/mlm --text a --picture mine.png", None, "did not write"),
    ("compare --models m/task m/task --data in.csv --picture mine.png", None, "did not write"),
    ("init --output mine.toml --force", None, "did not write"),
    ("convert --input m/static --output mine.txt --to glove --force", None, "did not write"),
    ("convert --input mine.txt --output mine.txt --to glove --force", None, "also the input"),
    (
        "convert --input mine.txt --output hard.txt --to glove --force",
        hard_linked("hard.txt", "mine.txt"),
        "also the",
    ),
    ("convert --input m/encoder --output m --force", None, "also the input"),
    (
        "convert --input m/encoder --output out --force",
        finished("finetune"),
        "holds something else",
    ),
    ("convert --input lora --output out/model --force", adapter, "also the input"),
    ("export --model m/task --output m", None, "contains something else"),
    ("export --model m/task --output mine.tflite", None, "exists"),
    *(
        (f"{FINETUNE} m/encoder", finished("finetune", name), f"contains {name}")
        for name in (
            *("model/notes.txt", "pictures/mine.png", "logs/mine.txt", "adapter/a/b.txt"),
            *("checkpoints/mine", "ensemble/1/mine.txt", "submission/mine.tsv"),
            *("runs/seed-0/model/mine.txt", "runs/mine.txt"),
        )
    ),
    (f"{FINETUNE} m/encoder", finished("pretrain"), "did not write"),
    (DISTILL, finished("distill", "runs/mine.txt"), "contains runs/mine.txt"),
    (DISTILL, finished("finetune"), "did not write"),
    ("distill --static --teacher m/embedder --output m --force", None, "also the input"),
    ("distill --static --teacher m/embedder --output mine.csv --force", None, "mine.csv"),
    (f"{FINETUNE} m/encoder --baseline out", finished("finetune"), "also the input"),
    (f"{FINETUNE} out", finished("finetune"), "also the input"),
    (
        f"{FINETUNE} link",
        lambda here: (finished("finetune")(here), linked("link", "out")(here)),
        "also",
    ),
    (f"{FINETUNE} lora", adapter, "also the input"),
    (
        f"{FINETUNE} m/encoder --dev out/in.csv",
        lambda here: (finished("finetune")(here), shutil.copy("in.csv", "out/in.csv")),
        "also the input",
    ),
    (
        f"{FINETUNE} m/encoder".replace("--train in.csv", "--train out/*.csv"),
        lambda here: (finished("finetune")(here), shutil.copy("in.csv", "out/in.csv")),
        "also the input",
    ),
    (
        FINETUNE.replace("--model", "--architecture out/model/config.json --vocab vocab.txt"),
        finished("finetune"),
        "also the input",
    ),
    (SWEEP, finished("sweep", "runs/a/pictures/mine.png"), "contains runs/a/pictures/mine.png"),
    (f"{PRETRAIN} m --vocab vocab.txt", finished("pretrain", "model/mine"), "contains model/mine"),
    (f"{PRETRAIN} out/model", finished("pretrain"), "also the input"),
    (GLUE, finished("glue", "runs/RTE/runs/x/model/mine"), "model/mine, which glue did not"),
    (f"{VOCAB} in.txt --output mine.txt", None, "did not write"),
    (f"{VOCAB} in.txt --output vocab.txt", None, "did not write"),
    (f"{VOCAB} in.txt --output others.txt", None, "did not write"),
    (f"{VOCAB} *.txt --output in.txt", None, "also the input"),
    (f"{VOCAB} ** --output ./in.txt", None, "also the input"),
    (f"{VOCAB} in.txt --algorithm bpe --output m", None, "something else"),
    (f"{DATA} in.txt --output m/task", None, "other files"),
    (f"{DATA} in.txt --output own", vocabulary_alone, "other files, such as vocab.txt"),
    (f"{DATA} m/task/*.txt --output m/task", None, "also the input"),
    ("quickstart --output out --force", quickstart_of_another, "contains text/mine.txt"),
]
# Commands that write no file that the user names, but to standard output, to a hub, or nowhere.
WRITE_NOTHING = {
    *("evaluate", "zero-shot", "fill-mask", "follows", "generate", "nearest"),
    *("serve", "ask", "push", "inspect", "doctor", "completion"),
}


def test_all_commands_are_in_the_table():
    tested = {line.split()[0] for line, _, _ in OVERWRITES}
    assert tested.isdisjoint(WRITE_NOTHING) and tested | WRITE_NOTHING == {*COMMANDS}


@pytest.mark.parametrize(("line", "arrange", "message"), OVERWRITES, ids=[x[0] for x in OVERWRITES])
def test_what_a_user_has_is_not_overwritten(here, capsys, line, arrange, message):
    if arrange is not None:
        arrange(here)
    before = hashes(here)
    assert main(line.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    after = hashes(here)
    assert {path: after.get(path) for path in before} == before


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_what_a_command_wrote_is_replaced(here, ending):
    command = [*PREDICT.split(), f"out.{ending}"]
    assert main(command) == 0
    (here / "in.csv").write_text(TEXTS.replace("a b", "b b"))
    before = hashes(here)
    assert main(command) == 0
    assert hashes(here)[f"out.{ending}"] != before[f"out.{ending}"]


def test_files_with_a_mark_are_replaced(here):
    for line in (
        "init --output own.toml --force",
        "convert --input m/static --output own.txt --to glove --force",
        "convert --input m/encoder --output own --to huggingface --force",
        "embed --model m/encoder --data in.txt --output own.parquet --force",
        "surprisal --model m/mlm --text a --picture own.png",
    ):
        for _ in range(2):
            assert main(line.split()) == 0
    (here / "own" / "notes.txt").write_text("mine")
    assert main("convert --input m/encoder --output own --force".split()) == 2


def test_an_export_keeps_the_edited_files_of_a_server(here, capsys):
    export = "export --encoder --tokens none --model m/encoder --output savedmodels/a".split()
    assert main(export) == 0
    for name in ("models.config", "monitoring.config"):
        path = here / "savedmodels" / name
        path.write_text(f"# mine\n{path.read_text()}")
    before = hashes(here)
    assert main(export) == 0
    assert "models.config is not as an export writes it" in capsys.readouterr().out
    after = hashes(here)
    assert {path: after.get(path) for path in before} == before
