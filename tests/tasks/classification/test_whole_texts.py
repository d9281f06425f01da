"""The tasks over whole texts: what they read, train on, answer, and what lies in their folders."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from keras_bert import Classifier, MultipleChoice, PairClassifier, Pretrainer, Regressor
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load_task
from keras_bert.tasks.losses import CountedAccuracy
from keras_bert.tasks.outputs import Inference
from tests.messages import raises_input_error
from tests.peers import torch, transformers
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

LABELS = ["0", "1", "2"]
KINDS = {
    "cls": lambda e, t: Classifier(e, t, labels=LABELS),
    "mean": lambda e, t: Classifier(e, t, labels=LABELS, pooling="mean"),
    "both": lambda e, t: Classifier(e, t, labels=LABELS, pooling="both"),
    "several": lambda e, t: Classifier(e, t, labels=LABELS, multi_label=True, threshold=0.4),
    "pair": lambda e, t: PairClassifier(e, t, labels=LABELS),
    "score": lambda e, t: Regressor(e, t, mean=30.0, scale=16.0),
}


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(["film", "good", "bad"])


@pytest.fixture(scope="module")
def tasks(tokenizer):
    return {name: make(one_block(tokenizer), tokenizer) for name, make in KINDS.items()}


@pytest.fixture(scope="module")
def saved(tasks, tmp_path_factory):
    """The folder of each."""
    root = tmp_path_factory.mktemp("saved")
    for name, task in tasks.items():
        task.save(root / name)
    return {name: root / name for name in tasks}


def one_block(tokenizer, **changes):
    return make_encoder(tokenizer, num_hidden_layers=1, **changes)


def batch(seed=0, lengths=(9, 5, 2)):
    rng = make_rng(seed)
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype("int32")
    ids = rng.integers(5, 30, mask.shape).astype("int32") * mask
    segments = (np.arange(max(lengths)) > 2).astype("int32") * mask
    return {"input_ids": ids, "input_mask": mask, "segment_ids": segments}


@pytest.mark.parametrize("make", [KINDS["cls"], KINDS["score"]])
@pytest.mark.parametrize("has_pooler, pooling", [(True, "cls"), (False, "mean")])
def test_by_itself_a_head_reads_what_was_trained(make, has_pooler, pooling, tokenizer, tmp_path):
    task = make(one_block(tokenizer, pooler=has_pooler), tokenizer)
    assert task.settings.pooling == pooling
    task.save(tmp_path / "model")
    assert load_task(tmp_path / "model").settings.pooling == pooling
    assert type(task).from_config(task.get_config()).settings.pooling == pooling


def test_a_pooling_that_is_none_is_named(tokenizer):
    with pytest.raises(InputError, match="`pooling` is 'median'. It should be cls, mean, both"):
        Classifier(one_block(tokenizer), tokenizer, labels=LABELS, pooling="median")


@pytest.mark.parametrize("pooling", ["last", "max", "last+max+mean"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_last_token_the_maximum_and_the_mean_by_hand(pooling, causal, tokenizer, tmp_path):
    encoder = one_block(tokenizer, is_decoder=causal)
    task = Classifier(encoder, tokenizer, labels=LABELS, pooling=pooling)
    lengths, inputs = (9, 5, 2), batch(lengths=(9, 5, 2))
    hidden = np.asarray(encoder(inputs)["sequence_output"])
    sequences = [row[:length] for row, length in zip(hidden, lengths, strict=True)]
    parts = {"last": lambda x: x[-1], "max": lambda x: x.max(axis=0), "mean": lambda x: x.mean(0)}
    vectors = np.array(
        [np.concatenate([parts[name](row) for name in pooling.split("+")]) for row in sequences]
    )
    expected = vectors @ task.classifier.kernel + task.classifier.bias
    logits = np.asarray(task(inputs)["logits"])
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    padded = {name: np.pad(x, ((0, 0), (0, 4))) for name, x in inputs.items()}
    np.testing.assert_allclose(task(padded)["logits"], expected, atol=1e-5)
    task.save(tmp_path / "model")
    again = load_task(tmp_path / "model")
    assert again.settings.pooling == pooling
    np.testing.assert_array_equal(again(inputs)["logits"], logits)


@pytest.mark.parametrize(
    "make",
    [
        KINDS["cls"],
        KINDS["pair"],
        KINDS["score"],
        lambda encoder, tokenizer: MultipleChoice(encoder, tokenizer),
    ],
)
@pytest.mark.parametrize("has_pooler", [False, True])
def test_over_a_causal_encoder_the_answer_depends_on_the_text(make, has_pooler, tokenizer):
    """Its [CLS] has seen nothing but itself: the head would say the same of every text."""
    task = make(
        one_block(tokenizer, is_decoder=True, pooler=has_pooler),
        tokenizer,
    )
    assert task.settings.pooling == "last"
    inputs = [batch(seed=seed) for seed in (0, 1)]
    if task.TASK_TYPE == "multiple-choice":
        inputs = [{name: x[None] for name, x in features.items()} for features in inputs]
    (first,), (second,) = (task(features).values() for features in inputs)
    assert np.abs(np.asarray(first) - np.asarray(second)).min() > 1e-4


def test_the_first_token_of_a_causal_encoder_is_not_read(tokenizer, saved, tmp_path):
    encoder = one_block(tokenizer, is_decoder=True)
    for pooling in ("cls", "both"):
        with raises_input_error(f"`pooling` cannot be {pooling} for a causal encoder"):
            Classifier(encoder, tokenizer, labels=LABELS, pooling=pooling)
        with raises_input_error("Choose from: mean, last, max, last+max+mean"):
            MultipleChoice(encoder, tokenizer, pooling=pooling)
    with raises_input_error("`Pretrainer` reads [CLS], which in a causal encoder"):
        Pretrainer(encoder)
    # Nor if another program's config says that it is: its class reads [CLS].
    path = shutil.copytree(saved["cls"], tmp_path / "model") / "config.json"
    config = json.loads(path.read_text())
    for section in (config["keras_bert"], {}):
        path.write_text(json.dumps({**config, "is_decoder": True, "keras_bert": section}))
        with raises_input_error("`pooling` cannot be cls for a causal encoder"):
            load_task(tmp_path / "model")


@pytest.mark.parametrize("name", ["both", "several", "pair", "score"])
def test_a_folder_gives_the_same_task(name, tasks, saved):
    task, inputs = tasks[name], batch()
    again = load_task(saved[name])
    (output,) = task.output
    # A scale is a power of two.
    np.testing.assert_array_equal(task(inputs)[output], again(inputs)[output])
    assert type(again) is type(task) and again.inferred_arguments == task.inferred_arguments
    for setting in task.stored_settings():
        assert getattr(again.settings, setting) == getattr(task.settings, setting)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["both", "several", "pair", "score"])
def test_a_folder_holds_what_transformers_reads_rightly_or_does_not_see(name, tasks, saved):
    task, inputs = tasks[name], batch()
    (output,) = task.output
    outputs = np.asarray(task(inputs)[output])
    config = json.loads((saved[name] / "config.json").read_text())
    (named,) = config["architectures"]
    their_model, info = getattr(transformers, named).from_pretrained(
        saved[name], output_loading_info=True
    )
    assert not info["missing_keys"]
    assert all(key.startswith("keras_bert.") for key in info["unexpected_keys"])
    if name == "both":
        assert named == "BertModel" and len(info["unexpected_keys"]) == 2
        return
    assert not info["unexpected_keys"]
    with torch.no_grad():
        logits = their_model.eval()(
            input_ids=torch.tensor(inputs["input_ids"]).long(),
            attention_mask=torch.tensor(inputs["input_mask"]).long(),
            token_type_ids=torch.tensor(inputs["segment_ids"]).long(),
        ).logits
    np.testing.assert_allclose(outputs, logits.numpy(), atol=2e-5 * np.abs(outputs).max())
    problem = {"several": "multi_label_classification", "score": "regression"}.get(name)
    assert their_model.config.problem_type == problem


@pytest.mark.peers
@pytest.mark.parametrize("problem", ["multi_label_classification", "regression"])
def test_what_transformers_wrote_is_the_task_that_it_says(problem, tokenizer, tmp_path):
    config = one_block(tokenizer).config
    count = 1 if problem == "regression" else 4
    their_model = transformers.BertForSequenceClassification(
        transformers.BertConfig(
            **{
                k: v
                for k, v in config.to_dict().items()
                if k in transformers.BertConfig().to_dict()
            },
            num_labels=count,
            problem_type=problem if problem != "regression" else None,
        )
    ).eval()
    their_model.save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    task = load_task(tmp_path)
    assert type(task) is (Regressor if count == 1 else Classifier)
    assert getattr(task.settings, "multi_label", False) == (problem == "multi_label_classification")
    inputs = batch()
    with torch.no_grad():
        logits = their_model(
            torch.tensor(inputs["input_ids"]).long(),
            attention_mask=torch.tensor(inputs["input_mask"]).long(),
            token_type_ids=torch.tensor(inputs["segment_ids"]).long(),
        ).logits
    (outputs,) = task(inputs).values()
    np.testing.assert_allclose(np.asarray(outputs), logits.numpy(), atol=1e-5)


def test_several_scores_in_one_folder_are_rejected(saved, tmp_path):
    path = shutil.copytree(saved["cls"], tmp_path / "model") / "config.json"
    config = json.loads(path.read_text())
    del config["keras_bert"]
    path.write_text(json.dumps({**config, "problem_type": "regression"}))
    with raises_input_error("regression to 3 numbers"):
        load_task(tmp_path / "model")


def test_the_mean_is_over_what_is_no_padding(tasks):
    """Whatever a row is padded with, and however far."""
    inputs = batch(lengths=(6, 6))
    padded = {name: np.pad(x, ((0, 0), (0, 5))) for name, x in inputs.items()}
    padded["input_ids"][:, 6:] = 7
    for name in ("mean", "both"):
        alone, wide = (np.asarray(tasks[name](x)["logits"]) for x in (inputs, padded))
        np.testing.assert_allclose(alone, wide, atol=1e-5)
    task = tasks["mean"]
    hidden = np.asarray(task.encoder(inputs)["sequence_output"])
    by_hand = hidden.mean(axis=1) @ task.classifier.kernel + task.classifier.bias
    np.testing.assert_allclose(tasks["mean"](inputs)["logits"], by_hand, atol=1e-5)


def test_a_pooler_that_is_not_read_is_not_trained(tasks):
    trained = {name: {w.path for w in tasks[name].trainable_variables} for name in KINDS}
    assert not any("pooler" in path for path in trained["mean"])
    assert any("pooler" in path for path in trained["both"])


def test_a_new_regressor_begins_with_the_mean_in_the_range_of_the_scores(tasks):
    regressor = tasks["score"]
    assert float(regressor.scorer.bias[0]) * regressor.scale == pytest.approx(30)
    assert regressor.default_loss_weights() == {"score": 1 / 256}
    with pytest.raises(ValueError, match="`scale` must be a power of two"):
        Regressor(regressor.encoder, scale=3.0)


def answer(task, data, **options):
    sequences = task.features(
        list(task.read(data, inferred_arguments=task.inferred_arguments, **options))
    )
    return Inference(task, batch_size=4).predict_sequences(sequences), sequences.examples


def test_answers_of_pairs_scores_and_several_labels(tasks):
    pairs = [("good film", "bad film", "1"), ("", "x" * 500, "2"), ("bad", "film", "0")]
    predictions, examples = answer(tasks["pair"], pairs)
    assert list(predictions[0]) == [
        "text_a",
        "text_b",
        "label",
        "score",
        "expected",
        "probabilities",
    ]
    swapped, _ = answer(tasks["pair"], [(b, a, label) for a, b, label in pairs])
    assert predictions[0]["probabilities"] != swapped[0]["probabilities"]
    metrics = tasks["pair"].official_metrics(predictions, examples)
    json.dumps(metrics)
    wrong = [a for a, e in zip(predictions, examples, strict=True) if a["label"] != e.label]
    described = tasks["pair"].errors(predictions, examples)
    assert [e["score"] for e in described] == sorted((a["score"] for a in wrong), reverse=True)
    assert all(PairClassifier.describe_error(e).startswith("line ") for e in described)

    predictions, examples = answer(
        tasks["several"], [("good", "0|1"), ("bad film", ""), ("film", "2")]
    )
    for prediction, example in zip(predictions, examples, strict=True):
        assert prediction["labels"] == [
            k for k, p in prediction["probabilities"].items() if p > 0.4
        ]
        assert prediction["expected"] == list(example.label)
    metrics = tasks["several"].official_metrics(predictions, examples)
    subset_accuracy = np.mean([set(a["labels"]) == set(a["expected"]) for a in predictions])
    assert metrics["subset_accuracy"] == subset_accuracy
    assert len(tasks["several"].errors(predictions, examples)) == round(3 * (1 - subset_accuracy))

    predictions, examples = answer(
        tasks["score"], [("a", "b", 1.5), ("good", "bad", "40"), ("c", "d", 3)]
    )
    assert [prediction["expected"] for prediction in predictions] == [1.5, 40, 3]
    metrics = tasks["score"].official_metrics(predictions, examples)
    errors = [prediction["score"] - prediction["expected"] for prediction in predictions]
    assert metrics["mse"] == pytest.approx(np.mean(np.square(errors)))
    worst = tasks["score"].errors(predictions, examples)[0]
    assert worst["error"] == pytest.approx(np.abs(errors).max())


PAIRS = [("good film", "bad film"), ("bad", "good"), ("film " * 50, "a")]


def one_segment_task(name, tokenizer):
    encoder = one_block(tokenizer, model_type="roberta", type_vocab_size=1)
    return KINDS[name](encoder, tokenizer)


@pytest.mark.parametrize("name", ["pair", "score"])
def test_pairs_for_a_model_of_one_segment(name, tokenizer):
    """RoBERTa has one, so that all tokens of a pair are of it."""
    task = one_segment_task(name, tokenizer)
    signature = task.signatures()["serving_default"]
    served = signature.function(*(tf.constant(list(texts)) for texts in zip(*PAIRS, strict=True)))
    expected, _ = answer(task, PAIRS, labelled=False)
    np.testing.assert_allclose(served["score"], [one["score"] for one in expected], rtol=1e-4)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["pair", "score"])
def test_pairs_for_a_model_of_one_segment_are_those_of_transformers(name, tokenizer, tmp_path):
    task = one_segment_task(name, tokenizer)
    sequences = task.features(list(task.read(PAIRS, labelled=False)))
    inputs = sequences.inputs(*sequences.take(tf.range(3)))
    (output,) = task.output
    outputs = np.asarray(task(inputs)[output])
    task.save(tmp_path / "model")
    their_model = transformers.RobertaForSequenceClassification.from_pretrained(tmp_path / "model")
    with torch.no_grad():
        logits = their_model.eval()(
            torch.tensor(inputs["input_ids"].numpy()).long(),
            attention_mask=torch.tensor(inputs["input_mask"].numpy()).long(),
        ).logits
    np.testing.assert_allclose(outputs, logits, atol=2e-5 * np.abs(outputs).max())


def test_a_text_of_100000_characters_is_cut_and_answered(tasks):
    long = "good film " * 10_000
    whole, _ = answer(tasks["pair"], [(long, long)], labelled=False)
    part, _ = answer(tasks["pair"], [(long[:2000], long[:2000])], labelled=False)
    assert whole[0]["probabilities"] == pytest.approx(part[0]["probabilities"])
    with raises_input_error("`max_length` must be at least 5 to leave room for 2 texts"):
        tasks["pair"].features(list(tasks["pair"].read([("a", "b", "1")])), max_length=4)


def test_class_weights_are_weights_of_training_rows(tokenizer):
    encoder = one_block(tokenizer)
    data = [("a", "0"), ("b", "0"), ("c", "0"), ("d", "1")]
    task = Classifier(encoder, tokenizer, labels=LABELS, class_weights="1=4, 0=0.5")
    sequences = task.features(list(task.read(data)), labelled=True)
    assert sequences.weights["logits"].tolist() == [0.5, 0.5, 0.5, 4]
    (accuracy,) = task.default_metrics()["logits"]
    assert isinstance(accuracy, CountedAccuracy)  # Keras's would be weighted
    plain = Classifier(encoder, tokenizer, labels=LABELS)
    assert plain.features(list(plain.read(data)), labelled=True).weights == {}
    for wrong, message in (
        ("0=0", "must be none, balanced, or LABEL=WEIGHT...Received: 0=0"),
        ("heavy", "Received: heavy"),
        ("9=2", 'label "9" in `class_weights`. The labels are "0", "1", "2"'),
    ):
        with raises_input_error(message):
            Classifier(encoder, tokenizer, labels=LABELS, class_weights=wrong)
    with raises_input_error("`metric` f1 requires two labels, not 3"):
        Classifier(encoder, tokenizer, labels=LABELS, metric="f1")


def test_class_weights_of_several_labels_are_weights_of_decisions(tokenizer):
    """The loss of `fit` is the cross-entropy of each decision, times its weight."""
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = one_block(tokenizer, **no_dropout)
    data = [("a", "0|1"), ("b", "0"), ("c", "0"), ("d", "")]

    def make(weights):
        task = Classifier(
            encoder, tokenizer, labels=LABELS, multi_label=True, class_weights=weights, dropout=0.0
        )
        return task, task.features(list(task.read(data, multi_label=True)), labelled=True)

    task, sequences = make("1=4, 0=0.5")
    assert sequences.weights["logits"].tolist() == [
        [0.5, 4, 1],
        [0.5, 1, 1],
        [0.5, 1, 1],
        [1, 1, 1],
    ]
    inputs, labels, _ = sequences.batch(tf.range(4))
    logits, has_label = np.asarray(task(inputs)["logits"], "float64"), labels["logits"].numpy()
    positive, negative = (np.logaddexp(0, x) for x in (-logits, logits))
    weighted = has_label * [0.5, 4.0, 1.0] * positive + (1 - has_label) * negative
    task.compile_defaults("sgd", jit_compile=False)
    batches = task.dataset(data, batch_size=4, multi_label=True)
    (loss,) = task.fit(batches, verbose=0).history["loss"]
    assert loss == pytest.approx(weighted.mean(), rel=1e-5)
    assert Classifier.from_config(task.get_config()).get_config() == task.get_config()
    _, sequences = make("balanced")  # 3 of 4 texts have 0, 1 has 1, and none has 2
    np.testing.assert_allclose(
        sequences.weights["logits"],
        [[2 / 3, 2, 1], [2 / 3, 2 / 3, 1], [2 / 3, 2 / 3, 1], [2, 2 / 3, 1]],
        rtol=1e-6,
    )
    assert make("none")[1].weights == {}


def test_what_examples_settle():
    read = Classifier.read([("a", "x|y"), ("b", ""), ("c", "z")], multi_label=True)
    assert Classifier.infer_arguments(list(read)) == {"labels": ["x", "y", "z"]}
    scores = list(Regressor.read([("a", "b", 10), ("c", "d", 50), ("e", "f", 90)]))
    assert Regressor.infer_arguments(scores) == {"mean": 50.0, "scale": 32.0}  # deviation 32.7
    with raises_input_error("a single score (3)"):
        Regressor.infer_arguments(list(Regressor.read([("a", "b", 3), ("c", "d", 3.0)])))


def test_the_weights_of_a_scaled_head_are_in_the_range_of_the_scores(tasks, saved):
    tensors = load_file(saved["score"] / "model.safetensors")
    np.testing.assert_array_equal(
        tensors["classifier.weight"][0], np.asarray(tasks["score"].scorer.kernel)[:, 0] * 16
    )
    assert tensors["classifier.bias"] == pytest.approx(30)


@pytest.mark.parametrize("name", ["pair", "several", "score"])
def test_a_signature_answers_as_predict_does(name, tasks):
    task, pairs = tasks[name], [("good film", "bad"), ("", "a b c"), ("x" * 90, "film " * 90)]
    signature = task.signatures()["serving_default"]
    several = [spec.name for spec in signature.inputs] == ["text_a", "text_b"]
    data = pairs if several else [text for text, _ in pairs]
    columns = zip(*pairs, strict=True) if several else [data]
    outputs = signature.function(*(tf.constant(list(texts)) for texts in columns))
    expected, _ = answer(task, data, labelled=False)
    for place, said in enumerate(expected):
        if name == "score":
            assert float(outputs["score"][place]) == pytest.approx(said["score"], abs=1e-3)
            continue
        probabilities = list(said["probabilities"].values())
        np.testing.assert_allclose(outputs["probabilities"][place], probabilities, atol=1e-5)
        if name == "several":
            given = [
                label for label, yes in zip(LABELS, outputs["given"][place], strict=True) if yes
            ]
            assert given == said["labels"]
        else:
            assert outputs["label"][place].numpy().decode() == said["label"]
