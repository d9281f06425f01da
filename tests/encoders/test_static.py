"""Static vectors: the encoder, its pre-training, and what stands on it."""

import json

import numpy as np
import pytest
import tensorflow as tf

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.word_vectors import save_word_vectors
from keras_bert.cli.main import main
from keras_bert.encoders.static.encoder import normalized
from keras_bert.exports.saved_model import export
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.predict import predict
from keras_bert.training.finetune import finetune
from keras_bert.training.pretrain import pretrain
from tests import small_model
from tests.eagerly import eagerly
from tests.encoders.every_kind import LINES, request_of
from tests.exports.answers import CHECKS
from tests.pretraining_folder import VOCABULARY, WORDS
from tests.seeds import make_rng
from tests.tasks.classification.killed_runs import assert_same_weights, copied

V, D = 9, 4
TRAIN_ROWS, EVAL_ROWS = 400, 40


def arguments(data, **changes):
    config = data.parent / "config.json"
    size = len(VOCABULARY)
    config.write_text(json.dumps({"model_type": "static", "vocab_size": size, "hidden_size": 8}))
    return {
        "data": data,
        "vocab": data / "vocab.txt",
        "architecture": config,
        "objective": "skip-gram",
        "steps": 60,
        "batch_size": 32,
        "checkpoint_every": 30,
        "learning_rate": 0.2,
        "subsample": 0.0,
        "window": 2,
        "deterministic": True,
        **changes,
    }


@pytest.fixture(scope="module", params=["skip-gram", "cbow"])
def pretrained(request, data, tmp_path_factory):
    """(the folder of a run, its metrics); beside it `killed`, as after step 30."""
    output = tmp_path_factory.mktemp("static") / "run"
    with copied(output, output.with_name("killed"), after_step=30):
        return output, pretrain(**arguments(data, objective=request.param), output=output)


@pytest.fixture(scope="module")
def vectors(data, tmp_path_factory):
    """The folder of a short run."""
    output = tmp_path_factory.mktemp("static_vectors") / "run"
    pretrain(**arguments(data, steps=10, checkpoint_every=10), output=output)
    return output


@pytest.fixture(scope="module")
def encoder():
    encoder = kb.StaticEncoder(kb.StaticConfig(vocab_size=V, hidden_size=D))
    table = make_rng(0).normal(size=(V, D)).astype(np.float32)
    table[3] = 0
    encoder.embedding.embeddings.assign(table)
    return encoder


def inputs_of(ids):
    return {"input_ids": np.asarray(ids, np.int32), "input_mask": np.ones_like(ids)}


def test_its_outputs_are_rows_of_the_table(encoder):
    ids = np.array([[1, 3, 8], [2, 2, 0]], np.int32)
    table = encoder.embedding.embeddings.numpy()
    outputs = ("sequence_output", "first_output", "hidden_states")
    states = encoder(inputs_of(ids), outputs=outputs)
    np.testing.assert_array_equal(states["sequence_output"], table[ids])
    np.testing.assert_array_equal(states["first_output"], table[ids[:, 0]])
    np.testing.assert_array_equal(states["hidden_states"][0], table[ids])
    unit = encoder.rebuilt(normalize=True)(inputs_of(ids))["sequence_output"]
    expected = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(unit, expected[ids], rtol=1e-5)
    assert encoder.config.parameter_count() == encoder.count_params() == V * D


def test_a_folder_is_saved_and_loaded(encoder, tmp_path):
    tokenizer = small_model.make_tokenizer()
    larger = encoder.rebuilt(vocab_size=len(tokenizer), normalize=True)
    save_folder(larger, tokenizer, tmp_path / "model")
    again, _ = load(tmp_path / "model")
    assert again.config == larger.config
    np.testing.assert_array_equal(again.weights[0], larger.weights[0])


def small_static(**changes):
    tokenizer = small_model.make_tokenizer()
    config = kb.StaticConfig(vocab_size=len(tokenizer), hidden_size=6, **changes)
    return kb.StaticEncoder(config), tokenizer


