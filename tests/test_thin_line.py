"""One thin line through everything, by the commands: from text to a served classifier."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.cli.main import main
from keras_bert.training.logs import as_table
from tests.seeds import make_rng

ARCHITECTURE = {
    "vocab_size": 120,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 24,
}


@pytest.fixture(scope="module")
def keras_bert(tmp_path_factory):
    """Runs a command in a folder; gives what it printed. Flags are relative to the folder."""
    folder = tmp_path_factory.mktemp("line")
    rng = make_rng(0)
    words = ["river", "bank", "money", "boat", "water", "loan", "the", "and", "flows", "lends"]
    sentences = [f"{' '.join(rng.choice(words, rng.integers(4, 9)))}." for _ in range(120)]
    documents = ["\n".join(sentences[i : i + 6]) for i in range(0, 120, 6)]
    (folder / "text.txt").write_text("\n\n".join(documents) + "\n")
    (folder / "config.json").write_text(json.dumps(ARCHITECTURE))
    lines = [f"{s}\t{'money' if 'money' in s or 'loan' in s else 'water'}\n" for s in sentences]
    (folder / "train.tsv").write_text("".join(["text\tlabel\n", *lines[:80]]))
    (folder / "dev.tsv").write_text("".join(["text\tlabel\n", *lines[80:]]))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield lambda line: main(line.split())


def test_from_text_to_a_saved_model(keras_bert, capsys):
    one_worker = "--direct_num_workers=1"
    for line in (
        f"vocab --input text.txt --output vocab.txt --size 120 {one_worker}",
        "pretraining-data --input text.txt --vocab vocab.txt --output data --max-length 24 "
        f"--dupe-factor 2 --eval-fraction 0.2 {one_worker}",
        "inspect data --count 1",
        "pretrain --data data --architecture ./config.json --steps 6 "
        "--batch-size 8 --eval-every 6 --checkpoint-every 6 --output pretrained",
        "finetune --model pretrained --train train.tsv --dev dev.tsv --epochs 1 --output tuned",
        "export --model tuned --output savedmodels/money",
    ):
        assert keras_bert(line) == 0, capsys.readouterr().err
        assert "Next: " in "".join(capsys.readouterr())
    tensorboard_shows_speed_and_examples(Path("pretrained"))
    assert keras_bert("evaluate --json --model tuned --data dev.tsv") == 0
    measures = json.loads(capsys.readouterr().out)
    assert measures == json.loads(Path("tuned/metrics.json").read_text())["dev"]
    assert keras_bert("predict --model tuned --text bank") == 0
    answer = json.loads(capsys.readouterr().out)
    served = tf.saved_model.load("savedmodels/money/1").signatures["serving_default"]
    outputs = served(text=tf.constant(["bank"]))
    assert outputs["label"].numpy()[0].decode() == answer["label"]
    expected = list(answer["probabilities"].values())
    np.testing.assert_allclose(outputs["probabilities"][0], expected, atol=1e-5)


def tensorboard_shows_speed_and_examples(run):
    """Rows of the data job are what tells the FLOPs of a token."""
    entries = json.loads((run / "metrics.json").read_text())["history"]
    train, held_out = (events_of(run / "logs" / name) for name in ("train", "eval"))
    for name in ("tokens_per_second", "input_wait", "mfu"):
        metrics = [(e["step"], e[name]) for e in entries if e.get(name) is not None]
        assert [step for step, _ in metrics] == [2, 3, 4, 5, 6]  # the first step compiles
        np.testing.assert_allclose(np.array(train[f"run/{name}"], float), metrics, rtol=1e-6)
    texts = [(e["step"], as_table(e["examples"])) for e in entries if "eval" in e]
    assert [step for step, _ in texts] == [0, 6]
    assert [(step, text.item().decode()) for step, text in held_out["masked tokens"]] == texts


def events_of(folder):
    """{tag: [(step, value)]} of the one file of events in a folder."""
    (path,) = folder.iterdir()
    events = {}
    for record in tf.data.TFRecordDataset(str(path)):
        event = tf.compat.v1.Event.FromString(record.numpy())
        for value in event.summary.value:
            events.setdefault(value.tag, []).append((event.step, tf.make_ndarray(value.tensor)))
    return events
