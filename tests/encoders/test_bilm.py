"""ELMo: its published files against numpy in float64, its directions, its objective."""

import copy
import json
import resource

import h5py
import keras
import numpy as np
import pytest

import keras_bert as kb
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load, load_task
from keras_bert.checkpoints.convert import convert
from keras_bert.checkpoints.model_folder import save_folder
from keras_bert.cli.main import main
from keras_bert.encoders.bilm import BilmConfig
from keras_bert.encoders.bilm.encoder import BilmEncoder, character_ids
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.encoders.elmo_by_numpy import BEGIN, END, OPTIONS, Elmo, write_elmo
from tests.seeds import make_rng, shifted

WORDS = ["the", "a", "gröblich", "猫", "##ing", "x" * 60, "word"]
VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS, *WORDS])
RNG = make_rng(8)
SIZES = {"vocab_size": len(VOCABULARY), "hidden_size": 12, "lstm_size": 9}
FILTERS = ((1, 4), (3, 5))


def config(**changes):
    return BilmConfig(**{**SIZES, "character_filters": FILTERS, **changes})


def make(**changes):
    keras.utils.set_random_seed(shifted(2))
    encoder = BilmEncoder(config(**changes))
    encoder.set_vocabulary(VOCABULARY)
    return encoder


def batch(*lengths, seed=4):
    rng = make_rng(seed)
    ids = rng.integers(1, len(VOCABULARY), (len(lengths), max(lengths))).astype("int32")
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype("int32")
    return {"input_ids": ids * mask, "input_mask": mask}


def states(encoder, inputs, **options):
    hidden_states = encoder(inputs, outputs=["hidden_states"], **options)["hidden_states"]
    return np.stack([np.asarray(state) for state in hidden_states])  # (L, B, S, D)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A folder as AllenNLP's files are, with a vocabulary."""
    folder = write_elmo(tmp_path_factory.mktemp("elmo") / "published")
    VOCABULARY.save(folder / "vocab.txt")
    return folder


@pytest.fixture(scope="module")
def loaded(published, tmp_path_factory):
    """(encoder, tokenizer) of the converted folder."""
    folder = tmp_path_factory.mktemp("elmo") / "converted"
    report = convert(published, folder)
    assert report["found"] == "allennlp" and report["wrote"] == "BilmEncoder"
    return load(folder)


# The published format.


def test_the_characters_are_those_of_allennlp():
    ids = character_ids(["ab", "é", "x" * 60, 256, None], length=50)
    assert ids[0].tolist() == [259, 98, 99, 260] + [261] * 46
    assert ids[1].tolist()[:5] == [259, 196, 170, 260, 261]
    assert ids[2].tolist() == [259] + [121] * 48 + [260]
    assert ids[3].tolist() == [259, 257, 260] + [261] * 47
    assert not ids[4].any()


def sentences():
    texts = [["the", "gröblich", "x" * 60, "a"], ["猫"], ["a", "##ing", "the", "word", "the"]]
    ids = np.zeros((3, 7), "int32")
    for row, words in zip(ids, texts, strict=True):
        tokens = ["[CLS]", *words, "[SEP]"]
        row[: len(tokens)] = [VOCABULARY.id(token) for token in tokens]
    return texts, {"input_ids": ids, "input_mask": (ids > 0).astype("int32")}


def test_every_layer_is_that_of_the_computation_in_numpy(published, loaded):
    elmo = Elmo(published / "some_options.json", published / "some_weights.hdf5")
    texts, inputs = sentences()
    hidden = states(loaded[0], inputs)
    for number, words in enumerate(texts):
        expected = elmo.layers([BEGIN, *words, END])
        assert np.abs(expected[1]).max() > 0.699  # something was clipped
        mine = hidden[:, number, : len(words) + 2]
        # Each number is a sum over the width and the steps before, which round by their largest.
        bound = 32 * np.finfo("float32").eps * np.abs(expected).max()
        np.testing.assert_allclose(mine, expected, atol=bound, rtol=0)


