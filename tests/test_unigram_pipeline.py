"""A unigram model through the pipeline: vocabulary, data, pre-training, filled masks, an export."""

import json

import pytest
import tensorflow as tf

import keras_bert as kb
from keras_bert.base.files import read_json
from keras_bert.cli.main import main
from keras_bert.text.vocabulary import BERT_TOKENS
from tests.eagerly import eagerly

SIZES = {
    **{"model_type": "bert", "vocab_size": 120, "hidden_size": 16, "num_hidden_layers": 1},
    **{"num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 32},
}
LINES = ["The café's cats sat on the mat, 東京 😀.", "It was the mat of times; the cat sat."]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with a corpus, and the vocabulary that was learned from it."""
    work = tmp_path_factory.mktemp("unigram")
    documents = ["\n".join([*LINES, f"The {number} cats of the café."]) for number in range(30)]
    (work / "corpus.txt").write_text("\n\n".join(documents), encoding="utf-8")
    arguments = ["vocab", "--input", str(work / "corpus.txt"), "--output", str(work / "vocab")]
    assert main([*arguments, "--algorithm", "unigram", "--size", "120"]) == 0
    size = len(kb.load_vocabulary(work / "vocab"))
    (work / "config.json").write_text(json.dumps({**SIZES, "vocab_size": size}))
    return work


def test_the_vocabulary(work):
    tokenizer = kb.Tokenizer.from_folder(work / "vocab")
    assert isinstance(tokenizer.vocabulary, kb.UnigramVocabulary) and tokenizer.lowercase
    assert tokenizer.special_tokens == BERT_TOKENS and "▁" in tokenizer.vocabulary
    for line in LINES:
        assert tokenizer.detokenize(tokenizer.tokenize([line])[0]) == line.lower()
    names = ["counts.tsv", "tokenizer.json", "tokenizer_config.json"]
    assert sorted(path.name for path in (work / "vocab").iterdir()) == names


def test_from_data_to_a_filled_mask(work, capsys):
    data, run = str(work / "data"), str(work / "run")
    arguments = ["--input", str(work / "corpus.txt"), "--vocab", str(work / "vocab")]
    arguments += ["--output", data, "--max-length", "32", "--mask-unit", "whole-word"]
    arguments += ["--direct_num_workers=1"]
    assert main(["pretraining-data", *arguments]) == 0, capsys.readouterr().err
    assert main(["inspect", data, "--verify"]) == 0
    assert main(["pretraining-data", *arguments]) == 0
    assert "is finished already" in capsys.readouterr().err
    card = read_json(work / "data" / "dataset_card.json")
    assert card["vocabulary"]["sha256"] == kb.load_vocabulary(work / "vocab").sha256
    assert kb.Tokenizer.from_folder(data).vocabulary == kb.load_vocabulary(work / "vocab")
    arguments = ["--data", data, "--architecture", str(work / "config.json"), "--output", run]
    arguments += ["--steps", "2", "--batch-size", "4"]
    with eagerly():
        assert main(["pretrain", *arguments]) == 0, capsys.readouterr().err
    [candidates] = kb.fill_mask(model=run, text="The [MASK] sat", top_k=3)
    kb.export(model=run, output=work / "served")
    served = tf.saved_model.load(str(work / "served" / "1")).signatures["serving_default"]
    answers = served(text=tf.constant(["The [MASK] sat"]))
    names = [token.decode() for token in answers["pieces"][0, 0].numpy()[:3]]
    assert names == [candidate.token for candidate in candidates]
