"""Model folders: parity with transformers on real weights, both ways, and writing one."""

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert import Classifier, Pretrainer, Tokenizer
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.model_folder import fingerprint_of_folder, to_hugging_face
from keras_bert.encoders import new_encoder
from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.encoders.lstm import AwdLstmConfig
from keras_bert.encoders.static import StaticConfig
from keras_bert.layers.dense import without_random_weights
from keras_bert.tasks.pretraining.pretrainer import FillMask
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from tests.checkpoints.conftest import change_config
from tests.messages import raises_input_error
from tests.peers import torch, transformers
from tests.seeds import make_rng, shifted
from tests.small_model import encode

RNG = make_rng(21)
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
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


def their_outputs(model, inputs, **options):
    """Calls a transformers model on our inputs."""
    names = {"input_ids": "input_ids", "attention_mask": "input_mask"}
    names["token_type_ids"] = "segment_ids"
    tensors = {name: torch.tensor(inputs[ours]).long() for name, ours in names.items()}
    with torch.no_grad():
        return model.eval()(**tensors, **options)


def at_tokens(difference, inputs):
    return np.abs(difference * inputs["input_mask"][..., None]).max()


@pytest.mark.peers
def test_every_hidden_state_equals_transformers_on_real_weights(minilm_folder, shared_data):
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
    expected = their_outputs(reference, inputs, output_hidden_states=True)
    y = encode(encoder, inputs, "hidden_states")
    assert len(y["hidden_states"]) == len(expected.hidden_states) == 7
    for state, other in zip(y["hidden_states"], expected.hidden_states, strict=True):
        assert at_tokens(np.asarray(state) - other.numpy(), inputs) < 1e-5
    assert np.abs(np.asarray(y["pooled_output"]) - expected.pooler_output.numpy()).max() < 1e-5
    first = ours.tokenize([texts[0][0]])[0].numpy().tolist()
    assert first == encoded["input_ids"][0][1 : 1 + len(first)]


@pytest.mark.peers
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"hidden_act": "gelu_new", "layer_norm_eps": 1e-2},
        {"hidden_act": "gelu_pytorch_tanh"},
        {"hidden_act": "relu", "type_vocab_size": 3, "num_attention_heads": 4},
        {"is_decoder": True},
        {"pooler": False},
    ],
)
def test_encoders_open_in_transformers_with_the_same_outputs(
    changes, make_encoder, tokenizer, tmp_path
):
    encoder = make_encoder(**changes)
    save_folder(encoder, tokenizer, tmp_path / "model")
    reference, info = transformers.AutoModel.from_pretrained(
        tmp_path / "model", output_loading_info=True, attn_implementation="eager"
    )
    pooler = {"pooler.dense.weight", "pooler.dense.bias"}
    assert info["missing_keys"] == (set() if encoder.pooler else pooler)
    assert not info["unexpected_keys"] and not info["mismatched_keys"]
    inputs = batch(segments=encoder.config.type_vocab_size)
    y = encode(encoder, inputs, "hidden_states", "attention_probabilities")
    expected = their_outputs(reference, inputs, output_hidden_states=True, output_attentions=True)
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


@pytest.mark.peers
def test_roberta_folders_load_and_save_as_such(tmp_path):
    config = transformers.RobertaConfig(
        **{**SIZES, "max_position_embeddings": 10, "type_vocab_size": 1}, layer_norm_eps=1e-5
    )
    reference = transformers.RobertaModel(config)
    with torch.no_grad():
        for weight in reference.parameters():
            weight.normal_(0, 0.3)
    reference.save_pretrained(tmp_path / "theirs")
    with pytest.warns(UserWarning, match="has no tokenizer"):
        encoder, tokenizer = load(tmp_path / "theirs")
    assert tokenizer is None and encoder.config.max_length == 8
    inputs = batch(segments=1, width=8)
    inputs["input_ids"] = np.where(inputs["input_mask"], inputs["input_ids"], 1)
    expected = their_outputs(reference, inputs)
    y = encode(encoder, inputs)
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
            their_outputs(again, inputs).last_hidden_state - expected.last_hidden_state, inputs
        )
        < 1e-6
    )


@pytest.mark.peers
def test_a_pretrainer_opens_in_transformers_and_here(tokenizer, tmp_path):
    task = shake(Pretrainer(BertEncoder(BertConfig(**SIZES)), tokenizer))
    save_folder(task, tokenizer, tmp_path / "model")
    reference, info = transformers.BertForPreTraining.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not any(info.values()), info
    inputs = {**batch(), "masked_lm_positions": np.array([[1, 0], [0, 1], [1, 1]], "int32")}
    expected = their_outputs(reference, inputs)
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
    difference = their_outputs(masked_lm, inputs).logits - expected.prediction_logits
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


@pytest.mark.peers
def test_a_pooler_is_kept_for_us_where_the_class_has_none(make_encoder, tokenizer, tmp_path):
    encoder = make_encoder()
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