@pytest.mark.parametrize("changes", [{"activation": "tanh"}, {"n_highway": 0}], ids=str)
def test_other_options_are_computed_too(changes, tmp_path):
    options = copy.deepcopy(OPTIONS)
    options["char_cnn"] |= changes
    options["lstm"] |= {"use_skip_connections": False, "n_layers": 3}
    folder = write_elmo(tmp_path / "elmo", options, seed=1)
    VOCABULARY.save(folder / "vocab.txt")
    convert(folder, tmp_path / "model")
    encoder, _ = load(tmp_path / "model")
    elmo = Elmo(folder / "some_options.json", folder / "some_weights.hdf5")
    texts, inputs = sentences()
    expected = elmo.layers([BEGIN, *texts[0], END])
    hidden = states(encoder, inputs)[:, 0, :6]
    np.testing.assert_allclose(hidden, expected, atol=3e-6, rtol=1e-6)


def test_it_is_written_as_it_was_read(published, loaded, tmp_path):
    save_folder(*loaded, tmp_path / "model")
    report = convert(tmp_path / "model", tmp_path / "elmo", to="allennlp")
    assert report["found"] == "huggingface"
    options = json.loads((tmp_path / "elmo" / "options.json").read_text())
    for part, settings in OPTIONS.items():
        assert options[part] == settings
    with (
        h5py.File(tmp_path / "elmo" / "weights.hdf5") as our_file,
        h5py.File(published / "some_weights.hdf5") as their_file,
    ):
        names = []
        their_file.visit(names.append)
        written = []
        our_file.visit(written.append)
        assert sorted(names) == sorted(written)
        for name in names:
            if isinstance(their_file[name], h5py.Dataset):
                # The forget gate's 1 is added and subtracted again.
                np.testing.assert_allclose(our_file[name], their_file[name], atol=2e-7)


def broken(folder, tmp_path, *, options=None, weights=None, vocab=True):
    """A copy of the published folder with something changed."""
    target = tmp_path / "broken"
    target.mkdir()
    fields = json.loads((folder / "some_options.json").read_text())
    if options:
        options(fields)
    (target / "some_options.json").write_text(json.dumps(fields))
    (target / "some_weights.hdf5").write_bytes((folder / "some_weights.hdf5").read_bytes())
    if weights:
        weights(target / "some_weights.hdf5")
    if vocab:
        VOCABULARY.save(target / "vocab.txt")
    return target


def set_option(part, name, value):
    return lambda options: options[part].__setitem__(name, value)


def replace(name, array):
    def change(path):
        with h5py.File(path, "r+") as file:
            del file[name]
            if array is not None:
                file[name] = array

    return change


def cut(path):
    path.write_bytes(path.read_bytes()[:3000])


CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"
BAD = {
    "another size": (
        {"options": set_option("lstm", "dim", 11)},
        r"the tensor RNN_0.* has the shape \[10, 6\]\. Its config asks for \[11, 6\]",
    ),
    "fewer layers": (
        {"options": set_option("lstm", "n_layers", 1)},
        "has the tensor RNN_0/RNN/MultiRNNCell/Cell1.* which has no place",
    ),
    "more layers": (
        {"options": set_option("lstm", "n_layers", 3)},
        "lacks the tensor RNN_0/RNN/MultiRNNCell/Cell2",
    ),
    "a huge number of layers": (
        {"options": set_option("lstm", "n_layers", 10**9)},
        "must be at most 1,000",
    ),
    "more filters": (
        {"options": set_option("char_cnn", "filters", [[1, 4], [2, 5], [5, 7]])},
        r"has the shape \[15, 6\]\. Its config asks for \[16, 6\]",
    ),
    "no filters": (
        {"options": set_option("char_cnn", "filters", [])},
        "`character_filters` must be a list",
    ),
    "null filters": (
        {"options": set_option("char_cnn", "filters", None)},
        "lacks char_cnn.filters. Expected the options of an ELMo",
    ),
    "not filters": (
        {"options": set_option("char_cnn", "filters", [[1, "4"]])},
        "`character_filters` must be a list",
    ),
    "another alphabet": (
        {"options": set_option("char_cnn", "n_characters", 1000)},
        "n_characters = 1000. Supported: 261 or 262",
    ),
    "another activation": (
        {"options": set_option("char_cnn", "activation", "gelu")},
        "`character_activation` must be one of relu, tanh",
    ),
    "no options": (
        {"options": lambda options: options.pop("lstm")},
        "lacks lstm.projection_dim. Expected the options of an ELMo",
    ),
    "a missing tensor": ({"weights": replace("char_embed", None)}, "lacks the tensor char_embed"),
    "texts": (
        {"weights": replace(f"{CELL}/B", np.array([b"x"] * 40))},
        r"holds .* values\. Weights should be floats",
    ),
    "NaN": ({"weights": replace(f"{CELL}/B", np.full(40, np.nan, "f"))}, "holds NaN or infinity"),
    "a file cut short": ({"weights": cut}, "is not a whole HDF5 file"),
    "no vocabulary": ({"vocab": False}, "has no vocabulary. ELMo reads characters"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_one_sentence(case, published, tmp_path):
    changes, message = BAD[case]
    with pytest.raises(InputError, match=message) as error:
        convert(broken(published, tmp_path, **changes), tmp_path / "model")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "model").exists()


def test_weights_in_another_file_are_not_read(published, tmp_path):
    folder = broken(published, tmp_path)
    with h5py.File(folder / "some_weights.hdf5", "r+") as file:
        del file["char_embed"]
        file.create_dataset(
            "char_embed", (261, 4), "f4", external=[(str(tmp_path / "elsewhere"), 0, 4176)]
        )
    with pytest.raises(InputError, match="char_embed is stored in another file"):
        convert(folder, tmp_path / "model")


def test_what_the_format_cannot_express_is_one_sentence(tmp_path):
    tokenizer = Tokenizer.from_vocab(VOCABULARY)
    save_folder(make(character_filters=None), tokenizer, tmp_path / "plain")
    with pytest.raises(InputError, match="for a bilm encoder that reads characters"):
        convert(tmp_path / "plain", tmp_path / "elmo", to="allennlp")
    save_folder(make(max_characters=20), tokenizer, tmp_path / "short")
    with pytest.raises(InputError, match="reads 50 characters of a token"):
        convert(tmp_path / "short", tmp_path / "elmo", to="allennlp")


def test_a_full_disk_is_one_sentence_and_nothing_is_left(tmp_path, capsys):
    """HDF5 itself would end the process with a segmentation fault.

    No file of the process can be longer than 4 KiB. Python ignores the signal of a longer one.
    """
    save_folder(make(), Tokenizer.from_vocab(VOCABULARY), tmp_path / "model")
    output = tmp_path / "out" / "elmo"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        command = ["convert", "--input", tmp_path / "model", "--output", output, "--to", "allennlp"]
        status = main(list(map(str, command)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert status == 2
    assert capsys.readouterr().err == f"keras-bert: {output} cannot be written: File too large.\n"
    assert not list(output.parent.iterdir())


# The encoder.


@pytest.mark.parametrize("filters", [FILTERS, None])
def test_each_direction_sees_nothing_of_the_other_side(filters):
    encoder, inputs = make(character_filters=filters, hidden_dropout_prob=0.0), batch(6)
    changed = {**inputs, "input_ids": inputs["input_ids"].copy()}
    changed["input_ids"][0, 3] = inputs["input_ids"][0, 3] % 11 + 1
    one, other = states(encoder, inputs), states(encoder, changed)
    rounding = 32 * np.finfo("float32").eps * np.abs(one).max()
    differs = np.abs(one - other).max(axis=(0, 1)) > rounding  # (S, D)
    forward, backward = differs[:, :6].any(axis=1), differs[:, 6:].any(axis=1)
    assert forward.tolist() == [False] * 3 + [True] * 3
    assert backward.tolist() == [True] * 4 + [False] * 2


def test_padding_and_the_rest_of_the_batch_change_nothing():
    encoder, inputs = make(), batch(3, 6, 1)
    hidden = states(encoder, inputs)
    for row, length in enumerate((3, 6, 1)):
        alone = {name: value[row : row + 1, :length] for name, value in inputs.items()}
        np.testing.assert_allclose(
            hidden[:, row : row + 1, :length], states(encoder, alone), atol=1e-6
        )


def test_outputs_and_sizes():
    for filters in (FILTERS, None):
        encoder = make(character_filters=filters, num_hidden_layers=3)
        assert encoder.count_params() == encoder.config.parameter_count()
        assert encoder.config.num_hidden_states == len(states(encoder, batch(4, 2))) == 4
        weights_of_layers = [
            w for group in encoder.layer_groups for layer in group for w in layer.weights
        ]
        assert {id(w) for w in weights_of_layers} == {id(w) for w in encoder.weights}
        assert len(weights_of_layers) == len(encoder.weights)
        outputs = encoder(batch(4, 2), outputs=["sequence_output", "first_output"])
        assert outputs["sequence_output"].shape == (2, 4, 12)
        np.testing.assert_array_equal(outputs["first_output"], outputs["sequence_output"][:, 0])


@pytest.mark.parametrize(("name", "parameters"), [("elmo-small", 13.6), ("elmo", 93.6)])
def test_the_published_sizes(name, parameters):
    """AllenNLP states them, in millions; they do not depend on the vocabulary."""
    count = BilmConfig.preset(name, vocab_size=1000).parameter_count()
    assert count / 1e6 == pytest.approx(parameters, abs=0.05)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 11}, "`hidden_size` must be even"),
        ({"character_filters": [[51, 2]]}, "width at most 50"),
        ({"cell_clip": 0.0}, "`cell_clip` must be above 0"),
        ({"max_characters": 2}, "`max_characters` must be at least 3"),
        ({"lstm_size": 0}, "`lstm_size` must be at least 1"),
    ],
)
def test_bad_configs(changes, message):
    with pytest.raises(ValueError, match=message):
        config(**changes)


