"""Google's TF1 checkpoints, in and out."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from keras_bert import Classifier, Pretrainer, QuestionAnswerer, Tagger
from keras_bert.checkpoints.google import load_google, save_google
from keras_bert.checkpoints.keras_nlp import save_keras_nlp
from keras_bert.encoders import new_encoder, presets
from keras_bert.tasks.pretraining.pretrainer import FillMask
from tests import small_model
from tests.messages import raises_input_error
from tests.reference.google_bert import google_bert

# The names that google-research/bert's modeling.py and run_pretraining.py give a model of one
# layer, from its own scopes: written out here, so that our table is held against something else.
ENCODER_NAMES = """
bert/embeddings/word_embeddings
bert/embeddings/token_type_embeddings
bert/embeddings/position_embeddings
bert/embeddings/LayerNorm/beta
bert/embeddings/LayerNorm/gamma
bert/encoder/layer_0/attention/self/query/kernel
bert/encoder/layer_0/attention/self/query/bias
bert/encoder/layer_0/attention/self/key/kernel
bert/encoder/layer_0/attention/self/key/bias
bert/encoder/layer_0/attention/self/value/kernel
bert/encoder/layer_0/attention/self/value/bias
bert/encoder/layer_0/attention/output/dense/kernel
bert/encoder/layer_0/attention/output/dense/bias
bert/encoder/layer_0/attention/output/LayerNorm/beta
bert/encoder/layer_0/attention/output/LayerNorm/gamma
bert/encoder/layer_0/intermediate/dense/kernel
bert/encoder/layer_0/intermediate/dense/bias
bert/encoder/layer_0/output/dense/kernel
bert/encoder/layer_0/output/dense/bias
bert/encoder/layer_0/output/LayerNorm/beta
bert/encoder/layer_0/output/LayerNorm/gamma
bert/pooler/dense/kernel
bert/pooler/dense/bias
""".split()
HEAD_NAMES = """
cls/predictions/transform/dense/kernel
cls/predictions/transform/dense/bias
cls/predictions/transform/LayerNorm/beta
cls/predictions/transform/LayerNorm/gamma
cls/predictions/output_bias
cls/seq_relationship/output_weights
cls/seq_relationship/output_bias
""".split()


@pytest.fixture
def folder(make_encoder, tokenizer, tmp_path, shake):
    """A checkpoint of a pre-trainer of one layer."""
    encoder = make_encoder(num_hidden_layers=1, hidden_act="gelu_new")
    save_google(shake(Pretrainer(encoder, tokenizer)), tokenizer, tmp_path / "google")
    return tmp_path / "google"


def tensors_of(folder):
    reader = tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def write(folder, tensors):
    names = sorted(tensors)
    tf.raw_ops.SaveV2(
        prefix=str(folder / "bert_model.ckpt"),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(tensors[name]) for name in names],
    )


def encode(model, inputs):
    return small_model.encode(getattr(model, "encoder", model), inputs)


def test_names_are_the_original_codes(folder):
    assert set(tensors_of(folder)) == {*ENCODER_NAMES, *HEAD_NAMES}
    assert json.loads((folder / "bert_config.json").read_text())["hidden_act"] == "gelu"


def test_outputs_are_those_of_the_original_computation(folder, inputs):
    """Its "gelu" is the tanh form: the config that comes back says so."""
    model, tokenizer = load_google(folder)
    assert model.config.hidden_act == "gelu_new" and tokenizer.lowercase
    sequence, pooled = google_bert(tensors_of(folder), inputs, num_layers=1, num_heads=2)
    y = encode(model, inputs)
    difference = (y["sequence_output"] - sequence) * inputs["input_mask"][..., None]
    assert np.abs(difference).max() < 1e-5
    assert np.abs(y["pooled_output"] - pooled).max() < 1e-5


@pytest.mark.parametrize(
    "kind", ["encoder", "pretrainer", "fill-mask", "classifier", "question-answerer"]
)
def test_round_trip(kind, make_encoder, tokenizer, tmp_path, shake):
    encoder = make_encoder(hidden_act="gelu_new")
    model = {
        "encoder": lambda: encoder,
        "pretrainer": lambda: Pretrainer(encoder, tokenizer),
        "fill-mask": lambda: FillMask(encoder, tokenizer),
        "classifier": lambda: Classifier(encoder, tokenizer, labels=["a", "b", "c"]),
        "question-answerer": lambda: QuestionAnswerer(encoder, tokenizer),
    }[kind]()
    save_google(shake(model), tokenizer, tmp_path / "google")
    again, its_tokenizer = load_google(tmp_path / "google")
    assert type(again) is type(model) and again.config == model.config
    assert its_tokenizer.vocabulary.tokens == tokenizer.vocabulary.tokens
    assert getattr(again, "labels", None) == getattr(model, "labels", None)
    for one, other in zip(again.trainable_weights, model.trainable_weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_a_prefix_will_do_and_optimizer_slots_are_ignored(folder):
    tensors = tensors_of(folder)
    slots = {
        f"{name}/adam_{letter}": tensor * 0 for name, tensor in tensors.items() for letter in "mv"
    }
    write(folder, {**tensors, **slots, "global_step": np.array(7, "int64")})
    model, _ = load_google(folder / "bert_model.ckpt")
    np.testing.assert_array_equal(
        model.encoder.pooler.dense.kernel.numpy(), tensors["bert/pooler/dense/kernel"]
    )


def test_a_capital_in_the_vocabulary_means_cased(folder):
    path = folder / "vocab.txt"
    path.write_text(path.read_text().replace("\nj\n", "\nJ\n"))
    assert not load_google(folder)[1].lowercase


def tensors(change):
    """Adds these tensors to a checkpoint's. One that is None is left out."""

    def rewrite(folder):
        changed = {**tensors_of(folder), **change}
        write(folder, {name: tensor for name, tensor in changed.items() if tensor is not None})

    return rewrite


