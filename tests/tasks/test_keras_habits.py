"""Keras's habits, as keras-hub's classifier has them: each of these lines is a test."""

import functools
import pickle

import keras
import numpy as np
import pandas as pd
import pytest

import keras_bert as kb
from keras_bert.base.errors import InputError, InputWarning
from keras_bert.tasks.fitting import dataset_info
from tests.seeds import shifted
from tests.small_model import make_encoder, make_tokenizer

TEXTS = ["a b c", "d", "e f", "g h i j k l", "m n o p", "q r", "s t u v w x y z", "a", "b b"]
LABELS = ["ham", "spam", "spam", "ham", "ham", "spam", "ham", "spam", "ham"]
TABLE = pd.DataFrame({"message": TEXTS, "label": LABELS})
SENTENCES = [["a", "b"], ["c"], ["d", "e", "f"], ["g", "h"]]
TAGS = [["X", "Y"], ["Y"], ["X", "X", "Y"], ["Y", "Y"]]

pytestmark = pytest.mark.usefixtures("eager")


def new(cls, **options):
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    task = cls(encoder, tokenizer, dropout=0.0, **options)
    task.compile_defaults("sgd")
    return task


@pytest.fixture
def classifier():
    return new(kb.Classifier, labels=["ham", "spam"])


@pytest.fixture(scope="module")
def untrained():
    """For tests that train it no further than to Keras's `fit`."""
    return new(kb.Classifier, labels=["ham", "spam"])


@pytest.fixture(scope="module")
def logits(untrained):
    return logits_of(untrained, TEXTS)


def logits_of(task, texts):
    """The logits one text at a time, which no order and no padding changes."""
    return np.concatenate([task(task.tokenizer([text]))["logits"] for text in texts])


def batches(task, monkeypatch, *given, **options):
    """Arguments that a `fit` of Keras gets of ours: (the list of batches, the other arguments)."""
    seen = {}

    @functools.wraps(keras.Model.fit)
    def fit(self, x, **more):
        seen.update(x=x, more=more)
        return keras.callbacks.History()

    with monkeypatch.context() as patched:
        patched.setattr(keras.Model, "fit", fit)
        task.fit(*given, **options)
    return list(seen["x"].as_numpy_iterator()), seen["more"]


# fit.


@pytest.mark.parametrize(
    "x", [TEXTS, TABLE[["message"]], TABLE["message"], np.array(TEXTS), {"text": TEXTS}]
)
def test_fit_takes_texts_or_a_table_and_their_labels(untrained, monkeypatch, x):
    labels = pd.Series(LABELS, index=range(10, 19))  # by position, as in Keras
    ids = untrained.tokenizer(TEXTS)["input_ids"]
    for y in (LABELS, labels):
        [(inputs, targets)], _ = batches(untrained, monkeypatch, x=x, y=y, shuffle=False)
        np.testing.assert_array_equal(inputs["input_ids"][:, : ids.shape[1]], ids)
        assert targets["logits"].tolist() == [int(label == "spam") for label in LABELS]


def test_fit_trains_on_texts_and_their_labels(classifier):
    history = classifier.fit(TEXTS, LABELS, batch_size=4, epochs=2, verbose=0).history
    assert set(history) == {"loss", "accuracy"} and len(history["loss"]) == 2


def test_fit_takes_a_table_with_its_labels_and_a_file(classifier, tmp_path):
    TABLE.to_csv(tmp_path / "train.csv", index=False)
    for x in (TABLE, tmp_path / "train.csv", list(zip(TEXTS, LABELS, strict=True))):
        assert classifier.fit(x, verbose=0).history["accuracy"]
    with pytest.raises(InputError, match="`y` is for texts and tables in memory"):
        classifier.fit(tmp_path / "train.csv", LABELS)


