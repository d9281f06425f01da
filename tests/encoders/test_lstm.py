"""AWD-LSTM encoders: numpy's and PyTorch's numbers, the invariants of dropout, ULMFiT's stages."""

import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.cli.main import main
from keras_bert.encoders import new_encoder, read_config
from keras_bert.encoders.encoder import Encoder
from keras_bert.encoders.lstm import AwdLstmConfig
from keras_bert.encoders.lstm.encoder import AwdLstmEncoder
from keras_bert.exports.saved_model import export
from keras_bert.heads.reader import BiLstm
from keras_bert.inference.embed import layers_model
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.generate import generate
from keras_bert.inference.predict import predict
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.pretraining.language_models import CausalLM
from keras_bert.training.finetune import finetune
from keras_bert.training.pretrain import pretrain
from tests.eagerly import eagerly
from tests.encoders.every_kind import LINES, request_of
from tests.exports.answers import CHECKS
from tests.peers import torch
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.seeds import make_rng
from tests.tasks.classification.killed_runs import assert_same_weights, copied

SIZES = {"vocab_size": 30, "hidden_size": 6, "lstm_size": 9, "num_hidden_layers": 3}
RATES = ("embedding_dropout", "input_dropout", "hidden_dropout", "output_dropout", "weight_dropout")
NO_DROPOUT = dict.fromkeys(RATES, 0.0)
RNG = make_rng(5)
LENGTHS = (7, 3, 5)
BATCH = {
    "input_ids": RNG.integers(0, 30, (3, 7)).astype("int32"),
    "input_mask": (np.arange(7) < np.array(LENGTHS)[:, None]).astype("int32"),
}
DISCRIMINATIVE = 1 / 2.6


def make(**changes):
    encoder = AwdLstmEncoder(AwdLstmConfig(**{**SIZES, **changes}))
    for weight in encoder.weights:
        weight.assign(RNG.normal(size=weight.shape) * 0.4)
    return encoder


@pytest.fixture(scope="module")
def encoder():
    return make()


def states_of(encoder, **options):
    return [
        np.asarray(x) for x in encoder(BATCH, outputs=["hidden_states"], **options)["hidden_states"]
    ]


# Values and gradients.


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_hidden_states_are_those_of_the_formula_in_float64(encoder):
    table, *weights = (np.asarray(weight, "float64") for weight in encoder.weights)
    for row, length in enumerate(LENGTHS):
        x = table[BATCH["input_ids"][row, :length]]
        expected = [x]
        for layer in range(3):
            kernel, recurrent_kernel, bias = weights[3 * layer : 3 * layer + 3]
            h, c, states = np.zeros(len(recurrent_kernel)), np.zeros(len(recurrent_kernel)), []
            for x_t in x:
                i, f, g, o = np.split(x_t @ kernel + h @ recurrent_kernel + bias, 4)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
                states.append(h)
            x = np.stack(states)
            expected.append(x)
        for mine, other in zip(states_of(encoder), expected, strict=True):
            np.testing.assert_allclose(mine[row, :length], other, atol=2e-6)


@pytest.mark.peers
def test_values_and_gradients_of_the_language_model_are_those_of_pytorch(tmp_path):
    task = CausalLM(make(**NO_DROPOUT))
    task.lm_head.bias.assign(RNG.normal(size=30))
    save_folder(task, None, tmp_path / "model")
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    named = {
        name: torch.tensor(tensor, requires_grad=True)
        for name, tensor in tensors.items()
        if not name.startswith("keras_bert.")
    }
    expected_names = {"encoder.weight"} | {
        f"rnns.{i}.{name}"
        for i in range(3)
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0")
    }
    assert set(named) == expected_names

    ids = torch.tensor(BATCH["input_ids"]).long()
    x = named["encoder.weight"][ids]
    for i, units in enumerate((9, 9, 6)):
        lstm = torch.nn.LSTM(x.shape[-1], units, batch_first=True)
        parameters = {
            name: named.get(f"rnns.{i}.{name}", torch.zeros(4 * units))
            for name, _ in lstm.named_parameters()
        }
        x, _ = torch.func.functional_call(lstm, parameters, (x,))
    bias = torch.tensor(np.array(task.lm_head.bias))
    logits = x[:, :-1] @ named["encoder.weight"].T + bias
    (logits**2).sum().backward()

    weights = task.encoder.weights
    with tf.GradientTape() as tape:
        ours = task(BATCH, training=True)["causal_lm"]
        loss = keras.ops.sum(ours**2)
    gradients = tape.gradient(loss, [weight.value for weight in weights])
    np.testing.assert_allclose(ours, logits.detach(), atol=1e-5)
    order = [named["encoder.weight"]] + [
        named[f"rnns.{i}.{name}"]
        for i in range(3)
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0")
    ]
    for gradient, tensor in zip(gradients, order, strict=True):
        expected = tensor.grad.numpy()
        if np.ndim(expected) == 2 and tensor is not order[0]:
            expected = expected.T
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=2e-4)


