"""Model folders: parity with transformers on real weights, both ways, and bad folders."""

import json
import shutil
import struct

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert import Classifier, Pretrainer, Tokenizer, Vocabulary
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.folder import to_hugging_face
from keras_bert.config import BertConfig
from keras_bert.encoder import BertEncoder
from keras_bert.errors import InputError
from keras_bert.tasks.fill_mask import FillMask

RNG = np.random.default_rng(21)
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
SIZES = {
    "vocab_size": 15,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 8,  # square kernels everywhere: the trap of a lost transposition
    "max_position_embeddings": 8,
    "initializer_range": 0.3,
}
TEXTS = [
    ("The bank of the river was steep, and it had rained all night.", ""),
    ("He put $3.50 in the bank; nobody knows why!", "She asked him twice, but he wouldn't say."),
    ("Yes.", ""),
    ("Naïve façade – “quotes”, 东京 and so on…", "a second segment"),
]


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers", reason="NOT TESTED against transformers")


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="NOT TESTED against transformers: no torch")


@pytest.fixture
def encoder():
    return BertEncoder(BertConfig(**SIZES))


def batch(rows=3, width=6, segments=2):
    lengths = RNG.integers(2, width + 1, rows)
    return {
        "input_ids": RNG.integers(5, 15, (rows, width)).astype("int32"),
        "input_mask": (np.arange(width) < lengths[:, None]).astype("int32"),
        "segment_ids": RNG.integers(0, segments, (rows, width)).astype("int32"),
    }


def shake(model):
    """Random values everywhere: biases of zero and gammas of one hide a mix-up."""
    for weight in model.trainable_weights:
        weight.assign(RNG.normal(size=weight.shape) * 0.3)
    return model


def theirs(torch, model, inputs, **options):
    """Calls a transformers model on our inputs."""
    names = {"input_ids": "input_ids", "attention_mask": "input_mask"}
    names["token_type_ids"] = "segment_ids"
    tensors = {name: torch.tensor(inputs[ours]).long() for name, ours in names.items()}
    with torch.no_grad():
        return model.eval()(**tensors, **options)


def at_tokens(difference, inputs):
    return np.abs(difference * inputs["input_mask"][..., None]).max()