LIMITS = [
    (lambda e, t: kb.FillMask(e, t), "they cannot fill \\[MASK\\]. Use a model that was"),
    (lambda e, t: kb.CausalLM(e, t), "A causal LM needs a causal encoder"),
    (
        lambda e, t: kb.Classifier(e, t, labels=["a", "b"], pooling="cls"),
        "its first and last token are",
    ),
    (
        lambda e, t: kb.Classifier(e, t, labels=["a", "b"], pooling="last"),
        "Choose the pooling mean or m",
    ),
    (
        lambda e, t: kb.Tagger(e, t, labels=["O"], layer_mix={"layer_norm_eps": None, "l2": 0.0}),
        "Static vectors are a single layer",
    ),
    (lambda e, t: e.require("generate"), "so they cannot generate text. Use a causal"),
    (
        lambda e, t: e(inputs_of([[1]]), outputs=["attention_probabilities"]),
        "Static vectors have no attention to show.",
    ),
    (lambda e, t: kb.SkipGram(small_model.make_encoder(t), t), "`SkipGram` trains static vectors"),
]


@pytest.mark.parametrize(("make", "message"), LIMITS)
def test_what_it_cannot_do_is_one_sentence(make, message):
    with pytest.raises(InputError, match=message):
        make(*small_static())


def test_training_finds_the_words_that_occur_together(pretrained):
    output, metrics = pretrained
    name = "skip_gram_loss" if "skip_gram_loss" in metrics["eval"] else "cbow_loss"
    assert metrics["eval_at_start"][name] == pytest.approx(6 * np.log(2), rel=1e-3)
    assert metrics["eval"][name] < 0.8 * metrics["eval_at_start"][name]
    # The words of the data are a circle, in which neighbours have the same contexts.
    near = 0
    vectors = kb.WordVectors.of(output)
    for number in range(WORDS):
        neighbour = int(vectors.nearest(f"w{number}", top_k=1)[0].word[1:])
        near += (neighbour - number) % WORDS in (1, 2, WORDS - 1, WORDS - 2)
    assert near >= 0.7 * WORDS


ONE_OBJECTIVE = pytest.mark.parametrize(
    "pretrained", ["skip-gram", pytest.param("cbow", marks=pytest.mark.slow)], indirect=True
)


@ONE_OBJECTIVE
def test_a_run_that_was_killed_ends_with_the_same_weights(pretrained, data):
    output, _ = pretrained
    objective = load_task(output).TASK_TYPE
    killed = output.with_name("killed")
    pretrain(**arguments(data, objective=objective), output=killed)
    assert_same_weights(killed, output)


@ONE_OBJECTIVE
def test_a_run_begins_with_the_vectors_and_options_of_a_folder(pretrained, data, tmp_path):
    output, metrics = pretrained
    task = load_task(output)
    assert (task.settings.window, task.settings.subsample, task.settings.negatives) == (2, 0.0, 5)
    given = arguments(data, objective=task.TASK_TYPE, steps=2, checkpoint_every=2)
    for name in ("architecture", "window", "subsample"):
        del given[name]
    said = []
    again = pretrain(**given, model=output, output=tmp_path / "run", report=said.append)
    assert not any("random weights" in line for line in said)
    (name,) = (name for name in metrics["eval"] if name != "loss")
    assert again["eval_at_start"][name] == pytest.approx(metrics["eval"][name], rel=1e-4)
    assert load_task(tmp_path / "run").settings.window == 2


def test_evaluate_repeats_the_held_out_loss(pretrained, data):
    output, metrics = pretrained
    evaluation = evaluate(model=output, data=data)
    (name,) = (name for name in metrics["eval"] if name != "loss")
    assert evaluation[name] == pytest.approx(metrics["eval"][name], rel=1e-4)


@pytest.mark.filterwarnings("error:.*shuffle")
def test_fit_trains_from_python(data):
    encoder = kb.StaticEncoder(kb.StaticConfig(vocab_size=len(VOCABULARY), hidden_size=8))
    tokenizer = kb.Tokenizer.from_vocab(data / "vocab.txt")
    task = kb.SkipGram(encoder, tokenizer, window=2, subsample=0.0)
    task.compile_defaults(learning_rate=0.2)
    history = task.fit(task.dataset(data), steps_per_epoch=20, epochs=2, verbose=0).history
    assert history["loss"][1] < history["loss"][0]