def test_pairs_regression_and_tags_take_labels_of_their_own(monkeypatch):
    pairs = new(kb.PairClassifier, labels=["0", "1"])
    rows = list(zip(TEXTS, TEXTS[1:], strict=False))
    labels = [0, 1] * 4
    table = pd.DataFrame(rows, columns=["text_a", "text_b"])
    for x in (rows, table):
        [(_, y)], _ = batches(pairs, monkeypatch, x, labels, shuffle=False)
        assert y["logits"].tolist() == labels
    scorer = new(kb.Regressor, one_text=True)
    [(_, y)], _ = batches(scorer, monkeypatch, TEXTS, np.arange(9.0), shuffle=False)
    assert y["score"][:, 0].tolist() == list(range(9))
    tagger = new(kb.Tagger, labels=["X", "Y"])
    [(_, y, weights)], _ = batches(tagger, monkeypatch, SENTENCES, TAGS, shuffle=False)
    assert y["logits"][0, 1:3].tolist() == [0, 1] and weights["logits"].sum() == 8
    answers = new(kb.QuestionAnswerer)
    with pytest.raises(InputError, match="`y` is for tasks with one label.*QuestionAnswerer"):
        answers.fit(TEXTS, LABELS)


def test_labels_and_texts_of_another_length_are_an_error(untrained):
    with pytest.raises(InputError, match="same length. Received: 9 and 8"):
        untrained.fit(TEXTS, LABELS[1:])


def test_each_epoch_has_another_order_and_the_seed_of_keras_decides(untrained, monkeypatch):
    def order(**options):
        keras.utils.set_random_seed(shifted(3))
        options = {"batch_size": 2, "epochs": 2, **options}
        steps, more = batches(untrained, monkeypatch, TEXTS, LABELS, **options)
        ids = [x["input_ids"][:, 1].tolist() for x, _ in steps]
        assert more["steps_per_epoch"] == 5
        return ids[:5], ids[5:]

    first, second = order()
    assert first != second and sorted(sum(first, [])) == sorted(sum(second, []))
    assert order() == (first, second)
    in_order = order(shuffle=False)
    assert in_order[0] == in_order[1] and in_order[0] not in (first, second)


def test_class_weight_is_by_label_and_sample_weight_by_row(untrained, monkeypatch):
    weights = np.arange(9.0)
    [(_, y, w)], _ = batches(
        untrained,
        monkeypatch,
        TEXTS,
        LABELS,
        shuffle=False,
        class_weight={"spam": 3.0},
        sample_weight=weights,
    )
    assert w["logits"].tolist() == (weights * np.where(y["logits"] == 1, 3, 1)).tolist()
    tagger = new(kb.Tagger, labels=["X", "Y"])
    [(_, y, w)], _ = batches(
        tagger, monkeypatch, SENTENCES, TAGS, shuffle=False, class_weight={"Y": 5}
    )
    assert w["logits"].sum() == 3 + 5 * 5
    with pytest.raises(InputError, match="`class_weight` has no effect with `crf`"):
        new(kb.Tagger, labels=["X", "Y"], crf=True).fit(SENTENCES, TAGS, class_weight={"Y": 5})


def test_the_weight_of_a_row_that_is_left_out_is_left_out(untrained, monkeypatch):
    labels = [None, *LABELS[1:]]
    with pytest.warns(InputWarning, match="1 row without a label"):
        [(_, _, w)], _ = batches(
            untrained, monkeypatch, TABLE[["message"]], labels, sample_weight=np.arange(9)
        )
    assert sorted(w["logits"]) == list(range(1, 9))
    with pytest.raises(InputError, match="one number from 0 for each of the 9 rows"):
        untrained.fit(TEXTS, LABELS, sample_weight=[1, -1])


@pytest.mark.parametrize(
    ("labels", "class_weight", "expected"),
    [
        (["a, b", "c"], {"a, b": 2}, [2, 1]),
        (["ham", "spam"], {0: 2, 1: 3.5}, [2, 3.5]),
        (["0", "1"], {1: 4}, [1, 4]),
        (["1", "2"], {"1": 4}, [4, 1]),
        (["1", "2"], {1: 4}, '1 in `class_weight` is the label "1" and also the index of'),
        (
            ["ham", "spam"],
            {"eggs": 4},
            "Unknown label 'eggs' in `class_weight`. The labels are \"ham",
        ),
        (["ham", "spam"], {"ham": -1}, "The weight of 'ham' in `class_weight` must be"),
        (["ham", "spam"], [1, 2], "`class_weight` must be a dictionary"),
    ],
)
def test_the_keys_of_class_weight_are_labels(labels, class_weight, expected):
    task = new(kb.Classifier, labels=labels)
    data = [(text, label) for text, label in zip("abcd", labels * 2, strict=True)]
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            task.dataset(data, class_weight=class_weight)
        return
    [(_, y, weights)] = task.dataset(data, class_weight=class_weight).as_numpy_iterator()
    assert weights["logits"].tolist() == [expected[number] for number in y["logits"]]


