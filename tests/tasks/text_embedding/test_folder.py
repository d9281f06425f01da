"""Folders of sentence-transformers: read with the vectors of version 6.2, refused, and written."""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

import keras_bert as kb
from keras_bert.base.errors import InputWarning
from keras_bert.checkpoints import hub, load_task, sentence_transformers
from keras_bert.checkpoints.convert import convert
from keras_bert.heads import projection
from keras_bert.tasks.text_embedding import ACTIVATIONS
from tests.messages import raises_input_error
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

REFERENCE = Path(__file__).parents[2] / "reference" / "text_vectors"
FACTS = json.loads((REFERENCE / "minilm_expected.json").read_text())
EXPECTED = np.load(REFERENCE / "minilm_expected.npz")
TEXTS = FACTS["texts"]
WORDS = ["w1", "w2", "w3", "query"]


def test_each_activation_of_the_settings_is_computed_and_has_a_name_there():
    there = sentence_transformers._ACTIVATIONS
    assert tuple(projection.ACTIVATIONS) == ACTIVATIONS == tuple(there)


@pytest.fixture(scope="module")
def minilm(minilm_folder):
    return load_task(minilm_folder)


def near(vectors, name):
    np.testing.assert_allclose(vectors, EXPECTED[name], atol=1e-6)


def test_the_published_folder_has_the_published_vectors(minilm):
    with pytest.warns(InputWarning, match="1 of the 23 texts are longer"):
        near(minilm.encode(TEXTS), "vectors")
    rows = FACTS["prompt_rows"]
    some = [TEXTS[row] for row in rows]
    near(minilm.encode(some, prompt_text=FACTS["prompt"]), "prompted")
    near(minilm.encode(some, size=64), "truncated_64")
    similarity = minilm.similarity(EXPECTED["vectors"][:6], EXPECTED["vectors"][:6])
    np.testing.assert_allclose(similarity, FACTS["similarity_0_to_5"], atol=1e-6)
    one = minilm.encode(TEXTS[0])
    assert one.shape == (384,) and one.dtype == np.float32
    assert minilm.encode([]).shape == (0, 384)


POOLINGS = {
    "cls": "cls",
    "mean": "mean",
    "max": "max",
    "mean_sqrt_len_tokens": "mean-sqrt-length",
    "weightedmean": "weighted-mean",
    "lasttoken": "last",
}