def test_every_hidden_state_equals_transformers_on_real_weights(
    minilm_folder, transformers, torch, shared_data
):
    reference = transformers.AutoModel.from_pretrained(minilm_folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm_folder)
    lines = (shared_data / "sst2" / "dev.tsv").read_text(encoding="utf-8").splitlines()[:12]
    texts = TEXTS + [(line.split("\t")[0], "") for line in lines]
    encoded = tokenizer(*zip(*texts, strict=True), padding=True)
    inputs = {
        "input_ids": np.array(encoded["input_ids"], "int32"),
        "input_mask": np.array(encoded["attention_mask"], "int32"),
        "segment_ids": np.array(encoded["token_type_ids"], "int32"),
    }
    assert inputs["segment_ids"].max() == 1 and inputs["input_mask"].min() == 0
    encoder, ours = load(minilm_folder)
    expected = theirs(torch, reference, inputs, output_hidden_states=True)
    y = encoder.view(hidden_states=True)(inputs)
    assert len(y["hidden_states"]) == len(expected.hidden_states) == 7
    for state, other in zip(y["hidden_states"], expected.hidden_states, strict=True):
        assert at_tokens(np.asarray(state) - other.numpy(), inputs) < 1e-5
    assert np.abs(np.asarray(y["pooled_output"]) - expected.pooler_output.numpy()).max() < 1e-5
    first = ours.tokenize([texts[0][0]])[0].numpy().tolist()
    assert first == encoded["input_ids"][0][1 : 1 + len(first)]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"hidden_act": "gelu_new", "layer_norm_eps": 1e-2},
        {"hidden_act": "gelu_pytorch_tanh"},
        {"hidden_act": "relu", "type_vocab_size": 3, "num_attention_heads": 4},
        {"is_decoder": True},
        {"add_pooling_layer": False},
    ],
)
def test_encoders_open_in_transformers_with_the_same_outputs(
    changes, transformers, torch, tokenizer, tmp_path
):
    encoder = shake(BertEncoder(BertConfig(**{**SIZES, **changes})))
    save_folder(encoder, tokenizer, tmp_path / "model")
    reference, info = transformers.AutoModel.from_pretrained(
        tmp_path / "model", output_loading_info=True, attn_implementation="eager"
    )
    pooler = {"pooler.dense.weight", "pooler.dense.bias"}
    assert info["missing_keys"] == (set() if encoder.pooler else pooler)
    assert not info["unexpected_keys"] and not info["mismatched_keys"]
    inputs = batch(segments=encoder.config.type_vocab_size)
    y = encoder.view(hidden_states=True, attention_probabilities=True)(inputs)
    expected = theirs(torch, reference, inputs, output_hidden_states=True, output_attentions=True)
    for state, other in zip(y["hidden_states"], expected.hidden_states, strict=True):
        assert at_tokens(np.asarray(state) - other.numpy(), inputs) < 1e-5
    for ours, other in zip(y["attention_probabilities"], expected.attentions, strict=True):
        ours = np.asarray(ours) * inputs["input_mask"][:, None, :, None]
        other = other.numpy() * inputs["input_mask"][:, None, :, None]
        assert np.abs(ours - other).max() < 1e-5
    if encoder.pooler:
        assert np.abs(np.asarray(y["pooled_output"]) - expected.pooler_output.numpy()).max() < 1e-5
    again, _ = load(tmp_path / "model")
    assert again.config == encoder.config
    for one, other in zip(again.trainable_weights, encoder.trainable_weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_roberta_folders_load_and_save_as_such(transformers, torch, tmp_path):
    config = transformers.RobertaConfig(
        **{**SIZES, "max_position_embeddings": 10, "type_vocab_size": 1}, layer_norm_eps=1e-5
    )
    reference = transformers.RobertaModel(config)
    with torch.no_grad():
        for weight in reference.parameters():
            weight.normal_(0, 0.3)
    reference.save_pretrained(tmp_path / "theirs")
    with pytest.warns(UserWarning, match="byte-level tokenizer is not part of keras-bert"):
        encoder, tokenizer = load(tmp_path / "theirs")
    assert tokenizer is None and encoder.config.max_length == 8
    inputs = batch(segments=1, width=8)
    inputs["input_ids"] = np.where(inputs["input_mask"], inputs["input_ids"], 1)
    expected = theirs(torch, reference, inputs)
    y = encoder(inputs)
    assert at_tokens(y["sequence_output"] - expected.last_hidden_state.numpy(), inputs) < 1e-5
    assert np.abs(y["pooled_output"] - expected.pooler_output.numpy()).max() < 1e-5
    save_folder(encoder, None, tmp_path / "ours")
    again, info = transformers.AutoModel.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert type(again) is transformers.RobertaModel
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert (
        at_tokens(
            theirs(torch, again, inputs).last_hidden_state - expected.last_hidden_state, inputs
        )
        < 1e-6
    )


def test_a_pretrainer_opens_in_transformers_and_here(transformers, torch, tokenizer, tmp_path):
    task = shake(Pretrainer(BertEncoder(BertConfig(**SIZES)), tokenizer))
    save_folder(task, tokenizer, tmp_path / "model")
    reference, info = transformers.BertForPreTraining.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not any(info.values()), info
    inputs = {**batch(), "masked_lm_positions": np.array([[1, 0], [0, 1], [1, 1]], "int32")}
    expected = theirs(torch, reference, inputs)
    logits = np.take_along_axis(
        expected.prediction_logits.numpy(), inputs["masked_lm_positions"][..., None], axis=1
    )
    y = task(inputs)
    assert np.abs(y["masked_lm"] - logits).max() < 1e-5
    assert np.abs(y["next_sentence"] - expected.seq_relationship_logits.numpy()).max() < 1e-5
    masked_lm, info = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not info["missing_keys"]
    difference = theirs(torch, masked_lm, inputs).logits - expected.prediction_logits
    assert np.abs(difference.numpy()).max() < 1e-6
    _, info = transformers.AutoModel.from_pretrained(tmp_path / "model", output_loading_info=True)
    assert not info["missing_keys"]
    again = load_task(tmp_path / "model")
    assert type(again) is Pretrainer and again.config == task.config
    y_again = again(inputs)
    for name in y:
        np.testing.assert_array_equal(y[name], y_again[name])
    theirs_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    assert theirs_tokenizer("A b [MASK]")["input_ids"] == [2, 5, 6, 4, 3]


def test_another_class_misses_only_its_own_head(transformers, tokenizer, tmp_path):
    task = Pretrainer(BertEncoder(BertConfig(**SIZES)), tokenizer)
    save_folder(task, tokenizer, tmp_path / "model")
    for kind, head in [
        ("SequenceClassification", "classifier"),
        ("TokenClassification", "classifier"),
        ("QuestionAnswering", "qa_outputs"),
    ]:
        _, info = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(
            tmp_path / "model", output_loading_info=True
        )
        assert info["missing_keys"] == {f"{head}.weight", f"{head}.bias"}, kind


def test_a_pooler_is_kept_for_us_where_the_class_has_none(transformers, tokenizer, tmp_path):
    encoder = shake(BertEncoder(BertConfig(**SIZES)))
    save_folder(FillMask(encoder, tokenizer), tokenizer, tmp_path / "model")
    _, info = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not info["missing_keys"]
    assert all(name.startswith("keras_bert.") for name in info["unexpected_keys"])
    again, _ = load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.pooler.dense.kernel.numpy(), encoder.pooler.dense.kernel.numpy()
    )


