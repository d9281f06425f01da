"""A run's model card, and a push that anybody's client reads back."""

import json
import re
import shlex
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file

import keras_bert as kb
from keras_bert.checkpoints import find_model_folder
from keras_bert.checkpoints.model_card import model_card, write_card
from keras_bert.cli.main import main
from keras_bert.encoders.bert import BertConfig
from keras_bert.tasks import task_class
from tests.messages import raises_input_error
from tests.peers import torch
from tests.small_model import make_encoder, make_tokenizer

SETTINGS = {
    "model": "hf://google-bert/bert-base-uncased@main",
    "train": "/home/me/secret/train.tsv",
    "dev": "/home/me/secret/dev.tsv",
    "learning_rate": 5e-5,
    "batch_size": 32,
    "max_length": 128,
    "seed": 7,
}
METRICS = {"dev": {"accuracy": 0.8125, "f1": 0.75, "examples": 16, "labels": {}}, "steps": 1200}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a classifier with the card of a run."""
    tokenizer = make_tokenizer()
    path = tmp_path_factory.mktemp("run") / "model"
    kb.Classifier(make_encoder(tokenizer), tokenizer, labels=["ham", "spam"]).save(path)
    write_card(path, settings=SETTINGS, metrics=METRICS)
    return path


def test_the_card_has_the_hubs_metadata_and_no_path_of_this_machine(model):
    from huggingface_hub import ModelCard

    card = ModelCard.load(model / "README.md")
    said = card.data.to_dict()
    assert said["library_name"] == "transformers" and said["tags"] == ["keras-bert"]
    assert said["pipeline_tag"] == "text-classification"
    assert said["base_model"] == "google-bert/bert-base-uncased"
    metrics = {(r.dataset_name, r.metric_type): r.metric_value for r in card.data.eval_results}
    assert metrics == {("dev.tsv", "accuracy"): 0.8125, ("dev.tsv", "f1"): 0.75}
    assert "/home/me" not in card.content and "secret" not in card.content
    for shown in ("ham, spam", "1,200", "16 dev examples", "train.tsv"):
        assert shown in card.text


@pytest.mark.peers
def test_a_folder_with_its_card_opens_in_all_three_libraries(model):
    """The card's own blocks open it, from the folder."""
    text = (model / "README.md").read_text()
    blocks = [block.partition("```")[0] for block in text.split("```python\n")[1:]]
    assert len(blocks) == 2
    namespace = {}
    for block in blocks:
        lines = [line for line in block.splitlines() if '"FILE"' not in line]
        code = "\n".join(lines).replace("hf://owner/name", str(model))
        exec(code.replace("owner/name", str(model)), namespace)
    our_vectors = namespace["encoder"].embeddings.token_embedding.embeddings.numpy()
    their_vectors = namespace["model"].get_input_embeddings().weight.detach().numpy()
    np.testing.assert_array_equal(our_vectors, their_vectors)


def test_the_export_of_a_card_runs(model, tmp_path):
    text = (model / "README.md").read_text()
    export, _ = text.partition("```bash\n")[2].split("\n", 1)
    export = export.replace("hf://owner/name", str(model))
    output = f"savedmodels/{model.parent.name}"
    assert export == f"keras-bert export --model {model} --output {output}"
    assert main([*shlex.split(export)[1:-1], str(tmp_path / output)]) == 0
    assert (tmp_path / "savedmodels" / "models.config").is_file()  # which the container reads


SIZES = BertConfig.preset("tiny", vocab_size=9).to_dict()


def test_a_card_for_every_architecture_has_three_blocks():
    for architecture, kind in [
        ("BertForTokenClassification", "tagger"),
        ("BertForMaskedLM", "fill-mask"),
        ("RobertaModel", None),
    ]:
        config = {"architectures": [architecture], "keras_bert": {"task": kind}}
        text = model_card({**SIZES, **config})
        assert text.count("```python") + text.count("```bash") == 3 and "| steps" not in text
        assert ("sentence_transformers" in text) == (kind is None)
        assert kind is None or task_class(kind)


def test_a_card_has_the_names_of_the_run_and_its_base_and_the_task_whatever_it_pools(tmp_path):
    """A pooling that transformers does not have makes the folder's class the base model's."""
    mean = {**SIZES, "architectures": ["BertModel"], "keras_bert": {"task": "classifier"}}
    (tmp_path / "first" / "model").mkdir(parents=True)
    (tmp_path / "first" / "model" / "config.json").write_text(json.dumps(mean))
    write_card(tmp_path / "first" / "model", settings=SETTINGS, metrics=METRICS)
    again = {**SETTINGS, "model": str(tmp_path / "first")}
    for text in (
        (tmp_path / "first" / "model" / "README.md").read_text(),
        model_card(mean, name="first", settings=again, metrics=METRICS),
    ):
        said = yaml.safe_load(text.split("---\n")[1])
        assert said["pipeline_tag"] == "text-classification"
        assert said["base_model"] == "google-bert/bert-base-uncased"
        (index,) = said["model-index"]
        assert index["name"] == "first" and index["results"][0]["task"]["type"] == (
            "text-classification"
        )
        assert "\n# first\n\nA classifier, trained on train.tsv, from the base model " in text
        assert "With transformers, the encoder without the head:" in text


