"""GPT and GPT-2 from `--architecture` to an export: every task type, each by one of the two."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

import keras_bert as kb
from keras_bert.checkpoints import load, load_task
from keras_bert.cli.main import main
from keras_bert.encoders import new_encoder, read_config
from keras_bert.exports.saved_model import export
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.predict import predict
from keras_bert.tasks import finetuned_task_types
from keras_bert.training.finetune import finetune
from keras_bert.training.pretrain import pretrain
from tests.eagerly import eagerly
from tests.encoders.every_kind import LINES, request_of, write_examples
from tests.encoders.near_metrics import assert_near
from tests.exports.answers import CHECKS
from tests.pretraining_folder import VOCABULARY
from tests.seeds import shifted
from tests.small_model import make_encoder
from tests.tasks.classification.killed_runs import assert_same_weights, copied

TYPES = ("openai-gpt", "gpt2")
SIZES = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 40}
# A task type, the encoder, and how it is trained.
ROWS = [
    ("classifier", "openai-gpt", {}),
    ("classifier", "gpt2", {"freeze_encoder": True}),
    ("pair-classifier", "gpt2", {"layer_decay": 0.5, "both_orders": True}),
    ("pair-classifier", "openai-gpt", {"freeze_encoder": True, "both_orders": True}),
    ("regression", "openai-gpt", {"gradual_unfreezing": True, "both_orders": True}),
    ("multiple-choice", "openai-gpt", {"lm_loss_weight": 0.5}),
    ("tagger", "gpt2", {"lm_loss_weight": 0.5}),
    ("semantic-roles", "gpt2", {}),
    ("question-answering", "gpt2", {"layer_decay": 0.5}),
    ("span-classifier", "openai-gpt", {"freeze_encoder": True}),
    ("relation-classifier", "gpt2", {}),
    ("text-embedding", "gpt2", {"lm_loss_weight": 0.5}),
    ("coreference", "openai-gpt", {"freeze_encoder": True}),
]


@pytest.fixture(scope="module")
def pretrained(data, tmp_path_factory):
    """A function from a model type to the folder of a pre-training run, beside it `killed`."""
    folders = {}

    def run(model_type):
        if model_type not in folders:
            output = tmp_path_factory.mktemp("gpt_pretrained") / "run"
            with copied(output, output.with_name("killed"), after_step=4):
                pretrain(**arguments(model_type, data, output.parent), output=output)
            folders[model_type] = output
        return folders[model_type]

    return run


def arguments(model_type, data, folder):
    config = {"model_type": model_type, "vocab_size": len(VOCABULARY), **SIZES}
    path = folder / "config.json"
    path.write_text(str(config).replace("'", '"'))
    return {
        "data": data,
        "vocab": data / "vocab.txt",
        "architecture": path,
        "steps": 8,
        "batch_size": 8,
        "learning_rate": 0.01,
        "checkpoint_every": 4,
        "deterministic": True,
    }


@pytest.mark.parametrize("model_type", [pytest.param(TYPES[0], marks=pytest.mark.slow), TYPES[1]])
def test_a_run_from_left_to_right_is_the_default_and_goes_on_after_a_kill(
    model_type, pretrained, data
):
    output = pretrained(model_type)
    assert load_task(output).TASK_TYPE == "causal-lm"
    killed = output.with_name("killed")
    metrics = pretrain(**arguments(model_type, data, output.parent), output=killed)
    assert_same_weights(killed, output)
    assert metrics["eval"]["causal_lm_loss"] < metrics["eval_at_start"]["causal_lm_loss"]
    encoder, _ = load(output)
    assert metrics["parameters"] == encoder.count_params() == encoder.config.parameter_count()
    (text,) = kb.generate(model=output, prompt="w1 w2", max_tokens=4)
    assert text.text.startswith(" w") or not text.text


@pytest.mark.parametrize(
    ("kind", "model_type", "way"),
    [row if row[0] == "tagger" else pytest.param(*row, marks=pytest.mark.slow) for row in ROWS],
    ids=str,
)
def test_every_kind_of_task(kind, model_type, way, pretrained, files, tmp_path):
    file = files[kind]
    given = {
        "task": kind,
        "train": file,
        "dev": file,
        "model": pretrained(model_type),
        "batch_size": 4,
        "epochs": 2,
        "learning_rate": 0.02,
        "checkpoint_every": 2,
        "deterministic": True,
        **way,
    }
    output, killed = tmp_path / "run", tmp_path / "killed"
    with copied(output, killed, after_step=4):
        metrics = finetune(**given, output=output)
    assert finetune(**given, output=killed)["dev"] == metrics["dev"]
    assert_same_weights(killed, output)
    load_task(output).save(tmp_path / "again")
    again, first = (
        load_file(folder / "model.safetensors") for folder in (tmp_path / "again", output / "model")
    )
    assert again.keys() == first.keys()
    for name in first:
        np.testing.assert_array_equal(again[name], first[name])
    with eagerly():
        answers = list(predict(model=output, data=file))
        measured = evaluate(model=output, data=file)
    scores = np.array([row["score"] for row in answers]) if kind == "regression" else None
    for name, value in metrics["dev"].items():
        if isinstance(value, float):
            assert_near(measured[name], value, name, scores=scores, rel=1e-3)
    version = export(model=output, output=tmp_path / "served")
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    outputs = signature(**request_of(kind, file, answers))
    for number, answer in enumerate(answers):
        CHECKS[kind]({name: column[number].numpy() for name, column in outputs.items()}, answer)
    if way.get("freeze_encoder"):
        before, after = (load(folder)[0] for folder in (given["model"], output))
        for one, other in zip(before.weights, after.weights, strict=True):
            np.testing.assert_array_equal(one, other)


def test_all_kinds_are_here():
    assert {kind for kind, _, _ in ROWS} == set(LINES) == set(finetuned_task_types())


def test_the_command_takes_a_preset(data, tmp_path, capsys):
    given = ["--data", str(data), "--vocab", str(data / "vocab.txt"), "--steps", "2"]
    output = str(tmp_path / "run")
    assert main(["pretrain", *given, "--architecture", "gpt-tiny", "--output", output]) == 0
    capsys.readouterr()
    assert main(["generate", "--model", output, "--prompt", "w1 w2", "--candidates"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 6
    wrong = [*given, "--architecture", "gpt-tiny", "--objective", "mlm-nsp"]
    assert main(["pretrain", *wrong, "--output", str(tmp_path / "other")]) == 2
    assert "A openai-gpt encoder cannot be pre-trained" in capsys.readouterr().err


def a_classifier(**options):
    keras.utils.set_random_seed(shifted(3))
    tokenizer = kb.Tokenizer.from_vocab(VOCABULARY)
    config = read_config(
        {"model_type": "gpt2", "vocab_size": len(VOCABULARY), **SIZES, "resid_pdrop": 0.0}
        | {"embd_pdrop": 0.0, "attn_pdrop": 0.0},
        source="x",
    )
    given = {"labels": ["a", "b"], "dropout": 0.0, **options}
    return kb.Classifier(new_encoder(config), tokenizer, **given)


def test_the_next_token_loss_is_added_with_its_weight():
    """And so is its gradient: against the two losses one by one."""
    ids = np.array([[5, 6, 7, 8], [9, 10, 0, 0]], "int32")
    inputs = {"input_ids": ids, "input_mask": (ids > 0).astype("int32")}
    labels = {"logits": np.array([0, 1])}
    plain, added = a_classifier(), a_classifier(lm_loss_weight=0.5)
    assert [w.path.split("/", 1)[1] for w in plain.weights] == [
        w.path.split("/", 1)[1] for w in added.weights
    ]
    gradients = []
    for task in (plain, added):
        task.compile_defaults()
        with tf.GradientTape(persistent=True) as tape:
            outputs = task(inputs, training=True)
            loss = task.compute_loss(inputs, labels, outputs)
            lm = kb.CausalLM(task.encoder)(inputs, training=True)["causal_lm"]
            nats = tf.nn.sparse_softmax_cross_entropy_with_logits(ids[:, 1:], lm)
            lm_loss = tf.reduce_mean(nats[ids[:, 1:] > 0])
        weights = [w.value for w in task.encoder.trainable_weights]
        zero = tf.UnconnectedGradients.ZERO
        gradients_of_both, gradients_of_lm = (
            tape.gradient(x, weights, unconnected_gradients=zero) for x in (loss, lm_loss)
        )
        gradients.append((float(loss), float(lm_loss), gradients_of_both, gradients_of_lm))
    (loss, lm_loss, gradients_of_task, gradients_of_lm), (both, _, gradients_of_both, _) = gradients
    assert both == pytest.approx(loss + 0.5 * lm_loss, rel=1e-5)
    for one, other, total in zip(
        gradients_of_task, gradients_of_lm, gradients_of_both, strict=True
    ):
        np.testing.assert_allclose(total, one + 0.5 * other, atol=1e-5)
    outputs = [task(inputs, training=False)["logits"] for task in (plain, added)]
    np.testing.assert_array_equal(*outputs)


def test_the_next_token_loss_is_for_causal_encoders_that_train(pretrained, tmp_path):
    encoder = make_encoder(kb.Tokenizer.from_vocab(VOCABULARY))
    with pytest.raises(kb.InputError, match="`lm_loss_weight` needs a causal encoder"):
        kb.Classifier(encoder, labels=["a", "b"], lm_loss_weight=0.5)
    file = write_examples(tmp_path / "file", "classifier", ["w1 w2 w3 w4"] * 4)
    with pytest.raises(kb.InputError, match="`lm_loss_weight` trains layers of the encoder, and"):
        finetune(
            **{"task": "classifier", "train": file, "dev": file, "model": tmp_path},
            **{"freeze_encoder": True, "lm_loss_weight": 0.5, "output": tmp_path / "run"},
        )


def test_a_pair_in_both_orders_has_no_order():
    keras.utils.set_random_seed(shifted(3))
    tokenizer = kb.Tokenizer.from_vocab(VOCABULARY)
    config = {"model_type": "openai-gpt", "vocab_size": len(VOCABULARY), **SIZES}
    encoder = new_encoder(read_config({**config, "initializer_range": 0.3}, source="x"))
    task = kb.Regressor(encoder, tokenizer, both_orders=True)
    pairs = [("w1 w2", "w3"), ("w3", "w1 w2")]
    one, other = predict(model=task, text_a=[a for a, _ in pairs], text_b=[b for _, b in pairs])
    assert one["score"] == pytest.approx(other["score"], abs=1e-5)
    plain = kb.Regressor(encoder, tokenizer)
    plain.scorer.set_weights([task.scorer.kernel, np.zeros(1)])
    sums = sum(
        answer["score"]
        for answer in predict(model=plain, text_a=["w1 w2", "w3"], text_b=["w3", "w1 w2"])
    )
    assert one["score"] == pytest.approx(sums + float(task.scorer.bias[0]), abs=1e-5)
    with pytest.raises(kb.InputError, match="`both_orders` is for pairs of texts. Leave it out."):
        kb.Regressor(encoder, one_text=True, both_orders=True)
