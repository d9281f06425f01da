"""The commands of pages, one after another, as a reader types them.

A model of the hub is a small one, and a run trains one epoch: `FILES` is what a page's reader has.
Every other page's commands are parsed (`test_pages.py`), with their flags.
"""

import json

import pytest

import keras_bert as kb
from keras_bert.checkpoints import save_folder
from keras_bert.cli.main import main
from tests.docs.pages import REPOSITORY, blocks, commands
from tests.eagerly import eagerly
from tests.hub.conftest import cache, hub  # noqa: F401  (fixtures)
from tests.small_model import make_encoder, make_tokenizer

NAME = "google-bert/bert-base-uncased"
TEXTS = [(f"I was charged {n} times", "billing") for n in range(8)]
TEXTS += [(f"The app crashes {n} times", "bug") for n in range(8)]
CSV = "text,label\n" + "".join(f"{text},{label}\n" for text, label in TEXTS)
TSV = CSV.replace(",", "\t")
SEVERAL = TSV + "It crashes and I was charged\tbug|billing\n"
CLASSES = {"train.tsv": TSV, "dev.tsv": TSV, "test.tsv": TSV}
# What the reader of a page has.
FILES = {
    "your_own_csv.md": {
        "train.csv": CSV,
        "test.csv": CSV,
        "new.csv": CSV,
        "letters/a.txt": "Hello",
    },
    "models_by_name.md": {**CLASSES, "texts.txt": "A text.\n"},
    "how_to/multi_label.md": {"train.tsv": SEVERAL, "dev.tsv": SEVERAL},
    "how_to/imbalanced_classes.md": CLASSES,
    "how_to/every_month.md": {"labelled/a.csv": CSV, "test.csv": CSV, "new.csv": CSV},
}
# Servers, the hub's own, and formats of another library.
NOT_RUN = ("serve", "push", "hf://owner/name", "keras-nlp")


@pytest.fixture
def reader(request, hub, tmp_path, monkeypatch):  # noqa: F811
    """The reader's folder, in which the page's files and earlier models are."""
    files = FILES[request.node.callspec.params["page"]]
    for name, text in files.items():
        path = tmp_path / "reader" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    save_folder(encoder, tokenizer, tmp_path / "published")
    hub.add(NAME, tmp_path / "published")
    monkeypatch.chdir(tmp_path / "reader")
    kb.convert(tmp_path / "published", "uncased_L-2_H-128_A-2", to="google")
    kb.Classifier(encoder, tokenizer, labels=["billing", "bug"]).save("runs/march")
    return tmp_path / "reader"


@pytest.mark.slow
@pytest.mark.parametrize("page", FILES)
def test_the_commands_of_a_page_run_one_after_another(page, reader, capsys):
    ran = 0
    for block in blocks(REPOSITORY / "docs" / page):
        for argv, is_shortened in commands(block):
            if is_shortened or any(part in word for word in argv for part in NOT_RUN):
                continue
            if argv[0] == "finetune":
                argv = [*argv, "--epochs", "1", "--max-length", "16"]
            if argv[0] == "export":
                status = main(argv)
            else:
                with eagerly():
                    status = main(argv)
            assert status == 0, f"{block}: {argv}: {capsys.readouterr().err}"
            ran += 1
    assert ran >= 2
    for metrics in reader.glob("runs/*/metrics.json"):
        assert json.loads(metrics.read_text())["dev"]["examples"] > 0
