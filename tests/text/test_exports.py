"""Tokenizers in an export: the same ids in a process that has TensorFlow and TensorFlow Text alone.

One such process, under a Turkish locale, answers for all tests: starting it takes seconds.
"""

import json
import os
import subprocess
import sys

import pytest
import tensorflow as tf

from keras_bert.text import Tokenizer
from keras_bert.text.learners import learn_bpe, learn_byte_level_bpe
from keras_bert.text.steps import AddedToken
from keras_bert.text.unigram_learner import learn_unigram
from keras_bert.text.vocabularies.byte_level import ByteLevelVocabulary, to_letters
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS

TOKENS = "the cafe cat ##s sat on mat x ##x , i ##t ##i".split()
WORDS = {"low": 5, "lowest": 2, "newer": 6, "wider": 3, "new": 2}
LETTERS = {to_letters(f" {word}".encode()): count for word, count in WORDS.items()}


def with_steps():
    """A byte-level vocabulary with a normalizer and an added token."""
    learned = learn_byte_level_bpe(LETTERS, size=280)
    return ByteLevelVocabulary(
        [*learned.tokens, "[x]"],
        learned.merges,
        normalizers=["nfc", "lowercase"],
        added_tokens=[AddedToken(content="[x]", lstrip=True)],
    )


TOKENIZERS = {
    "wordpiece": Tokenizer.from_vocab(WordPieceVocabulary([*SPECIAL_TOKENS, *TOKENS])),
    "bpe": Tokenizer.from_vocab(learn_bpe(WORDS, size=24)),
    "byte-level-bpe": Tokenizer.from_vocab(learn_byte_level_bpe(LETTERS, size=280)),
    "byte-level-bpe-with-steps": Tokenizer(with_steps(), lowercase=False),
    "unigram": Tokenizer.from_vocab(learn_unigram(WORDS, size=24)),
}
TEXTS = {
    "wordpiece": ["The café cats, x" + "x" * 200, "sat\x00", "IT İT II"],
    "bpe": ["New, lowest zzyzx", "the widerlowest!", "IT İT II"],
    "byte-level-bpe": ["the lower  newer\n", "", "IT İT 😀"],
    "byte-level-bpe-with-steps": ["the lower  newer\n", "", "IT I\u0307T 😀[x] "],
    "unigram": [" NEW,  lowest\tzzyzx 東", "", "IT İT II"],
}
CLIENT = """
import json, os, sys
import tensorflow as tf, tensorflow_text
folder, texts = sys.argv[1], json.loads(sys.argv[2])
signatures = tf.saved_model.load(folder).signatures
for name, given in texts.items():
    found = signatures[name](text=tf.constant(given))
    print(json.dumps({key: value.numpy().tolist() for key, value in found.items()}))
print(json.dumps([os.environ["LANG"], "keras_bert" in sys.modules]))
"""


class Served(tf.Module):
    """One signature a tokenizer: texts -> ids and the ends of the tokens, padded with -1."""

    def __init__(self):
        super().__init__()
        self.tokenizers = TOKENIZERS
        self.functions = {name: self._signature(name) for name in TOKENIZERS}

    def _signature(self, name):
        signature = [tf.TensorSpec([None], tf.string, name="text")]

        @tf.function(input_signature=signature, autograph=False)  # as in our exports
        def serve(text):
            tokens = self.tokenizers[name].tokenize_with_offsets(text)
            return {"ids": tokens.ids.to_tensor(-1), "ends": tokens.ends.to_tensor(-1)}

        return serve


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What another process says of TEXTS: {"ids": …, "ends": …} by tokenizer."""
    folder = tmp_path_factory.mktemp("export")
    served = Served()
    tf.saved_model.save(served, str(folder), signatures=served.functions)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    run = subprocess.run(
        [sys.executable, "-c", CLIENT, str(folder), json.dumps(TEXTS)],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**environment, "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
    )
    *found, others = map(json.loads, run.stdout.splitlines()[-len(TEXTS) - 1 :])
    assert others == ["tr_TR.UTF-8", False]
    return dict(zip(TEXTS, found, strict=True))


@pytest.mark.parametrize("name", TOKENIZERS)
def test_an_export_stands_alone(answers, name):
    tokens = TOKENIZERS[name].tokenize_with_offsets(TEXTS[name])
    assert answers[name]["ids"] == tokens.ids.to_tensor(-1).numpy().tolist()
    assert answers[name]["ends"] == tokens.ends.to_tensor(-1).numpy().tolist()


def test_a_turkish_locale_changes_nothing(answers):
    vocabulary = TOKENIZERS["wordpiece"].vocabulary
    ids = [id for id in answers["wordpiece"]["ids"][2] if id >= 0]
    assert [vocabulary.token(id) for id in ids] == ["i", "##t", "i", "##t", "i", "##i"]
