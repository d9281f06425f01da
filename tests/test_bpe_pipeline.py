"""Byte-pair encoding through the whole pipeline, from raw text to served answers."""

import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from data_gen.pretraining_data import pretraining_data
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.convert import convert
from keras_bert.cli.main import main
from keras_bert.inference.embed import embed
from keras_bert.inference.fill_mask import fill_mask
from keras_bert.inference.predict import predict
from keras_bert.records import DataFolder
from keras_bert.records.inspection import read_instances, verify
from keras_bert.samples.texts import write_manual
from keras_bert.tasks.pretraining.features import training_dataset
from keras_bert.text import Tokenizer, load_vocabulary
from keras_bert.text.vocabularies.bpe import END_OF_WORD, BpeVocabulary
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from keras_bert.training.finetuning_task import StartingPoint
from tests.eagerly import eagerly
from tests.messages import raises_input_error
from tests.peers import transformers
from tests.seeds import shifted
from tests.undrawn import undrawn
from tests.unmasked import unmask

LENGTH = 48
# "☃" is left out of the alphabet, so that words hold an [UNK].
TEXTS = ["Python reads the file", "a naïve list, of Strings!", "re☃ad ☃", "", "x" * 300]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with the corpus, and labelled texts."""
    work = tmp_path_factory.mktemp("bpe")
    paths = write_manual(work / "manual")
    text = [path.read_text(encoding="utf-8") for path in paths[:24]]
    text.append("It is sn☃wing again. There is a ☃ in the garden. Another ☃☃ is to come.\n")
    (work / "corpus.txt").write_text("\n\n".join(text), encoding="utf-8")
    rows = [f"{word} the value {i}\t{word}\n" for i in range(12) for word in ("Read", "Write")]
    (work / "train.tsv").write_text("".join(["text\tlabel\n", *rows]))
    (work / "dev.tsv").write_text("".join(["text\tlabel\n", *rows[:8]]))
    config = {
        "model_type": "bert", "vocab_size": 500, "hidden_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": LENGTH,
        "type_vocab_size": 2, "hidden_act": "gelu_new", "layer_norm_eps": 1e-12,
        "initializer_range": 0.3,
    }  # fmt: skip
    (work / "config.json").write_text(json.dumps(config))
    return work


@pytest.fixture(scope="module")
def vocab(work):
    output = work / "vocab"
    arguments = ["vocab", "--input", str(work / "corpus.txt"), "--output", str(output)]
    arguments += ["--algorithm", "bpe", "--size", "500", "--alphabet-limit", "70", "--cased"]
    assert main(arguments) == 0
    return output


def make_data(work, vocab, output, *options):
    """Runs the command of the data job."""
    arguments = ["pretraining-data", "--input", str(work / "corpus.txt"), "--vocab", str(vocab)]
    arguments += ["--output", str(output), "--max-length", str(LENGTH), "--max-predictions", "8"]
    arguments += ["--dupe-factor", "1", "--shard-bytes", "30000", "--eval-fraction", "0.1"]
    with undrawn():
        return main([*arguments, "--direct_num_workers=1", *options])


@pytest.fixture(scope="module")
def data(work, vocab):
    assert make_data(work, vocab, work / "data", "--mask-unit", "whole-word") == 0
    return DataFolder.open(work / "data")


@pytest.fixture(scope="module")
def pretrained(work, vocab, data):
    arguments = ["pretrain", "--data", data.path, "--vocab", str(vocab), "--batch-size", "8"]
    arguments += ["--architecture", str(work / "config.json"), "--steps", "4"]
    arguments += ["--eval-batches", "2"]
    with eagerly():
        assert main([*arguments, "--output", str(work / "pretrained")]) == 0
    return work / "pretrained" / "model"


@pytest.fixture(scope="module")
def finetuned(work, pretrained):
    arguments = ["finetune", "--model", str(pretrained), "--output", str(work / "finetuned")]
    arguments += ["--train", str(work / "train.tsv"), "--dev", str(work / "dev.tsv")]
    with eagerly():
        assert main([*arguments, "--epochs", "1", "--batch-size", "8", "--max-length", "24"]) == 0
    return work / "finetuned" / "model"


def test_the_data_folder_keeps_the_vocabulary_with_its_merges(vocab, data):
    learned = Tokenizer.from_folder(vocab).vocabulary
    vocabulary = data.vocabulary()
    assert vocabulary == learned and vocabulary.merges == learned.merges
    data.check_vocabulary(learned)
    with raises_input_error("made with another vocabulary"):
        data.check_vocabulary(BpeVocabulary(learned.tokens, learned.merges[:-1]))
    assert not (vocab.parent / "data" / "vocab.txt").exists()
    assert load_vocabulary(data.path) == learned  # so it can be given as --vocab
    assert data.card.lowercase is False  # nobody said --cased: the folder did


def test_every_law_holds_and_a_word_that_is_masked_in_part_is_found(data, capsys):
    assert main(["inspect", data.path, "--verify"]) == 0
    assert "All examples satisfy the invariants" in capsys.readouterr().out
    verify(data)
    [shard, *_] = data.shards("train")
    before = open(shard, "rb").read()
    spec, vocabulary = data.spec, data.vocabulary()
    parsed = spec.parse(list(tf.data.TFRecordDataset(shard)))
    ids = parsed["input_ids"].to_tensor().numpy()
    positions, masked_ids = parsed["masked_lm_positions"], parsed["masked_lm_ids"]
    counts = positions.row_lengths().numpy()
    original = unmask(ids, (positions.values.numpy(), counts), (masked_ids.values.numpy(), counts))
    inner = ~vocabulary.word_starts(original)
    # The first masked token that continues a word: it is taken out of its row's predictions.
    offsets = zip(positions.value_rowids().numpy(), positions.values.numpy(), strict=True)
    at, (row, position) = next((k, p) for k, p in enumerate(offsets) if inner[p])
    ids[row, position] = original[row, position]
    counts[row] -= 1
    columns = {
        name: value.numpy() for name, value in parsed.items() if not hasattr(value, "values")
    }
    lengths = parsed["input_ids"].row_lengths().numpy()
    columns["input_ids"] = (ids[np.arange(ids.shape[1]) < lengths[:, None]], lengths)
    columns["masked_lm_positions"] = (np.delete(positions.values.numpy(), at), counts)
    columns["masked_lm_ids"] = (np.delete(masked_ids.values.numpy(), at), counts)
    try:
        with tf.io.TFRecordWriter(shard) as writer:
            for record in spec.encode(columns):
                writer.write(record)
        with raises_input_error(f"record {row}: a word is masked in part"):
            verify(data)
    finally:
        open(shard, "wb").write(before)


def test_inspect_joins_tokens_to_words(work, data, capsys):
    text = "".join((work / "corpus.txt").read_text(encoding="utf-8").split())
    for instance in read_instances(data, data.shards("train"), count=40):
        words, tokens = [], instance.tokens
        for token in tokens:
            if token.word_start:
                words.append("")
            words[-1] += (token.text if token.original is None else token.original).replace(
                "(end of word)", ""
            )
        assert not any(END_OF_WORD in word for word in words)
        if "[UNK]" not in "".join(words):
            first, second = "".join(words).removeprefix("[CLS]").split("[SEP]")[:2]
            assert first in text and second in text
    assert main(["inspect", data.path, "--count", "10"]) == 0
    shown = capsys.readouterr().out
    assert "[MASK]{" in shown and END_OF_WORD not in shown and "@@" not in shown


def test_the_picture_of_the_card_names_tokens_readably(data, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.axes import Axes

    from data_gen import dataset_card

    names = []
    monkeypatch.setattr(
        Axes, "set_xticks", lambda self, offsets, labels=None, **_: names.extend(labels or [])
    )
    assert dataset_card.draw_card(data.card, data.vocabulary(), _At(tmp_path))
    assert "the" in names and len(names) == 30
    assert not any(END_OF_WORD in name for name in names)


class _At:
    def __init__(self, folder):
        self.folder = folder

    def file(self, name):
        return self.folder / name


def test_tfds_opens_the_folder(data):
    tfds = pytest.importorskip("tensorflow_datasets")
    builder = tfds.builder_from_directory(data.path)
    rows = data.card.splits["train"].instances
    assert sum(1 for _ in builder.as_dataset(split="train")) == rows > 100


def test_spans_obey_every_law(work, vocab):
    assert make_data(work, vocab, work / "spans", "--objective", "span") == 0
    verify(DataFolder.open(work / "spans"))


def test_dynamic_masks_keep_words_whole(work, vocab):
    options = ["--masking", "dynamic", "--mask-unit", "whole-word"]
    assert make_data(work, vocab, work / "dynamic", *options) == 0
    folder = DataFolder.open(work / "dynamic")
    verify(folder)
    vocabulary = folder.vocabulary()
    batches = training_dataset(folder, vocabulary=vocabulary, batch_size=64, seed=shifted(1))
    [(x, y, weights)] = batches.take(1).as_numpy_iterator()
    is_predicted = weights["masked_lm"] > 0  # (B, P)
    rows, positions = np.nonzero(is_predicted)[0], x["masked_lm_positions"][is_predicted]
    original = unmask(
        x["input_ids"], (positions, is_predicted.sum(axis=1)), (y["masked_lm"][is_predicted], None)
    )
    chosen = np.zeros(original.shape, bool)
    chosen[rows, positions] = True
    word = np.cumsum(vocabulary.word_starts(original)) - 1
    fractions = np.bincount(word, chosen.ravel()) / np.bincount(word)
    assert set(fractions.tolist()) == {0.0, 1.0}


def test_a_folder_of_finished_data_is_known_and_replaced(work, vocab, data, tmp_path, capsys):
    folder = tmp_path / "data"
    shutil.copytree(data.path, folder)
    assert make_data(work, vocab, folder) == 2
    assert "finished data" in capsys.readouterr().err
    lines = work / "wordpiece.txt"
    WordPieceVocabulary([*SPECIAL_TOKENS, *map(chr, range(33, 127))]).save(lines)
    assert make_data(work, lines, folder, "--force") == 0
    assert {"vocab.txt"} == {"vocab.txt", "vocab.json", "merges.txt"} & set(os.listdir(folder))
    verify(DataFolder.open(folder))


def test_a_case_that_contradicts_the_folder_is_one_sentence(work, vocab, tmp_path, capsys):
    with raises_input_error("is cased according to its tokenizer_config.json, and"):
        pretraining_data(
            input=work / "corpus.txt", vocab=vocab, output=tmp_path / "data", lowercase=True
        )
    uncased = tmp_path / "uncased"
    Tokenizer(load_vocabulary(vocab), lowercase=True).save(uncased)
    assert make_data(work, uncased, tmp_path / "data", "--cased") == 2
    refusal = "is uncased according to its tokenizer_config.json, and not cased"
    assert refusal in capsys.readouterr().err
    with raises_input_error("and not cased"):
        StartingPoint(architecture="tiny", vocab=uncased, cased=True)
    assert not (tmp_path / "data").exists()


def test_a_starting_point_takes_the_folder_and_its_case(work, vocab):
    start = StartingPoint(architecture=str(work / "config.json"), vocab=vocab)
    _, tokenizer = start.build()
    assert isinstance(tokenizer.vocabulary, BpeVocabulary) and tokenizer.lowercase is False


def test_model_folders_hold_the_tokenizer(vocab, pretrained, finetuned):
    given = Tokenizer.from_folder(vocab)
    names = {"vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json"}
    for folder in (pretrained, finetuned):
        file_names = {path.name for path in folder.iterdir()}
        assert file_names == names | {"config.json", "model.safetensors", "README.md"}
        encoder, tokenizer = load(folder)
        assert tokenizer.vocabulary == given.vocabulary and tokenizer.lowercase is False
        assert tokenizer.tokenize(TEXTS).to_list() == given.tokenize(TEXTS).to_list()
    save_folder(load_task(finetuned), given, finetuned, overwrite=True)  # it is our own
    (finetuned / "vocab.json").rename(finetuned / "away.json")
    try:
        with raises_input_error("vocab.json could not be read"):
            load(finetuned)
    finally:
        (finetuned / "away.json").rename(finetuned / "vocab.json")


@pytest.mark.peers
def test_a_model_folder_opens_in_transformers_with_the_same_ids(pretrained, finetuned):
    for folder in (pretrained, finetuned):
        their_tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        tokenizer = Tokenizer.from_folder(folder)
        ids = their_tokenizer(TEXTS[:4], add_special_tokens=False)["input_ids"]
        assert ids == tokenizer.tokenize(TEXTS[:4]).to_list()
        text = "Python reads"
        vocabulary = tokenizer.vocabulary
        [inner] = tokenizer.tokenize([text]).to_list()
        assert their_tokenizer(text)["input_ids"] == [vocabulary.cls_id, *inner, vocabulary.sep_id]
        assert their_tokenizer.mask_token_id == vocabulary.mask_id


def test_predictions_are_those_of_the_export(finetuned, tmp_path):
    with eagerly():
        answers = list(predict(model=finetuned, text=TEXTS))
    output = tmp_path / "served"
    assert main(["export", "--model", str(finetuned), "--output", str(output)]) == 0
    signatures = tf.saved_model.load(str(output / "1")).signatures
    probabilities = signatures["serving_default"](text=tf.constant(TEXTS))["probabilities"]
    expected = [list(answer["probabilities"].values()) for answer in answers]
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)
    # What a process with TensorFlow Text alone has: tests/exports/test_exports.py asks one.
    operations = {
        node.op
        for signature in signatures.values()
        for function in signature.graph.as_graph_def().library.function
        for node in function.node_def
    }
    assert not [name for name in operations if "Table" in name]
    assert operations - set(dir(tf.raw_ops)) <= {
        "FastWordpieceTokenizeWithOffsets",
        "NormalizeUTF8",
    }


@pytest.mark.usefixtures("eager")
def test_evaluate_takes_the_folder(work, finetuned, capsys):
    arguments = ["evaluate", "--json", "--model", str(finetuned), "--data", str(work / "dev.tsv")]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 8


@pytest.mark.usefixtures("eager")
def test_fill_mask_names_tokens_readably(pretrained):
    [candidates] = fill_mask(model=pretrained, text="Read the [MASK].", top_k=500)
    names = {candidate.token for candidate in candidates}
    assert len(names) == 500 and {"the", "(end of word)", "t@@", "[UNK]"} <= names


@pytest.mark.usefixtures("eager")
def test_embeddings_are_of_words_as_they_stand_in_the_text(pretrained):
    embeddings = list(
        embed(model=pretrained, text=["A naïve re☃ad, ☃ again!", ""], tokens="words-mean")
    )
    assert embeddings[0].tokens == ["A", "naïve", "re☃ad", ",", "☃", "again", "!"]
    assert embeddings[1].tokens == []
    tokens, _ = embed(model=pretrained, text=["A naïve re☃ad, ☃ again!", ""], tokens="subwords")
    assert "".join(tokens.tokens) == "Anaïvere☃ad,☃again!"


@pytest.mark.parametrize("to", ["google", "keras-nlp"])
def test_formats_without_a_place_for_merges_are_rejected(finetuned, tmp_path, to):
    if to == "keras-nlp":
        pytest.importorskip("keras_nlp")
    with raises_input_error("needs a WordPiece vocabulary, but this model has byte-pair"):
        convert(finetuned, tmp_path / "out", to=to)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("as_file", [False, True])
def test_a_damaged_byte_level_vocabulary_is_told_wherever_one_is_asked_for(
    work, data, pretrained, tmp_path, capsys, as_file
):
    folder = tmp_path / "roberta"
    folder.mkdir()
    if as_file:  # as transformers 5 saves it
        content = {"model": {"type": "BPE"}, "pre_tokenizer": {"type": "ByteLevel"}}
        (folder / "tokenizer.json").write_text(json.dumps(content))
        message = "expected the bytes of GPT-2"
    else:
        (folder / "vocab.json").write_text('{"<s>": 0, "a": 1, "Ġa": 2}')
        (folder / "merges.txt").write_text("#version: 0.2\nĠ a\n")
        message = "A byte-level vocabulary needs all of them."
    given = str(folder)
    tables = ["--train", str(work / "train.tsv"), "--dev", str(work / "dev.tsv")]
    for arguments in (
        ["pretraining-data", "--input", str(work / "corpus.txt"), "--vocab", given],
        ["pretrain", "--data", data.path, "--vocab", given, "--steps", "1"],
        ["finetune", "--architecture", "tiny", "--vocab", given, *tables],
    ):
        assert main([*arguments, "--output", str(tmp_path / "out")]) == 2
        assert message in capsys.readouterr().err
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes((pretrained / name).read_bytes())
    with raises_input_error(message):
        load(folder)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt", "tokenizer.json"])
def test_a_single_file_of_a_folder_is_no_vocabulary(vocab, name):
    with raises_input_error(f"{name} alone is not a vocabulary. Give a vocab.txt, or"):
        load_vocabulary(vocab / name)
