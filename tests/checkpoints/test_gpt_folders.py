"""Folders of OpenAI GPT, GPT-2 and RoBERTa with their tokenizers, from `transformers` and back."""

import numpy as np
import pytest

import keras_bert as kb
from keras_bert.encoders import new_encoder, read_config
from keras_bert.inputs.framing import frame
from tests.peers import torch, transformers
from tests.seeds import shifted
from tests.text.test_gpt_vocabularies import built, trained, write

NAMES = {"openai-gpt": "OpenAIGPT", "gpt2": "GPT2"}
SIZES = {"n_positions": 64, "n_embd": 24, "n_layer": 2, "n_head": 4}
TEXTS = ["The bank's money,  they're told", "a newer one", "日本 😀!"]
PAIRS = [("the bank", "a newer one, they say"), ("the money", "x")]
LABELS = ["no", "yes", "perhaps"]


def randomized(model):
    with torch.no_grad():  # so that no weight is 0 or 1
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    return model.eval()


def written(name, head, folder, **config):
    """A random model and its tokenizer, as `transformers` writes them."""
    vocab, merges = trained(name)
    tokenizer = getattr(transformers, f"{NAMES[name]}Tokenizer")(vocab=vocab, merges=merges)
    torch.manual_seed(shifted(3))
    config = {**SIZES, "vocab_size": len(tokenizer), **config}
    config = getattr(transformers, f"{NAMES[name]}Config")(**config)
    model = randomized(getattr(transformers, f"{NAMES[name]}{head}")(config))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


@pytest.fixture(scope="module", params=NAMES)
def their_model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs") / request.param
    return *written(request.param, "LMHeadModel", folder), folder


@pytest.mark.peers
def test_hidden_states_of_texts(their_model):
    model, tokenizer, folder = their_model
    encoder, ours = kb.load(folder)
    for text in TEXTS:
        batch = tokenizer(text, return_tensors="pt")
        inputs = frame(
            [ours.tokenize([text])], tokenizer=ours, names=encoder.input_names, max_length=64
        )
        assert inputs["input_ids"].numpy().tolist() == batch["input_ids"].tolist()
        states = encoder(inputs, outputs=["hidden_states"])["hidden_states"]
        with torch.no_grad():
            expected = model.transformer(**batch, output_hidden_states=True).hidden_states
        for mine, other in zip(states, expected, strict=True):
            np.testing.assert_allclose(mine, other.numpy(), atol=2e-5)


@pytest.mark.peers
def test_greedy_tokens(their_model):
    model, tokenizer, folder = their_model
    prompts = ["the lower", "it's the bank", "they say so"]
    generated = kb.generate(model=folder, prompt=prompts, max_tokens=20)
    for prompt, continuation in zip(prompts, generated, strict=True):
        batch = tokenizer(prompt, return_tensors="pt")
        with torch.no_grad():
            whole = model.generate(**batch, max_new_tokens=20, do_sample=False, pad_token_id=0)[0]
        new = whole[batch["input_ids"].shape[1] :]
        if tokenizer.eos_token_id is not None and int(new[-1]) == tokenizer.eos_token_id:
            new = new[:-1]
        if type(tokenizer).__name__ == "GPT2Tokenizer":
            assert continuation.text == tokenizer.decode(new)
        else:  # a space at the end of a word is the beginning of what comes next
            expected = tokenizer.decode(whole)
            begun = tokenizer.decode(batch["input_ids"][0])
            assert (begun + continuation.text).replace(" ", "") == expected.replace(" ", "")


@pytest.mark.peers
def test_back(their_model, tmp_path):
    model, tokenizer, folder = their_model
    kb.load_task(folder).save(tmp_path / "ours")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "ours").eval()
    opened = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    for text in TEXTS:
        batch = opened(text, return_tensors="pt")
        assert batch.keys() == {"input_ids", "attention_mask"}
        given = tokenizer(text, return_tensors="pt")
        assert torch.equal(batch["input_ids"], given["input_ids"])
        with torch.no_grad():
            assert torch.equal(again(**batch).logits, model(**given).logits)
        assert opened.decode(batch["input_ids"][0]) == tokenizer.decode(batch["input_ids"][0])


