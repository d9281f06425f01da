"""Folders of other programs: quirks that are supported, and errors of one sentence."""

import json
import os
import struct
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert import Classifier, Pretrainer
from keras_bert.base.errors import InputError, InputWarning
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.convert import convert
from keras_bert.cli.main import main
from keras_bert.encoders.bert.encoder import BertEncoder
from tests.checkpoints.conftest import change_config


def change_tensors(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    path.unlink()
    save_file(change(tensors), path)


def renamed(function):
    return lambda tensors: {function(name): tensor for name, tensor in tensors.items()}


@pytest.mark.parametrize(
    "change",
    [
        renamed(lambda name: f"bert.{name}"),
        renamed(
            lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            )
        ),
        lambda tensors: {**tensors, "embeddings.position_ids": np.arange(8)[None]},
        lambda tensors: {**tensors, "cls.predictions.bias": np.zeros(15, "float32")},
        lambda tensors: {**tensors, "keras_bert.sbo.kernel": np.zeros(3, "float32")},
    ],
    ids=["prefix", "gamma-beta", "position-ids", "another-head", "our-own-head"],
)
def test_quirks_of_names(folder, change):
    before, _ = load(folder)
    change_tensors(folder, change)
    after, _ = load(folder)
    for one, other in zip(before.trainable_weights, after.trainable_weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_a_config_without_epsilon_means_berts(folder):
    change_config(folder, lambda v: {k: x for k, x in v.items() if k != "layer_norm_eps"})
    assert load(folder)[0].config.layer_norm_eps == 1e-12


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_files_are_read_as_float32(folder, dtype):
    import ml_dtypes

    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    before, _ = load(folder)
    change_tensors(folder, lambda tensors: {n: t.astype(kind) for n, t in tensors.items()})
    after, _ = load(folder)
    for one, other in zip(before.trainable_weights, after.trainable_weights, strict=True):
        assert other.dtype == "float32"
        np.testing.assert_array_equal(one.numpy().astype(kind).astype("float32"), other.numpy())


def test_sharded_files(folder):
    before, _ = load(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    weight_map = {}
    for number, part in enumerate((names[:9], names[9:]), start=1):
        file = f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file)
        weight_map.update(dict.fromkeys(part, file))
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    after, _ = load(folder)
    for one, other in zip(before.trainable_weights, after.trainable_weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(InputError, match="no file .*model-00002-of-00002"):
        load(folder)
    index.write_text(json.dumps({"weight_map": {"a": "../../elsewhere.safetensors"}}))
    with pytest.raises(InputError, match="outside its folder"):
        load(folder)
    for name in ("", "..", "a\0.safetensors"):
        index.write_text(json.dumps({"weight_map": {"a": name}}))
        with pytest.raises(InputError, match="outside its folder: '"):
            load(folder)


def without(name):
    return lambda tensors: {n: t for n, t in tensors.items() if n != name}


QUERY = "encoder.layer.1.attention.self.query.weight"


@pytest.mark.parametrize(
    "change, message",
    [
        (without(QUERY), rf"lacks the tensor {QUERY} of shape \[8, 8\]\."),
        (without("pooler.dense.bias"), "lacks the tensor pooler.dense.bias"),
        (
            lambda t: {**t, QUERY: np.zeros((8, 7), "float32")},
            rf"{QUERY} has the shape \[8, 7\]. Its config asks for \[8, 8\]",
        ),
        (
            lambda t: {**t, "encoder.layer.2.output.dense.bias": np.zeros(8, "float32")},
            "encoder.layer.2.output.dense.bias of shape .8., which has no place",
        ),
        (lambda t: {**t, "adapter.weight": np.zeros(8, "float32")}, "adapter.weight"),
    ],
)
def test_tensors_that_do_not_fit_are_named(folder, change, message):
    change_tensors(folder, change)
    with pytest.raises(InputError, match=message) as error:
        load(folder)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"vocab_size": 10**9}, r"word_embeddings.weight has the shape \[15, 8\]"),
        ({"num_hidden_layers": 1}, "encoder.layer.1.* has no place"),
        ({"num_hidden_layers": 3}, "lacks the tensor encoder.layer.2."),
        ({"num_hidden_layers": 10**12}, "asks for 1000000000000 layers"),
        ({"hidden_size": 10**12}, r"Its config asks for \[15, 1000000000000\]"),
        ({"rotary": True}, "rotary = True, which this encoder cannot compute"),
        ({"model_type": "bloom", "n_layer": 8}, "describes a 'bloom' model"),
        ({"hidden_act": "silu"}, "hidden_act"),
    ],
)
def test_configs_that_do_not_fit_are_rejected(folder, change, message):
    change_config(folder, lambda values: {**values, **change})
    with pytest.raises(InputError, match=message):
        load(folder)


