"""Folders of other programs: quirks that are supported, and errors of one sentence."""

import json
import os
import re
import struct
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert import Classifier, Pretrainer
from keras_bert.base.errors import InputWarning
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.convert import convert
from keras_bert.cli.main import main
from keras_bert.encoders.bert.encoder import BertEncoder
from tests.checkpoints.conftest import change_config
from tests.messages import raises_input_error
from tests.peers import transformers


def change_tensors(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    path.unlink()
    save_file(change(tensors), path)


def tensors(change):
    return lambda folder: change_tensors(folder, change)


def zeros(name, *shape):
    return tensors(lambda tensors: {**tensors, name: np.zeros(shape, "float32")})


def config(**changes):
    return lambda folder: change_config(folder, lambda config: {**config, **changes})


def content(file, made):
    """A file with these bytes, or with what a function makes of its own."""

    def change(folder):
        path = folder / file
        new = made(path.read_bytes()) if callable(made) else made
        path.unlink(missing_ok=True)
        path.write_bytes(new)

    return change


def all_of(*changes):
    """Several changes of a folder, one after another."""

    def change(folder):
        for one_change in changes:
            one_change(folder)

    return change


def missing(file):
    return lambda folder: (folder / file).unlink()


def pipe(file):
    return lambda folder: (missing(file)(folder), os.mkfifo(folder / file))


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


@pytest.mark.parametrize("prefix", ["module.", "model.", "0.auto_model.", "_orig_mod.module."])
def test_the_prefix_of_a_wrapper_is_ignored_and_reported(prefix, folder, classifier_folder):
    for path, open_it in ((folder, load), (classifier_folder, load_task)):
        before = open_it(path)
        change_tensors(path, renamed(lambda name: prefix + name))
        note = f"the names of the tensors begin with '{prefix}', which was ignored."
        with pytest.warns(InputWarning, match=re.escape(note)):
            after = open_it(path)
        models = (loaded[0] if open_it is load else loaded for loaded in (before, after))
        for one, other in zip(*(model.get_weights() for model in models), strict=True):
            np.testing.assert_array_equal(one, other)


def test_tensors_of_two_encoders_are_not_guessed_at(folder):
    def twice(tensors):
        names = (f"{side}.{name}" for name in tensors for side in ("query", "passage"))
        return {name: tensors[name.partition(".")[2]] for name in names}

    change_tensors(folder, twice)
    with raises_input_error("lacks the tensor embeddings.word_embeddings.weight"):
        load(folder)


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
    with raises_input_error("no file ...model-00002-of-00002"):
        load(folder)
    for name in ("../../elsewhere.safetensors", "", "..", "a\0.safetensors"):
        index.write_text(json.dumps({"weight_map": {"a": name}}))
        with raises_input_error("outside its folder: '"):
            load(folder)


def without(name):
    return lambda tensors: {n: t for n, t in tensors.items() if n != name}


QUERY = "encoder.layer.1.attention.self.query.weight"


EXTRA = {"unsloth_version": "2025.1", "xla_device": True}


@pytest.mark.parametrize("to", ["huggingface", "google"])
def test_unknown_keys_of_a_config_survive_and_are_reported(folder, tmp_path, to):
    change_config(folder, lambda fields: {**fields, **EXTRA, "layer_norm_eps": 1e-12})
    with pytest.warns(InputWarning, match="are kept, but not used: 'unsloth.*', 'xla_device'"):
        encoder, _ = load(folder)
    again = BertEncoder.from_config(encoder.get_config())  # as Keras rebuilds and clones it
    assert again.config == encoder.config and again.config.extra_keys == EXTRA
    with pytest.warns(InputWarning):
        convert(folder, tmp_path / "out", to=to)
        convert(tmp_path / "out", tmp_path / "back")
        encoder, tokenizer = load(tmp_path / "back")
    save_folder(encoder, tokenizer, tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert {key: saved[key] for key in EXTRA} == EXTRA


def test_the_ids_that_begin_and_end_a_text_are_kept_without_a_word(folder, tmp_path, recwarn):
    ends = {"bos_token_id": 7, "eos_token_id": [3, 9]}
    change_config(folder, lambda fields: {**fields, **ends})
    save_folder(*load(folder), tmp_path / "again")
    saved = json.loads((tmp_path / "again" / "config.json").read_text())
    assert {name: saved[name] for name in ends} == ends
    assert not [warning for warning in recwarn if issubclass(warning.category, InputWarning)]


def test_a_command_says_in_one_line_which_keys_it_does_not_use(folder, tmp_path, capsys):
    change_config(folder, lambda fields: {**fields, **EXTRA})
    (tmp_path / "texts.txt").write_text("a b\n")
    data, output = str(tmp_path / "texts.txt"), str(tmp_path / "vectors.parquet")
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


DEEP = b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
SURROGATE = b'{"id2label": {"0": "\\ud800"}, "added_tokens": []}'
NOT_WHOLE = "model.safetensors is not a whole safetensors file"


@pytest.mark.parametrize(
    "change, message",
    [
        (tensors(without(QUERY)), f"lacks the tensor {QUERY} of shape [8, 8]."),
        (tensors(without("pooler.dense.bias")), "lacks the tensor pooler.dense.bias"),
        (zeros(QUERY, 8, 7), f"{QUERY} has the shape [8, 7]. Its config asks for [8, 8]"),
        (
            zeros("encoder.layer.2.output.dense.bias", 8),
            "encoder.layer.2.output.dense.bias of shape [8], which has no place",
        ),
        (zeros("adapter.weight", 8), "has the tensor adapter.weight of shape [8]"),
        # One of the two was taken, by the order of their names.
        (zeros(f"bert.{QUERY}", 8, 8), f"bert.{QUERY}...two tensors for one weight"),
        (zeros("embeddings.LayerNorm.gamma", 8, 8), "LayerNorm.gamma...two tensors for one weight"),
        (
            tensors(lambda t: {**t, QUERY: t[QUERY].astype("int8")}),
            f": the tensor {QUERY} contains I8 numbers",
        ),
        (config(vocab_size=10**9), "word_embeddings.weight has the shape [15, 8]"),
        (config(num_hidden_layers=1), "encoder.layer.1... has no place"),
        (config(num_hidden_layers=3), "lacks the tensor encoder.layer.2."),
        (config(num_hidden_layers=10**12), "`num_hidden_layers` must be at most 1,000"),
        (config(hidden_size=10**12), "Its config asks for [15, 1000000000000]"),
        (config(rotary=True), "rotary = True, which this encoder cannot compute"),
        (config(model_type="t5", d_model=8), "describes a 't5' model"),
        (config(hidden_act="silu"), "`hidden_act` must be one of gelu, gelu_new"),
        (content("model.safetensors", b""), NOT_WHOLE),
        (content("model.safetensors", b"\x80\x04K\x01."), NOT_WHOLE),  # a pickle
        (content("model.safetensors", struct.pack("<Q", 10**12) + b"{"), NOT_WHOLE),
        (content("model.safetensors", header(HUGE)), NOT_WHOLE),
        (content("model.safetensors", header(LYING, b"1234")), NOT_WHOLE),
        (content("model.safetensors", lambda data: data[: len(data) // 2]), NOT_WHOLE),
        (
            all_of(content("vocab.txt", lambda data: data + b"k\n"), missing("tokenizer.json")),
            "16 tokens, more than the 15 rows",
        ),
        (content("vocab.txt", lambda data: data + b"k\n"), "and no id in tokenizer.json. Delete"),
        (content("config.json", DEEP), "config.json...nested too deep"),
        (content("tokenizer_config.json", DEEP), "tokenizer_config.json...nested too deep"),
        # JSON can write half of a surrogate pair. Nothing that the label or token is then
        # written to can.
        *(
            (content(file, SURROGATE), rf"{file} contains half of a surrogate pair (\ud800)")
            for file in ("config.json", "tokenizer_config.json", "tokenizer.json")
        ),
        (
            missing("config.json"),
            "is not a model folder: it has no config.json",
        ),
        (
            all_of(missing("vocab.txt"), missing("tokenizer.json")),
            "has no supported tokenizer (found: tokenizer_config.json). Pass token ids instead",
        ),
        (missing("model.safetensors"), "contains no supported weights...model.safetensors"),
        *(
            (pipe(file), f"{file} is a pipe")  # and is not waited for
            for file in ("config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors")
        ),
        (
            lambda folder: (folder / "config.json").rename(folder / "bert_config.json"),
            "should contain one TensorFlow checkpoint (bert_model.ckpt.index). Found: none.",
        ),
    ],
)
def test_a_folder_that_cannot_be_loaded(folder, change, message):
    change(folder)
    with raises_input_error(f"{folder}...{message}"):
        load(folder)


def test_a_missing_folder(tmp_path):
    with raises_input_error("no model folder"):
        load(tmp_path / "nowhere")


def test_pickled_weights_are_not_opened(folder, monkeypatch):
    """Without torch; what its weights-only loader opens is in tests/hub."""
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    monkeypatch.setitem(sys.modules, "torch", None)
    with raises_input_error("pytorch_model.bin can run code when Python opens it"):
        load(folder)


def test_a_shorter_vocabulary_is_fine(folder):
    path = folder / "vocab.txt"
    path.write_text("\n".join(path.read_text().split("\n")[:10]) + "\n")
    (folder / "tokenizer.json").unlink()
    encoder, tokenizer = load(folder)
    assert len(tokenizer) == 10 and encoder.config.vocab_size == 15


@pytest.mark.parametrize("names", [{"a": 1}, 5, "BertModel"])
def test_a_conversion_of_what_names_no_class_is_that_of_an_encoder(folder, tmp_path, names):
    change_config(folder, lambda fields: {**fields, "architectures": names})
    assert convert(folder, tmp_path / "out")["wrote"] == "BertModel"


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
    with raises_input_error("decoder.weight differs from embeddings.word_embeddings.weight"):
        load_task(folder)
    load(folder)  # the encoder alone has no use for it


LISTED = "`architectures` should be a list with one of BertForPreTraining"


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"id2label": {"0": "a", "1": "b"}}, "classifier.weight has the shape [3, 8]"),
        ({"id2label": {"0": "a"}}, "has a single label. The task classifier needs two"),
        ({"id2label": {"0": "a", "1": "b", "2": "a"}}, "gives two numbers the same label"),
        ({"id2label": {"0": "a", "1": "b", "3": "c"}}, "from 0 without a gap"),
        ({"id2label": {"zero": "a"}}, "has an invalid key"),
        ({"id2label": {"0": "a", "1": ["b"]}}, "has the label ['b']. Expected names"),
        ({"id2label": {"0": "a", "1": {"b": 1}}}, "has the label {'b': 1}"),
        ({"id2label": {"0": "a", "1": None}}, "has the label None"),
        ({"id2label": {"0": "a", "1": float("nan")}}, "has the label nan"),
        ({"id2label": None, "num_labels": 10**12}, "num_labels is 1000000000000"),
        ({"id2label": None, "num_labels": "three"}, "num_labels is 'three'"),
        (
            {"keras_bert": {"max_length": 10**12}},
            "under keras_bert: `max_length` must be at most 2147483647",
        ),
        ({"keras_bert": {"max_length": "long"}}, "under keras_bert: `max_length` is 'long'"),
        ({"keras_bert": []}, "keras_bert should be an object"),
        ({"architectures": ["RobertaForSequenceClassification"]}, "whose model type is 'roberta'"),
        ({"architectures": ["BertForPreTraining"]}, "lacks the tensor cls.predictions.transform"),
        (
            {"architectures": ["BertForNextSentencePrediction"]},
            "whose head is not supported. Fine-tune its encoder first",
        ),
        ({"architectures": "BertForMaskedLM"}, LISTED),
        ({"architectures": {"a": 1}}, LISTED),
        ({"architectures": None}, LISTED),
    ],
)
def test_invalid_task_configs_are_rejected(classifier_folder, changes, message):
    config(**changes)(classifier_folder)
    with raises_input_error(message):
        load_task(classifier_folder)


def test_an_encoder_alone_is_no_task(folder):
    with raises_input_error("describes a BertModel: an encoder without a task. Fine-tune it first"):
        load_task(folder)


def test_untied_is_read_where_nothing_is_tied(folder, pretrainer_folder, tmp_path):
    """`tie_word_embeddings: false` says something of a masked-LM head, and of no encoder."""
    untied = {"tie_word_embeddings": False}
    for model_folder in (folder, pretrainer_folder):
        change_config(model_folder, lambda fields: {**fields, **untied})
        load(model_folder)
    assert convert(folder, tmp_path / "out")["wrote"] == "BertModel"
    sentence = "tie_word_embeddings: false, but the folder has no output embedding"
    with raises_input_error(sentence):
        load_task(pretrainer_folder)
    table, decoder = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
    change_tensors(pretrainer_folder, lambda tensors: {**tensors, decoder: tensors[table]})
    load_task(pretrainer_folder)  # a copy all the same


def test_a_heads_gamma_and_beta(pretrainer_folder):
    before = load_task(pretrainer_folder)
    norm = "cls.predictions.transform.LayerNorm"
    old = {f"{norm}.weight": f"{norm}.gamma", f"{norm}.bias": f"{norm}.beta"}
    change_tensors(pretrainer_folder, renamed(lambda name: old.get(name, name)))
    after = load_task(pretrainer_folder)
    for one, other in zip(before.trainable_weights, after.trainable_weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.peers
def test_a_t5_is_named_as_what_it_is(tmp_path, capsys):
    config = transformers.T5Config(
        d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=15
    )
    folder = tmp_path / "t5"
    transformers.T5Model(config).save_pretrained(folder)
    for read in (load, load_task, lambda path: convert(path, tmp_path / "out")):
        with raises_input_error("describes a 't5' model. ... bert, roberta"):
            read(folder)
    capsys.readouterr()
    assert main(["convert", "--input", str(folder), "--output", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and "t5" in told[0]
    assert not (tmp_path / "out").exists()


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
        with raises_input_error(message):
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
    change_config(folder, lambda fields: {**fields, "hidden_act": "gelu_new"})
    convert(folder, tmp_path / "other", to=to)
    (tmp_path / "other" / file).unlink()
    os.mkfifo(tmp_path / "other" / file)
    with raises_input_error(f"{file} is a pipe"):
        convert(tmp_path / "other", tmp_path / "out")


@pytest.mark.parametrize("given", [None, 3, ["folder"]])
def test_something_else_than_a_path_is_one_sentence(given):
    """An encoder without its tokenizer, say, given to `embed`."""
    for opened in (load, load_task):
        with raises_input_error(
            "must be a folder, a name (hf://owner/name) or a file of...Received: an"
        ):
            opened(given)