def test_a_step_at_a_time_is_the_whole_sequence(encoder):
    expected = np.asarray(encoder(BATCH)["sequence_output"])
    states, cache = encoder.prefill(BATCH, 12)
    for row, length in enumerate(LENGTHS):
        np.testing.assert_allclose(states[row, :length], expected[row, :length], atol=1e-6)
    longer = np.concatenate([BATCH["input_ids"], np.full((3, 1), 4, "int32")], axis=1)
    longer[1, 3], longer[2, 5] = 4, 4
    after = np.asarray(
        encoder({"input_ids": longer, "input_mask": np.ones_like(longer)})["sequence_output"]
    )
    next_states, _ = encoder.step(np.full(3, 4, "int32"), cache, np.array(LENGTHS))
    np.testing.assert_allclose(next_states, after[range(3), LENGTHS], atol=1e-6)
    encoder.require("generate")
    assert encoder.prefill.__func__ is Encoder.prefill


def test_padding_does_not_matter(encoder):
    other = {**BATCH, "input_ids": np.where(BATCH["input_mask"], BATCH["input_ids"], 3)}
    one, two = (encoder(inputs)["sequence_output"] for inputs in (BATCH, other))
    at = BATCH["input_mask"].astype(bool)
    np.testing.assert_array_equal(np.asarray(one)[at], np.asarray(two)[at])


def test_the_precision_of_weights_and_states(encoder):
    expected = np.asarray(encoder(BATCH)["sequence_output"])
    half = encoder.rebuilt(dtype="mixed_bfloat16")(BATCH, training=False)["sequence_output"]
    assert half.dtype == "bfloat16"
    np.testing.assert_allclose(np.asarray(half, np.float32), expected, atol=0.05)


# Dropout.


def ratios(dropped, intact):
    """The factor that each value was multiplied by."""
    assert np.abs(intact).min() > 0
    return dropped / intact


def near_zero_or(scale, factors):
    np.testing.assert_allclose(factors[factors != 0], scale, rtol=1e-4)
    return factors == 0


def test_embeddings_of_some_tokens_are_zero_in_the_whole_batch():
    encoder = make(**{**NO_DROPOUT, "embedding_dropout": 0.3}, vocab_size=4000)
    ids = np.arange(4000, dtype="int32").reshape(2, 2000)
    ids = np.concatenate([ids, ids], axis=1)  # each token twice in its sequence
    intact = np.asarray(encoder._embed(ids))
    is_zero = near_zero_or(1 / 0.7, ratios(np.asarray(encoder._embed(ids, training=True)), intact))
    whole = is_zero.all(axis=-1)
    np.testing.assert_array_equal(whole, is_zero.any(axis=-1))  # a row, or nothing of it
    np.testing.assert_array_equal(whole[:, :2000], whole[:, 2000:])  # in each place
    assert abs(whole.mean() - 0.3) < 6 * math.sqrt(0.3 * 0.7 / 4000)
    table = np.asarray(encoder.token_embedding.embeddings)
    np.testing.assert_array_equal(intact[0, :5], table[:5])  # the output embedding is as it was