EXTRA = {"sbert_ce_default_activation_function": "Identity", "xla_device": True}


@pytest.mark.parametrize("to", ["huggingface", "google"])
def test_unknown_keys_of_a_config_survive_and_are_reported(folder, tmp_path, to):
    change_config(folder, lambda values: {**values, **EXTRA, "layer_norm_eps": 1e-12})
    with pytest.warns(InputWarning, match="are kept, but not used: 'sbert_ce.*', 'xla_device'"):
        encoder, _ = load(folder)
    again = BertEncoder.from_config(encoder.get_config())  # as Keras rebuilds and clones it
    assert again.config == encoder.config and again.config.extra_keys == EXTRA
    with pytest.warns(InputWarning):
        convert(folder, tmp_path / "out", to=to)
        convert(tmp_path / "out", tmp_path / "back")
        encoder, tokenizer = load(tmp_path / "back")
    save_folder(encoder, tokenizer, tmp_path / "saved")
    values = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert {key: values[key] for key in EXTRA} == EXTRA


def test_a_command_says_in_one_line_which_keys_it_does_not_use(folder, tmp_path, capsys):
    change_config(folder, lambda values: {**values, **EXTRA})
    (tmp_path / "texts.txt").write_text("a b\n")
    data, output = str(tmp_path / "texts.txt"), str(tmp_path / "vectors.npz")
    command = ["embed", "--model", str(folder), "--data", data, "--output", output]
    assert main(command) == 0
    said = capsys.readouterr().err
    assert said.count("unknown keys are kept") == 1
    assert f"Note: {folder / 'config.json'}: unknown keys" in said
    command = ["convert", "--input", str(folder), "--output", str(tmp_path / "out")]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out.count("unknown keys are kept") == 1 and "unknown keys" not in err


def header(fields, body=b""):
    text = json.dumps(fields).encode()
    return struct.pack("<Q", len(text)) + text + body


HUGE = {"a": {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 4 * 10**12]}}
LYING = {"a": {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 4]}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x04K\x01.",  # a pickle
        struct.pack("<Q", 10**12) + b"{",
        header(HUGE),
        header(LYING, b"1234"),
        "truncated",
    ],
    ids=["empty", "pickle", "huge-header", "huge-tensor", "lying-shape", "truncated"],
)
def test_broken_tensor_files_are_one_sentence(folder, content):
    path = folder / "model.safetensors"
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[: len(data) // 2] if content == "truncated" else content)
    with pytest.raises(InputError, match="model.safetensors is not a whole safetensors file"):
        load(folder)


def test_pickled_weights_are_not_opened(folder, monkeypatch):
    """Without torch; what its weights-only loader opens is in tests/hub."""
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match="pytorch_model.bin can run code when Python opens it"):
        load(folder)


def test_a_vocabulary_longer_than_the_embedding_is_rejected(folder):
    path = folder / "vocab.txt"
    path.write_text(path.read_text() + "k\n")
    with pytest.raises(InputError, match="16 tokens, more than the 15 rows"):
        load(folder)