NONE = {"window": None, "subsample": None}
BAD = [
    (
        {**NONE, "objective": "mlm-nsp"},
        "A static encoder cannot be pre-trained with the objective mlm-nsp. Cho",
    ),
    ({"architecture": "tiny"}, "A bert encoder cannot be pre-trained with the objective skip-gram"),
    ({**NONE, "objective": "causal-lm"}, "with the objective causal-lm"),
    ({"window": 0}, "`window` must be at least 1. Received: 0."),
    ({"objective": "mlm-nsp", "architecture": "tiny"}, "is for the objectives skip-gram and cbow"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_settings_that_do_not_fit_are_one_sentence(changes, message, data, tmp_path):
    with pytest.raises(InputError, match=message):
        pretrain(**arguments(data, **changes), output=tmp_path / "run")


def run_of(kind, files, vectors, output, **changes):
    given = {
        "task": kind,
        "train": files[kind],
        "dev": files[kind],
        "model": vectors,
        "batch_size": 4,
        "epochs": 1,
        "learning_rate": 0.02,
        "output": output,
        **changes,
    }
    return finetune(**given)


QUICK = ("classifier",)
KINDS = [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in LINES]


@pytest.mark.parametrize("kind", KINDS)
def test_under_every_kind_of_task_it_is_trained_exported_and_answers(
    kind, files, vectors, tmp_path
):
    # Without a context a token's own vector, with a BiLSTM the whole text.
    bilstm = {} if kind in ("classifier", "question-answering") else {"bilstm": 3}
    run_of(kind, files, vectors, tmp_path / "run", **bilstm)
    with eagerly():
        answers = list(predict(model=tmp_path / "run", data=files[kind]))
    version = export(model=tmp_path / "run", output=tmp_path / "served")
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    outputs = signature(**request_of(kind, files[kind], answers))
    for number, answer in enumerate(answers):
        CHECKS[kind]({name: x[number].numpy() for name, x in outputs.items()}, answer)


@pytest.mark.parametrize("frozen", [pytest.param(False, marks=pytest.mark.slow), True])
def test_frozen_vectors_stay_and_others_are_trained(frozen, files, vectors, tmp_path):
    run_of("tagger", files, vectors, tmp_path / "run", freeze_encoder=frozen, bilstm=3)
    before, after = (load(folder)[0].weights[0].numpy() for folder in (vectors, tmp_path / "run"))
    assert np.array_equal(before, after) is frozen


def test_the_vectors_are_exported_and_embedded(vectors, tmp_path):
    with pytest.raises(InputError, match="is exported as its vectors. Pass `encoder=True`."):
        export(model=vectors, output=tmp_path / "served")
    version = export(model=vectors, output=tmp_path / "served", encoder=True)
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    embeddings = signature(text=tf.constant(["w1 w2"]))["embeddings"].numpy()
    encoder, tokenizer = load(vectors)
    ids = [tokenizer.vocabulary.id(word) for word in ("w1", "w2")]
    np.testing.assert_allclose(embeddings[0], encoder.weights[0].numpy()[ids], rtol=1e-6)


# Concatenated with another encoder's output.


@pytest.fixture(scope="module")
def bert(data, tmp_path_factory):
    tokenizer = kb.Tokenizer.from_vocab(data / "vocab.txt")
    folder = tmp_path_factory.mktemp("static_bert") / "model"
    save_folder(small_model.make_encoder(tokenizer), tokenizer, folder)
    return folder


def concatenated(bert, vectors, **options):
    encoder, tokenizer = load(bert)
    return kb.Tagger(
        encoder, tokenizer, labels=["O", "B-X"], static_vectors=load(vectors)[0], **options
    )


def test_the_head_reads_both_vectors(bert, vectors):
    task = concatenated(bert, vectors)
    assert task.classifier.kernel.shape == (16 + 8, 2)
    ids = np.array([[2, 5, 6, 3]], np.int32)
    given = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    hidden = task.encoded(given)["sequence_output"].numpy()
    encoder, static = task.encoder, load(vectors)[0]
    np.testing.assert_allclose(hidden[..., :16], encoder(given)["sequence_output"], rtol=1e-5)
    np.testing.assert_array_equal(hidden[..., 16:], static.weights[0].numpy()[ids])


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [False, True])
def test_concatenated_vectors_are_trained_saved_and_loaded(frozen, bert, vectors, files, tmp_path):
    changes = {"static_vectors": vectors, "freeze_encoder": frozen, "bilstm": 3}
    run_of("tagger", files, bert, tmp_path / "run", **changes)
    task = load_task(tmp_path / "run")
    table = task.reader.static_vectors.weights[0].numpy()
    assert not np.array_equal(table, load(vectors)[0].weights[0])
    task.save(tmp_path / "again")
    again = load_task(tmp_path / "again")
    np.testing.assert_array_equal(again.reader.static_vectors.weights[0], table)
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]
    assert config["keras_bert"]["static_vectors"]["hidden_size"] == 8
    with eagerly():
        answers = list(predict(model=tmp_path / "run", data=files["tagger"]))
    version = export(model=tmp_path / "run", output=tmp_path / "served")
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]
    outputs = signature(**request_of("tagger", files["tagger"], answers))
    for number, answer in enumerate(answers):
        CHECKS["tagger"]({name: x[number].numpy() for name, x in outputs.items()}, answer)
    # A run that goes on with the model keeps its vectors.
    run_of("tagger", files, tmp_path / "run", tmp_path / "more", learning_rate=1e-9)
    more = load_task(tmp_path / "more").reader.static_vectors.weights[0]
    np.testing.assert_allclose(more, table, atol=1e-6)
    with pytest.raises(InputError, match="has static vectors already. Leave `static_vectors` out"):
        run_of("tagger", files, tmp_path / "run", tmp_path / "x", static_vectors=vectors)