def halve(folder):
    data = folder / "bert_model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])


def ask_for_many_layers(folder):
    path = folder / "bert_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_hidden_layers": 10**12}))


@pytest.mark.parametrize(
    "change, message",
    [
        (
            tensors({"bert/pooler/dense/bias": None}),
            "lacks the tensor bert/pooler/dense/bias of shape [8]",
        ),
        (
            tensors({"bert/adapter": np.zeros(3, "float32")}),
            "bert/adapter of shape [3]...has no place",
        ),
        (
            tensors({"bert/pooler/dense/kernel": np.zeros((8, 7), "float32")}),
            "bert/pooler/dense/kernel has the shape [8, 7]",
        ),
        (
            tensors({"bert/pooler/dense/bias": np.array([b"a"] * 8)}),
            "dense/bias holds object values",
        ),
        (
            tensors({"bert/pooler/dense/bias": np.zeros(8, "int32")}),
            "dense/bias holds int32 values",
        ),
        (
            tensors({"output_weights": np.ones((1, 8), "f4"), "output_bias": np.ones(1, "f4")}),
            "has a classifier (output_weights) of 1 label. Expected two or more",
        ),
        (
            tensors({"output_weights": np.ones((), "f4"), "output_bias": np.ones(1, "f4")}),
            "output_weights has the shape []",
        ),
        (halve, "not a whole TensorFlow checkpoint"),
        (
            lambda folder: (folder / "bert_model.ckpt.index").write_bytes(b"nonsense"),
            "not a whole TensorFlow checkpoint",
        ),
        (
            lambda folder: (folder / "bert_model.ckpt.index").unlink(),
            "should contain one TensorFlow checkpoint",
        ),
        (shutil.rmtree, "no checkpoint"),
        (ask_for_many_layers, "`num_hidden_layers` must be at most 1,000"),
    ],
)
def test_a_checkpoint_that_cannot_be_loaded(folder, change, message):
    change(folder)
    with raises_input_error(message):
        load_google(folder)


@pytest.mark.parametrize(
    "change", [{"layer_norm_eps": 1e-5}, {"is_decoder": True}, {"model_type": "roberta"}]
)
def test_unsupported_models_are_rejected(change, make_encoder, tokenizer, tmp_path):
    with raises_input_error("google-research/bert computes only bidirectional BERT"):
        save_google(make_encoder(**change), tokenizer, tmp_path / "google")
    assert not (tmp_path / "google").exists()


@pytest.mark.parametrize("save", [save_google, save_keras_nlp])
def test_another_encoder_than_bert_is_one_sentence(save, tokenizer, tmp_path):
    """Their configs lack the fields of BERT's."""
    if save is save_keras_nlp:
        pytest.importorskip("keras_nlp")
    sizes = {"vocab_size": len(tokenizer)}
    for name, cls in presets().items():
        if name in ("gpt-tiny", "gpt2-tiny", "elmo-tiny", "awd-lstm-tiny", "static"):
            encoder = new_encoder(cls.preset(name, **sizes))
            with raises_input_error(f"Received: model_type {encoder.config.model_type!r}"):
                save(encoder, tokenizer, tmp_path / "out")


def test_a_question_answerers_head_has_run_squads_names(make_encoder, tokenizer, tmp_path):
    task = QuestionAnswerer(make_encoder(hidden_act="gelu_new"), tokenizer)
    save_google(task, tokenizer, tmp_path / "google")
    tensors = tensors_of(tmp_path / "google")
    kernel = task.qa_outputs.kernel.numpy()
    np.testing.assert_array_equal(tensors["cls/squad/output_weights"], kernel.T)
    assert tensors["cls/squad/output_bias"].shape == (2,)


def test_a_tagger_is_rejected(make_encoder, tokenizer, tmp_path):
    """Its head would have the names of run_classifier.py's, which is over the whole text."""
    task = Tagger(make_encoder(hidden_act="gelu_new"), tokenizer, labels=["a", "b"])
    with raises_input_error("has no task like tagger"):
        save_google(task, tokenizer, tmp_path / "google")
    assert not (tmp_path / "google").exists()


@pytest.mark.parametrize("act", ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu"])
@pytest.mark.filterwarnings("ignore:google-research/bert computes gelu")
def test_round_trip_of_the_activation(act, make_encoder, tokenizer, tmp_path):
    save_google(make_encoder(hidden_act=act), tokenizer, tmp_path / "google")
    assert load_google(tmp_path / "google")[0].config.hidden_act == act


def test_only_a_checkpoint_that_we_wrote_is_replaced(folder, make_encoder, tokenizer):
    """One of Google's own has the same four files."""
    encoder = make_encoder(hidden_act="gelu_new")
    save_google(encoder, tokenizer, folder, overwrite=True)
    path = folder / "bert_config.json"
    config = json.loads(path.read_text())
    del config["keras_bert"]
    path.write_text(json.dumps(config))
    with raises_input_error("holds something else already"):
        save_google(encoder, tokenizer, folder, overwrite=True)
    assert load_google(folder)[0].config.hidden_act == "gelu_new"


def test_gelu_by_erf_is_written_with_a_warning(make_encoder, tokenizer, tmp_path):
    with pytest.warns(UserWarning, match="tanh form"):
        save_google(make_encoder(hidden_act="gelu"), tokenizer, tmp_path / "google")