def test_the_last_part_is_for_validation(untrained, monkeypatch):
    train, more = batches(
        untrained, monkeypatch, TEXTS, LABELS, validation_split=0.3, sample_weight=range(9)
    )
    [(x, y, weights)] = more["validation_data"].as_numpy_iterator()
    assert weights["logits"].tolist() == [6, 7, 8] and y["logits"].tolist() == [0, 1, 0]
    [(_, _, weights)] = train
    assert sorted(weights["logits"]) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(InputError, match="leaves examples in both parts. Received: 0.95 of 9"):
        untrained.fit(TEXTS, LABELS, validation_split=0.95)


def test_validation_data_are_texts_and_labels_a_table_or_a_dataset(untrained, monkeypatch):
    for dev in ((TEXTS, LABELS), TABLE, untrained.dataset(TABLE, batch_size=2)):
        _, more = batches(untrained, monkeypatch, TABLE, validation_data=dev)
        labels = [y["logits"].tolist() for _, y in more["validation_data"].as_numpy_iterator()]
        assert sum(labels, []) == [int(label == "spam") for label in LABELS]


def test_no_argument_is_ignored(untrained, monkeypatch):
    _, more = batches(
        untrained, monkeypatch, TEXTS, LABELS, validation_split=0.5, validation_batch_size=2
    )
    sizes = [len(y["logits"]) for _, y in more["validation_data"].as_numpy_iterator()]
    assert sizes == [2, 2, 1] and "validation_batch_size" not in more
    steps, more = batches(
        untrained, monkeypatch, TEXTS, LABELS, batch_size=4, epochs=3, steps_per_epoch=2
    )
    assert len(steps) == 6 and more["steps_per_epoch"] == 2
    arrays = untrained.tokenizer(TEXTS), {"logits": np.zeros(9)}
    _, more = batches(
        untrained, monkeypatch, TEXTS, LABELS, validation_data=arrays, validation_batch_size=3
    )
    assert more["validation_batch_size"] == 3 and more["validation_data"] is arrays
    dataset = untrained.dataset(TABLE)
    with pytest.raises(ValueError, match="class_weight"):
        untrained.fit(dataset, class_weight={"spam": 2})
    with pytest.raises(ValueError):
        untrained.evaluate(dataset, LABELS, verbose=0)


# evaluate, predict and calls.


def test_evaluate_takes_a_table_or_texts_and_labels(untrained):
    expected = untrained.evaluate(untrained.dataset(TABLE, batch_size=2), verbose=0)
    for given in ((TABLE,), (TEXTS, LABELS), (TABLE[["message"]], LABELS, 2)):
        np.testing.assert_allclose(untrained.evaluate(*given, verbose=0), expected, rtol=1e-5)
    weighted = untrained.evaluate(
        TEXTS[:2], LABELS[:2], sample_weight=[0, 2], verbose=0, return_dict=True
    )
    alone = untrained.evaluate(TEXTS[1:2], LABELS[1:2], verbose=0, return_dict=True)
    assert weighted["loss"] == pytest.approx(alone["loss"], rel=1e-5)  # 2 of 2 rows


@pytest.mark.parametrize(
    "data", [TEXTS, TABLE, TABLE["message"], np.array(TEXTS), {"text": TEXTS}, "shuffled"]
)
def test_predict_gives_arrays_in_the_order_of_the_data(untrained, logits, data):
    if isinstance(data, str):
        data = untrained.dataset(TABLE, batch_size=2, epochs=2)
        assert [*next(iter(data))[1]["logits"]] != [0, 1]  # its own order is another
    predictions = untrained.predict(data, verbose=0)["logits"]
    np.testing.assert_allclose(predictions, logits, atol=1e-5)