def test_concatenated_vectors_stay_if_they_are_to(bert, vectors, files, tmp_path):
    changes = {"static_vectors": vectors, "freeze_static_vectors": True}
    run_of("multiple-choice", files, bert, tmp_path / "run", **changes)
    table = load_task(tmp_path / "run").reader.static_vectors.weights[0]
    np.testing.assert_array_equal(table, load(vectors)[0].weights[0])


def test_static_vectors_of_another_kind_are_one_sentence(bert, vectors, files, tmp_path):
    save_word_vectors(*load(vectors), tmp_path / "some.txt", format="glove")
    lines = (tmp_path / "some.txt").read_text().splitlines()
    (tmp_path / "fewer.txt").write_text("\n".join(lines[:-1]) + "\n")
    for given, message in (
        (bert, "contains a bert encoder, not static vectors"),
        (tmp_path / "fewer.txt", "have another vocabulary than the model"),
    ):
        with pytest.raises(InputError, match=message):
            run_of("tagger", files, bert, tmp_path / "run", static_vectors=given)
    with pytest.raises(InputError, match="`freeze_static_vectors` needs `static_vectors`"):
        run_of("tagger", files, bert, tmp_path / "run", freeze_static_vectors=True)
    encoder, tokenizer = load(bert)
    with pytest.raises(
        ValueError, match="`static_vectors` must be an encoder whose vectors do not"
    ):
        kb.Tagger(encoder, tokenizer, labels=["O"], static_vectors=encoder)


def test_the_commands(data, tmp_path, capsys):
    run = tmp_path / "run"
    given = ["--data", str(data), "--vocab", str(data / "vocab.txt"), "--steps", "2"]
    given += ["--architecture", "static-50", "--objective", "cbow", "--output", str(run)]
    assert main(["pretrain", *given]) == 0
    assert "CBOW loss on the eval split: 4.159 at the start" in capsys.readouterr().out
    assert main(["nearest", "--model", str(run), "--word", "w3", "--top-k", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["fill-mask", "--model", str(run), "--text", "w1 [MASK]"]) == 2
    assert "has no masked-LM head" in capsys.readouterr().err


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_vectors_of_any_norm_are_normalized(scale):
    vectors = np.array([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]], np.float32)
    units = np.asarray(normalized(tf.constant(np.float32(scale) * vectors)))
    np.testing.assert_allclose(units, [[0.6, 0.8], [0, 0], [-1, 0]], rtol=1e-6)
