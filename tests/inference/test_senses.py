"""Senses of words against numpy and vectors of `transformers`, and the files of rated pairs."""

import functools
import json

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

import keras_bert as kb
from keras_bert.cli.main import main
from keras_bert.readers.marked_words import read_rated_pairs
from keras_bert.samples import SENSES
from tests.peers import torch, transformers
from tests.small_model import make_encoder, make_tokenizer

WORDS = "the bank of river money lends is steep mouse runs click and".split()
TRAIN = [
    ("the **bank** of the river", "bank%river"),
    ("a **bank** lends money", "bank%money"),
    ("the steep **banks** of a river", "bank%river"),
    ("money is of the **bank**", "bank%money"),
    ("the **Bank** lends a river of money", "bank%money"),
    ("a **mouse** runs", "animal"),
    ("click the **mouse**", "device"),
    ("a mouse and a **mouse**", "animal"),
    ("steep is the **mouse** of river", "device"),
    ("a **click**", "sound"),
]
DEV = [
    ("the river and the **bank**", "bank%river"),
    ("**money** of the mouse", "device"),
    ("the **mouse** is steep", "animal"),
    ("**banks** lends", "bank%money"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = make_tokenizer(WORDS)
    folder = tmp_path_factory.mktemp("senses") / "model"
    from keras_bert.checkpoints import save_folder

    save_folder(make_encoder(tokenizer, num_hidden_layers=2), tokenizer, folder)
    return folder


@pytest.fixture(
    scope="module", params=["encoder", pytest.param("transformers", marks=pytest.mark.peers)]
)
def vectors_of(request, folder):
    """A function of a text with marks to [the mean over its marked tokens, for each layer].

    By a plain call of the encoder, and by the class of `transformers`.
    """
    states_of = by_encoder(folder) if request.param == "encoder" else by_transformers(folder)

    @functools.cache
    def vectors(text):
        before, word, _ = text.split("**")
        start, end = len(before), len(before) + len(word)
        offsets, states = states_of(text.replace("**", ""))
        inside = [n for n, (a, b) in enumerate(offsets) if a < end and b > start and b > a]
        return [np.asarray(x)[0, inside].astype("float64").mean(axis=0) for x in states]

    return vectors


def by_encoder(folder):
    encoder, tokenizer = kb.load(folder)

    def states_of(text):
        tokens = tokenizer.tokenize_with_offsets([text])
        vocabulary = tokenizer.vocabulary
        ids = np.array([[vocabulary.cls_id, *tokens.ids.to_list()[0], vocabulary.sep_id]], "int32")
        inputs = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": 0 * ids}
        offsets = zip(tokens.starts.to_list()[0], tokens.ends.to_list()[0], strict=True)
        states = encoder(inputs, outputs=["hidden_states"])["hidden_states"]
        return [(0, 0), *offsets, (0, 0)], states

    return states_of


def by_transformers(folder):
    model = transformers.BertModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def states_of(text):
        inputs = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
        offsets = inputs.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            return offsets, model(**inputs, output_hidden_states=True).hidden_states

    return states_of


def cosine(a, b):
    return a @ b / np.sqrt(a @ a * (b @ b))


SENSES_OF = {
    "bank": ["bank%river", "bank%money"],
    "banks": ["bank%river", "bank%money"],
    "mouse": ["animal", "device"],
    "click": ["sound"],
}
ALL = ["bank%river", "bank%money", "animal", "device", "sound"]


def nearest(vector, form, examples):
    """The sense of the nearest mean, one sense after another."""
    best = None
    for sense in SENSES_OF.get(form, ALL):
        vectors = [example for example, name in examples if name == sense]
        if vectors and (best is None or cosine(np.mean(vectors, axis=0), vector) > best[0]):
            best = cosine(np.mean(vectors, axis=0), vector), sense
    return best and best[1]


def form_of(text):
    return text.split("**")[1].casefold()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("dev", [None, DEV])
def test_accuracies_are_those_of_plain_loops_over_vectors(folder, vectors_of, dev):
    sense_vectors = kb.senses(model=folder, train=TRAIN, dev=dev)
    layers = ["first", "layer-1", "layer-2"]
    assert list(sense_vectors.metrics["accuracy"]) == layers
    for number, layer in enumerate(layers):
        train = [(vectors_of(text)[number], sense) for text, sense in TRAIN]
        is_right = []
        if dev is None:
            for n, (text, sense) in enumerate(TRAIN):
                others = train[:n] + train[n + 1 :]
                is_right.append(nearest(train[n][0], form_of(text), others) == sense)
        else:
            for text, sense in dev:
                predicted = nearest(vectors_of(text)[number], form_of(text), train)
                # A sense belongs to a word: "money" has none, whatever it is called.
                is_right.append(predicted == sense and form_of(text) in SENSES_OF)
        assert sense_vectors.metrics["accuracy"][layer] == pytest.approx(
            np.mean(is_right), abs=1e-6
        )
    metrics = sense_vectors.metrics
    assert metrics["accuracy"][metrics["layers"]] == max(metrics["accuracy"].values())
    # bank%money three times of five; animal, the first in the file, twice of four; sound.
    expected = 6 / 10 if dev is None else 2 / 4
    assert metrics["most_frequent_sense"] == pytest.approx(expected)
    assert (metrics["words"], metrics["senses"]) == (3, 5)
    assert metrics["examples"] == len(TRAIN if dev is None else dev)
    number = layers.index(metrics["layers"])
    for sense, vector in zip(sense_vectors.senses, sense_vectors.vectors, strict=True):
        vectors = [vectors_of(text)[number] for text, name in TRAIN if name == sense.name]
        assert sense.examples == len(vectors)
        np.testing.assert_allclose(vector, np.mean(vectors, axis=0), atol=1e-5)


@pytest.mark.usefixtures("eager")
def test_saved_vectors_predict_as_the_command_does(folder, vectors_of, tmp_path, capsys):
    train, data, output = (tmp_path / name for name in ("train.tsv", "new.txt", "s.safetensors"))
    train.write_text("text\tsense\n" + "".join(f"{text}\t{sense}\n" for text, sense in TRAIN))
    data.write_text("".join(f"{text}\n" for text, _ in DEV))
    command = ["senses", "--model", str(folder)]
    assert (
        main([*command, "--train", str(train), "--layers", "layer-2", "--output", str(output)]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[1] == "layer-2" and "most frequent" in lines[1]
    assert lines[2] == "Accuracy on 10 examples: 5 senses of 3 words."
    loaded = kb.SenseVectors.load(output)
    predictions = list(loaded.predict([text for text, _ in DEV]))
    examples = [(vectors_of(text)[2], sense) for text, sense in TRAIN]
    for (text, _), one in zip(DEV, predictions, strict=True):
        vector = vectors_of(text)[2]
        assert one.sense == nearest(vector, form_of(text), examples)
        centroid = np.mean([example for example, name in examples if name == one.sense], axis=0)
        assert one.similarity == pytest.approx(cosine(centroid, vector), abs=1e-5)
        assert one.text == text.replace("**", "") and one.word == text.split("**")[1]
    assert main([*command, "--predict", str(output), "--data", str(data)]) == 0
    out, err = capsys.readouterr()
    shown = [json.loads(line) for line in out.splitlines()]
    assert "Next: keras-bert embed" in err
    assert shown == [one._asdict() for one in predictions]
    again = kb.senses(model=folder, train=train, layers=["layer-2"], output=output)
    np.testing.assert_array_equal(again.vectors, loaded.vectors)
    other = make_encoder(make_tokenizer(WORDS), num_hidden_layers=1)
    other_folder = tmp_path / "other"
    from keras_bert.checkpoints import save_folder

    save_folder(other, make_tokenizer(WORDS), other_folder)
    with pytest.raises(kb.InputError, match="were made with another model than that of"):
        kb.SenseVectors.load(output, model=other_folder)


@pytest.mark.usefixtures("eager")
def test_a_real_model_tells_the_senses_of_the_samples_apart(minilm_folder):
    sense_vectors = kb.senses(model=minilm_folder, train=SENSES, layers=["first", "last"])
    metrics = sense_vectors.metrics
    assert metrics["accuracy"]["last"] > 0.85 > 0.6 > metrics["most_frequent_sense"]
    assert metrics["accuracy"]["first"] < 0.6
    texts = ["They sat on the **bank** and fished.", "The **bank** lends money to shops."]
    assert [one.sense for one in sense_vectors.predict(texts)] == ["bank%river", "bank%money"]


COSIMLEX = """word1\tword2\tcontext1\tcontext2\tsim1\tsim2\tword1_context1\tword2_context1\
\tword1_context2\tword2_context2
bank\triver\tthe <strong>bank</strong> of the <strong>river</strong>\
\ta <strong>bank</strong> lends <strong>river</strong> money\t3.5\t1.25\tbank\triver\tbank\triver
mouse\tmoney\ta <strong>mouse</strong> and a <strong>mouse</strong> of <strong>money</strong>\
\tclick the <strong>mouse</strong> of <strong>Money</strong>\t0\t2.5\tmouse\tmoney\tmouse\tMoney
"""
WIC = """bank\tN\t1-1\tthe bank of river .\ta bank lends
mouse\tN\t1-2\ta mouse runs\tclick the mouse
bank\tN\t3-1\tmoney of the bank\tthe bank lends
bank\tN\t0-3\tbank of river\tmoney lends a bank
"""
MARKED = [
    ("the **bank** of the river", "the bank of the **river**", 3.5),
    ("a **bank** lends river money", "a bank lends **river** money", 1.25),
    ("a **mouse** and a mouse of money", "a mouse and a mouse of **money**", 0.0),
    ("click the **mouse** of Money", "click the mouse of **Money**", 2.5),
]
WIC_MARKED = [
    ("the **bank** of river .", "a **bank** lends"),
    ("a **mouse** runs", "click the **mouse**"),
    ("money of the **bank**", "the **bank** lends"),
    ("**bank** of river", "money lends a **bank**"),
]


def expected_cosines(vectors_of, pairs):
    return [cosine(*(vectors_of(text)[2] for text in pair[:2])) for pair in pairs]


@pytest.mark.usefixtures("eager")
def test_pairs_of_cosimlex(folder, vectors_of, tmp_path):
    path = tmp_path / "cosimlex_en.tsv"
    path.write_text(COSIMLEX)
    metrics = kb.word_similarity(model=folder, pairs=path)
    cosines = np.array(expected_cosines(vectors_of, MARKED))
    ratings = np.array([3.5, 1.25, 0, 2.5])
    assert metrics["spearman"] == pytest.approx(spearmanr(ratings, cosines)[0])
    assert metrics["pearson"] == pytest.approx(pearsonr(ratings, cosines)[0], abs=1e-4)
    rated, cosine_changes = ratings[1::2] - ratings[::2], cosines[1::2] - cosines[::2]
    change = sum(rated * cosine_changes) / np.sqrt(sum(rated**2) * sum(cosine_changes**2))
    assert metrics["change"] == pytest.approx(change, abs=1e-4)
    given = [pair[:2] for pair in MARKED]
    np.testing.assert_allclose(kb.word_similarity(model=folder, pairs=given), cosines, atol=1e-5)
    scored = tmp_path / "scored.tsv"
    lines = ["\t".join(map(str, pair)) for pair in MARKED]
    scored.write_text("\n".join(["text_a\ttext_b\tscore", *lines]))
    assert kb.word_similarity(model=folder, pairs=scored) == {
        name: metrics[name] for name in ("spearman", "pearson", "pairs")
    }


@pytest.mark.usefixtures("eager")
def test_pairs_of_wic_and_of_superglue(folder, vectors_of, tmp_path, capsys):
    path = tmp_path / "dev.data.txt"
    path.write_text(WIC)
    (tmp_path / "dev.gold.txt").write_text("F\nF\nT\nT\n")
    metrics = kb.word_similarity(model=folder, pairs=path)
    cosines = np.array(expected_cosines(vectors_of, WIC_MARKED))
    labels = np.array([0, 0, 1, 1])
    accuracies = [np.mean((cosines > edge) == labels) for edge in [-1, *cosines]]
    assert metrics["accuracy"] == max(accuracies)
    assert np.mean((cosines > metrics["threshold"]) == labels) == max(accuracies)
    assert metrics["spearman"] == pytest.approx(spearmanr(labels, cosines)[0])
    records = []
    for (first, second), label in zip(WIC_MARKED, labels, strict=True):
        record = {"word": "bank", "label": bool(label)}
        for number, text in ((1, first), (2, second)):
            before, word, _ = text.split("**")
            record[f"sentence{number}"] = text.replace("**", "")
            record |= {f"start{number}": len(before), f"end{number}": len(before + word)}
        records.append(json.dumps(record))
    superglue = tmp_path / "val.jsonl"
    superglue.write_text("\n".join(records))
    assert kb.word_similarity(model=folder, pairs=superglue) == metrics
    command = ["senses", "--model", str(folder), "--pairs", str(path), "--quiet"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out) == {"layers": "last", **metrics}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "text\tsense\nno mark\tx\na **b**\ty\n", "line 2: 0 marked words. Expected one"),
        ("a.tsv", "text\tsense\na **b** **c**\tx\n", "line 2: 2 marked words. Expected one, mark"),
        ("a.txt", "a **b** c\nd **e** f\n", "Could not read"),
        ("a.jsonl", '{"text": "a **b**"}\n', "no column has a usual name for the label"),
        ("a.tsv", "text\tsense\na **b**\t\n", "line 2"),
        ("a.tsv", "text\tsense\na **\u200b** c\tx\n", "has no token. Mark a word."),
    ],
)
def test_bad_files_of_senses_are_one_sentence(folder, tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(kb.InputError) as raised:
        kb.senses(model=folder, train=path, layers="last")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", COSIMLEX.replace("3.5", "x"), 'line 2: "x" is not a score, a number such as'),
        (
            "a.tsv",
            COSIMLEX.replace("<strong>bank</strong> lends", "bank"),
            "line 2: context2 has 1",
        ),
        ("a.data.txt", WIC.replace("3-1", "3-7"), 'line 3: "3-7" should be the numbers, from 0'),
        ("b.data.txt", WIC, "has 0 rated pairs of 4. A correlation needs two or more"),
        (
            "a.jsonl",
            '{"sentence1": "a", "sentence2": "b", "start1": 0, "end1": 5, "start2": 0, "end2": 1}',
            '"start1" and "end1" should be the characters of a word in "sentence1".',
        ),
        ("a.tsv", "text_a\ttext_b\tscore\na **b**\tc\t1\nb\ta\t2\n", "line 2: 0 marked words."),
    ],
)
def test_bad_files_of_pairs_are_one_sentence(folder, tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(kb.InputError) as raised:
        kb.word_similarity(model=folder, pairs=path)
    assert message in str(raised.value)


def test_bad_labels_of_wic_are_one_sentence(tmp_path):
    path, gold = tmp_path / "x.data.txt", tmp_path / "x.gold.txt"
    path.write_text(WIC)
    for labels, message in (("T\nF\n", "has 2 labels, and"), ("T\nF\nx\nT\n", 'line 3: "x"')):
        gold.write_text(labels)
        with pytest.raises(kb.InputError, match=message):
            read_rated_pairs(path)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "Pass one of --train, --predict and --pairs. Received: none."),
        (["--train", "a", "--pairs", "b"], "Received: --train and --pairs."),
        (["--predict", "a"], "Pass --data or --text with --predict, and not without it."),
        (["--train", "a", "--text", "b"], "Pass --data or --text with --predict, and not"),
        (["--pairs", "a", "--output", "b"], "--dev and --output are for --train. Leave them out."),
        (["--train", "a", "--layers", "top"], "--layers is 'top'. It should be last,"),
        (["--predict", "missing", "--text", "a"], "There is no file missing. Give an output of"),
        (["--train", str(SENSES), "--layers", "layer-9"], "needs a model of at least 9 layers"),
    ],
)
def test_bad_flags_are_one_sentence(folder, flags, message, capsys):
    assert main(["senses", "--model", str(folder), *flags]) == 2
    assert message in capsys.readouterr().err