def logits_of_texts(task, columns):
    inputs = frame(
        [task.tokenizer.tokenize(list(column)) for column in columns],
        tokenizer=task.tokenizer,
        names=task.encoder.input_names,
        max_length=64,
    )
    return np.asarray(task(inputs)["logits"])


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["Classifier", "PairClassifier"])
def test_a_classifier_of_ours(their_model, tmp_path, kind):
    _, tokenizer, folder = their_model
    encoder, ours = kb.with_task_tokens(*kb.load(folder))
    num_tokens = len(tokenizer)
    assert ours.vocabulary.tokens[num_tokens:] == ("<pad>", "<start>", "<delimiter>", "<extract>")
    assert str(ours.template) == "<start> a <delimiter> b <extract>"
    assert encoder.config.vocab_size == num_tokens + 4 and encoder.config.pad_token_id == num_tokens
    same, again = kb.with_task_tokens(encoder, ours)
    assert same is encoder and again is ours
    task = getattr(kb, kind)(encoder, ours, labels=LABELS)
    assert task.settings.pooling == "last" and task.is_standard()
    columns = [TEXTS] if kind == "Classifier" else list(zip(*PAIRS, strict=True))
    logits = logits_of_texts(task, columns)
    task.save(tmp_path / "ours")
    np.testing.assert_array_equal(logits_of_texts(kb.load_task(tmp_path / "ours"), columns), logits)
    model, info = transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not any(info.values()), info
    opened = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    batch = opened(*map(list, columns), padding=True, return_tensors="pt")
    assert batch["attention_mask"].min() == 0  # shorter texts are padded
    with torch.no_grad():
        np.testing.assert_allclose(logits, model.eval()(**batch).logits.numpy(), atol=2e-5)


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_a_classifier_of_theirs(name, tmp_path):
    head = "ForSequenceClassification"
    names = {"id2label": dict(enumerate(LABELS)), "pad_token_id": 0}
    model, tokenizer = written(name, head, tmp_path, **names)
    task = kb.load_task(tmp_path)
    assert task.settings.pooling == "last" and list(task.labels) == LABELS
    for text in TEXTS:
        with torch.no_grad():
            expected = model(**tokenizer(text, return_tensors="pt")).logits.numpy()
        np.testing.assert_allclose(logits_of_texts(task, [[text]]), expected, atol=2e-5)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", NAMES)
def test_a_run_from_a_folder_without_special_tokens(name, tmp_path):
    vocab, merges = trained(name)
    config = {"model_type": name, "vocab_size": len(vocab), **SIZES}
    kb.CausalLM(new_encoder(read_config(config, source="config")), None).save(tmp_path / "model")
    write(name, built(name, vocab, merges), tmp_path / "model")
    folder = tmp_path / "model"
    rows = [f"{label}\t{text}" for text, label in zip(TEXTS * 4, LABELS * 4, strict=True)]
    (tmp_path / "train.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n", encoding="utf-8")
    lines = []
    kb.finetune(
        task="classifier",
        model=folder,
        train=tmp_path / "train.tsv",
        dev=tmp_path / "train.tsv",
        output=tmp_path / "run",
        epochs=1,
        max_length=32,
        report=lines.append,
    )
    said = "Appended special tokens that the model lacks: <pad>, <start>, <delimiter>"
    assert any(line.startswith(said) for line in lines), lines
    task = kb.load_task(tmp_path / "run")
    assert len(task.tokenizer) == len(vocab) + 4


@pytest.mark.peers
def test_a_roberta_folder(tmp_path):
    vocab, merges = trained("roberta")
    tokenizer = transformers.RobertaTokenizer(vocab=vocab, merges=merges)
    torch.manual_seed(shifted(3))
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=32,
        max_position_embeddings=66,
        type_vocab_size=1,
    )
    model = randomized(transformers.RobertaModel(config))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    encoder, ours = kb.load(tmp_path)
    first, second = map(list, zip(*PAIRS, strict=True))
    batch = tokenizer(first, second, padding=True, return_tensors="pt")
    inputs = frame(
        [ours.tokenize(first), ours.tokenize(second)],
        tokenizer=ours,
        names=encoder.input_names,
        max_length=64,
    )
    assert inputs["input_ids"].numpy().tolist() == batch["input_ids"].tolist()
    with torch.no_grad():
        expected = model(**batch).last_hidden_state.numpy()
    at = batch["attention_mask"].numpy().astype(bool)
    states = np.asarray(encoder(inputs)["sequence_output"])
    np.testing.assert_allclose(states[at], expected[at], atol=2e-5)