def test_a_shorter_vocabulary_is_fine(folder):
    path = folder / "vocab.txt"
    path.write_text("\n".join(path.read_text().split("\n")[:10]) + "\n")
    encoder, tokenizer = load(folder)
    assert len(tokenizer) == 10 and encoder.config.vocab_size == 15


@pytest.mark.parametrize("file", ["config.json", "vocab.txt", "model.safetensors"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    with pytest.raises(InputError, match=file):
        load(folder)


@pytest.mark.parametrize("names", [{"a": 1}, 5, "BertModel"])
def test_a_conversion_of_what_names_no_class_is_that_of_an_encoder(folder, tmp_path, names):
    change_config(folder, lambda values: {**values, "architectures": names})
    assert convert(folder, tmp_path / "out")["wrote"] == "BertModel"


def test_a_missing_folder(tmp_path):
    with pytest.raises(InputError, match="no model folder"):
        load(tmp_path / "nowhere")


@pytest.fixture
def pretrainer_folder(make_encoder, tokenizer, shake, tmp_path):
    save_folder(shake(Pretrainer(make_encoder(), tokenizer)), tokenizer, tmp_path / "pretrainer")
    return tmp_path / "pretrainer"


@pytest.fixture
def classifier_folder(make_encoder, tokenizer, tmp_path):
    task = Classifier(make_encoder(), tokenizer, labels=["a", "b", "c"])
    save_folder(task, tokenizer, tmp_path / "classifier")
    return tmp_path / "classifier"


def test_decoders_that_are_copies_are_taken_and_others_rejected(pretrainer_folder):
    folder = pretrainer_folder
    stored = load_file(folder / "model.safetensors")
    assert not any("decoder" in name for name in stored)
    decoder = "cls.predictions.decoder"
    copies = {
        f"{decoder}.weight": stored["bert.embeddings.word_embeddings.weight"],
        f"{decoder}.bias": stored["cls.predictions.bias"],
    }
    change_tensors(folder, lambda tensors: {**tensors, **copies})
    load_task(folder)
    change_tensors(folder, without("cls.predictions.bias"))
    task = load_task(folder)
    np.testing.assert_array_equal(task.lm_head.bias.numpy(), stored["cls.predictions.bias"])
    change_tensors(
        folder, lambda tensors: {**tensors, f"{decoder}.weight": copies[f"{decoder}.weight"] + 1}
    )
    with pytest.raises(
        InputError, match="decoder.weight differs from embeddings.word_embeddings.weight"
    ):
        load_task(folder)
    load(folder)  # the encoder alone has no use for it


def test_a_task_needs_its_head_and_a_known_architecture(folder):
    alone = "describes a BertModel: an encoder without a task. Fine-tune it first"
    with pytest.raises(InputError, match=alone):
        load_task(folder)
    change_config(folder, lambda values: {**values, "architectures": ["BertForPreTraining"]})
    with pytest.raises(InputError, match="lacks the tensor cls.predictions.transform"):
        load_task(folder)
    change_config(folder, lambda values: {k: v for k, v in values.items() if k != "architectures"})
    with pytest.raises(
        InputError, match="`architectures` should be a list with one of BertForPreTraining"
    ):
        load_task(folder)


def test_untied_is_read_where_nothing_is_tied(folder, pretrainer_folder, tmp_path):
    """`tie_word_embeddings: false` says something of a masked-LM head, and of no encoder."""
    untied = {"tie_word_embeddings": False}
    for each in (folder, pretrainer_folder):
        change_config(each, lambda values: {**values, **untied})
        load(each)
    assert convert(folder, tmp_path / "out")["wrote"] == "BertModel"
    sentence = "tie_word_embeddings: false, but the folder has no output embedding"
    with pytest.raises(InputError, match=sentence):
        load_task(pretrainer_folder)
    table, decoder = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
    change_tensors(pretrainer_folder, lambda tensors: {**tensors, decoder: tensors[table]})
    load_task(pretrainer_folder)  # a copy all the same


@pytest.mark.parametrize(
    "again", [f"bert.{QUERY}", "embeddings.LayerNorm.gamma"], ids=["prefix", "gamma"]
)
def test_two_tensors_for_one_weight_are_rejected(folder, again):
    """One of the two was taken, by the order of their names."""
    change_tensors(folder, lambda t: {**t, again: np.zeros((8, 8), "float32")})
    with pytest.raises(InputError, match=f"{again}.*two tensors for one weight"):
        load(folder)


def test_a_google_checkpoint_is_named_in_the_error(tmp_path):
    (tmp_path / "bert_config.json").write_text("{}")
    with pytest.raises(InputError, match="Convert this Google checkpoint with keras-bert convert"):
        load(tmp_path)


def test_a_heads_gamma_and_beta(pretrainer_folder):
    before = load_task(pretrainer_folder)
    norm = "cls.predictions.transform.LayerNorm"
    old = {f"{norm}.weight": f"{norm}.gamma", f"{norm}.bias": f"{norm}.beta"}
    change_tensors(pretrainer_folder, renamed(lambda name: old.get(name, name)))
    after = load_task(pretrainer_folder)
    for one, other in zip(before.trainable_weights, after.trainable_weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_a_model_of_another_kind_is_named_as_what_it_is(tmp_path, capsys):
    transformers = pytest.importorskip("transformers", reason="NOT TESTED against transformers")
    config = transformers.BloomConfig(hidden_size=8, n_layer=1, n_head=2, vocab_size=15)
    folder = tmp_path / "bloom"
    transformers.BloomForCausalLM(config).save_pretrained(folder)
    for read in (load, load_task, lambda path: convert(path, tmp_path / "out")):
        with pytest.raises(InputError, match="describes a 'bloom' model. .* bert, roberta"):
            read(folder)
    capsys.readouterr()
    assert main(["convert", "--input", str(folder), "--output", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and "bloom" in told[0]
    assert not (tmp_path / "out").exists()


def test_weights_that_are_not_floats_are_rejected(folder):
    change_tensors(folder, lambda t: {**t, QUERY: t[QUERY].astype("int8")})
    with pytest.raises(InputError, match=f"{folder}: the tensor {QUERY} contains I8 numbers"):
        load(folder)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"id2label": {"0": "a", "1": "b"}}, r"classifier.weight has the shape \[3, 8\]"),
        ({"id2label": {"0": "a"}}, "has a single label. The task classifier needs two"),
        ({"id2label": {"0": "a", "1": "b", "2": "a"}}, "gives two numbers the same label"),
        ({"id2label": {"0": "a", "1": "b", "3": "c"}}, "from 0 without a gap"),
        ({"id2label": {"zero": "a"}}, "has an invalid key"),
        ({"id2label": None, "num_labels": 10**12}, "num_labels is 1000000000000"),
        ({"id2label": None, "num_labels": "three"}, "num_labels is 'three'"),
        ({"keras_bert": {"max_length": 10**12}}, "under keras_bert: `max_length` is 1000000000000"),
        ({"keras_bert": {"max_length": "long"}}, "under keras_bert: `max_length` is 'long'"),
        ({"keras_bert": []}, "keras_bert should be an object"),
        ({"architectures": ["RobertaForSequenceClassification"]}, "whose model type is 'roberta'"),
        ({"architectures": ["BertForPreTraining"]}, "lacks the tensor cls.predictions"),
        ({"architectures": "BertForMaskedLM"}, "`architectures` should be a list with one of"),
        ({"architectures": {"a": 1}}, "`architectures` should be a list with one of"),
        (
            {"architectures": ["BertForNextSentencePrediction"]},
            "which is not supported",
        ),
    ],
)
def test_invalid_task_configs_are_rejected(classifier_folder, change, message):
    change_config(classifier_folder, lambda values: {**values, **change})
    with pytest.raises(InputError, match=message) as error:
        load_task(classifier_folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"{", "config.json, line 1: this is not JSON"),
        (b"[]", "should hold a JSON object, not a list"),
        (b"\xff{}", "config.json is not UTF-8"),
        (b"", "is not JSON"),
    ],
)
def test_a_broken_config(folder, content, message, tmp_path):
    (folder / "config.json").write_bytes(content)
    for read in (load, load_task, lambda folder: convert(folder, tmp_path / "converted")):
        with pytest.raises(InputError, match=message):
            read(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_rejected_by_name(classifier_folder, value, capsys):
    """Every answer would be NaN, which JSON has no word for."""

    def spoil(tensors):
        tensors["classifier.weight"][1, 2] = value
        return tensors

    change_tensors(classifier_folder, spoil)
    command = ["predict", "--model", str(classifier_folder), "--text", "a b"]
    assert main(command) == 2
    out, err = capsys.readouterr()
    assert not out
    assert "the tensor classifier.weight holds NaN or infinity in 1 place." in err
    load(classifier_folder)  # the encoder alone has no use for it


def test_predictions_that_are_not_finite_are_one_sentence(classifier_folder, capsys):
    change_tensors(
        classifier_folder,
        lambda tensors: {name: np.full_like(tensor, 3e38) for name, tensor in tensors.items()},
    )
    assert main(["predict", "--model", str(classifier_folder), "--text", "a b"]) == 2
    out, err = capsys.readouterr()
    assert not out and "its weights are too large to compute with" in err


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_json_that_is_nested_too_deep_is_a_sentence(folder, file):
    (folder / file).write_text('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}")
    with pytest.raises(InputError, match=f"{file}.*nested too deep"):
        load(folder)


PIPED = ["config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"]


@pytest.mark.parametrize("file", PIPED)
def test_a_pipe_in_a_folder_is_not_waited_for(folder, file):
    (folder / file).unlink()
    os.mkfifo(folder / file)
    with pytest.raises(InputError, match=f"{file} is a pipe"):
        load(folder)


@pytest.mark.parametrize(
    "to, file",
    [
        ("google", "bert_config.json"),
        ("google", "vocab.txt"),
        ("google", "bert_model.ckpt.index"),
        ("google", "bert_model.ckpt.data-00000-of-00001"),
        ("keras-nlp", "model.weights.h5"),
        ("keras-nlp", "assets/tokenizer/vocabulary.txt"),
        ("keras-nlp", "config.json"),
    ],
)
def test_a_pipe_in_another_format_is_not_waited_for(folder, tmp_path, to, file):
    if to == "keras-nlp":
        pytest.importorskip("keras_nlp")
    change_config(folder, lambda values: {**values, "hidden_act": "gelu_new"})
    convert(folder, tmp_path / "other", to=to)
    (tmp_path / "other" / file).unlink()
    os.mkfifo(tmp_path / "other" / file)
    with pytest.raises(InputError, match=f"{file} is a pipe"):
        convert(tmp_path / "other", tmp_path / "out")


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "tokenizer.json"])
def test_half_of_a_surrogate_pair_is_a_sentence(folder, file):
    """JSON can write it; nothing that the label or piece is then written to can."""
    (folder / file).write_text('{"id2label": {"0": "\\ud800"}, "added_tokens": []}')
    with pytest.raises(InputError, match=rf"{file} contains half of a surrogate pair \(\\ud800\)"):
        load(folder)


@pytest.mark.parametrize("given", [None, 3, ["folder"]])
def test_something_else_than_a_path_is_one_sentence(given):
    """An encoder without its tokenizer, say, given to `embed`."""
    for opened in (load, load_task):
        with pytest.raises(
            InputError, match="must be a folder, a name or an archive. Received: an"
        ):
            opened(given)