def test_what_transformers_writes_for_pretraining_loads(transformers, torch, tokenizer, tmp_path):
    reference = transformers.BertForPreTraining(transformers.BertConfig(**SIZES))
    with torch.no_grad():
        for weight in reference.parameters():
            weight.normal_(0, 0.3)
    reference.save_pretrained(tmp_path / "theirs")
    tokenizer.save(tmp_path / "theirs")
    task = load_task(tmp_path / "theirs")
    inputs = {**batch(), "masked_lm_positions": np.array([[1, 0], [0, 1], [1, 1]], "int32")}
    expected = theirs(torch, reference, inputs)
    logits = np.take_along_axis(
        expected.prediction_logits.numpy(), inputs["masked_lm_positions"][..., None], axis=1
    )
    assert np.abs(task(inputs)["masked_lm"] - logits).max() < 1e-5


def test_a_transposed_square_kernel_survives(tokenizer, tmp_path):
    """safetensors writes a transposed view's bytes as they lie, without a word."""
    encoder = shake(BertEncoder(BertConfig(**SIZES)))
    save_folder(encoder, tokenizer, tmp_path / "model")
    stored = load_file(tmp_path / "model" / "model.safetensors")
    kernel = encoder.blocks[1].attention.query.kernel.numpy()
    assert kernel.shape == (8, 8)
    np.testing.assert_array_equal(stored["encoder.layer.1.attention.self.query.weight"], kernel.T)
    _, tensors = to_hugging_face(encoder)
    assert all(tensor.flags["C_CONTIGUOUS"] for tensor in tensors.values())


def test_a_classifier_opens_in_transformers_and_here(transformers, torch, tokenizer, tmp_path):
    task = shake(
        Classifier(
            BertEncoder(BertConfig(**SIZES, classifier_dropout=0.3)),
            tokenizer,
            labels=["ham", "spam", "I don't know"],
            max_length=7,
        )
    )
    save_folder(task, tokenizer, tmp_path / "model")
    reference, info = transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not any(info.values()), info
    assert reference.config.id2label == {0: "ham", 1: "spam", 2: "I don't know"}
    inputs = batch()
    expected = theirs(torch, reference, inputs).logits.numpy()
    assert np.abs(task(inputs)["logits"] - expected).max() < 1e-5
    again = load_task(tmp_path / "model")
    assert type(again) is Classifier and again.labels == task.labels and again.max_length == 7
    np.testing.assert_array_equal(again(inputs)["logits"], task(inputs)["logits"])


# The quirks and the bad folders change one thing about a good folder.


@pytest.fixture(scope="module")
def good_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good") / "model"
    tokenizer = Tokenizer.from_vocab(Vocabulary(PIECES), lowercase=True)
    save_folder(shake(BertEncoder(BertConfig(**SIZES))), tokenizer, folder)
    return folder


@pytest.fixture
def folder(tmp_path, good_folder):
    return shutil.copytree(good_folder, tmp_path / "model")


