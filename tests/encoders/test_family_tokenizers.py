"""The tokenizers of the families: published folders open here, and saved ones in `transformers`."""

import json

import keras
import numpy as np
import pytest

from keras_bert import Tokenizer
from keras_bert.checkpoints import load, save_folder
from keras_bert.encoders import new_encoder, read_config
from tests.encoders.test_families import FAMILIES, config_of
from tests.peers import transformers
from tests.seeds import shifted
from tests.small_model import LETTERS
from tests.text import test_byte_level_steps, unigram_models
from tests.text.test_gpt_vocabularies import trained

BERT_VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, ".", "the", "bank"]
# MPNet's: that of BERT between tokens of fairseq's.
MPNET_VOCABULARY = ["<s>", "<pad>", "</s>", "<unk>", *BERT_VOCABULARY, "<mask>"]
UNCASED = {"do_lower_case": True, "model_max_length": 512}
MPNET_CONFIG = {
    **{"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"},
    **{"mask_token": "<mask>", "pad_token": "<pad>", "unk_token": "[UNK]"},
    **{"tokenizer_class": "MPNetTokenizer", "do_lower_case": True, "strip_accents": None},
    "added_tokens_decoder": {
        str(MPNET_VOCABULARY.index(token)): {"content": token, "special": True}
        for token in ("<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>")
    },
}
TEXTS = ["The bank, the  banks.", "Ein Café \u6771 x", "", "a", *unigram_models.SENTENCES]


def vocab_txt(tokens):
    return "".join(f"{token}\n" for token in tokens)


def roberta_vocab():
    return trained("roberta")[0]


def roberta_merges():
    return "".join(f"{left} {right}\n" for left, right in trained("roberta")[1])


# Model type and variant -> the tokenizer's files as they are published.
PUBLISHED = {
    ("bert", ""): {"vocab.txt": vocab_txt(BERT_VOCABULARY), "tokenizer_config.json": UNCASED},
    ("roberta", ""): {
        "vocab.json": roberta_vocab,
        "merges.txt": roberta_merges,
        "tokenizer_config.json": {"tokenizer_class": "RobertaTokenizer"},
    },
    ("distilbert", ""): {"vocab.txt": vocab_txt(BERT_VOCABULARY), "tokenizer_config.json": UNCASED},
    ("electra", ""): {"vocab.txt": vocab_txt(BERT_VOCABULARY), "tokenizer_config.json": UNCASED},
    ("mpnet", "named"): {
        "vocab.txt": vocab_txt(MPNET_VOCABULARY),
        "tokenizer_config.json": MPNET_CONFIG,
    },
    ("mpnet", ""): {"vocab.txt": vocab_txt(MPNET_VOCABULARY), "tokenizer_config.json": UNCASED},
    ("modernbert", ""): {
        "tokenizer.json": lambda: test_byte_level_steps.reference().to_str(),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_input_names": ["input_ids", "attention_mask"],
            **{
                f"{role}_token": f"[{role.upper()}]"
                for role in ("unk", "cls", "sep", "pad", "mask")
            },
        },
    },
    ("deberta-v2", ""): {
        "spm.model": unigram_models.bert_model,
        "tokenizer_config.json": {"do_lower_case": False, "vocab_type": "spm"},
    },
    ("albert", ""): {
        "spiece.model": unigram_models.albert_model,
        "tokenizer_config.json": UNCASED,
    },
    ("xlm-roberta", ""): {
        "sentencepiece.bpe.model": unigram_models.model,
        "tokenizer_config.json": {"tokenizer_class": "XLMRobertaTokenizer"},
    },
    ("camembert", ""): {
        "sentencepiece.bpe.model": unigram_models.model,
        "tokenizer_config.json": {"tokenizer_class": "CamembertTokenizer"},
    },
}


def publish(model_type, variant, folder):
    """Writes the files of a tokenizer and the `model_type`."""
    files = {**PUBLISHED[model_type, variant], "config.json": {"model_type": model_type}}
    for name, content in files.items():
        content = content() if callable(content) else content
        if isinstance(content, dict):
            content = json.dumps(content)
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)


def small_encoder(model_type, tokenizer):
    keras.utils.set_random_seed(shifted(3))
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 80}
    return new_encoder(
        read_config({"model_type": model_type, **config_of(model_type), **sizes}, source="x")
    )


def check_same_ids(their_tokenizer, tokenizer, texts):
    expected = their_tokenizer(texts, split_special_tokens=True)["input_ids"]
    ours = tokenizer(texts)
    rows = zip(ours["input_ids"], ours["input_mask"], strict=True)
    assert [ids[mask > 0].tolist() for ids, mask in rows] == expected


@pytest.mark.peers
@pytest.mark.parametrize("model_type, variant", PUBLISHED)
def test_a_published_tokenizer_opens_and_is_saved_for_its_model(model_type, variant, tmp_path):
    published = tmp_path / "published"
    published.mkdir()
    publish(model_type, variant, published)
    tokenizer = Tokenizer.from_folder(published)
    # (It cannot read SentencePiece files beside TensorFlow's protobuf.)
    if not any(name.endswith(".model") for name in PUBLISHED[model_type, variant]):
        check_same_ids(transformers.AutoTokenizer.from_pretrained(published), tokenizer, TEXTS)
    encoder = small_encoder(model_type, tokenizer)
    save_folder(encoder, tokenizer, tmp_path / "saved")
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    check_same_ids(their_tokenizer, tokenizer, TEXTS)
    again, its_tokenizer = load(tmp_path / "saved")
    assert its_tokenizer.special_tokens == tokenizer.special_tokens
    assert its_tokenizer.template == tokenizer.template
    # The inputs are those that the class takes, for pairs, too.
    model = getattr(transformers, f"{FAMILIES[model_type].name}Model")
    model = model.from_pretrained(tmp_path / "saved")
    pairs = TEXTS[:3], TEXTS[1:4]
    states = model(**their_tokenizer(*pairs, padding=True, return_tensors="pt")).last_hidden_state
    inputs = its_tokenizer(*pairs)
    at_tokens = inputs["input_mask"] > 0
    output = np.asarray(again(inputs)["sequence_output"])
    np.testing.assert_allclose(
        output[at_tokens], states.detach().numpy()[at_tokens], atol=1e-5, rtol=0
    )


@pytest.mark.peers
@pytest.mark.parametrize("variant", ["named", ""])
def test_mpnets_mask_is_that_of_its_class(variant, tmp_path):
    publish("mpnet", variant, tmp_path)
    tokenizer = Tokenizer.from_folder(tmp_path)
    their_tokenizer = transformers.MPNetTokenizer.from_pretrained(tmp_path)
    masked = ["the <mask> bank", "<mask>.", "a<mask>"]
    expected = their_tokenizer(masked, add_special_tokens=False)["input_ids"]
    masked = [text.replace("<mask>", "[MASK]") for text in masked]
    assert tokenizer.tokenize_masked(masked).to_list() == expected
