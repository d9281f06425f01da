"""The display of an object in a notebook, and of `fit` while it trains."""

import re

import pytest

import keras_bert as kb
from keras_bert.base.terminal import shows_bars
from keras_bert.records.folder import (
    CardSettings,
    CardSplit,
    CardVocabulary,
    DataFolder,
    DatasetCard,
)
from tests.small_model import make_encoder, make_tokenizer

TEXTS = [("win cash now", "spam"), ("see you <soon>", "ham")] * 8


@pytest.fixture(scope="module")
def task():
    tokenizer = make_tokenizer(["win", "cash"])
    return kb.Classifier(
        make_encoder(tokenizer, num_hidden_layers=2), tokenizer, labels=["<ham>", "spam"]
    )


def cells(shown):
    assert shown.count("<table>") == shown.count("</table>") >= 1
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in shown.split("<tr>")[1:]]


def test_a_task_and_its_config_in_a_line_and_as_a_table(task):
    config = task.config
    sizes = (
        "bert, 2 layers, hidden size 16, 2 heads, 91 tokens in the vocabulary, "
        "sequences of up to 40 tokens"
    )
    assert repr(config) == f"BertConfig({sizes}, {config.parameter_count():,} parameters)"
    assert repr(task).startswith("Classifier(labels <ham>, spam; bert, 2 layers")
    rows = dict(cells(task._repr_html_()))
    assert rows["labels"] == "&lt;ham&gt;, spam"
    assert rows["parameters"] == f"{task.count_params():,}"
    assert rows["tokenizer"] == "Tokenizer(91 tokens, wordpiece, uncased)"
    assert dict(cells(config._repr_html_()))["hidden_size"] == "16"
    for text in (repr(task), repr(config), repr(task.tokenizer)):
        assert len(text) < 200 and "\n" not in text


def test_a_tokenized_text_shows_its_tokens_and_their_places(task):
    tokens = task.tokenizer.tokenize_with_offsets(["Win <it>", "cash", "a", "b"])
    assert repr(tokens) == "Tokens(4 texts, 8 tokens: win < i ##t > | cash | a …)"
    rows = cells(tokens._repr_html_())
    assert rows[0] == ["token", "id", "in the text", "at"]
    assert rows[1][0] == "win" and rows[1][2:] == ["Win", "0 to 3"]
    assert rows[2][2] == "&lt;" and "and 1 token more" in tokens._repr_html_()
    ids, starts, *_ = tokens  # what it was before it could be seen
    assert ids.nrows() == starts.nrows() == 4
    assert type(tokens)._make(tokens).ids is ids
    long = task.tokenizer.tokenize_with_offsets(["a " * 500])
    assert repr(long).endswith("a …)") and len(cells(long._repr_html_())) == 61


def test_a_data_folder_says_what_is_in_it():
    split = CardSplit(shards=1, instances=12_300, tokens=900_000, shard_instances=(9,), counters={})
    card = DatasetCard(
        input=("corpus/*.txt",),
        objective="mlm-nsp",
        masking="static",
        rows="compact",
        max_length=128,
        max_predictions=20,
        seed=1,
        lowercase=True,
        vocabulary=CardVocabulary(sha256="0", size=16_000),
        settings=CardSettings(mask_unit="token", masked_rate=0.15),
        splits={"train": split, "eval": split},
        unigram_entropy=6.4711,
    )
    assert repr(DataFolder(path="data", card=card)) == (
        "DataFolder(data: 12,300 training examples and 12,300 held-out examples, mlm-nsp, static "
        "masks, up to 128 tokens, vocabulary of 16,000 tokens, uncased)"
    )
    assert repr(card).startswith("DatasetCard(12,300 training examples")
    rows = dict(cells(card._repr_html_()))
    assert rows["unigram entropy"] == "6.471 nats/token"
    assert rows["train"] == "12,300 examples, 900,000 tokens"


@pytest.mark.only_tensorflow
def test_fit_shows_tokens_a_second_and_the_tasks_own_metric(task, capsys):
    tags = [{"words": ["win", "cash"], "tags": ["B-X", "O"]}, {"words": ["see"], "tags": ["O"]}]
    tagger = kb.Tagger(task.encoder, task.tokenizer, labels=["O", "B-X", "I-X"])
    train = tagger.dataset(tags * 4, batch_size=2, epochs=1)
    tagger.compile_defaults(learning_rate=1e-9)
    history = tagger.fit(train, validation_data=tagger.dataset(tags), epochs=2, verbose=2)
    said = capsys.readouterr().out
    ours = {name for name in history.history if "f1" in name}
    assert tagger.METRIC == "f1" and ours == {"val_f1", "val_strict_f1"}
    assert all(0 <= metric <= 1 for metric in history.history["val_f1"])
    assert min(history.history["tokens/s"]) > 0
    assert "tokens/s: " in said and "val_f1: " in said
    history = tagger.fit(train, verbose=0).history
    assert set(history) == {"accuracy", "loss"}


def test_a_bar_is_drawn_in_a_terminal_and_in_a_notebook(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    class Cell(Terminal):
        def isatty(self):
            return False

    for stream, module, wanted in [
        (Terminal, "io", True),
        (Cell, "io", False),
        (Cell, "ipykernel.iostream", True),
    ]:
        stream.__module__ = module
        monkeypatch.setattr("sys.stderr", stream())
        assert shows_bars() is wanted


def test_an_error_in_the_input_is_shown_without_a_traceback():
    assert kb.InputError("Give it.")._render_traceback_() == ["InputError: Give it."]


@pytest.mark.only_tensorflow
def test_a_run_and_an_export_tell_nothing_that_is_of_no_use(task, tmp_path, recwarn, caplog):
    """Keras warns that it does not shuffle a dataset, and TensorFlow tells of a hidden folder."""
    task.compile_defaults(learning_rate=1e-9)
    with caplog.at_level("INFO"):
        task.fit(task.dataset([("a", "<ham>"), ("b", "spam")]), verbose=0)
        task.export(tmp_path / "exported")
    assert [w for w in recwarn if "shuffle" in str(w.message)] == []
    assert [record for record in caplog.records if "Assets" in record.getMessage()] == []