def test_predict_of_a_tagger_has_one_length(monkeypatch):
    tagger = new(kb.Tagger, labels=["X", "Y"])
    words = [["a"] * n for n in (20, 1, 3)]
    logits = tagger.predict(words, batch_size=1, verbose=0)["logits"]
    assert logits.shape == (3, 24, 2)
    alone = tagger.predict(words[1:2], verbose=0)["logits"]
    np.testing.assert_allclose(logits[1, :3], alone[0, :3], atol=1e-5)


def test_a_row_without_a_text_is_an_error_of_predict(untrained):
    with pytest.raises(InputError, match="without a text"):
        untrained.predict(pd.DataFrame({"text": ["a", None]}))
    with pytest.raises(InputError, match="has no tokenizer"):
        kb.Classifier(untrained.encoder, labels=["a", "b"]).predict(["a text"])


def test_a_dataset_is_in_order_where_it_is_not_to_be_shuffled(untrained):
    batches = untrained.dataset(TABLE, batch_size=4, shuffle=False, epochs=2)
    labels = [y["logits"].tolist() for _, y in batches.as_numpy_iterator()]
    assert sum(labels, []) == [int(label == "spam") for label in LABELS] * 2
    assert [len(batch) for batch in labels] == [4, 4, 1] * 2
    assert dataset_info(batches).steps == 3


def test_a_task_is_called_with_texts(untrained):
    inputs = untrained.tokenizer(TEXTS[:2])
    expected = untrained(inputs)["logits"]
    for data in (TEXTS[:2], pd.DataFrame({"text": TEXTS[:2]})):
        np.testing.assert_allclose(untrained(data)["logits"], expected, atol=1e-6)
    assert untrained(["a text"])["logits"].shape == (1, 2)


def test_a_tokenizer_is_called_with_texts(untrained):
    inputs = untrained.tokenizer(["a b", "c"], ["d", "e"])
    assert {name: x.shape for name, x in inputs.items()} == {
        name: (2, 6) for name in ("input_ids", "input_mask", "segment_ids")
    }
    assert inputs["input_mask"].sum(axis=1).tolist() == [6, 5]
    assert untrained.tokenizer(["a b c d"], max_length=4)["input_ids"].shape == (1, 4)
    tokenizer = make_tokenizer()
    encoder = kb.StaticEncoder(kb.StaticConfig(vocab_size=len(tokenizer), hidden_size=16))
    kb.Classifier(encoder, tokenizer, labels=["a", "b"])
    assert set(tokenizer(["a"])) == set(pickle.loads(pickle.dumps(tokenizer))(["a"]))
    assert set(tokenizer(["a"])) == {"input_ids", "input_mask"}
    assert encoder(tokenizer(["a"]))["sequence_output"].shape == (1, 3, 16)


def test_a_layer_of_keras_over_the_encoder_ignores_padding(untrained):
    encoder, tokenizer = untrained.encoder, untrained.tokenizer
    pooling = keras.layers.GlobalAveragePooling1D()
    alone = pooling(encoder(tokenizer(["a"]))["sequence_output"])
    inputs = tokenizer(["a", "a b c d e f g"])
    padded = encoder(inputs, outputs=("sequence_output", "hidden_states"))
    np.testing.assert_allclose(pooling(padded["sequence_output"])[:1], alone, atol=1e-5)
    last = pooling(padded["hidden_states"][-1])
    np.testing.assert_allclose(last[:1], alone, atol=1e-5)
    symbolic = encoder.symbolic_inputs()
    model = keras.Model(symbolic, pooling(encoder(symbolic)["sequence_output"]))
    np.testing.assert_allclose(model.predict(inputs, verbose=0)[:1], alone, atol=1e-5)
    assert getattr(untrained(inputs)["logits"], "_keras_mask", None) is None


def test_a_layer_of_ours_over_the_encoder_passes_no_mask_on(untrained, recwarn):
    encoder, tokenizer = untrained.encoder, untrained.tokenizer
    tokens = encoder(tokenizer(["a"]))["sequence_output"]
    recwarn.clear()
    normed = encoder.blocks[0].attention_norm(tokens)
    assert getattr(normed, "_keras_mask", None) is None
    assert [str(warning.message) for warning in recwarn] == []  # Keras warns of a mask that is lost


# Metrics and files.


def test_summary_is_that_of_keras(untrained, capsys):
    untrained.summary()
    assert "Total params" in capsys.readouterr().out


