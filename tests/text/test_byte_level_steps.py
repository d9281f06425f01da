"""A byte-level vocabulary with steps before it: ModernBERT's NFC and its added tokens.

The reference is `tokenizers`, with a `tokenizer.json` in the shape of the published one.
"""

import functools
import json

import pytest
import tensorflow as tf
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from keras_bert.text import Tokenizer
from tests.peers import transformers
from tests.text import fuzz

SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
RUNS = [" " * count for count in range(24, 1, -1)]
ADDED = ["|||IP_ADDRESS|||", *RUNS, "|||EMAIL_ADDRESS|||", "|||PHONE_NUMBER|||", "é\u0301x"]
SENTENCES = [
    "The café at the bank: 東京都  😀 don't.",
    "def f(x):\n        return x  # naïve|||EMAIL_ADDRESS|||",
    "e\u0301 a\u0323\u0302 한국어 हिन्दी [unused0] a  b",
]


@functools.cache
def reference():
    """The `tokenizers.Tokenizer`: merges of a few sentences, then added tokens."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|padding|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    tokenizer.add_tokens([tokenizers.AddedToken(token, normalized=True) for token in ADDED])
    tokenizer.add_special_tokens(["<|endoftext|>", *SPECIAL[:-1]])
    tokenizer.add_special_tokens([tokenizers.AddedToken("[MASK]", lstrip=True, normalized=False)])
    tokenizer.add_tokens([f"[unused{number}]" for number in range(3)])
    ids = {token: tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]")}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=list(ids.items()),
    )
    # In a user's text a special token is ordinary text.
    tokenizer.encode_special_tokens = True
    return tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modernbert")
    reference().save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast"}
    for role in ("unk", "cls", "sep", "pad", "mask"):
        config[f"{role}_token"] = f"[{role.upper()}]"
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder):
    return Tokenizer.from_folder(folder)


def differences(tokenizer, texts):
    """The texts of which the ids differ from the reference's."""
    encodings = reference().encode_batch(texts, add_special_tokens=False)
    return [
        text
        for text, ours, encoding in zip(
            texts, tokenizer.tokenize(texts).to_list(), encodings, strict=True
        )
        if ours != encoding.ids
    ]


def test_ids_are_those_of_tokenizers(tokenizer):
    texts = fuzz.texts(2000, more=(*ADDED[:3], *ADDED[-4:], *SPECIAL, "<|endoftext|>", "[unused1]"))
    assert differences(tokenizer, [*SENTENCES, "", " ", *texts]) == []
    assert tokenizer.vocabulary.normalizers == ("nfc",)


@pytest.mark.slow
def test_ids_are_those_of_tokenizers_on_100_000_texts_and_xquad(tokenizer, shared_data):
    more = (*ADDED, *SPECIAL, "<|endoftext|>", "[unused1]")
    for seed in range(10):
        assert differences(tokenizer, fuzz.texts(10_000, seed=seed, more=more)) == []
    articles = json.loads((shared_data / "xquad" / "en.json").read_text())["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    questions = [qa["question"] for paragraph in paragraphs for qa in paragraph["qas"]]
    assert differences(tokenizer, [paragraph["context"] for paragraph in paragraphs]) == []
    assert differences(tokenizer, questions) == []


def test_a_mask_takes_the_white_space_before_it(tokenizer):
    texts = ["a [MASK].", "[MASK]", "", " x \n [MASK][MASK] y", "no  mask ", "a\t [MASK] "]
    their_tokenizer = reference()
    their_tokenizer.encode_special_tokens = False
    expected = [
        encoding.ids for encoding in their_tokenizer.encode_batch(texts, add_special_tokens=False)
    ]
    their_tokenizer.encode_special_tokens = True
    assert tokenizer.tokenize_masked(texts).to_list() == expected


def test_robertas_mask_takes_the_white_space_before_it(folder, tmp_path):
    """It has special tokens alone, in a `tokenizer.json` as published."""
    content = json.loads((folder / "tokenizer.json").read_text())
    content["normalizer"] = None
    for token in content["added_tokens"]:
        token["special"] = True
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer.from_folder(tmp_path)
    spaced, bare = tokenizer.tokenize_masked(["a bank [MASK].", "a bank[MASK]."]).to_list()
    assert spaced == bare and tokenizer.vocabulary.mask_id in bare
    tokenizer.save(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "tokenizer.json").read_text())["added_tokens"]
    assert [token["content"] for token in saved if token["lstrip"]] == ["[MASK]"]