def test_what_is_not_sense_vectors_is_not_replaced_or_read(folder, tmp_path):
    for name, message in (
        ("a.npz", "should end in .safetensors"),
        ("a.safetensors", "a file that this command did not write"),
    ):
        path = tmp_path / name
        path.write_text("mine")
        with pytest.raises(kb.InputError, match=message):
            kb.senses(model=folder, train=TRAIN, layers="last", output=path)
        assert path.read_text() == "mine"
    with pytest.raises(kb.InputError, match="does not contain sense vectors"):
        kb.SenseVectors.load(tmp_path / "a.safetensors")
    assert kb.word_similarity(model=folder, pairs=[]) == []
    with pytest.raises(kb.InputError, match="`train` has no examples. Expected texts with a"):
        kb.senses(model=folder, train=[])
    with pytest.raises(kb.InputError, match="Pair 1 of those given must be two texts"):
        kb.word_similarity(model=folder, pairs=["a **b**"])
    with pytest.raises(kb.InputError, match="Pair 1 of those given must be two texts"):
        kb.word_similarity(model=folder, pairs=[("a **b**", 0.5)])
    with pytest.raises(kb.InputError, match="Pair 1 of those given: 0 marked words"):
        kb.word_similarity(model=folder, pairs=[("a", "**b**")])
