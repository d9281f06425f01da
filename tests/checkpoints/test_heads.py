"""Every head in the class of `transformers` that it is of, both ways, and in every other class."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert import Classifier, FillMask, Pretrainer, QuestionAnswerer, Tagger
from keras_bert.base.files import read_json
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.convert import convert
from keras_bert.encoders.bert.encoder import BertEncoder
from tests.checkpoints.conftest import SIZES
from tests.peers import torch, transformers
from tests.seeds import make_rng, shifted
from tests.small_model import encode

# RoBERTa's byte-level tokenizer is said to be missing, each time.
pytestmark = pytest.mark.filterwarnings("ignore:.*byte-level tokenizer")

LABELS = ["good", "bad", "odd"]
ROBERTA = {
    "model_type": "roberta",
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
    "max_position_embeddings": 10,
}
# The end of a class's name -> what makes ours of an encoder and a tokenizer.
KINDS = {
    "Model": lambda encoder, tokenizer: encoder,
    "ForPreTraining": Pretrainer,
    "ForMaskedLM": FillMask,
    "ForSequenceClassification": lambda e, t: Classifier(e, t, labels=LABELS),
    "ForTokenClassification": lambda e, t: Tagger(e, t, labels=LABELS),
    "ForQuestionAnswering": QuestionAnswerer,
}
CLASSES = [f"Bert{kind}" for kind in KINDS]
CLASSES += [f"Roberta{kind}" for kind in KINDS if kind != "ForPreTraining"]
# The classes that have the encoder's pooler.
POOLED = {"BertModel", "BertForPreTraining", "BertForSequenceClassification", "RobertaModel"}
OWN_HEADS = {
    "BertForPreTraining": "cls.",
    "BertForMaskedLM": "cls.predictions.",
    "RobertaForMaskedLM": "lm_head.",
    **{name: "classifier." for name in CLASSES if name.endswith("Classification")},
    **{name: "qa_outputs." for name in CLASSES if name.endswith("Answering")},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory, tokenizer, make_encoder):
    """{class: (the model, its folder)}, every encoder with a pooler."""
    made = {}
    for name in CLASSES:
        roberta = name.startswith("Roberta")
        encoder = make_encoder(**(ROBERTA if roberta else {}))
        its_tokenizer = None if roberta else tokenizer
        kind = name.removeprefix("Roberta").removeprefix("Bert")
        model = KINDS[kind](encoder, its_tokenizer)
        for weight in model.trainable_weights:
            if "classifier" in weight.path or "qa_outputs" in weight.path:
                weight.assign(make_rng(3).normal(size=weight.shape))
        folder = tmp_path_factory.mktemp("heads") / name
        save_folder(model, its_tokenizer, folder)
        assert read_json(folder / "config.json")["architectures"] == [name]
        made[name] = model, folder
    return made


def batch(name, inputs):
    """The inputs that a class can take: RoBERTa has one segment, and tells padding by its id."""
    inputs = dict(inputs)
    if name.startswith("Roberta"):
        inputs["segment_ids"] = np.zeros_like(inputs["segment_ids"])
        inputs["input_ids"] = np.where(inputs["input_mask"], inputs["input_ids"], 1)
    return inputs


def check_equal(model, reference, inputs):
    """Our outputs are theirs, at every token."""
    names = {"attention_mask": "input_mask", "token_type_ids": "segment_ids"}
    tensors = {n: torch.tensor(inputs[ours]).long() for n, ours in names.items()}
    with torch.no_grad():
        their_outputs = reference.eval()(torch.tensor(inputs["input_ids"]).long(), **tensors)
    if isinstance(model, BertEncoder):
        y = encode(model, inputs)
    else:
        y = model({name: inputs[name] for name in model.input})
    at_tokens = inputs["input_mask"].astype(bool)
    pairs = {
        "sequence_output": ("last_hidden_state", at_tokens),
        "pooled_output": ("pooler_output", slice(None)),
        "next_sentence": ("seq_relationship_logits", slice(None)),
        "start_logits": ("start_logits", at_tokens),
        "end_logits": ("end_logits", at_tokens),
        "logits": ("logits", at_tokens if isinstance(model, Tagger) else slice(None)),
    }
    for name, ours in y.items():
        ours = np.asarray(ours)
        if name == "masked_lm":
            their_logits = their_outputs.get(
                "prediction_logits", their_outputs.get("logits")
            ).numpy()
            places = inputs["masked_lm_positions"][..., None]
            expected, where = np.take_along_axis(their_logits, places, axis=1), slice(None)
        else:
            key, where = pairs[name]
            expected = their_outputs[key].numpy()
        assert ours.shape == expected.shape, name
        assert np.abs(ours[where] - expected[where]).max() < 1e-5, name


@pytest.mark.peers
@pytest.mark.parametrize("name", CLASSES)
def test_opens_in_the_class_that_it_names_with_the_same_outputs(name, folders, inputs):
    model, folder = folders[name]
    reference, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    unexpected = set(info.pop("unexpected_keys"))
    assert all(key.startswith("keras_bert.") for key in unexpected)
    assert not any(info.values()), info
    if name.endswith("Classification"):
        assert list(reference.config.id2label.values()) == LABELS
    check_equal(model, reference, batch(name, inputs))


@pytest.mark.parametrize("name", CLASSES)
def test_comes_back_as_it_went(name, folders):
    model, folder = folders[name]
    again = load(folder)[0] if name.endswith("Model") else load_task(folder)
    assert type(again) is type(model) and again.config == model.config
    assert getattr(again, "labels", None) == getattr(model, "labels", None)
    for one, other in zip(again.trainable_weights, model.trainable_weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=one.path)


@pytest.mark.peers
@pytest.mark.parametrize("name", CLASSES)
def test_what_transformers_writes_loads_with_the_same_outputs(name, tokenizer, tmp_path, inputs):
    kind = transformers.RobertaConfig if name.startswith("Roberta") else transformers.BertConfig
    changes = {k: v for k, v in ROBERTA.items() if k != "model_type"}
    sizes = {**SIZES, **(changes if kind is transformers.RobertaConfig else {})}
    config = kind(**sizes)
    if name.endswith("Classification"):
        config.id2label = dict(enumerate(LABELS))
    reference = getattr(transformers, name)(config)
    torch.manual_seed(shifted(0))
    with torch.no_grad():
        for weight in reference.parameters():
            weight.normal_(0, 0.3)
    reference.save_pretrained(tmp_path / "theirs")
    if kind is transformers.BertConfig:
        tokenizer.save(tmp_path / "theirs")
    model = (
        load(tmp_path / "theirs")[0] if name.endswith("Model") else load_task(tmp_path / "theirs")
    )
    check_equal(model, reference, batch(name, inputs))
    done = convert(tmp_path / "theirs", tmp_path / "ours")
    assert done == {"found": "huggingface", "wrote": name, "left_out": []}
    again = getattr(transformers, name).from_pretrained(tmp_path / "ours")
    for key, tensor in reference.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[key]), key


@pytest.mark.peers
@pytest.mark.parametrize("target", CLASSES)
def test_another_class_misses_only_its_own_head_or_a_pooler(target, folders):
    for name, (_, folder) in folders.items():
        if name.startswith("Bert") != target.startswith("Bert"):
            continue
        _, info = getattr(transformers, target).from_pretrained(folder, output_loading_info=True)
        assert not info["mismatched_keys"]
        head_prefix = OWN_HEADS.get(target, "no head")
        for key in info["missing_keys"]:
            pooler = "pooler.dense" in key and name not in POOLED
            assert key.startswith(head_prefix) or pooler, f"{name} in {target}: {key}"
            assert name != target


@pytest.mark.peers
@pytest.mark.parametrize("auto", ["", *(kind for kind in KINDS if kind != "Model")])
def test_the_automatic_classes_find_their_way(auto, folders):
    for model_type in ("Bert", "Roberta"):
        name = f"{model_type}{auto or 'Model'}"
        if name in folders:
            model = getattr(transformers, f"AutoModel{auto}").from_pretrained(folders[name][1])
            assert type(model).__name__ == name


def test_robertas_unused_pooler_of_2019_gives_way_to_that_of_its_head(folders, tmp_path):
    model, folder = folders["RobertaForSequenceClassification"]
    folder = shutil.copytree(folder, tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    assert "classifier.dense.weight" in tensors and "classifier.out_proj.weight" in tensors
    unused = {
        f"roberta.pooler.dense.{k}": tensors[f"classifier.dense.{k}"] + 1
        for k in ("weight", "bias")
    }
    (folder / "model.safetensors").unlink()
    save_file({**tensors, **unused}, folder / "model.safetensors")
    kernel = load_task(folder).transform.dense.kernel
    np.testing.assert_array_equal(kernel, model.transform.dense.kernel)