@pytest.mark.parametrize(
    ("rate", "state"), [("input_dropout", 0), ("hidden_dropout", 1), ("output_dropout", 3)]
)
def test_a_sequence_has_one_mask_for_all_positions(rate, state):
    encoder = make(**{**NO_DROPOUT, rate: 0.4}, hidden_size=40, lstm_size=50)
    intact, dropped = (states_of(encoder, training=training)[state] for training in (False, True))
    is_zero = near_zero_or(1 / 0.6, ratios(dropped, intact))
    np.testing.assert_array_equal(is_zero, np.repeat(is_zero[:, :1], 7, axis=1))
    assert not np.array_equal(is_zero[0], is_zero[1])  # one of its own per sequence
    again = states_of(encoder, training=True)[state]
    assert not np.array_equal(again == 0, is_zero)


def test_recurrent_weights_are_dropped_for_the_whole_batch():
    encoder = make(**{**NO_DROPOUT, "weight_dropout": 0.5}, lstm_size=40)
    same = {**BATCH, "input_ids": np.repeat(BATCH["input_ids"][:1], 3, axis=0)}
    with tf.GradientTape() as tape:
        x = encoder(same, training=True)["sequence_output"]
        loss = keras.ops.sum(x * x)
    gradients = tape.gradient(loss, [lstm.recurrent_kernel.value for lstm in encoder.lstms])
    np.testing.assert_allclose(x[0], x[2], atol=1e-6)  # of the same text: the masks are the batch's
    other = np.asarray(encoder(same, training=True)["sequence_output"])
    assert np.abs(other - x).max() > 1e-3  # others in the next batch
    np.testing.assert_allclose(other[:, 0], x[:, 0], atol=1e-6)  # before which there is no state
    for gradient, lstm in zip(gradients, encoder.lstms, strict=True):
        without = np.mean(np.asarray(gradient) == 0)  # a dropped weight has no gradient
        assert abs(without - 0.5) < 6 * math.sqrt(0.25 / lstm.recurrent_kernel.value.numpy().size)
    np.testing.assert_array_equal(
        encoder(same)["sequence_output"], encoder(same, training=False)["sequence_output"]
    )


def test_the_rates_of_the_papers():
    config = AwdLstmConfig.preset("awd-lstm", vocab_size=9)
    assert [config.hidden_size, *config.layer_sizes] == [400, 1150, 1150, 400]
    assert [getattr(config, rate) for rate in RATES] == [0.05, 0.4, 0.3, 0.4, 0.5]
    small = AwdLstmConfig.preset("awd-lstm-mini", vocab_size=9)
    assert small.weight_dropout == 0.125


# The contract.


@pytest.mark.parametrize("name", ["awd-lstm-tiny", "awd-lstm-mini"])
def test_presets_are_counted_right(name):
    config = AwdLstmConfig.preset(name, vocab_size=50)
    encoder = new_encoder(config)
    assert encoder.count_params() == config.parameter_count()
    weight_ids = {id(w) for group in encoder.layer_groups for layer in group for w in layer.weights}
    assert weight_ids == {id(w) for w in encoder.weights}
    assert len(encoder.layer_groups) == config.num_hidden_layers + 1
    copy = type(encoder).from_config(encoder.get_config())
    assert copy.config == config == AwdLstmConfig.from_dict(config.to_dict())
    per_token = 2 * sum(w.value.numpy().size for lstm in encoder.lstms for w in lstm.weights[:2])
    assert config.forward_flops(7) == 7 * per_token


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lstm_size": 0}, r"`lstm_size` must be from 1 to 2\*\*63 - 1. Received: lstm_size=0"),
        ({"hidden_size": 2**70}, "`hidden_size` must be from 1 to"),
        ({"weight_dropout": 1.0}, r"`weight_dropout` must be in \[0, 1\)"),
        ({"classifier_dropout": -0.1}, r"`classifier_dropout` must be in \[0, 1\)"),
        ({"num_hidden_layers": "3"}, "`num_hidden_layers` must be a whole number"),
        ({"bidirectional": True}, "bidirectional = True, which this encoder cannot compute"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings = False, which this encoder cannot"),
    ],
)
def test_invalid_configs_are_rejected(changes, message):
    with pytest.raises(InputError, match=message):
        read_config({"model_type": "awd-lstm", **SIZES, **changes}, source="x")


