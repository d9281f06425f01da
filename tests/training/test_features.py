"""Training on stored features: what `--freeze-encoder` computes, read from a file of `embed`."""

import functools
import json
import shlex

import keras
import numpy as np
import pytest
from pyarrow import parquet
from safetensors.numpy import load_file

from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.cli.main import main
from keras_bert.exports.saved_model import export
from keras_bert.inference.embed_to_file import FeaturesFile, embed_to_file
from keras_bert.inference.evaluate import evaluate
from keras_bert.training.finetune import finetune, sweep
from keras_bert.training.starting_point import StartingPoint
from tests.eagerly import eagerly
from tests.messages import says
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied

WORDS = "film plot cast story good great bad dull Paris Rome Anna Paul".split()
KINDS = ["classifier", "pair-classifier", "regression", "tagger"]


def lines_of(kind, count, seed):
    """Labelled lines of a kind in which a word gives away the label."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        first, second = (
            [str(word) for word in rng.choice(WORDS[:4], rng.integers(1, 6))] for _ in range(2)
        )
        is_good = number % 2 == 0
        first.insert(0, str(rng.choice(WORDS[4:6] if is_good else WORDS[6:8])))
        if kind == "tagger":
            names = [str(rng.choice(WORDS[8:]))]
            tags = ["O"] * len(first) + ["B-LOC" if names[0] in WORDS[8:10] else "B-PER"]
            pairs = zip([*first, *names], tags, strict=True)
            yield "".join(f"{word}\t{tag}\n" for word, tag in pairs) + "\n"
        else:
            texts = [" ".join(first), " ".join(second)][: 1 if kind == "classifier" else 2]
            label = ("good", "bad")[number % 2] if kind != "regression" else str(number % 2)
            yield "\t".join([*texts, label]) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of all kinds, and a model with dropout."""
    folder = tmp_path_factory.mktemp("features")
    for kind in KINDS:
        for name, count in (("train", 24), ("dev", 10)):
            lines = lines_of(kind, count, seed=count)
            (folder / f"{kind}-{name}.tsv").write_text("".join(lines))
    tokenizer = make_tokenizer(WORDS)
    save_folder(make_encoder(tokenizer, num_hidden_layers=4), tokenizer, folder / "model")
    return folder


@pytest.fixture(scope="module")
def arguments(folder):
    """A function from a kind and its settings to the arguments of a run without an output."""

    def of(kind, **options):
        return {
            "task": kind,
            "model": folder / "model",
            "train": folder / f"{kind}-train.tsv",
            "dev": folder / f"{kind}-dev.tsv",
            "max_length": 24,
            "batch_size": 8,
            "learning_rate": 0.02,
            "epochs": 2,
            "checkpoint_every": 2,
            "keep": "last",
            "deterministic": True,
            **options,
        }

    return of


@pytest.fixture(scope="module")
def features(folder, tmp_path_factory):
    """A function from a kind and settings of `embed` to the file, written once."""

    @functools.cache
    def of(kind, ending="parquet", **options):
        output = tmp_path_factory.mktemp("stored") / f"features.{ending}"
        train = folder / f"{kind}-train.tsv"
        given = {"task": kind, "max_length": 24, **options}
        embed_to_file(model=folder / "model", data=train, output=output, **given)
        return output

    return of


def weights(output):
    return load_file(output / "model" / "model.safetensors")