def test_a_card_shows_what_labels_and_files_are_called_and_obeys_none_of_it():
    """Terminals obeyed their escapes, pages their scripts, and tables ended in their bars."""
    labels = [
        "\x1b[31mred\x07\x9b",
        "</script><script>alert(1)</script>",
        "[click](javascript:alert(1)) ![](http://e)",
        "a|b\n\n# title\n---",
        "a*b* _c_ d_e `f` ~g~ &amp; \\",
        "\u202eoff\u2066",
    ]
    config = {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "keras_bert": {"task": "classifier", "version": "1<b>"},
    }
    named = "/home/me/<img src=x>\x1b[2J`|.tsv"
    settings = {**SETTINGS, "train": named, "dev": named, "model": named}
    card = model_card(config, settings=settings, metrics=METRICS)
    assert not any(unicodedata.category(c) in ("Cc", "Cf") for c in card if c != "\n")
    assert "<" not in card
    (row,) = (line for line in card.splitlines() if line.startswith("| labels"))
    assert r"\\u001b\[31mred" in row and "&lt;/script&gt;" in row and r"a\|b # title ---" in row
    assert r"\[click\](javascript" in row and r"!\[\](" in row
    assert r"a\*b\* \_c\_ d_e \`f\` \~g\~ &amp;amp; \\" in row
    assert len(re.findall(r"(?<!\\)\|", row)) == 3
    metadata = yaml.safe_load(card.split("---\n")[1])
    assert metadata["model-index"][0]["results"][0]["dataset"]["name"] == Path(named).name


def test_a_card_of_labels_that_are_none():
    """An encoder of another program's, pushed without a card."""
    text = model_card({**SIZES, "architectures": ["BertModel"], "id2label": None})
    assert "feature-extraction" in text and "| labels" not in text


@pytest.mark.usefixtures("eager")
def test_what_is_pushed_loads_by_its_name(hub, model, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", "hf_known")
    folder = shutil.copytree(model, tmp_path / "model")
    (folder / "notes.txt").write_text("mine")
    assert main(["push", "--model", str(folder), "--to", "me/spam"]) == 0
    said = capsys.readouterr().out
    assert f"Pushed: {hub.endpoint}/me/spam/commit/" in said
    assert "Next: keras-bert predict --model hf://me/spam --data FILE" in said
    files = hub.repos["me/spam"]["main"]
    assert files["model.safetensors"] == (model / "model.safetensors").read_bytes()
    assert "notes.txt" not in files
    readme = files["README.md"].decode()
    assert 'kb.load("hf://me/spam")' in readme and "owner/name" not in readme
    assert json.loads(files["config.json"])["keras_bert"]["task"] == "classifier"
    (answer,) = kb.predict(model="hf://me/spam", text="win")
    (here,) = kb.predict(model=str(model), text="win")
    assert answer == here
    kb.push(model=str(folder), to="me/spam", revision="v2", message="again")
    assert set(hub.repos["me/spam"]) == {"main", "v2"}
    (folder / "README.md").write_text("---\na: [\n---\n")
    with raises_input_error("this is no YAML. Fix the model's README.md"):
        kb.push(model=str(folder), to="me/spam")


@pytest.mark.slow
def test_a_push_that_is_rejected_says_what_to_do(hub, model, monkeypatch):
    with raises_input_error("denied the upload to me/spam. Log in with `hf auth"):
        kb.push(model=str(model), to="me/spam")
    with raises_input_error("Invalid name of a hub model"):
        kb.push(model=str(model), to="spam")
    with raises_input_error("no model folder"):
        kb.push(model=str(model / "none"), to="me/spam")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with raises_input_error("cannot be reached. Run the same command again"):
        kb.push(model=str(model), to="me/spam")
    assert not hub.repos


@pytest.mark.peers
def test_a_push_of_weights_of_torch_is_rejected(hub, model, tmp_path):
    other = shutil.copytree(find_model_folder(model), tmp_path / "other")
    tensors = load_file(other / "model.safetensors")
    (other / "model.safetensors").unlink()
    torch.save(
        {name: torch.tensor(tensor) for name, tensor in tensors.items()},
        other / "pytorch_model.bin",
    )
    with raises_input_error("another form than model.safetensors, which is the only"):
        kb.push(model=str(other), to="me/spam")  # its config and tokenizer went alone
    assert not hub.repos


@pytest.mark.slow
def test_private_is_private_or_rejected(hub, model, monkeypatch):
    """To a public repository it was published all the same."""
    monkeypatch.setenv("HF_TOKEN", "hf_known")
    hub.repos["me/public"] = {"main": {}}
    with raises_input_error("me/public exists and is public, so nothing was"):
        kb.push(model=str(model), to="me/public", private=True)
    assert hub.repos["me/public"] == {"main": {}}
    assert not any(path.startswith("/upload") for _, path in hub.requests)
    for _ in range(2):  # a new one, and one that is private already
        kb.push(model=str(model), to="me/mine", private=True)
        assert hub.private == {"me/mine"} and "config.json" in hub.repos["me/mine"]["main"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md", "vocab.txt"])
def test_a_link_out_of_the_folder_is_not_followed(hub, model, tmp_path, monkeypatch, name):
    monkeypatch.setenv("HF_TOKEN", "hf_known")
    folder = shutil.copytree(model, tmp_path / "model")
    secret = shutil.move(folder / name, tmp_path / "secret")
    (folder / name).symlink_to(secret)
    with raises_input_error(f"{name} is a link to {secret}, outside the model folder"):
        kb.push(model=str(folder), to="me/spam")
    assert not hub.repos
    (folder / name).unlink()
    shutil.copy(secret, folder / "copy")
    (folder / name).symlink_to("copy")
    alias = tmp_path / "alias"
    alias.symlink_to(folder)  # a link to the folder itself is the user's own
    kb.push(model=str(alias), to="me/spam")
    # A folder of the hub's cache consists of links.
    assert find_model_folder("hf://me/spam").joinpath("vocab.txt").is_symlink()
    kb.push(model="hf://me/spam", to="me/again")
    assert hub.repos["me/again"]["main"].keys() >= {"config.json", "vocab.txt"}