def test_a_config_is_the_same_after_json():
    for one in (config(), config(character_filters=None, cell_clip=None)):
        again = BilmConfig.from_dict(json.loads(json.dumps(one.to_dict())))
        assert again == one and hash(again) == hash(one)


def test_an_encoder_without_a_vocabulary_says_so():
    with pytest.raises(ValueError, match="has no vocabulary. Call `set_vocabulary`"):
        BilmEncoder(config())(batch(3))


def test_characters_are_known_to_copies_and_keras_files(tmp_path):
    encoder, inputs = make(), batch(4, 3)
    expected = states(encoder, inputs)
    np.testing.assert_array_equal(states(encoder.rebuilt(), inputs), expected)
    larger = encoder.rebuilt(vocab_size=len(VOCABULARY) + 3)
    np.testing.assert_allclose(states(larger, inputs), expected, atol=1e-6)
    task = kb.Classifier(encoder, Tokenizer.from_vocab(VOCABULARY), labels=["a", "b"])
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    np.testing.assert_allclose(again(inputs)["logits"], task(inputs)["logits"], atol=1e-6)


def test_a_folder_of_a_task_and_of_an_encoder(tmp_path):
    inputs, tokenizer = batch(4, 3), Tokenizer.from_vocab(VOCABULARY)
    for filters in (FILTERS, None):
        folder = tmp_path / str(filters is None)
        task = kb.BidirectionalLM(make(character_filters=filters), tokenizer)
        task.save(folder)
        again = load_task(folder)
        assert type(again) is kb.BidirectionalLM
        for name, logits in task(inputs).items():
            np.testing.assert_array_equal(again(inputs)[name], logits)
        encoder, _ = load(folder)
        np.testing.assert_array_equal(states(encoder, inputs), states(task.encoder, inputs))


# The objective.


def test_logits_are_of_the_next_and_the_previous_token():
    task, inputs = kb.BidirectionalLM(make()), batch(6)
    first = {name: np.asarray(logits) for name, logits in task(inputs).items()}
    assert {name: x.shape for name, x in first.items()} == {
        "forward_lm": (1, 5, len(VOCABULARY)),
        "backward_lm": (1, 5, len(VOCABULARY)),
    }
    changed = {**inputs, "input_ids": inputs["input_ids"].copy()}
    changed["input_ids"][0, 2] = inputs["input_ids"][0, 2] % 11 + 1
    other = task(changed)
    differs = {
        name: (np.abs(first[name] - other[name])[0].max(axis=-1) > 1e-7).tolist() for name in first
    }
    # Column 1 of forward_lm predicts position 2, column 2 of backward_lm does.
    assert differs["forward_lm"] == [False, False, True, True, True]
    assert differs["backward_lm"] == [True, True, False, False, False]


def test_both_directions_share_the_softmax():
    task = kb.BidirectionalLM(make())
    head_paths = [
        w.path for w in task.weights if not any(w is other for other in task.encoder.weights)
    ]
    assert sorted(path.split("/")[-1] for path in head_paths) == ["bias", "embeddings"]


def test_another_encoder_is_rejected():
    from tests.small_model import make_encoder, make_tokenizer

    with pytest.raises(InputError, match="needs an encoder with a forward and a backward direct"):
        kb.BidirectionalLM(make_encoder(make_tokenizer()))
    with pytest.raises(InputError, match="previous token. Fine-tune it first"):
        kb.BidirectionalLM(make()).signatures()