def change_tensors(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    path.unlink()
    save_file(change(tensors), path)


def change_config(folder, change):
    path = folder / "config.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps(change(values)))


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
            rf"{QUERY} has the shape \[8, 7\]; its config asks for \[8, 8\]",
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
        ({"rotary": True}, "'rotary', which this encoder does not know"),
        ({"model_type": "gpt2", "n_embd": 8}, "describes a 'gpt2' model"),
        ({"hidden_act": "silu"}, "hidden_act"),
    ],
)
def test_configs_that_do_not_fit_are_refused(folder, change, message):
    change_config(folder, lambda values: {**values, **change})
    with pytest.raises(InputError, match=message):
        load(folder)


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


def test_pickled_weights_are_not_opened(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="pytorch_model.bin, which can run code"):
        load(folder)


def test_a_vocabulary_longer_than_the_embedding_is_refused(folder):
    path = folder / "vocab.txt"
    path.write_text(path.read_text() + "k\n")
    with pytest.raises(InputError, match="16 pieces, more than the 15 rows"):
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


def test_no_folder_at_all(tmp_path):
    with pytest.raises(InputError, match="no model folder"):
        load(tmp_path / "nowhere")


def pretrainer_folder(tmp_path, tokenizer):
    task = shake(Pretrainer(BertEncoder(BertConfig(**SIZES)), tokenizer))
    save_folder(task, tokenizer, tmp_path / "pretrainer")
    return tmp_path / "pretrainer"


def test_decoders_that_are_copies_are_taken_and_others_refused(tmp_path, tokenizer):
    folder = pretrainer_folder(tmp_path, tokenizer)
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
    np.testing.assert_array_equal(task.masked_lm_head.bias.numpy(), stored["cls.predictions.bias"])
    change_tensors(
        folder, lambda tensors: {**tensors, f"{decoder}.weight": copies[f"{decoder}.weight"] + 1}
    )
    with pytest.raises(InputError, match="decoder.weight differs from the token embedding"):
        load_task(folder)
    load(folder)  # the encoder alone has no use for it


def test_a_task_needs_its_head_and_a_known_architecture(tmp_path, tokenizer, folder):
    with pytest.raises(InputError, match="holds a BertModel, which is no task here"):
        load_task(folder)
    change_config(folder, lambda values: {**values, "architectures": ["BertForPreTraining"]})
    with pytest.raises(InputError, match="lacks the tensor cls.predictions.transform"):
        load_task(folder)
    change_config(folder, lambda values: {k: v for k, v in values.items() if k != "architectures"})
    with pytest.raises(InputError, match="`architectures` should be one of BertForPreTraining"):
        load_task(folder)


def test_an_output_in_use_is_left_alone(tmp_path, encoder, tokenizer, folder):
    with pytest.raises(InputError, match="exists and is not empty"):
        save_folder(encoder, tokenizer, folder)
    save_folder(encoder, tokenizer, folder, overwrite=True)  # our own
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="did not write"):
        save_folder(encoder, tokenizer, folder, overwrite=True)
    assert (folder / "notes.txt").read_text() == "mine"
    (folder / "notes.txt").unlink()
    change_config(folder, lambda v: {k: x for k, x in v.items() if k != "keras_bert"})
    with pytest.raises(InputError, match="did not write"):
        save_folder(encoder, tokenizer, folder, overwrite=True)
    assert not [path for path in folder.parent.iterdir() if path != folder]


def test_a_tokenizer_that_does_not_fit_is_an_error(tmp_path, encoder):
    larger = Tokenizer.from_vocab(Vocabulary([*PIECES, "k"]), lowercase=True)
    with pytest.raises(ValueError, match=r"len\(tokenizer\)=16, vocab_size=15"):
        save_folder(encoder, larger, tmp_path / "model")
    with pytest.raises(ValueError, match="tokenizer=None"):
        save_folder(encoder, None, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_failed_save_leaves_nothing_that_looks_finished(tmp_path, encoder, tokenizer, folder):
    class Broken(Tokenizer):
        def save(self, folder):
            raise OSError("disk full")

    broken = Broken(tokenizer.vocabulary, lowercase=True)
    before = (folder / "model.safetensors").read_bytes()
    with pytest.raises(OSError):
        save_folder(shake(encoder), broken, folder, overwrite=True)
    with pytest.raises(OSError):
        save_folder(encoder, broken, tmp_path / "new")
    assert (folder / "model.safetensors").read_bytes() == before
    assert not (tmp_path / "new").exists()
    save_folder(encoder, tokenizer, tmp_path / "new")  # over what the failed one left aside
    assert not (tmp_path / "new.part").exists()
    shutil.rmtree(tmp_path / "new")
