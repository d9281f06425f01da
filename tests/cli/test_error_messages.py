"""The commands' sentences about input that users get wrong, as in the style guide.

A message says what happened, what was expected, what was received, and what to do.
"""

import json
import shutil

import pytest

import keras_bert as kb
from keras_bert.cli.main import main
from tests.small_model import make_encoder, make_tokenizer


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with models, of which some are incomplete, and files."""
    place = tmp_path_factory.mktemp("place")
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    kb.Classifier(encoder, tokenizer, labels=["ham", "spam"]).save(place / "model")
    kb.QuestionAnswerer(encoder, tokenizer).save(place / "qa")
    (place / "empty").mkdir()
    shutil.copytree(place / "model", place / "negative")
    config = json.loads((place / "negative" / "config.json").read_text())
    (place / "negative" / "config.json").write_text(json.dumps({**config, "hidden_size": -1}))
    shutil.copytree(place / "model", place / "binary")
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        (place / "binary" / name).unlink()
    (place / "binary" / "tokenizer.bin").touch()
    (place / "a.csv").write_text("text\na\nb\n")
    (place / "train.tsv").write_text("text\tlabel\na\tham\nb\tspam\n")
    return place


FINETUNE = "finetune --model model --output run"
CASES = [
    (
        f"{FINETUNE} --train a.csv",
        "Could not read a.csv as labelled text: line 1 has one column. Expected CSV, TSV or JSON "
        "Lines with a text and a label.",
    ),
    *(
        (
            command,
            "Could not detect the model format of 'empty'. Expected a Hugging Face folder "
            "(config.json), a Google checkpoint (bert_config.json), a keras-hub preset or an ELMo "
            "of AllenNLP (options.json and weights.hdf5).",
        )
        for command in (
            "predict --model empty --text a",
            "finetune --model empty --train train.tsv --output run",
            "convert --input empty --output other",
        )
    ),
    (
        "predict --model negative --text a",
        "Invalid value in negative/config.json: `hidden_size` must be at least 1. Received: "
        "hidden_size=-1.",
    ),
    (
        "predict --model binary --text a",
        "'binary' has no supported tokenizer (found: tokenizer.bin). Pass token ids instead, or "
        "add its vocab.txt, vocab.json with merges.txt, or tokenizer.json.",
    ),
    (
        "predict --model qa --question a --question b --context c",
        "--question and --context must have the same length. Received: 2 and 1.",
    ),
    ("finetune", "Missing required arguments: --model, --train, --output."),
    ("finetune --architecture tiny", "Missing required arguments: --train, --output."),
    (
        "finetune --task nope",
        "Invalid --task 'nope'. Choose from: classifier, pair-classifier, regression, "
        "multiple-choice, tagger, semantic-roles, question-answering, span-classifier, "
        "relation-classifier, text-embedding, coreference.",
    ),
]


@pytest.mark.parametrize(("command", "message"), CASES, ids=[command for command, _ in CASES])
def test_an_error_is_this_sentence(command, message, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert main(command.split()) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"keras-bert: {message}"


def test_in_python_arguments_are_named_as_python_has_them(place):
    with pytest.raises(kb.InputError) as error:
        kb.predict(model=place / "qa", question=["a", "b"], context=["c"])
    expected = "`question` and `context` must have the same length. Received: 2 and 1."
    assert str(error.value) == expected
    encoder, tokenizer = kb.load(place / "binary", tokenizer=False)  # takes token ids
    assert tokenizer is None and encoder.is_pretrained
