"""Behaviour that all tasks have in common."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load_task
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.question_answering.question_answerer import QuestionAnswerer
from keras_bert.tasks.tagging.tagger import Tagger
from keras_bert.tasks.training_defaults import training_defaults
from tests.small_model import make_encoder, make_tokenizer


def make_small_encoder(**changes):
    return make_encoder(make_tokenizer(), num_hidden_layers=1, **changes)


@pytest.mark.parametrize("given", ["runs/pretrained", ("encoder", "tokenizer"), 3, None])
def test_what_is_no_encoder_is_rejected_with_the_way_to_one(given):
    with pytest.raises(ValueError, match=r"(?s)`Tagger` needs.*kb\.load\(folder\)") as rejected:
        Tagger(given, labels=["no", "yes"])
    assert repr(given) in str(rejected.value)


@pytest.mark.parametrize("frozen", [False, True])
def test_the_first_step_is_traced_once(monkeypatch, frozen):
    """Twice, if the optimizer's variables are made in it: seconds at the start of every fit."""
    encoder = make_small_encoder(pooler=False)
    encoder.trainable = not frozen
    task = Tagger(encoder, labels=["no", "yes"])
    task.compile_defaults("adamw", jit_compile=False)
    step, traces = task.train_step, []
    monkeypatch.setattr(task, "train_step", lambda data: traces.append(data) or step(data))
    ids = np.full((4, 6), 7)
    batch = {"input_ids": ids, "input_mask": ids // 7, "segment_ids": 0 * ids}
    task.fit(batch, {"logits": ids % 2}, batch_size=2, verbose=0)
    assert int(task.optimizer.iterations) == 2 and len(traces) == 1
    assert len(task.optimizer.variables) > 2 * len(task.trainable_variables)


def test_the_first_evaluation_of_several_outputs_is_traced_once(monkeypatch):
    """Twice, if the figures of the outputs' losses are made in it."""
    task = QuestionAnswerer(make_small_encoder(pooler=False))
    task.compile_defaults("sgd", jit_compile=False)
    step, traces = task.test_step, []
    monkeypatch.setattr(task, "test_step", lambda data: traces.append(data) or step(data))
    ids = np.full((4, 6), 7)
    batch = {name: ids if name == "input_ids" else ids // 7 for name in task.input}
    labels = {name: ids[:, 0] // 7 for name in task.output}
    losses = task.evaluate(batch, labels, batch_size=2, verbose=0, return_dict=True)
    assert len(traces) == 1 and {f"{name}_loss" for name in task.output} <= set(losses)


@pytest.mark.parametrize("segments", [1, 2, 3])
def test_numbers_without_a_row_are_rejected_before_a_graph_is_run(segments):
    """In one, a CPU ends with TensorFlow's own error, and a GPU takes zeros without a word."""
    encoder = make_small_encoder(type_vocab_size=segments)
    task = Tagger(encoder, labels=["no", "yes"])
    task.compile_defaults("sgd", jit_compile=False)
    good = {name: np.ones((2, 3), "int32") for name in task.input}
    vocabulary = encoder.config.vocab_size
    wrong = [("input_ids", vocabulary), ("input_ids", -1)]
    if segments > 1:  # if there is one, the ids are not looked at
        wrong.append(("segment_ids", segments))
    for name, value in wrong:
        most = (vocabulary if name == "input_ids" else segments) - 1
        batch = {**good, name: np.array([[0, 1, 0], [1, value, 1]], "int32")}
        for call in (
            encoder,
            task,
            task.predict,
            lambda x: task.fit(x, {"logits": x["input_ids"]}),
            lambda x: task.fit(good, {"logits": 0}, validation_data=(x, {"logits": 0})),
            lambda x: task.evaluate(x, {"logits": x["input_ids"]}),
        ):
            message = f"`{name}` must be from 0 to {most}. Received: {value}"
            with pytest.raises(InputError, match=message):
                call(batch)
    task(good)


@pytest.fixture(scope="module")
def tagger():
    task = Tagger(make_small_encoder(), labels=["no", "yes"])
    task.compile_defaults("sgd", jit_compile=False)
    return task


@pytest.mark.parametrize(
    "examples",
    [
        "dev.tsv",
        Path("dev.tsv"),
        ["a text"],
        [("a text", "good")],
        [{"text": "a text"}],
        [["a"]],
        (["a text"], ["good"]),
    ],
)
def test_examples_of_a_task_without_a_tokenizer_are_a_sentence(examples, tagger):
    """Keras said `Unrecognized data type`, and printed all of them."""
    for call in (
        lambda: tagger.fit(examples),
        lambda: tagger.fit({"input_ids": np.ones((1, 3))}, validation_data=examples),
        lambda: tagger.evaluate(examples),
        lambda: tagger.predict(examples),
        lambda: tagger(examples),
    ):
        with pytest.raises(InputError, match="has no tokenizer, so it takes batches of token ids"):
            call()


def fit_a_tagger(encoder, **options):
    task = Tagger(encoder, labels=["no", "yes"])
    task.compile_defaults(**options, jit_compile=False)
    ids = np.full((4, 6), 7)
    batch = {"input_ids": ids, "input_mask": ids // 7, "segment_ids": 0 * ids}
    task.fit(batch, {"logits": ids % 2}, batch_size=2, verbose=0)
    return task


@pytest.mark.usefixtures("eager")
def test_a_pooler_that_the_head_does_not_read_is_neither_trained_nor_warned_of(recwarn):
    encoder = make_small_encoder()
    before = encoder.pooler.get_weights()
    task = fit_a_tagger(encoder, steps=2, learning_rate=0.1)
    assert not [warning for warning in recwarn if "radient" in str(warning.message)]
    for weight, value in zip(encoder.pooler.weights, before, strict=True):
        np.testing.assert_array_equal(weight, value)  # no decay either
        assert not any(weight is trained for trained in task.trainable_variables)
        assert not any(weight is variable for variable in task.variables)
    assert len(task.trainable_variables) + len(task.non_trainable_variables) == len(task.variables)


@pytest.mark.usefixtures("eager")
def test_without_an_optimizer_it_is_the_one_of_fine_tuning():
    """Not Keras's AdamW at 1e-3, which ruins pre-trained weights and decays biases."""
    task = fit_a_tagger(make_small_encoder(), steps=20)
    optimizer = task.optimizer
    schedule = optimizer._learning_rate
    rates = [float(schedule(step)) for step in range(20)]
    peak = training_defaults(hidden_size=task.config.hidden_size, is_pretrained=False).learning_rate
    assert max(rates) == pytest.approx(peak) and rates[0] == pytest.approx(peak / 2)
    assert rates[-1] == pytest.approx(peak / 18)
    assert optimizer.global_clipnorm == 1 and optimizer.weight_decay == 0.01
    biases = [v for v in task.trainable_variables if len(v.shape) == 1]
    assert biases and not any(optimizer._use_weight_decay(v) for v in biases)


@pytest.mark.usefixtures("eager")
def test_the_rate_is_that_of_fine_tuning_before_the_number_of_steps_is_known():
    encoder = make_small_encoder()
    task = Tagger(encoder, labels=["no", "yes"])
    task.compile_defaults()
    peak = training_defaults(hidden_size=task.config.hidden_size, is_pretrained=False).learning_rate
    assert float(task.optimizer.learning_rate) == pytest.approx(peak)
    encoder.trainable = False
    task.compile_defaults()
    assert float(task.optimizer.learning_rate) == pytest.approx(1e-3)
    assert task.training_defaults.learning_rate == 1e-3  # as of `finetune`
    with pytest.raises(ValueError, match="for the default optimizer only"):
        Tagger(encoder, labels=["no", "yes"]).compile_defaults("adamw", steps=3)


def test_the_options_of_a_task_are_the_fields_of_its_settings():
    task = Tagger(make_small_encoder(), labels=["no", "yes"], aggregation="mean")
    assert (task.settings.aggregation, task.settings.label_subwords) == ("mean", "first")
    parameters = inspect.signature(Tagger).parameters
    assert list(parameters)[:3] == ["encoder", "tokenizer", "labels"]
    assert parameters["labels"].default is parameters["encoder"].default is inspect.Parameter.empty
    assert parameters["aggregation"].default is None and parameters["crf"].default is False
    assert "scheme" not in parameters and "settings" not in parameters  # of a file
    assert "    crf: add a conditional random field" in Tagger.__doc__
    assert "labels" not in inspect.signature(QuestionAnswerer).parameters
    task.update_settings(aggregation="product")
    assert task.settings.aggregation == task.get_config()["aggregation"] == "product"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aggregation": "sum"}, "`aggregation` is 'sum'. It should be first, last, mean or"),
        ({"max_length": 2}, "`max_length` must be at least 3. Received: 2."),
        ({"colour": "red"}, "Unknown setting `colour`. Choose from"),
        ({"scheme": "bio"}, "`scheme` says how a file is read. Pass it with the file"),
    ],
)
def test_an_invalid_option_is_the_sentence_of_the_command_line(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Tagger(make_small_encoder(), labels=["no", "yes"], **options)
    with pytest.raises(ValueError, match="takes no labels. Received: ..a"):
        QuestionAnswerer(make_small_encoder(), labels=["a", "b"])


def test_a_threshold_without_an_effect_does_not_keep_a_folder_from_loading(tmp_path):
    """Earlier versions stored whatever was given in Python."""
    tokenizer = make_tokenizer()
    task = Classifier(make_encoder(tokenizer), tokenizer, labels=["a", "b"])
    task.save(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text().replace('"threshold": 0.5', '"threshold": 0.25'))
    assert '"threshold": 0.25' in config.read_text()
    assert load_task(tmp_path / "model").settings.threshold == 0.5