def test_every_pooling_and_a_prompt_that_is_not_pooled(minilm):
    """The hidden states of one encoder, under each task."""
    tasks = {
        "pool_" + their_name: {"pooling": our_name} for their_name, our_name in POOLINGS.items()
    }
    rows = [TEXTS[row] for row in FACTS["pooling_rows"]]
    for name, settings in tasks.items():
        if name in EXPECTED:
            task = kb.TextEmbedder(minilm.encoder, minilm.tokenizer, **settings)
            np.testing.assert_allclose(task.encode(rows), EXPECTED[name], atol=1e-5)  # of norm 6
    settings = {"include_prompt": False, "normalize": True, "prompts": {"query": FACTS["prompt"]}}
    task = kb.TextEmbedder(minilm.encoder, minilm.tokenizer, **settings)
    near(task.encode_query([TEXTS[row] for row in FACTS["prompt_rows"]]), "prompt_excluded")
    short = kb.TextEmbedder(minilm.encoder, minilm.tokenizer, normalize=True, max_length=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        near(np.atleast_2d(short.encode(TEXTS[-1])), "max_16")


# Small folders, whose files are changed.


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with every step, and its task."""
    tokenizer = make_tokenizer(WORDS)
    task = kb.TextEmbedder(
        make_encoder(tokenizer, num_hidden_layers=1),
        tokenizer,
        pooling="cls+mean",
        dense=["5:tanh", "7:no-bias", "7:residual"],
        normalize=True,
        prompts={"query": "query ", "passage": "w3 "},
        default_prompt="passage",
        max_length=8,
        similarity="dot",
        size=6,
        matryoshka=[7, 3],
    )
    rng = make_rng(3)
    for layer in task.projections:
        for variable in layer.weights:
            variable.assign(rng.normal(size=variable.shape))
    folder = tmp_path_factory.mktemp("saved") / "model"
    task.save(folder)
    return folder, task


@pytest.fixture
def changed(saved, tmp_path):
    """A function that copies the folder with some files changed, by functions of their content."""

    def change(**files):
        folder = tmp_path / f"changed{len(list(tmp_path.iterdir()))}"
        shutil.copytree(saved[0], folder)
        names = {
            "modules": "modules.json",
            "pooling": "1_Pooling/config.json",
            "dense": "2_Dense/config.json",
            "about": "config_sentence_transformers.json",
            "length": "sentence_bert_config.json",
            "tokenizer": "tokenizer_config.json",
        }
        for name, function in files.items():
            path = folder / names[name]
            content = function(json.loads(path.read_text()))
            path.unlink() if content is None else path.write_text(json.dumps(content))
        return folder

    return change


def settings_of(folder):
    return load_task(folder).settings


def test_what_is_written_is_read_with_the_same_vectors_and_settings(saved, tmp_path):
    folder, task = saved
    again = load_task(folder)
    assert isinstance(again, kb.TextEmbedder) and again.settings == task.settings
    for encode in ("encode", "encode_query", "encode_document"):
        vectors, expected = (getattr(t, encode)(["w1 w2", "", "w3"]) for t in (again, task))
        np.testing.assert_array_equal(vectors, expected)
        assert vectors.shape == (3, 6)
    again.save(tmp_path / "again")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            assert (tmp_path / "again" / path.relative_to(folder)).read_bytes() == path.read_bytes()
    again.save(tmp_path / "again", overwrite=True)  # it is known as our own folder
    convert(input=folder, output=tmp_path / "converted")
    np.testing.assert_array_equal(load_task(tmp_path / "converted").encode("w1"), task.encode("w1"))


def test_the_files_are_those_of_versions_3_to_5(saved):
    folder, task = saved
    width = task.config.hidden_size
    modules = json.loads((folder / "modules.json").read_text())
    types = ["Transformer", "Pooling", "Dense", "Dense", "Dense", "Normalize"]
    assert [m["type"] for m in modules] == [f"sentence_transformers.models.{t}" for t in types]
    paths = ["", "1_Pooling", "2_Dense", "3_Dense", "4_Dense", "5_Normalize"]
    assert [(m["idx"], m["name"], m["path"]) for m in modules] == [
        (number, str(number), path) for number, path in enumerate(paths)
    ]
    pooling = json.loads((folder / "1_Pooling/config.json").read_text())
    assert pooling == {
        "word_embedding_dimension": width,
        "pooling_mode_cls_token": True,
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    dense = json.loads((folder / "2_Dense/config.json").read_text())
    assert dense["activation_function"] == "torch.nn.modules.activation.Tanh"
    tensors = load_file(folder / "2_Dense/model.safetensors")
    assert {name: x.shape for name, x in tensors.items()} == {
        "linear.weight": (5, 2 * width),
        "linear.bias": (5,),
    }
    assert json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"] == 8
    assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 8
    about = json.loads((folder / "config_sentence_transformers.json").read_text())
    assert about["similarity_fn_name"] == "dot" and about["truncate_dim"] == 6
    assert not any(
        name.startswith("keras_bert.") for name in load_file(folder / "model.safetensors")
    )


def test_another_order_of_poolings_has_the_key_of_version_6(saved, tmp_path):
    _, task = saved
    other = kb.TextEmbedder(task.encoder, task.tokenizer, pooling="mean+cls+mean-sqrt-length")
    other.save(tmp_path / "model")
    pooling = json.loads((tmp_path / "model/1_Pooling/config.json").read_text())
    modes = ["mean", "cls", "mean_sqrt_len_tokens"]
    assert pooling == {"embedding_dimension": 16, "pooling_mode": modes}
    assert settings_of(tmp_path / "model").pooling == "mean+cls+mean-sqrt-length"


def test_the_files_win_over_what_the_config_stores(changed):
    """Another program may have written them since, and leaves our own key as it was."""
    folder = changed(
        about=lambda about: {**about, "prompts": {"query": "w1 "}, "default_prompt_name": None},
        length=lambda length: {**length, "max_seq_length": 5, "do_lower_case": True},
    )
    settings = settings_of(folder)
    assert settings.prompt_texts == {"query": "w1 "} and settings.default_prompt is None
    assert (settings.max_length, settings.lowercase, settings.sizes) == (5, True, [7, 3])


NAMES_OF_6 = {
    "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
    "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    "Dense": "sentence_transformers.base.modules.dense.Dense",
    "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
}


def test_the_names_and_keys_of_version_6(changed, saved):
    def as_version_6(modules):
        return [{**m, "type": NAMES_OF_6[m["type"].rpartition(".")[2]]} for m in modules]

    folder = changed(
        modules=as_version_6,
        pooling=lambda _: {"embedding_dimension": 16, "pooling_mode": ["cls", "mean"]},
        length=lambda _: {"transformer_task": "feature-extraction", "modality_config": {}},
        about=lambda about: {**about, "prompts": {**about["prompts"], "document": ""}},
    )
    again = load_task(folder)
    assert again.settings.max_length == 8  # the tokenizer's
    expected = saved[1].encode_document("w1")
    np.testing.assert_array_equal(again.encode_document("w1"), expected)  # "passage" is not empty


@pytest.mark.parametrize(
    ("length", "tokenizer_length", "expected"),
    [
        ({"max_seq_length": 9}, 5, 9),  # it wins, also when it is larger
        ({"max_seq_length": 1000}, None, 40),  # of the model's positions
        ({"max_seq_length": None}, 5, 5),
        (None, 5, 5),
        (None, 10**30, 40),
        (None, None, 40),
    ],
)
def test_the_maximum_length(changed, length, tokenizer_length, expected):
    def of(config):
        config.pop("model_max_length")
        return (
            config if tokenizer_length is None else {**config, "model_max_length": tokenizer_length}
        )

    assert settings_of(changed(length=lambda _: length, tokenizer=of)).max_length == expected


def module(kind):
    return lambda modules: [*modules[:2], {**modules[2], "type": kind}, *modules[3:]]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"modules": module("sentence_transformers.models.CNN")}, "the module ...CNN is not supp"),
        ({"modules": module("custom.Dense")}, "the module custom.Dense is not supported"),
        (
            {"modules": lambda m: [{"type": NAMES_OF_6["Normalize"][:-9] + "Router", "path": ""}]},
            "Router",
        ),
        ({"modules": lambda m: m[::-1]}, "Expected Transformer, Pooling, any number of Dense"),
        (
            {"modules": lambda m: [{**m[0], "path": "0_Transformer"}, *m[1:]]},
            "There is no model folder ...0_Transformer",
        ),
        (
            {"modules": lambda m: [*m[:2], {**m[2], "path": "../x"}, *m[3:]]},
            "invalid path '../x'",
        ),
        ({"modules": lambda m: {}}, "expected a list of objects"),
        ({"pooling": lambda _: None}, "There is no file"),
        ({"pooling": lambda p: {**p, "new": 1}}, "the key new is not known"),
        ({"pooling": lambda p: {"pooling_mode": "mean"}}, "the size of a token's vector is none"),
        ({"pooling": lambda p: {**p, "pooling_mode": "attention"}}, "unknown pooling 'attention'"),
        ({"dense": lambda d: {**d, "activation_function": "torch.nn.Mish"}}, "the activation 'to"),
        ({"dense": lambda d: {**d, "in_features": 3}}, "in_features is 3 and out_features 5"),
        ({"dense": lambda d: {**d, "use_residual": True}}, "the tensor residual.weight is missing"),
        ({"about": lambda a: {**a, "similarity_fn_name": "sum"}}, "unknown similarity_fn_name"),
        ({"about": lambda a: {**a, "default_prompt_name": "x"}}, "which has no prompt"),
        ({"about": lambda a: {**a, "truncate_dim": 9}}, "is 9, but a vector has 7 numbers"),
        ({"length": lambda _: {"max_seq_length": "long"}}, "max_seq_length is 'long'"),
        ({"length": lambda _: {"transformer_task": "fill-mask"}}, "'fill-mask' is not supported"),
    ],
)
def test_what_is_not_supported_is_said_with_its_file(changed, files, message):
    with raises_input_error(message):
        load_task(changed(**files))


def test_numbers_that_are_none_are_refused(changed):
    folder = changed()
    path = folder / "3_Dense" / "model.safetensors"
    tensors = load_file(path)
    save_file({name: x * np.float32(np.nan) for name, x in tensors.items()}, path)
    with raises_input_error("the tensor linear.weight has NaN or infinite numbers"):
        load_task(folder)


def test_without_our_own_key_and_as_the_start_of_another_task(changed, saved, tmp_path):
    folder = changed()
    config = json.loads((folder / "config.json").read_text())
    del config["keras_bert"]
    (folder / "config.json").write_text(json.dumps(config))
    assert isinstance(load_task(folder), kb.TextEmbedder)
    encoder, tokenizer = kb.load(folder)
    assert encoder.default_pooling == "both"
    exported = tf.saved_model.load(str(kb.export(model=folder, output=tmp_path / "exported")))
    query = exported.signatures["query"](text=tf.constant(["w1 w2"]))
    expected = saved[1].encode_query(["w1 w2"])
    np.testing.assert_allclose(query["embedding"], expected, atol=1e-6)
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({**modules[-1], "type": "sentence_transformers.models.CNN"})
    (folder / "modules.json").write_text(json.dumps(modules))
    with raises_input_error("the module ...CNN is not supported"):
        kb.export(model=folder, output=tmp_path / "none")
    alone = tf.saved_model.load(
        str(kb.export(model=folder, output=tmp_path / "alone", encoder=True))
    )
    assert "embeddings" in alone.signatures["serving_default"].structured_outputs
    (folder / "modules.json").unlink()
    with raises_input_error("describes a BertModel: an encoder without a task"):
        load_task(folder)


def test_a_cross_encoder_is_none(changed):
    folder = changed(about=lambda about: {**about, "model_type": "CrossEncoder"})
    config = json.loads((folder / "config.json").read_text())
    del config["keras_bert"]
    (folder / "config.json").write_text(json.dumps(config))
    with raises_input_error("an encoder without a task"):
        load_task(folder)


def test_what_transformers_lacks_is_stored_by_us_alone(tmp_path, saved):
    _, task = saved
    other = kb.TextEmbedder(task.encoder, task.tokenizer, bilstm=3, dense="4", normalize=True)
    other.save(tmp_path / "model")
    assert not (tmp_path / "model" / "modules.json").exists()
    again = load_task(tmp_path / "model")
    np.testing.assert_array_equal(again.encode("w1 w2"), other.encode("w1 w2"))


def test_its_files_are_downloaded_and_pushed(saved):
    from keras_bert.checkpoints.sentence_transformers import PATTERNS, files_in

    names = files_in(saved[0])
    steps = ["1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"]
    assert {*steps, "modules.json", "sentence_bert_config.json"} <= {*names}
    assert {*names} <= {
        path.relative_to(saved[0]).as_posix()
        for pattern in PATTERNS
        for path in saved[0].glob(pattern)
    }
    assert hub.CONFIG not in names