def test_a_transposed_square_kernel_survives(tokenizer, tmp_path):
    """safetensors writes a transposed view's bytes as they lie, without a word."""
    encoder = shake(BertEncoder(BertConfig(**SIZES)))
    save_folder(encoder, tokenizer, tmp_path / "model")
    stored = load_file(tmp_path / "model" / "model.safetensors")
    kernel = encoder.blocks[1].attention.query_key_value.kernel.numpy()[:, :8]  # of the query
    assert kernel.shape == (8, 8)
    np.testing.assert_array_equal(stored["encoder.layer.1.attention.self.query.weight"], kernel.T)
    _, tensors = to_hugging_face(encoder)
    assert all(tensor.flags["C_CONTIGUOUS"] for tensor in tensors.values())


@pytest.mark.peers
def test_a_classifier_opens_in_transformers_and_here(tokenizer, tmp_path):
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
    expected = their_outputs(reference, inputs).logits.numpy()
    assert np.abs(task(inputs)["logits"] - expected).max() < 1e-5
    again = load_task(tmp_path / "model")
    assert (
        type(again) is Classifier and again.labels == task.labels and again.settings.max_length == 7
    )
    np.testing.assert_array_equal(again(inputs)["logits"], task(inputs)["logits"])


def test_an_output_in_use_is_left_alone(tmp_path, encoder, tokenizer, folder):
    with raises_input_error("is there already: give another folder, or `force=True`"):
        save_folder(encoder, tokenizer, folder)
    save_folder(encoder, tokenizer, folder, overwrite=True)  # our own
    (folder / "notes.txt").write_text("mine")
    with raises_input_error("holds something else already"):
        save_folder(encoder, tokenizer, folder, overwrite=True)
    assert (folder / "notes.txt").read_text() == "mine"
    (folder / "notes.txt").unlink()
    change_config(folder, lambda v: {k: x for k, x in v.items() if k != "keras_bert"})
    with raises_input_error("holds something else already"):
        save_folder(encoder, tokenizer, folder, overwrite=True)
    assert not [path for path in folder.parent.iterdir() if path != folder]


def test_what_does_not_fit_a_folder_is_an_error(tmp_path, encoder, tokenizer):
    larger = Tokenizer.from_vocab(WordPieceVocabulary([*TOKENS, "k"]), lowercase=True)
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
    with raises_input_error("cannot be written: disk full"):
        save_folder(shake(encoder), broken, folder, overwrite=True)
    with raises_input_error("cannot be written: disk full"):
        save_folder(encoder, broken, tmp_path / "new")
    assert (folder / "model.safetensors").read_bytes() == before
    assert not (tmp_path / "new").exists()
    assert not [path for path in tmp_path.iterdir() if path != folder]  # nor aside


def test_the_output_of_a_run_is_taken_for_the_model_in_it(tmp_path, encoder, tokenizer):
    Classifier(encoder, tokenizer, labels=["no", "yes"]).save(tmp_path / "run" / "model")
    loaded, _ = load(tmp_path / "run")
    assert loaded.config == encoder.config
    assert load_task(tmp_path / "run").labels == ("no", "yes")
    with raises_input_error("There is no model folder ...or run the command that"):
        load(tmp_path / "none")
    with raises_input_error("é… cannot be opened: File name too long."):  # a text for a path
        load("é" * 300)


@pytest.mark.parametrize(
    "config",
    [
        BertConfig(**SIZES),
        StaticConfig(vocab_size=15, hidden_size=8),
        AwdLstmConfig(vocab_size=15, hidden_size=4, lstm_size=6, num_hidden_layers=1),
    ],
)
def test_loading_draws_no_weights_and_what_is_drawn_later_stays_the_same(config):
    def built():
        keras.utils.set_random_seed(shifted(1))
        again = new_encoder(config)
        return again, keras.layers.Dense(3, kernel_initializer="random_normal")(np.ones((1, 2)))

    drawn, later = built()
    with without_random_weights():
        zeros, same = built()
    assert [w.path for w in zeros.weights] == [w.path for w in drawn.weights]
    for one, other in zip(zeros.weights, drawn.weights, strict=True):
        if one.path.endswith(("kernel", "embeddings")):
            assert not np.any(one) and np.all(other)
        else:
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(same, later)


def test_a_fingerprint_is_of_all_that_a_run_depends_on(tmp_path):
    names = ("config.json", "model.safetensors", "vocab.txt", "spiece.model")
    for name in names:
        (tmp_path / name).write_text("a")
    fingerprints = [fingerprint_of_folder(tmp_path)]
    for name in (*names, "README.md"):
        (tmp_path / name).write_text("b")
        fingerprints.append(fingerprint_of_folder(tmp_path))
    assert len(set(fingerprints)) == 1 + len(names) and fingerprints[-1] == fingerprints[-2]