def test_offsets_lead_to_the_users_string(tokenizer):
    texts = [*SENTENCES, "", *fuzz.texts(500, seed=1, more=ADDED)]
    tokens = tokenizer.tokenize_with_offsets(texts)
    assert tokens.ids.to_list() == tokenizer.tokenize(texts).to_list()
    for number, text in enumerate(texts):
        starts, ends = tokens.starts[number].numpy(), tokens.ends[number].numpy()
        covered = set()
        for start, end in zip(starts, ends, strict=True):
            assert 0 <= start <= end <= len(text)
            covered.update(range(start, end))
            assert text[start:end] == text[start:end].strip(fuzz_white())
        # Every character but white space is in a token.
        missed = "".join(c for at, c in enumerate(text) if at not in covered)
        assert missed.strip(fuzz_white()) == "", (text, missed)
        content = text.encode()
        bounds = zip(
            tokens.byte_starts[number].numpy(), tokens.byte_ends[number].numpy(), strict=True
        )
        for (start, end), first, last in zip(bounds, starts, ends, strict=True):
            assert content[start:end].decode() == text[first:last]


def fuzz_white():
    from keras_bert.text.vocabularies.spaced import WHITE_SPACE

    return WHITE_SPACE


def test_offsets_of_what_was_composed_and_cut_out(tokenizer):
    text = "a  cafe\u0301|||EMAIL_ADDRESS||| x"
    tokens = tokenizer.tokenize_with_offsets([text])
    spans = [
        (tokenizer.vocabulary.token_name(id), text[start:end])
        for id, start, end in zip(
            tokens.ids[0].numpy(), tokens.starts[0].numpy(), tokens.ends[0].numpy(), strict=True
        )
    ]
    assert ("  ", "") in spans and ("|||EMAIL_ADDRESS|||", "|||EMAIL_ADDRESS|||") in spans
    assert spans[-1] == (" x", "x")
    assert "".join(dict.fromkeys(part for _, part in spans)).endswith(
        "cafe\u0301|||EMAIL_ADDRESS|||x"
    )


def test_a_saved_folder_has_the_same_steps(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    again = Tokenizer.from_folder(tmp_path)
    assert again.vocabulary == tokenizer.vocabulary
    assert again.vocabulary.added_tokens == tokenizer.vocabulary.added_tokens
    texts = fuzz.texts(100, seed=2, more=ADDED)
    assert again.tokenize(texts).to_list() == tokenizer.tokenize(texts).to_list()
    their_tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    their_tokenizer.encode_special_tokens = True
    expected = [
        encoding.ids for encoding in their_tokenizer.encode_batch(texts, add_special_tokens=False)
    ]
    assert again.tokenize(texts).to_list() == expected
    assert again.template == tokenizer.template


@pytest.mark.peers
def test_transformers_opens_the_saved_folder(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = fuzz.texts(500, seed=3, more=ADDED)
    expected = their_tokenizer(texts, add_special_tokens=False, split_special_tokens=True)[
        "input_ids"
    ]
    assert tokenizer.tokenize(texts).to_list() == expected
    assert their_tokenizer("a [MASK].")["input_ids"][2] == tokenizer.vocabulary.mask_id


def test_the_graph_is_the_same_in_tf_data(tokenizer):
    texts = fuzz.texts(50, seed=4, more=ADDED)
    data = tf.data.Dataset.from_tensors(texts).map(tokenizer.tokenize_with_offsets)
    [tokens] = data
    assert tokens.ids.to_list() == tokenizer.tokenize(texts).to_list()
