"""How two spans are related: learned from a file, by command, saved and served."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_bert import RelationClassifier
from keras_bert.checkpoints import load_task
from keras_bert.cli.main import main
from keras_bert.heads.spans import REPRESENTATIONS
from keras_bert.inference.predict import predict
from keras_bert.training.finetune import finetune
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.span_classification.conftest import write

KINDS = {"place": ["rome", "oslo", "old bath"], "person": ["ada", "max", "the old ada"]}
OTHERS = ["we", "saw", "in", "near", "and"]
LABELS = {("place", "person"): "home_of", ("person", "place"): "lives_in"}
WORDS = ["rome", "oslo", "old", "bath", "ada", "max", "the", *OTHERS]


def pair(rng, padding=3):
    """{"words", "head", "tail", "label"}: the label follows from the kinds, and from the order."""
    kinds = rng.choice(list(KINDS), 2).tolist()
    names = [str(rng.choice(KINDS[kind])).split() for kind in kinds]
    words, spans = [], [None, None]
    for which in rng.permutation(2):
        words += rng.choice(OTHERS, rng.integers(0, padding)).tolist()
        spans[which] = [len(words), len(words) + len(names[which])]
        words += names[which]
    words += rng.choice(OTHERS, rng.integers(0, padding)).tolist()
    label = LABELS.get(tuple(kinds), "no_relation")
    return {"words": words, "head": spans[0], "tail": spans[1], "label": label}


def make(representation="mean", **options):
    tokenizer = make_tokenizer(WORDS)
    encoder = make_encoder(
        tokenizer, num_hidden_layers=1, max_position_embeddings=16, initializer_range=0.2
    )
    return RelationClassifier(
        encoder,
        tokenizer,
        **{"labels": ["x", "NA"], "span_representation": representation, **options},
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(the model folder of a run, a file of examples that it has not seen)."""
    folder = tmp_path_factory.mktemp("relations")
    rng = make_rng(2)
    train = write(folder / "train.jsonl", [pair(rng) for _ in range(300)])
    dev = write(folder / "dev.jsonl", [pair(rng) for _ in range(40)])
    tokenizer = make_tokenizer(WORDS)
    tokenizer.vocabulary.save(folder / "vocab.txt")
    changes = {"max_position_embeddings": 16, "initializer_range": 0.2, "num_hidden_layers": 1}
    config = make_encoder(tokenizer, **changes).config
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    finetune(
        task="relation-classifier",
        train=train,
        dev=dev,
        architecture=folder / "config.json",
        vocab=folder / "vocab.txt",
        output=folder / "run",
        max_length=14,
        batch_size=16,
        epochs=3,
        learning_rate=0.01,
    )
    return folder / "run" / "model", dev


TEXT = "we saw and saw the old Ada near we and in and in Old Bath and saw and saw in and."
GIVEN = {"text": TEXT, "head": [15, 26], "tail": {"start": 49, "end": 57}}


