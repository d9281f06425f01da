"""A tagger from the command line to the server: trained, measured, asked and exported."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.checkpoints import load_task
from keras_bert.cli.main import main
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.predict import predict
from keras_bert.tasks.tagging.decode import word_distributions
from keras_bert.tasks.tagging.signatures import distributions
from keras_bert.tasks.tagging.tagger import Tagger
from keras_bert.training.finetune import finetune
from keras_bert.training.selection import best_metric_value
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.family import Family

PEOPLE, PLACES = ("anna", "bob", "carla", "dieter"), ("rome", "york", "bonn", "lima")
LABELS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
TEXTS = [
    "",
    "Ánna wént to (Bönn)!",
    "\u200b\ufeff  ",
    "東京 and 漢字ab",
    "ＡＢ\u3000ﬁ e\u0301\u0327x \U0001f469\u200d\U0001f467 \U0001f600ok",
    # No two words are alike: tags of words that are could change places at the same score.
    " ".join("abcdefghijklmnopqrstuvwxyz"[n % 26] * (1 + n // 26) for n in range(60)),
]


def sentences(count, seed):
    rng = make_rng(seed)
    for _ in range(count):
        person, place, other = rng.choice(PEOPLE), rng.choice(PLACES), rng.choice(PLACES)
        yield (
            ["then", person, "saw", "new", place, "and", other, "."],
            [
                *("O", "B-PER", "O", "B-LOC", "I-LOC", "O", "B-LOC", "O"),
            ],
        )


def write(path, count, seed):
    lines = []
    for words, tags in sentences(count, seed):
        lines += [f"{word}\t{tag}" for word, tag in zip(words, tags, strict=True)] + ["\t"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


FAMILY = Family(  # with transitions between words
    task="tagger",
    words=["then", "saw", "new", "and", *PEOPLE, *PLACES],
    write=write,
    ending="conll",
    train_count=48,
    dev_count=12,
    encoder={"num_hidden_layers": 1},
    flags="--crf --epochs 4 --batch-size 8 --learning-rate 0.01 --max-length 24 --dropout 0",
)


def test_a_run_keeps_the_best_f1_and_learns(run):
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["labels"] == LABELS
    assert metrics["dev"]["f1"] > 0.95 and metrics["dev"]["examples"] == 12
    best = max(entry["eval"]["f1"] for entry in metrics["history"] if "eval" in entry)
    assert metrics["dev"]["f1"] == pytest.approx(best, abs=1e-6)
    config = json.loads((run / "model" / "config.json").read_text())
    assert config["architectures"] == ["BertForTokenClassification"]
    assert config["keras_bert"]["crf"] is True and config["keras_bert"]["max_length"] == 24


@pytest.mark.parametrize("tokens", [{"label_subwords": "all"}, {"aggregation": "mean"}])
@pytest.mark.usefixtures("eager")
def test_the_best_epoch_is_kept_by_words_and_not_by_tokens(tokens, files, tmp_path):
    path = tmp_path / "pos.conll"  # words of one to five tokens, the longer the more often a noun
    path.write_text("\n".join(f"{'xq' * n}y\t{'VN'[n > 0]}" for n in (0, 1, 2, 0, 2)) + "\n")
    metrics = finetune(
        task="tagger",
        model=files["encoder"],
        train=path,
        dev=path,
        output=tmp_path / "run",
        epochs=1,
        learning_rate=1e-9,
        **tokens,
    )
    assert metrics["best_metric"] == "accuracy"
    assert best_metric_value(metrics) == pytest.approx(metrics["dev"]["accuracy"], abs=1e-6)


def test_evaluate_says_what_the_run_said_and_shows_errors(run, files, tmp_path, capsys):
    assert main(["evaluate", "--json", "--model", str(run), "--data", str(files["dev"])]) == 0
    measures = json.loads(capsys.readouterr().out)
    assert measures == json.loads((run / "metrics.json").read_text())["dev"]
    wrong = tmp_path / "wrong.conll"
    words = "then anna saw new york and rome .".split()
    tags = "O B-PER O B-LOC I-LOC I-LOC B-LOC O".split()
    correct_tags = ["O" if word == "and" else tag for word, tag in zip(words, tags, strict=True)]
    pairs = [*zip(words, correct_tags, strict=True), ("", ""), *zip(words, tags, strict=True)]
    wrong.write_text("\n".join(" ".join(pair) for pair in pairs))
    evaluation = evaluate(model=run, data=wrong, show_errors=3)
    assert evaluation["recall"] == 5 / 6 and evaluation["labels"]["LOC"]["examples"] == 4
    (error,) = evaluation["errors"]
    assert (error["words"], error["expected"]) == (words, tags)
    assert Tagger.describe_error(error) == (
        f"line 10: {' '.join(words)}\n"
        '  true: PER "anna", LOC "new york and", LOC "rome"\n'
        '  predicted: PER "anna", LOC "new york", LOC "rome"'
    )


@pytest.mark.usefixtures("eager")
def test_predict_gives_words_with_their_places(run, capsys):
    assert main(["predict", "--model", str(run), "--text", "Then  ánna saw New York."]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["words"] == ["Then", "ánna", "saw", "New", "York", "."]
    assert answer["tags"] == ["O", "B-PER", "O", "B-LOC", "I-LOC", "O"]
    assert (answer["starts"], answer["ends"]) == ([0, 6, 11, 15, 19, 23], [4, 10, 14, 18, 23, 24])
    assert [(e["label"], e["text"]) for e in answer["entities"]] == [
        ("PER", "ánna"),
        ("LOC", "New York"),
    ]


def test_a_file_of_another_task_is_rejected_in_a_sentence(run, tmp_path, capsys):
    other = tmp_path / "pos.conllu"
    other.write_text("1\tanna" + "\tNOUN" * 8 + "\n")
    assert main(["evaluate", "--json", "--model", str(run), "--data", str(other)]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert 'pos.conllu, line 1: the model does not have the tag "NOUN"' in said
    assert said.endswith("The model's tags name chunks, and those of this file do not.")
    other.write_text("1\tanna" + "\tB-NEW" * 8 + "\n")
    assert main(["evaluate", "--json", "--model", str(run), "--data", str(other)]) == 2
    assert 'unknown label "B-NEW". The model\'s labels are' in capsys.readouterr().err


@pytest.fixture(scope="module", params=["crf", "bilstm"])
def tagger(request, files):
    """The tagger of the run; and one with an LSTM and random weights that combines all tokens."""
    if request.param == "crf":
        return load_task(request.getfixturevalue("run") / "model")
    tokenizer = make_tokenizer()
    task = Tagger(
        make_encoder(tokenizer, num_hidden_layers=1),
        tokenizer,
        labels=LABELS,
        max_length=16,
        bilstm=3,
        label_subwords="all",
        aggregation="product",
    )
    rng = make_rng(1)
    for variable in [w for head in task.HEADS for w in getattr(task, head).weights]:
        variable.assign(rng.normal(0, 0.7, variable.shape))
    task.save(files["folder"] / "bilstm")
    loaded = load_task(files["folder"] / "bilstm")
    assert loaded.get_config() == task.get_config() and loaded.METRIC == "f1"
    for weight, loaded_weight in zip(task.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), loaded_weight.numpy())
    return loaded


@pytest.mark.parametrize("combine", ["first", "last", "mean", "product"])
def test_the_graph_combines_tokens_as_decoding_does(combine):
    sizes = np.array([2, 1, 4, 1])
    logits = make_rng(2).normal(0, 2, (8, 3)).astype("float32")
    is_first = np.zeros(8, np.bool_)
    is_first[np.cumsum(sizes) - sizes] = True
    word_probabilities = distributions(combine, logits, is_first)
    expected = word_distributions(logits.astype("float64"), sizes, aggregation=combine)
    np.testing.assert_allclose(word_probabilities, expected, atol=1e-6)


def test_a_tagger_of_whole_documents_is_not_exported(tmp_path):
    """A served text would be read without the sentences around it."""
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    task = Tagger(encoder, tokenizer, labels=LABELS, max_length=16, document_context=True)
    with raises_input_error(
        "A tagger with `document_context` cannot be exported: it reads the sentences around"
    ):
        task.export(tmp_path / "served")
    assert not (tmp_path / "served").exists()


@pytest.mark.usefixtures("eager")
def test_a_server_answers_as_predict_does(tagger):
    signatures = tagger.signatures()
    served = signatures["serving_default"]
    serve = served.function
    outputs = {name: value.numpy() for name, value in serve(tf.constant(TEXTS)).items()}
    expected = list(predict(model=tagger, text=TEXTS))
    assert outputs["lengths"].tolist() == [len(answer["words"]) for answer in expected]
    assert outputs["lengths"].tolist()[:3] == [0, 7, 0] and outputs["words"].shape[1] == 60
    for row, answer in enumerate(expected):
        count = len(answer["words"])
        for name in ("words", "tags"):
            assert [text.decode() for text in outputs[name][row, :count]] == answer[name]
            assert not any(outputs[name][row, count:])
        for name in ("starts", "ends"):
            assert outputs[name][row, :count].tolist() == answer[name]
        # Sums over 60 words: float32 in the graph, float64 outside of it.
        np.testing.assert_allclose(outputs["scores"][row, :count], answer["scores"], atol=5e-5)
    for text, count in (("", 0), ("word", 1)):
        alone = serve(tf.constant([text]))
        assert alone["lengths"].numpy() == [count] and alone["words"].shape == (1, count)
    text = "Ánna (bonn)"
    (one,) = predict(model=tagger, text=[text])
    vocabulary = tagger.tokenizer.vocabulary
    ids = tagger.tokenizer.tokenize([text])[0].numpy()
    row = [vocabulary.cls_id, *ids, vocabulary.sep_id]
    by_ids = signatures["ids"].function(
        input_ids=tf.constant([row]),
        input_mask=tf.ones([1, len(row)], tf.int32),
        segment_ids=tf.zeros([1, len(row)], tf.int32),
    )
    tags = [tag.decode() for tag in by_ids["tags"].numpy()[0]]
    assert [tag for tag in tags if tag] == one["tags"]
    np.testing.assert_allclose(
        by_ids["scores"].numpy()[0][[bool(tag) for tag in tags]], one["scores"], atol=3e-6
    )