def test_what_it_cannot_do_is_one_sentence(encoder):
    with pytest.raises(InputError, match="An awd-lstm encoder has no attention to show."):
        encoder(BATCH, outputs=["attention_probabilities"])
    with pytest.raises(InputError, match="layers of an awd-lstm encoder cannot be mixed"):
        Classifier(encoder, labels=["a", "b"], layer_mix={"layer_norm_eps": None, "l2": 0.0})
    with pytest.raises(InputError, match="layers of an awd-lstm encoder cannot be mixed"):
        layers_model(encoder, "sum-all")
    with pytest.raises(ValueError, match="An awd-lstm encoder is causal. Received: causal=False"):
        encoder(BATCH, causal=False)
    assert layers_model(encoder, "second-to-last")(BATCH).shape == (3, 7, 9)


def test_a_classifier_reads_the_last_state_the_greatest_and_the_mean(encoder):
    task = Classifier(encoder, labels=["a", "b"])
    assert task.settings.pooling == "last+max+mean" and task.dropout.rate == 0.1
    x = np.asarray(encoder(BATCH)["sequence_output"])
    rows = [
        (row[:n][-1], row[:n].max(axis=0), row[:n].mean(axis=0))
        for row, n in zip(x, LENGTHS, strict=True)
    ]
    kernel, bias = (np.asarray(w) for w in task.classifier.weights)
    expected = np.array([np.concatenate(row) for row in rows]) @ kernel + bias
    np.testing.assert_allclose(task(BATCH)["logits"], expected, atol=1e-5)


# ULMFiT's stages: a language model, continued on the task's text, then the classifier.


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lstm_data")
    make_data_folder(folder / "books", rows=48, eval_examples=8, objective="mlm-nsp")
    make_data_folder(folder / "task", rows=24, eval_examples=8, objective="mlm", seed=1)
    config = {**SIZES, "vocab_size": len(VOCABULARY), "hidden_size": 16, "lstm_size": 24}
    config |= {"model_type": "awd-lstm", "num_hidden_layers": 2}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def stage_arguments(data, text, **arguments):
    return {
        "data": data / text,
        "vocab": data / text / "vocab.txt",
        "steps": 8,
        "batch_size": 8,
        "learning_rate": 0.02,
        "checkpoint_every": 4,
        "deterministic": True,
        **arguments,
    }


@pytest.fixture(scope="module")
def general(data, tmp_path_factory):
    """The first stage: (the output folder, metrics); beside it `killed`, as after step 4."""
    output = tmp_path_factory.mktemp("lstm_general") / "run"
    with copied(output, output.with_name("killed"), after_step=4):
        given = stage_arguments(data, "books", architecture=data / "config.json", steps=16)
        return output, pretrain(**given, output=output)


@pytest.fixture(scope="module")
def continued(data, general, tmp_path_factory):
    output = tmp_path_factory.mktemp("lstm_continued") / "run"
    rates = {"schedule": "slanted-triangular", "layer_decay": DISCRIMINATIVE}
    given = stage_arguments(data, "task", model=general[0], learning_rate=0.004, **rates)
    return output, pretrain(**given, output=output)


def task_arguments(kind, files, model, **arguments):
    return {
        "task": kind,
        "train": files[kind],
        "dev": files[kind],
        "model": model,
        "batch_size": 4,
        "learning_rate": 0.02,
        "deterministic": True,
        **arguments,
    }