@pytest.mark.usefixtures("eager")
def test_learns_which_way_a_relation_goes_and_is_measured_by_command(trained, capsys):
    model, dev = trained
    task = load_task(model)
    assert isinstance(task, RelationClassifier)
    assert task.labels == ("home_of", "lives_in", "no_relation")
    assert task.settings.null_label == "no_relation"
    assert main(["evaluate", "--json", "--model", str(model), "--data", dev]) == 0
    measures = json.loads(capsys.readouterr().out)
    metrics = json.loads((model.parent / "metrics.json").read_text())
    assert measures["confusion"] == metrics["dev"]["confusion"]
    assert measures["f1"] > 0.9 and measures["accuracy"] > 0.9
    assert main(["predict", "--model", str(model), "--data", dev]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert measures["accuracy"] == np.mean([line["label"] == line["expected"] for line in lines])
    assert np.sum(measures["confusion"]) == measures["examples"] == 40
    assert sum(one["examples"] for one in measures["calibration"]) == 40


@pytest.mark.usefixtures("eager")
def test_texts_and_words_are_answered_and_errors_shown(trained):
    words = {"words": ["old", "bath", "ada"], "head": [0, 2], "tail": [2, 3], "label": "lives_in"}
    task = load_task(trained[0])
    by_text, by_words = predictions = list(predict(model=task, data=[GIVEN, words]))
    assert (by_text["label"], by_words["label"]) == ("lives_in", "home_of")
    assert by_text["head"] == {"start": 15, "end": 26, "words": [4, 7], "text": "the old Ada"}
    assert by_text["tail"]["text"] == "Old Bath" and "expected" not in by_text
    assert by_words["expected"] == "lives_in"
    assert by_words["score"] == by_words["probabilities"]["home_of"] > 0.5
    examples = list(task.read([{**GIVEN, "label": "lives_in"}, words]))
    (error,) = task.errors(predictions, examples)
    text = task.describe_error(error)
    assert error["score"] == by_words["score"]
    assert text.startswith(f"line 2, true: lives_in, predicted: home_of ({error['score']:.2f})")
    assert text.startswith("line ") and ", true: lives_in, predicted: " in text
    assert text.endswith(', "old bath" and "ada": old bath ada')


@pytest.mark.usefixtures("eager")
def test_what_is_served_is_what_predict_answers(trained):
    task = load_task(trained[0])
    texts = [GIVEN, {"text": "Rome and max", "head": [9, 12], "tail": [0, 4]}]
    predictions = list(predict(model=task, data=texts))
    served = task.signatures()["serving_default"].function
    text = tf.constant([text["text"] for text in texts])
    positions = {"head_start": [15, 9], "head_end": [26, 12], "tail_start": [49, 0]}
    positions = {name: tf.constant(numbers) for name, numbers in positions.items()}
    outputs = served(text, **positions, tail_end=tf.constant([57, 4]))
    assert [label.decode() for label in outputs["label"].numpy()] == [
        a["label"] for a in predictions
    ]
    np.testing.assert_allclose(outputs["score"], [a["score"] for a in predictions], atol=1e-5)
    probabilities = [list(prediction["probabilities"].values()) for prediction in predictions]
    np.testing.assert_allclose(outputs["probabilities"], probabilities, atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must hold a word"):
        served(text, **positions, tail_end=tf.constant([49, 4]))
    # Too far apart for a row: no prediction, and the others' are as before.
    far = {**GIVEN, "tail": [49, 80]}
    distant, other = predict(model=task, data=[far, texts[1]])
    assert (distant["label"], distant["score"], {*distant["probabilities"].values()}) == (
        None,
        0.0,
        {0.0},
    )
    assert other["label"] == predictions[1]["label"]
    outputs = served(text, **positions, tail_end=tf.constant([80, 4]))
    assert [label.decode() for label in outputs["label"].numpy()] == ["", predictions[1]["label"]]
    np.testing.assert_allclose(outputs["score"], [0.0, predictions[1]["score"]], atol=1e-5)
    assert not outputs["probabilities"][0].numpy().any()


def test_a_word_over_a_causal_encoder_is_its_last_token(tmp_path):
    """The encoder has not seen the whole word before."""
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, is_decoder=True, num_hidden_layers=1)
    task = RelationClassifier(encoder, tokenizer, labels=["x", "NA"])
    assert task.settings.aggregation == "last"
    given = {"words": ["abc", "d", "ef"], "head": [0, 1], "tail": [2, 3]}
    sequences = task.features(list(task.read([given], labelled=False)))
    inputs, *_ = sequences.batch(np.array([0], np.int32))
    hidden = task.encoder({name: inputs[name] for name in task.encoder.input_names})[
        "sequence_output"
    ]
    words = task.word_means(hidden, inputs["word_starts"], inputs["word_ends"])
    # [CLS] a ##b ##c d e ##f [SEP]; behind the three words there are none.
    np.testing.assert_array_equal(words[0][:3], np.asarray(hidden)[0, [3, 4, 6]])
    assert not np.asarray(words[0][3:]).any()
    task.save(tmp_path / "model")
    assert load_task(tmp_path / "model").settings.aggregation == "last"
    # A folder from before there was a choice was trained on means.
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    del config["keras_bert"]["aggregation"]
    path.write_text(json.dumps(config))
    assert load_task(tmp_path / "model").settings.aggregation == "mean"


@pytest.mark.usefixtures("eager")
def test_pairs_too_far_apart_are_left_out_of_training_and_counted_as_wrong(tmp_path):
    """One of them among many stopped all of a run."""
    rng = make_rng(5)
    far = [
        {"words": ["ada", *["in"] * 30, "rome"], "head": [0, 1], "tail": [31, 32], "label": label}
        for label in ("lives_in", "no_relation")
    ]
    near = [pair(rng) for _ in range(30)]
    tokenizer = make_tokenizer(WORDS)
    encoder = make_encoder(tokenizer, max_position_embeddings=16, num_hidden_layers=1)
    task = RelationClassifier(encoder, tokenizer, labels=sorted({*LABELS.values(), "no_relation"}))
    sequences = task.features(list(task.read([*near, *far])), labelled=True)
    assert sequences.unfit[0] == 2 and "need a `max_length` of 34" in str(sequences.unfit[1])
    assert sequences.weights["logits"].tolist() == [1.0] * 30 + [0.0] * 2
    task.compile_defaults("sgd", jit_compile=False)

    def loss(examples):
        batches = task.features(list(task.read(examples)), labelled=True)
        return task.evaluate(batches.evaluation_batches(batch_size=64), verbose=0)[0]

    assert loss([*near, *far]) == pytest.approx(loss(near), rel=1e-5)
    examples = list(task.read([*near, *far]))
    predictions = list(predict(model=task, data=[*near, *far]))
    measures = task.official_metrics(predictions, examples)
    correct = sum(a["label"] == e.label for a, e in zip(predictions, examples, strict=True))
    assert measures["too_far"] == 2 and measures["accuracy"] == correct / 32
    assert "2 pairs too far apart, counted as wrong" in task.describe_metrics(measures)
    shown = map(task.describe_error, task.errors(predictions, examples))
    assert any("true: lives_in, predicted: none (too far apart) (0.00)" in text for text in shown)

    tokenizer.vocabulary.save(tmp_path / "vocab.txt")
    (tmp_path / "config.json").write_text(json.dumps(encoder.config.to_dict()))
    settings = {
        "task": "relation-classifier",
        "dev": write(tmp_path / "dev.jsonl", [*near, far[0]]),
        "architecture": tmp_path / "config.json",
        "vocab": tmp_path / "vocab.txt",
        "epochs": 1,
    }
    told = []
    train = write(tmp_path / "train.jsonl", [*near, *far])
    metrics = finetune(train=train, output=tmp_path / "run", report=told.append, **settings)
    assert metrics["dev"]["too_far"] == 1 and metrics["dev"]["examples"] == 31
    reason = "head and tail are too far apart for 16 tokens, and need a `max_length` of 34"
    assert any(line.startswith(f"Note: 2 training examples left out: {reason}") for line in told)
    assert any(line.startswith(f"Note: 1 dev example counted as wrong: {reason}") for line in told)
    train = write(tmp_path / "far.jsonl", [{**far[0], "label": "home_of"}, *far])
    with raises_input_error("No training example can be used: head and tail are too"):
        finetune(train=train, output=tmp_path / "other", **settings)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_the_logits_are_a_layer_over_the_two_vectors_and_their_product(representation):
    task = make(representation)
    sequences = task.features(list(task.read([GIVEN], labelled=False)))
    inputs, *_ = sequences.batch(np.array([0], np.int32))
    assert inputs["span_firsts"].numpy().tolist() == [[1, 10]]
    assert inputs["span_lasts"].numpy().tolist() == [[3, 11]]
    hidden = task.encoder({name: inputs[name] for name in task.encoder.input_names})[
        "sequence_output"
    ]
    words = task.word_means(hidden, inputs["word_starts"], inputs["word_ends"])
    grid = np.asarray(task.spans(words))[0]  # every span from every word
    head, tail = grid[1, 2], grid[10, 1]
    kernel, bias = (np.asarray(weight.value) for weight in task.classifier.weights)
    expected = np.concatenate([head, tail, head * tail]) @ kernel + bias
    np.testing.assert_allclose(task(inputs)["logits"][0], expected, rtol=1e-4, atol=1e-5)


def test_the_null_label_is_told_by_its_name_or_given():
    assert make().settings.null_label == "NA"
    assert make(labels=["x", "y"]).settings.null_label is None
    assert make(null_label="x").settings.null_label == "x"
    with raises_input_error("`null_label` must be one of the labels"):
        make(null_label="z")


def test_pairs_that_cannot_be_used_are_named():
    task = make()
    far = {"text": TEXT, "head": [0, 2], "tail": [77, 80], "label": "x"}
    cut = {"text": TEXT, "head": [0, 2], "tail": [16, 26], "label": "x"}
    with raises_input_error('"he old Ada", begins inside the word "the"'):
        task.features(list(task.read([cut])))
    pairs = list(task.read([{**far, "label": "z"}]))
    with raises_input_error('unknown label "z"'):
        task.official_metrics([], pairs)
    with raises_input_error("the given table has only one label"):
        RelationClassifier.infer_arguments(list(task.read([far, far])))
