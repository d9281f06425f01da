"""A classifier small enough to make in a moment, with answers that differ from text to text."""

import json
import string

import keras
import numpy as np
import pytest

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.seeds import make_rng, shifted

WORDS = "the a film is was good great fun bad dull awful plot cast buy pills now meeting minutes"
REVIEWS = {"good": ("good", "great", "fun"), "bad": ("bad", "dull", "awful")}


def logits(task, text):
    """float (C,): the task's own answer to one text, with no padding in the way."""
    vocabulary = task.tokenizer.vocabulary
    ids = task.tokenizer.tokenize([text])[0].numpy()[: task.settings.max_length - 2]
    ids = np.array([[vocabulary.cls_id, *ids, vocabulary.sep_id]], np.int32)
    batch = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    return np.asarray(task(batch, training=False)["logits"])[0]


@pytest.fixture(scope="session")
def predictions(task, texts):
    """float (N, C): the probabilities of `texts`, one text at a time."""
    sequences = np.array([logits(task, text) for text in texts], np.float64)
    sequences = np.exp(sequences - sequences.max(axis=1, keepdims=True))
    return sequences / sequences.sum(axis=1, keepdims=True)


@pytest.fixture(scope="session")
def tokenizer():
    letters = string.ascii_lowercase + string.digits
    tokens = [*SPECIAL_TOKENS, *letters, *(f"##{c}" for c in letters), *string.punctuation]
    words = [word for word in WORDS.split() if len(word) > 1]
    return Tokenizer.from_vocab(WordPieceVocabulary([*tokens, *words]))


@pytest.fixture(scope="session")
def config(tokenizer):
    return BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.3,  # untrained answers that differ from text to text
    )


@pytest.fixture(scope="session")
def make_task(tokenizer, config):
    def make():
        keras.utils.set_random_seed(shifted(7))
        task = Classifier(BertEncoder(config), tokenizer, labels=["ham", "spam", "other"])
        # Untrained logits differ little from text to text: spread them about zero.
        task.classifier.kernel.assign(10 * task.classifier.kernel)
        mean = np.mean([logits(task, word) for word in WORDS.split()], axis=0)
        task.classifier.bias.assign(-mean)
        return task

    return make


@pytest.fixture(scope="session")
def task(make_task):
    """Shared by the tests: not to be trained."""
    return make_task()


@pytest.fixture(scope="session")
def model_folder(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifier") / "model"
    task.save(folder)
    return folder


@pytest.fixture(scope="session")
def texts():
    """Texts of many lengths, strange ones among them."""
    rng = make_rng(0)
    words = WORDS.split()
    ordinary = [" ".join(rng.choice(words, rng.integers(1, 30))) for _ in range(40)]
    return [
        *ordinary,
        "",
        "   ",
        "x" * 500,
        "good film " * 2000,
        "Été, ß; 好 film!",
        "[MASK] [SEP]",
    ]


@pytest.fixture(scope="session")
def files(tmp_path_factory, tokenizer, config):
    """A task that can be learned: which of two sets of words a text holds one of."""
    folder = tmp_path_factory.mktemp("reviews")
    rng = make_rng(0)
    for name, count in (("train", 96), ("dev", 40)):
        lines = ["text\tlabel\n"]
        for i in range(count):
            label = ("good", "bad")[i % 2]
            words = [*rng.choice(["film", "plot", "cast", "the"], rng.integers(0, 9))]
            words.insert(rng.integers(0, len(words) + 1), rng.choice(REVIEWS[label]))
            lines.append(f"{' '.join(words)}\t{label}\n")
        (folder / f"{name}.tsv").write_text("".join(lines))
    tokenizer.vocabulary.save(folder / "vocab.txt")
    (folder / "config.json").write_text(json.dumps({**config.to_dict(), "initializer_range": 0.1}))
    return folder


@pytest.fixture(scope="session")
def arguments(files):
    return {
        "train": files / "train.tsv",
        "dev": files / "dev.tsv",
        "architecture": files / "config.json",
        "vocab": files / "vocab.txt",
        "max_length": 16,
        "batch_size": 8,
        "learning_rate": 5e-3,
        "epochs": 6,
        "checkpoint_every": 5,
        "deterministic": True,
        "seed": shifted(3),
    }