@pytest.mark.parametrize(
    ("kind", "ending", "options"),
    [
        ("classifier", "parquet", {}),
        ("classifier", "npz", {"pooling": "mean", "layers": "concat-last-4", "max_length": 5}),
        ("classifier", "npz", {"pooling": "both", "train_fraction": 15.0}),
        ("pair-classifier", "npz", {}),
        ("pair-classifier", "parquet", {"pooling": "both", "max_length": 7}),
        ("regression", "parquet", {"pooling": "mean", "layers": "layer-2"}),
        ("tagger", "npz", {}),
        ("tagger", "parquet", {"crf": True, "label_subwords": "last", "train_fraction": 0.5}),
    ],
)
def test_trains_what_a_frozen_encoder_trains(
    kind, ending, options, folder, arguments, features, tmp_path
):
    """The stored vectors were computed in other batches, which changes the sums by rounding."""
    of_embed = {name: options[name] for name in ("layers", "max_length") if name in options}
    given = arguments(kind, **options)
    finetune(**given, freeze_encoder=True, output=tmp_path / "frozen")
    file = features(kind, ending, **of_embed)
    metrics = finetune(**given, features=file, output=tmp_path / "stored")
    expected, found = (weights(tmp_path / name) for name in ("frozen", "stored"))
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        np.testing.assert_allclose(found[name], tensor, atol=2e-5, err_msg=name)
    encoder, trained = load(folder / "model")[0], load_task(tmp_path / "stored")
    before, after = ([*each.blocks[-1].weights] for each in (encoder, trained.encoder))
    for one, two in zip(before, after, strict=True):
        if keras.backend.is_float_dtype(one.dtype):
            np.testing.assert_array_equal(one, two)
    with eagerly():
        measured = evaluate(model=tmp_path / "stored", data=given["dev"])
    for name, value in measured.items():
        if isinstance(value, float):
            assert value == pytest.approx(metrics["dev"][name], rel=1e-4, abs=1e-6)
    start = json.loads((tmp_path / "stored" / "run.json").read_text())["settings"]
    assert start["freeze_encoder"] and start["features"] == str(file)


def test_the_encoder_reads_no_training_example(arguments, features, tmp_path, monkeypatch):
    """Only the dev examples are computed, and an epoch costs only the head."""
    from keras_bert.training import finetuning_run

    computed = []
    compute = finetuning_run.compute_once

    def note_and_compute(splits, *more, **options):
        computed.extend(map(len, splits))
        return compute(splits, *more, **options)

    monkeypatch.setattr(finetuning_run, "compute_once", note_and_compute)
    finetune(**arguments("classifier"), features=features("classifier"), output=tmp_path / "run")
    assert computed == [10]


def test_a_killed_run_resumes_with_the_same_weights(arguments, features, tmp_path):
    given = arguments("classifier", features=features("classifier"))
    killed, output = tmp_path / "killed", tmp_path / "run"
    with copied(output, killed, after_step=4):
        finetune(**given, output=output)
    finetune(**given, output=killed)
    assert_same_weights(killed, output)
    other = features("classifier", "npz", tokens="subwords")
    with says("contains a run with different settings: features"):
        finetune(**{**given, "features": other}, output=output)


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_a_file_of_plain_texts_trains_too_and_an_export_answers(
    ending, folder, arguments, tmp_path
):
    """Of texts that are shorter than the maximum length, whatever that was."""
    file = tmp_path / f"texts.{ending}"
    train = folder / "classifier-train.tsv"
    embed_to_file(model=folder / "model", data=train, output=file, header=False, text_column="1")
    finetune(**arguments("classifier"), features=file, output=tmp_path / "run")
    assert export(model=tmp_path / "run", output=tmp_path / "served").is_dir()


def test_a_model_that_lacks_special_tokens(arguments, features, tmp_path, monkeypatch):
    """They get random vectors, which no file has."""
    build = StartingPoint.build

    def build_and_append(self):
        built = build(self)
        self.appended = ("<start>",)
        return built

    monkeypatch.setattr(StartingPoint, "build", build_and_append)
    with says("model lacks special tokens, whose vectors are random in each run, and `features`"):
        finetune(
            **arguments("classifier"), features=features("classifier"), output=tmp_path / "run"
        )


def test_the_commands(folder, tmp_path, capsys):
    model, train, dev = (folder / name for name in ("model", "tagger-train.tsv", "tagger-dev.tsv"))
    file, output = str(tmp_path / "features.npz"), str(tmp_path / "run")
    embed = ["embed", "--task", "tagger", "--model", str(model), "--data", str(train)]
    embed += ["--max-length", "24", "--word-column", "1", "--output", file]
    assert main(embed) == 0
    said = capsys.readouterr()
    assert "24 texts" in said.out and "CoNLL" in said.err
    finetune = ["finetune", "--task", "tagger", "--features", file, "--model", str(model)]
    finetune += ["--train", str(train), "--max-length", "24", "--word-column", "1"]
    assert f"Next: keras-bert {shlex.join(finetune)} --dev FILE --output DIR" in said.out
    finetune += ["--dev", str(dev), "--epochs", "1", "--output", output]
    assert main(finetune) == 0
    assert "of them trainable)" in capsys.readouterr().out
    with np.load(file) as arrays:  # each subword token has the offsets of its word
        assert arrays["tokens"][: arrays["row_splits"][1]].tolist()[-1] in WORDS
    assert main(["embed", "--task", "qa", "--model", "a", "--data", "b", "--output", file]) == 2
    assert "classifier, pair-classifier, regression" in capsys.readouterr().err