def test_the_language_model_is_the_default_objective_and_learns(general, data, capsys):
    output, metrics = general
    assert metrics["eval"]["causal_lm_loss"] < metrics["eval_at_start"]["causal_lm_loss"]
    assert type(load_task(output)) is CausalLM
    killed = output.with_name("killed")
    given = stage_arguments(data, "books", architecture=data / "config.json", steps=16)
    pretrain(**given, output=killed)
    assert_same_weights(killed, output)
    assert main(["evaluate", "--json", "--model", str(output), "--data", str(data / "books")]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["causal_lm_loss"] == pytest.approx(metrics["eval"]["causal_lm_loss"], rel=1e-4)
    assert scores["causal_lm_perplexity"] == pytest.approx(
        math.exp(scores["causal_lm_loss"]), rel=1e-5
    )
    with pytest.raises(
        InputError, match="cannot be pre-trained with the objective mlm-nsp. Choose"
    ):
        pretrain(**{**given, "objective": "mlm-nsp"}, output=output.with_name("other"))


def test_the_second_stage_continues_with_the_first(general, continued):
    first, second = (
        np.array(load(output)[0].token_embedding.embeddings) for output, _ in (general, continued)
    )
    metrics = continued[1]
    # It knows the language of the first stage's text, which is that of the task's.
    assert (
        metrics["eval_at_start"]["causal_lm_loss"] < general[1]["eval_at_start"]["causal_lm_loss"]
    )
    assert metrics["eval"]["causal_lm_loss"] < metrics["eval_at_start"]["causal_lm_loss"]
    assert 0 < np.abs(second - first).max()
    assert load_task(continued[0]).lm_head.bias is not None


@pytest.mark.slow
def test_the_language_model_generates_and_so_does_its_export(continued, tmp_path):
    prompts = ["w1 w2 w3", "w7"]
    task = load_task(continued[0])
    bias = np.array(task.lm_head.bias)
    bias[VOCABULARY.sep_id] = -10.0  # so that no text ends at once
    task.lm_head.bias.assign(bias)
    task.save(tmp_path / "model")
    texts = generate(model=tmp_path / "model", prompt=prompts, max_tokens=6)
    for prompt, text in zip(prompts, texts, strict=True):
        ids = [VOCABULARY.cls_id, *map(VOCABULARY.id, prompt.split())]
        expected = []
        while len(expected) < 6:
            row = np.array([[*ids, *expected, 0]], "int32")  # the last one is only predicted
            logits = task({"input_ids": row, "input_mask": np.ones_like(row)})["causal_lm"]
            expected.append(int(np.argmax(logits[0, -1])))
        assert text.text.split() == [VOCABULARY.token(id) for id in expected]
    version = export(model=tmp_path / "model", output=tmp_path / "served")
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    outputs = signature(prompt=tf.constant(prompts))["text"].numpy()
    longer = generate(model=tmp_path / "model", prompt=prompts, max_tokens=32)
    assert [text.decode() for text in outputs] == [text.text for text in longer]


def test_the_third_stage_unfreezes_and_answers_wherever_it_is(continued, files, tmp_path):
    output = tmp_path / "run"
    rates = {"schedule": "slanted-triangular", "layer_decay": DISCRIMINATIVE}
    given = task_arguments(
        "classifier", files, continued[0], epochs=3, gradual_unfreezing=True, **rates
    )
    given |= {"keep": "last", "checkpoint_every": 2}
    with copied(output, output.with_name("killed"), after_step=4):
        finetune(**given, output=output)
    finetune(**given, output=output.with_name("killed"))
    assert_same_weights(output.with_name("killed"), output)
    task = load_task(output)
    assert task.settings.pooling == "last+max+mean"
    before, after = load(continued[0])[0], task.encoder
    moved = [
        not np.array_equal(one, other)
        for one, other in zip(before.weights, after.weights, strict=True)
    ]
    assert moved == [False] + 6 * [True]  # three epochs: the head, the last layer, the first one


@pytest.mark.parametrize("bilstm", [pytest.param(None, marks=pytest.mark.slow), 5])
def test_a_frozen_one_gives_features(bilstm, continued, files, tmp_path):
    given = task_arguments("tagger", files, continued[0], epochs=1, freeze_encoder=True)
    finetune(**given, bilstm=bilstm, output=tmp_path / "run")
    task, before = load_task(tmp_path / "run"), load(continued[0])[0]
    assert isinstance(task.reader.bilstm, BiLstm) == (bilstm is not None)
    for one, other in zip(before.weights, task.encoder.weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LINES)
def test_every_kind_of_task_is_trained_and_its_export_answers_as_predict_does(
    kind, continued, files, tmp_path
):
    output = tmp_path / "run"
    metrics = finetune(**task_arguments(kind, files, continued[0], epochs=2), output=output)
    with eagerly():
        measured = evaluate(model=output, data=files[kind])
        answers = list(predict(model=output, data=files[kind]))
    for name, value in metrics["dev"].items():
        if isinstance(value, float):
            assert measured[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name
    version = export(model=output, output=tmp_path / "served")
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    outputs = signature(**request_of(kind, files[kind], answers))
    for number, answer in enumerate(answers):
        CHECKS[kind]({name: column[number].numpy() for name, column in outputs.items()}, answer)
