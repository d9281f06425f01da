"""A made-up language whose entities lie in one another, and a model that has learned it."""

import json

import pytest

from keras_bert.training.finetune import finetune
from tests.seeds import make_rng
from tests.small_model import make_tokenizer

PLACES = ["rome", "oslo", "bath"]
OTHERS = ["the", "we", "saw", "in", "old", "near", "and"]
WORDS = [*PLACES, *OTHERS, "bank", "of", "building"]


def sentence(rng, phrases):
    """{"words", "spans"}: places; a "bank of PLACE" is an organisation, its building a facility."""
    words, spans = [], []
    for _ in range(phrases):
        words += rng.choice([*OTHERS, ",", "."], rng.integers(1, 3)).tolist()
        start, kind = len(words), rng.integers(0, 4)
        place = str(rng.choice(PLACES))
        if kind == 0:
            words += [place]
        elif kind < 3:
            words += ["bank", "of", place]
            spans.append([start, start + 3, "ORG"])
        if kind == 2:
            words += ["building"]
            spans.append([start, start + 4, "FAC"])
        if kind < 3:
            place_at = start if kind == 0 else start + 2
            spans.append([place_at, place_at + 1, "LOC"])
    return {"words": words, "spans": spans}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="session")
def given(tmp_path_factory):
    """The arguments of a run; some of its texts are longer than a row."""
    folder = tmp_path_factory.mktemp("spans")
    rng = make_rng(1)
    train = [sentence(rng, rng.integers(1, 4)) for _ in range(300)]
    train += [sentence(rng, 9) for _ in range(12)]
    dev = [sentence(rng, rng.integers(1, 4)) for _ in range(30)] + [sentence(rng, 12)]
    tokenizer = make_tokenizer(WORDS)
    tokenizer.vocabulary.save(folder / "vocab.txt")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 16, "max_position_embeddings": 32, "initializer_range": 0.2}
    (folder / "config.json").write_text(json.dumps({"vocab_size": len(tokenizer), **sizes}))
    return {
        "task": "span-classifier",
        "train": write(folder / "train.jsonl", train),
        "dev": write(folder / "dev.jsonl", dev),
        "architecture": str(folder / "config.json"),
        "vocab": str(folder / "vocab.txt"),
        "max_length": 24,
        "max_span_length": 5,
        "batch_size": 16,
        "epochs": 3,
        "learning_rate": 0.01,
        "keep": "last",
    }


@pytest.fixture(scope="session")
def run(given, tmp_path_factory):
    """(the output of a run, its metrics, what it reported)."""
    output = tmp_path_factory.mktemp("spans_run") / "run"
    reported = []
    return output, finetune(**given, output=output, report=reported.append), reported