def test_pairs_have_both_texts(features):
    table = parquet.read_table(features("pair-classifier"))
    first = (table["text"][0].as_py(), table["text_b"][0].as_py())
    assert first == tuple(next(lines_of("pair-classifier", 24, seed=24)).split("\t")[:2])
    assert table["tokens"][0].as_py() == []


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("classifier", {"layers": "second-to-last"}, "has the features of `layers` last, and this"),
        ("classifier", {"layers": "mix-all"}, "`features` are of fixed `layers`, and mix-all lear"),
        ("classifier", {"pooling": "last"}, "which `pooling` cls, mean and both read. Received: l"),
        ("classifier", {"bilstm": 2}, "`bilstm` reads more than the vectors of `features`. Use `f"),
        ("classifier", {"train_layers": 1}, "`train_layers` trains ... and `features` none. Leave"),
        ("classifier", {"layer_decay": 0.9}, "`layer_decay` trains ... and `features` none."),
        ("classifier", {"gradual_unfreezing": True}, "`gradual_unfreezing` ... `features` none."),
        ("classifier", {"baseline": "random"}, "`features` are those of `model`, and not of the"),
        ("classifier", {"model": None, "architecture": "tiny"}, "are those of a `model`, which is"),
        ("classifier", {"task": "qa"}, "`features` train the tasks classifier, pair-classifier,"),
        ("classifier", {"max_length": 3}, "line 1: the text was embedded with `max_length` 24, an"),
        ("pair-classifier", {"both_orders": True}, "`both_orders` reads more than the vectors of"),
        ("tagger", {"document_context": True}, "`document_context` reads more than the vectors"),
        ("tagger", {"max_length": 5}, "the sentence has more tokens than `max_length`, 5, so that"),
    ],
)
def test_settings_that_do_not_go_with_it(kind, changes, message, arguments, features, tmp_path):
    given = {**arguments(kind, features=features(kind)), **changes}
    with says(message):
        finetune(**{k: v for k, v in given.items() if v is not None}, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_sweep_trains_on_the_features_of_one_choice_of_layers(arguments, features, tmp_path):
    given = arguments("classifier", features=features("classifier"), batch_size=[8, 12], epochs=1)
    with says("`features` are of one choice of `layers`. Received: last, first."):
        sweep(**given, layers=["last", "first"], output=tmp_path / "run")
    given["learning_rate"] = [0.01]
    runs = sweep(**given, output=tmp_path / "run")["runs"]
    assert len(runs) == 2


def test_files_of_other_texts(folder, arguments, features, tmp_path):
    lines = (folder / "classifier-train.tsv").read_text().splitlines(keepends=True)

    def run(lines, **options):
        train = tmp_path / "train.tsv"
        train.write_text("".join(lines))
        given = arguments("classifier", features=features("classifier"), **options)
        finetune(**{**given, "train": train}, output=tmp_path / "run")

    with says("has the features of 24 texts, and ...train.tsv has 23 examples. Write it again"):
        run(lines[:-1])
    with says("has the texts of ...train.tsv in another order, first in line 3."):
        run([*lines[:2], lines[4], lines[3], lines[2], *lines[5:]])
    with says("train.tsv, line 3: ...features.parquet has the features of another text."):
        run([*lines[:2], "a new film\tgood\n", *lines[3:]])


@pytest.mark.parametrize("column", [0, 1])
def test_files_of_other_pairs(column, folder, arguments, features, tmp_path):
    lines = (folder / "pair-classifier-train.tsv").read_text().splitlines(keepends=True)
    texts = lines[2].split("\t")
    texts[column] = "film " + texts[column]
    train = tmp_path / "train.tsv"
    train.write_text("".join([*lines[:2], "\t".join(texts), *lines[3:]]))
    given = {**arguments("pair-classifier"), "train": train}
    with says("train.tsv, line 3: ...features.parquet has the features of another text."):
        finetune(**given, features=features("pair-classifier"), output=tmp_path / "run")


def test_files_with_other_settings(folder, arguments, features, tmp_path):
    encoder, tokenizer = load(folder / "model")
    weight = encoder.blocks[-1].trainable_weights[-1]
    weight.assign(weight + 1)
    save_folder(encoder, tokenizer, tmp_path / "other")
    given = arguments("classifier")
    with says("has the features of another model than"):
        finetune(
            **{**given, "model": tmp_path / "other"},
            features=features("classifier"),
            output=tmp_path / "run",
        )
    with says("has the vectors of `tokens` words-first, and a tagger reads those of subwords."):
        finetune(
            **arguments("tagger"),
            features=features("tagger", tokens="words-first"),
            output=tmp_path / "run",
        )
    windows = tmp_path / "windows.npz"
    embed_to_file(
        model=folder / "model",
        data=given["train"],
        output=windows,
        max_length=4,
        header=False,
        text_column="1",
    )
    with says("was embedded with `max_length` 4 in several windows, and this run reads its first"):
        finetune(**given, features=windows, output=tmp_path / "run")
    with says("`tokens` must be none for a pair of texts"):
        embed_to_file(
            task="regression", tokens="subwords", model="a", data="b", output=tmp_path / "c.npz"
        )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_files_that_cannot_be_read(ending, arguments, features, tmp_path):
    file, given = tmp_path / f"features.{ending}", arguments("classifier")

    def run():
        finetune(**given, features=file, output=tmp_path / "run")

    with says("The features file ... does not exist. Write it with `embed`."):
        run()
    content = features("classifier", ending).read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"text\tlabel\n"):
        file.write_bytes(damaged)
        with says(f"features.{ending} is not a complete file of `embed`, a .npz or .parquet."):
            run()
    with says("train.tsv is not a complete file of `embed`"):
        finetune(**given, features=given["train"], output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_file_of_an_earlier_version(arguments, features, tmp_path):
    table = parquet.read_table(features("classifier"))
    settings = json.loads(table.schema.metadata[b"keras_bert"])
    del settings["weights"]
    file = tmp_path / "features.parquet"
    parquet.write_table(table.replace_schema_metadata({"keras_bert": json.dumps(settings)}), file)
    with says("was written by an earlier version, which did not record the model. Write it again"):
        finetune(**arguments("classifier"), features=file, output=tmp_path / "run")


def test_damaged_vectors(arguments, features, tmp_path):
    with np.load(features("classifier", "npz")) as arrays:
        arrays = dict(arrays)
    file, given = tmp_path / "features.npz", arguments("classifier")
    for number, changes in enumerate(
        (
            {"cls": arrays["cls"][:-1]},
            {"cls": np.concatenate([arrays["cls"]] * 2)},
            {"cls": arrays["cls"][:, :-1]},
            {"cls": np.full_like(arrays["cls"], np.nan)},
            {"cls": arrays["cls"].astype(np.float64)},
            {"lines": arrays["lines"][:-1]},
        )
    ):
        np.savez(file, **{**arrays, **changes})
        with says("features.npz is damaged. Write it again with `embed`."):
            finetune(**given, features=file, output=tmp_path / str(number))
    content = bytearray(features("classifier", "npz").read_bytes())
    content[content.index(arrays["cls"][3].tobytes())] ^= 1
    file.write_bytes(content)
    with says("features.npz is damaged."):
        finetune(**given, features=file, output=tmp_path / "run")


def test_features_are_read_in_parts(features, monkeypatch):
    """Both formats, in parts of a few texts, hold what one part holds."""
    (whole,) = FeaturesFile(features("tagger")).vectors("vectors")
    monkeypatch.setattr("keras_bert.inference.embed_to_file._NUMBERS_PER_GROUP", 800)
    for ending in ("parquet", "npz"):
        file = FeaturesFile(features("tagger", ending, batch_size=32))  # written in parts, too
        parts = [*file.vectors("vectors")]
        assert len(parts) > 2
        np.testing.assert_array_equal(np.concatenate(parts), whole)
