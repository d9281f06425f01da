"""Gradient accumulation: the parts of a step make the gradient of the whole step."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.records import DataFolder
from keras_bert.tasks.pretraining.pretrainer import Pretrainer, SpanPretrainer
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.training.pretraining_examples import ExamplesOfFolder
from keras_bert.training.settings import PretrainSettings
from tests.pretraining_folder import VOCABULARY, make_data_folder

UNITS = {"mlm-nsp": "token", "span": "span"}
TASKS = {"mlm-nsp": Pretrainer, "span": SpanPretrainer}


@pytest.fixture(scope="module", params=["mlm-nsp", pytest.param("span", marks=pytest.mark.slow)])
def task_and_folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "folder"
    make_data_folder(
        path,
        rows=90,
        eval_examples=5,
        objective=request.param,
        masking="dynamic",
        # Then examples have 3 to 5 predictions.
        max_predictions=6,
        settings={"mask_unit": UNITS[request.param], "masked_rate": 0.3},
    )
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    options = {"max_span_length": 1} if request.param == "span" else {}
    tokenizer = Tokenizer(VOCABULARY, lowercase=True)
    task = TASKS[request.param](BertEncoder(config), tokenizer, **options)
    task.compile_defaults()
    # One graph for parts of any size.
    gradients = tf.function(functools.partial(gradients_of_part, task), reduce_retracing=True)
    return task, DataFolder.open(path), gradients


def gradients_of_part(task, x, y, weights):
    """The gradients of the loss of a part of a step, as one vector."""
    with tf.GradientTape() as tape:
        loss = task.compute_loss(x, y, task(x, training=True), weights)
    return as_vector(tape.gradient(loss, task.trainable_variables))


def as_vector(gradients):
    return tf.concat([tf.reshape(tf.convert_to_tensor(g), [-1]) for g in gradients], axis=0)


def gradients_of_steps(task, folder, gradients_of, *, parts, steps, differ=False, **size):
    """-> (the mean gradient of the parts of each step, a vector; its batches; its number).

    With `differ` they are of the first steps whose parts differ in the number of predictions: of
    others the mean of the parts' means would do.
    """
    settings = PretrainSettings(
        data=str(folder.path), vocab="v", output="o", steps=9, gradient_accumulation=parts, **size
    )
    source = ExamplesOfFolder(folder, task, phase=settings.phases[0], settings=settings)
    in_steps, numbers, batches = [], [], iter(source.training(0))
    for number in itertools.count():
        step = list(itertools.islice(batches, parts))
        counts = {float(tf.reduce_sum(weights["masked_lm"])) for *_, weights in step}
        if not differ or len(counts) > 1:
            in_steps.append(step)
            numbers.append(number)
        if len(numbers) == steps:
            break
    # Keras's optimizers accumulate so.
    gradients = [sum(gradients_of(*part).numpy() for part in step) / parts for step in in_steps]
    return gradients, in_steps, numbers


@pytest.fixture(scope="module")
def whole(task_and_folder):
    """The gradients of nine steps, each of a whole batch."""
    gradients, *_ = gradients_of_steps(*task_and_folder, parts=1, steps=9, batch_size=8)
    return gradients


@pytest.mark.parametrize(
    "parts, steps",
    [
        pytest.param(2, 3, marks=pytest.mark.slow),
        (4, 2),
        pytest.param(8, 1, marks=pytest.mark.slow),
    ],
)
def test_parts_have_the_gradient_of_the_whole_batch(task_and_folder, whole, parts, steps):
    in_parts, _, numbers = gradients_of_steps(
        *task_and_folder, parts=parts, steps=steps, differ=True, batch_size=8
    )
    for gradient, number in zip(in_parts, numbers, strict=True):
        expected = whole[number]
        assert np.linalg.norm(gradient - expected) < 1e-5 * np.linalg.norm(expected)


def test_parts_of_a_number_of_tokens_count_by_their_predictions(task_and_folder):
    task, *_ = task_and_folder
    gradients, steps, _ = gradients_of_steps(
        *task_and_folder, parts=3, steps=2, differ=True, batch_tokens=96
    )
    weight_of = task.default_loss_weights() or {}
    for gradient, batches in zip(gradients, steps, strict=True):
        with tf.GradientTape() as tape:
            loss = 0.0
            outputs = [(y, task(x, training=True), weights) for x, y, weights in batches]
            for name in task.output:
                nats = [
                    tf.nn.sparse_softmax_cross_entropy_with_logits(y[name], logits[name])
                    for y, logits, _ in outputs
                ]
                weights = [weights[name] for *_, weights in outputs]
                sums = [tf.reduce_sum(w * v) for w, v in zip(weights, nats, strict=True)]
                total = tf.add_n([tf.reduce_sum(w) for w in weights])
                loss += weight_of.get(name, 1.0) * tf.add_n(sums) / total
        expected = as_vector(tape.gradient(loss, task.trainable_variables)).numpy()
        assert np.linalg.norm(gradient - expected) < 1e-5 * np.linalg.norm(expected)


def test_the_metrics_count_predictions_and_not_their_weight_in_the_step(task_and_folder):
    task, *_ = task_and_folder

    def measured(parts):
        for metric in task._output_metrics.metrics:
            metric.reset_state()
        gradients_of_steps(*task_and_folder, parts=parts, steps=1, batch_size=8)
        results = [metric.result() for metric in task._output_metrics.metrics]
        return {name: float(value) for result in results for name, value in result.items()}

    whole = measured(1)
    assert any(value > 0 for value in whole.values())  # those without predictions are NaN
    assert measured(4) == pytest.approx(whole, rel=1e-5, nan_ok=True)
