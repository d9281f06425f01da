"""XLM-R and CamemBERT: RoBERTa's layers over a unigram vocabulary, with classes of other names."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert import Classifier, FillMask, QuestionAnswerer, Tagger, Tokenizer
from keras_bert.base.files import read_json
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.inference.predict import predict
from tests.peers import torch, transformers
from tests.seeds import make_rng, shifted
from tests.small_model import encode, make_encoder
from tests.text.unigram_models import SENTENCES, model

CLASSES = {"xlm-roberta": "XLMRoberta", "camembert": "Camembert"}
LABELS = ["good", "bad", "odd"]
TASKS = {
    "Model": lambda encoder, tokenizer: encoder,
    "ForMaskedLM": FillMask,
    "ForSequenceClassification": lambda e, t: Classifier(e, t, labels=LABELS),
    "ForTokenClassification": lambda e, t: Tagger(e, t, labels=LABELS),
    "ForQuestionAnswering": QuestionAnswerer,
}
NAMES = [f"{model}{task}" for model in CLASSES.values() for task in TASKS]
SIZES = {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "max_position_embeddings": 66}


def parts(name):
    """The `model_type` of a class of transformers, and the end of its name."""
    model_type = next(key for key, start in CLASSES.items() if name.startswith(start))
    return model_type, name.removeprefix(CLASSES[model_type])


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """The tokenizer of each `model_type`, from a SentencePiece file as fairseq publishes it."""
    made = {}
    for model_type, start in CLASSES.items():
        folder = tmp_path_factory.mktemp(model_type)
        (folder / "sentencepiece.bpe.model").write_bytes(model())
        (folder / "tokenizer_config.json").write_text(f'{{"tokenizer_class": "{start}Tokenizer"}}')
        made[model_type] = Tokenizer.from_folder(folder)
    return made


@pytest.fixture(scope="module")
def folders(tmp_path_factory, tokenizers):
    """Class -> the model, and its folder."""
    made = {}
    for name in NAMES:
        model_type, task = parts(name)
        tokenizer = tokenizers[model_type]
        encoder = make_encoder(tokenizer, model_type=model_type, **SIZES)
        model = TASKS[task](encoder, tokenizer)
        folder = tmp_path_factory.mktemp("models") / name
        save_folder(model, tokenizer, folder)
        made[name] = model, folder
    return made


@pytest.fixture(scope="module")
def batch():
    generator = make_rng(5)
    lengths = np.array([6, 3, 5])
    mask = (np.arange(6) < lengths[:, None]).astype("int32")
    ids = generator.integers(5, 900, (3, 6)).astype("int32")
    return {
        "input_ids": np.where(mask, ids, 1).astype("int32"),
        "input_mask": mask,
        "masked_lm_positions": np.array([[1, 0], [0, 1], [1, 1]], "int32"),
    }


def outputs_of(name, model, batch):
    """The outputs of our model for a batch, under the names of transformers."""
    if name.endswith("Model"):
        return {"last_hidden_state": np.asarray(encode(model, batch)["sequence_output"])}
    outputs = model({key: batch[key] for key in model.input})
    if name.endswith("Answering"):
        return {key: np.asarray(x) for key, x in outputs.items()}
    [output] = outputs.values()
    return {"logits": np.asarray(output)}


def check_equal(name, model, reference, batch):
    with torch.no_grad():
        their_outputs = reference.eval()(
            input_ids=torch.tensor(batch["input_ids"]).long(),
            attention_mask=torch.tensor(batch["input_mask"]).long(),
        )
    at_tokens = batch["input_mask"].astype(bool)
    for key, ours in outputs_of(name, model, batch).items():
        expected = their_outputs[key].numpy()
        if name.endswith("MaskedLM"):
            expected = np.take_along_axis(expected, batch["masked_lm_positions"][..., None], 1)
        if ours.shape[:2] == at_tokens.shape:
            ours, expected = ours[at_tokens], expected[at_tokens]
        assert ours.shape == expected.shape, key
        assert np.abs(ours - expected).max() < 2e-5, key


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_comes_back_as_it_went(name, folders, batch):
    model, folder = folders[name]
    config = read_json(folder / "config.json")
    assert config["architectures"] == [name]
    assert (config["model_type"], config["pad_token_id"]) == (parts(name)[0], 1)
    again = load(folder)[0] if name.endswith("Model") else load_task(folder)
    expected = outputs_of(name, model, batch)
    for key, ours in outputs_of(name, again, batch).items():
        np.testing.assert_array_equal(ours, expected[key])


def test_a_tagger_is_exported_with_its_tokenizer(folders, tmp_path):
    model, _ = folders["XLMRobertaForTokenClassification"]
    model.export(tmp_path / "served")
    [version] = (tmp_path / "served").iterdir()
    served = tf.saved_model.load(str(version)).signatures["serving_default"]
    texts = [SENTENCES[0], SENTENCES[3], SENTENCES[6]]
    answers = served(text=tf.constant(texts))
    for number, prediction in enumerate(predict(model=model, text=texts)):
        length = answers["lengths"][number].numpy()
        words = [word.decode() for word in answers["words"][number].numpy()[:length]]
        tags = [tag.decode() for tag in answers["tags"][number].numpy()[:length]]
        assert (words, tags) == (prediction["words"], prediction["tags"])


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_transformers_opens_a_folder_with_the_same_outputs(name, folders, tokenizers, batch):
    model, folder = folders[name]
    reference, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    unexpected = set(info.pop("unexpected_keys"))
    assert all(key.startswith("keras_bert.") for key in unexpected)
    assert not any(info.values()), info
    check_equal(name, model, reference, batch)
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ours = tokenizers[parts(name)[0]].tokenize(SENTENCES).to_list()
    assert their_tokenizer(SENTENCES, add_special_tokens=False)["input_ids"] == ours
    ids = their_tokenizer("a", "b")["input_ids"]
    assert their_tokenizer.convert_ids_to_tokens(ids) == ["<s>", "▁a", "</s>", "</s>", "▁b", "</s>"]


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_what_transformers_writes_loads_with_the_same_outputs(name, tokenizers, tmp_path, batch):
    model_type, _ = parts(name)
    config = getattr(transformers, f"{CLASSES[model_type]}Config")(
        vocab_size=len(tokenizers[model_type]),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        num_labels=2 if name.endswith("Answering") else 3,
        **SIZES,
    )
    torch.manual_seed(shifted(0))
    reference = getattr(transformers, name)(config)
    reference.save_pretrained(tmp_path)
    tokenizers[model_type].save(tmp_path)
    model = load(tmp_path)[0] if name.endswith("Model") else load_task(tmp_path)
    check_equal(name, model, reference, batch)
