"""Byte-level BPE through the pipeline: vocabulary, data, pre-training, filled masks."""

import json

import pytest

from data_gen.vocabulary import learn_vocabulary
from keras_bert.base.errors import InputError
from keras_bert.cli.main import main
from keras_bert.inference.fill_mask import fill_mask
from keras_bert.text import ByteLevelVocabulary, Tokenizer
from tests.eagerly import eagerly

SIZES = {
    **{"model_type": "bert", "vocab_size": 320, "hidden_size": 16, "num_hidden_layers": 1},
    **{"num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 32},
}
LINES = ["The café's cats sat on the mat, 東京 😀.", "It was the mat of times; the cat sat."]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with a corpus, and the vocabulary that was learned from it."""
    work = tmp_path_factory.mktemp("byte_level")
    documents = ["\n".join([*LINES, f"The {number} cats of the café."]) for number in range(30)]
    (work / "corpus.txt").write_text("\n\n".join(documents), encoding="utf-8")
    (work / "config.json").write_text(json.dumps(SIZES))
    arguments = ["vocab", "--input", str(work / "corpus.txt"), "--output", str(work / "vocab")]
    assert main([*arguments, "--algorithm", "byte-level-bpe", "--size", "320"]) == 0
    return work


def test_the_vocabulary(work):
    tokenizer = Tokenizer.from_folder(work / "vocab")
    assert isinstance(tokenizer.vocabulary, ByteLevelVocabulary) and not tokenizer.lowercase
    assert "Ġthe" in tokenizer.vocabulary and len(tokenizer) == 320
    for line in LINES:
        assert tokenizer.detokenize(tokenizer.tokenize([line])[0]) == line


def test_the_case_cannot_be_lowered(work):
    given = {"input": work / "corpus.txt", "output": work / "other", "size": 320}
    with pytest.raises(InputError, match="`lowercase` has no meaning for byte-level BPE"):
        learn_vocabulary(**given, algorithm="byte-level-bpe", lowercase=True)


def test_from_data_to_a_filled_mask(work, capsys):
    data, run = str(work / "data"), str(work / "run")
    arguments = ["--input", str(work / "corpus.txt"), "--vocab", str(work / "vocab")]
    arguments += ["--output", data, "--max-length", "32", "--objective", "mlm"]
    assert main(["pretraining-data", *arguments, "--direct_num_workers=1"]) == 0
    assert main(["inspect", data, "--verify"]) == 0
    arguments = ["--data", data, "--architecture", str(work / "config.json"), "--output", run]
    arguments += ["--steps", "2", "--batch-size", "4"]
    with eagerly():
        assert main(["pretrain", *arguments]) == 0, capsys.readouterr().err
    [candidates] = fill_mask(model=run, text="The [MASK] sat", top_k=3)
    assert len(candidates) == 3
    assert Tokenizer.from_folder(f"{run}/model").vocabulary.FILES[-1] == "merges.txt"