def test_accuracy_is_there_with_weights_and_is_not_weighted():
    task = new(kb.Classifier, labels=["ham", "spam"], class_weights="ham=9")
    metrics = task.evaluate(TEXTS, LABELS, verbose=0, return_dict=True)
    predicted = task.predict(TEXTS, verbose=0)["logits"].argmax(axis=1)
    expected = np.mean(predicted == np.array([label == "spam" for label in LABELS]))
    assert metrics["accuracy"] == pytest.approx(expected) and 0 < expected < 1
    unweighted = new(kb.Classifier, labels=["ham", "spam"])
    weighted = unweighted.evaluate(TEXTS, LABELS, sample_weight=range(1, 10), verbose=0)
    assert weighted[1] == pytest.approx(expected)


def test_the_official_metrics_are_in_the_history(classifier):
    stopping = keras.callbacks.EarlyStopping("val_macro_f1", mode="max", patience=0)
    history = classifier.fit(
        TABLE, validation_data=TABLE, epochs=4, callbacks=[stopping], verbose=0
    ).history
    assert {"val_accuracy", "val_macro_f1", "val_matthews"} <= set(history)
    assert len(history["val_macro_f1"]) < 4  # the learning rate of "sgd" changes little
    tagger = new(kb.Tagger, labels=["O", "B-X", "I-X"])
    tags = [["B-X" if tag == "X" else "O" for tag in row] for row in TAGS]
    history = tagger.fit(SENTENCES, tags, validation_data=(SENTENCES, tags), verbose=0).history
    assert 0 <= history["val_f1"][0] <= 1
    scorer = new(kb.Regressor, one_text=True)
    data = (TEXTS, np.arange(9.0))
    assert "val_pearson" in scorer.fit(*data, validation_data=data, verbose=0).history


def test_a_keras_file_has_tokenizer_labels_and_columns(tmp_path):
    task = new(kb.Classifier, labels=["ham", "spam"])
    task.columns = {"text": ["message"], "label": ["label"]}
    task.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert loaded.labels == ("ham", "spam") and loaded.columns == task.columns
    assert loaded.tokenizer.vocabulary == task.tokenizer.vocabulary
    np.testing.assert_allclose(
        loaded.predict(TEXTS, verbose=0)["logits"], logits_of(task, TEXTS), atol=1e-5
    )


def test_save_replaces_a_model_folder_unless_it_may_not(classifier, tmp_path):
    classifier.save(tmp_path / "model")
    classifier.save(tmp_path / "model")
    with pytest.raises(InputError, match="is there already.*`overwrite=True` to replace it"):
        classifier.save(tmp_path / "model", overwrite=False)
    (tmp_path / "model" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="something else"):
        classifier.save(tmp_path / "model")


def test_a_quantized_model_is_not_saved(classifier, tmp_path):
    classifier.quantize("int8")
    for name in ("model", "model.keras"):  # Keras does not load the file that it would write
        with pytest.raises(InputError, match="export --precision int8"):
            classifier.save(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_load_without_the_tokenizer(untrained, tmp_path):
    untrained.save(tmp_path / "model")
    encoder, tokenizer = kb.load(tmp_path / "model", tokenizer=False)
    assert isinstance(encoder, kb.BertEncoder) and tokenizer is None


def test_predict_and_evaluate_by_position(untrained):
    [prediction] = kb.predict(untrained, ["a text"])
    assert prediction["label"] in LABELS
    assert kb.evaluate(untrained, TABLE)["examples"] == 9


def test_columns_without_usual_names_are_named_for_dataset(untrained):
    table = pd.DataFrame({"id": range(len(TEXTS)), "Msg": TEXTS, "Queue": LABELS})
    for method in (untrained.fit, untrained.evaluate, untrained.predict):
        with pytest.raises(InputError, match='text_column="Msg".* are arguments of `dataset`'):
            method(table)
    batches = untrained.dataset(table, text_column="Msg", label_column="Queue")
    assert untrained.evaluate(batches, verbose=0, return_dict=True).keys() == {"loss", "accuracy"}
    with pytest.raises(InputError) as error:
        untrained.dataset(table)
    assert "are arguments of" not in str(error.value)
