"""Models that are cut to the tokens of some texts: the same answers, smaller tables."""

import json
from collections import Counter

import numpy as np
import pytest

import keras_bert as kb
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.convert import convert
from keras_bert.checkpoints.cut_vocabulary import CutVocabulary
from keras_bert.cli.main import main
from keras_bert.tasks import finetuned_task_types, task_class
from keras_bert.text.learners import learn_bpe
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.checkpoints.conftest import shake
from tests.encoders.every_kind import HEADERS, write_examples
from tests.encoders.test_family_tokenizers import PUBLISHED, publish, small_encoder
from tests.messages import raises_input_error
from tests.peers import transformers
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.test_keras_habits_of_every_task import TASKS
from tests.text import fuzz, unigram_models
from tests.text.test_gpt_vocabularies import CORPUS, trained, write_pair

WORDS = sorted({word for text in CORPUS for word in text.lower().split()})
# A part of it is what is kept; the words of the other part are made of the same characters.
TEXTS = [*CORPUS, *unigram_models.SENTENCES, *fuzz.texts(300, seed=9), "", "banksx thx bankx"]


def _wordpiece():
    """Tokens of several lengths, so that a word has several tokens, or begins with some."""
    parts = {word[:size] for word in WORDS for size in (1, 2, 3, 5)}
    ends = {f"##{word[at:end]}" for word in WORDS for at in (1, 2, 3) for end in (at + 1, at + 3)}
    tokens = [*SPECIAL_TOKENS, "[unused1]", *sorted(parts), *sorted(ends - {"##"})]
    return kb.Tokenizer(WordPieceVocabulary(tokens), lowercase=True)


def _bpe():
    counts = {word: 1 + number % 7 for number, word in enumerate(WORDS)}
    return kb.Tokenizer(learn_bpe(counts, size=200), lowercase=True)


def _from_written_folder(write):
    def make(folder):
        write(folder)
        return kb.Tokenizer.from_folder(folder)

    return make


def _pair(name):
    def write(folder):
        vocab, merges = trained(name)
        write_pair(folder, vocab, merges)

    return write


TOKENIZERS = {
    "wordpiece": lambda folder: _wordpiece(),
    "bpe": lambda folder: _bpe(),
    "openai-gpt": _from_written_folder(_pair("openai-gpt")),
    "gpt2": _from_written_folder(_pair("gpt2")),
    **{
        f"{model_type} {variant}".strip(): _from_written_folder(
            lambda folder, names=(model_type, variant): publish(*names, folder)
        )
        for model_type, variant in PUBLISHED
        if model_type not in ("bert", "distilbert", "electra")
    },
}


QUICK = ("wordpiece", "bpe", "gpt2", "albert", "bert", "roberta")  # of tokenizers and families


def parameters(names):
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", parameters(TOKENIZERS))
def test_texts_of_kept_tokens_have_the_same_tokens(name, tmp_path):
    tokenizer = TOKENIZERS[name](tmp_path)
    encoder = make_encoder(tokenizer)
    given, others = TEXTS[::2], TEXTS[1::2]
    cut = CutVocabulary(encoder, tokenizer, given)
    smaller, its_tokenizer = cut.apply()
    vocabulary, count = tokenizer.vocabulary, len(its_tokenizer)
    assert count < len(tokenizer) and smaller.config.vocab_size == count == len(cut.ids)
    assert its_tokenizer.vocabulary.tokens == tuple(vocabulary.tokens[id] for id in cut.ids)
    assert its_tokenizer.special_tokens == tokenizer.special_tokens
    new_ids = {old: new for new, old in enumerate(cut.ids)}
    equal = 0
    for texts, are_given in ((given, True), (others, False)):
        before, after = (of.tokenize(texts).to_list() for of in (tokenizer, its_tokenizer))
        for ids, cut_ids in zip(before, after, strict=True):
            # A word that is unknown may be known by shorter tokens, if it is not among the given.
            is_unknown = vocabulary.HAS_UNKNOWN_TEXT and vocabulary.unk_id in ids
            if are_given or (new_ids.keys() >= {*ids} and not is_unknown):
                assert cut_ids == [new_ids[id] for id in ids]
                equal += 1
    assert equal > len(given)  # of others, too
    lost = cut.lost(its_tokenizer, given)
    assert lost["dropped_tokens"] == lost["changed_texts"] == 0
    assert lost["texts"] == len(given)
    others_lost = cut.lost(its_tokenizer, others)
    ids = [id for row in tokenizer.tokenize(others).to_list() for id in row]
    assert others_lost["tokens"] == len(ids)
    assert others_lost["dropped_tokens"] == sum(id not in new_ids for id in ids)
    table, whole = (np.asarray(of.token_embedding.embeddings) for of in (smaller, encoder))
    np.testing.assert_array_equal(table, whole[cut.ids])


FAMILIES = [*dict.fromkeys(model_type for model_type, _ in PUBLISHED)]


@pytest.mark.parametrize("model_type", parameters(FAMILIES))
def test_every_family_computes_the_same(model_type, tmp_path):
    """Also if positions depend on the id of padding; the masked LM's table and bias, too."""
    variant = next(variant for name, variant in PUBLISHED if name == model_type)
    published = tmp_path / "published"
    published.mkdir()
    publish(model_type, variant, published)
    tokenizer = kb.Tokenizer.from_folder(published)
    encoder = shake(small_encoder(model_type, tokenizer))
    if encoder.POOLER_ACTIVATION is not None:
        shake(encoder.new_pooler())
    save_folder(shake(kb.FillMask(encoder, tokenizer)), tokenizer, tmp_path / "model")
    texts = ["The bank, the banks.", "a", ""]
    report = []
    done = convert(tmp_path / "model", tmp_path / "cut", vocab_from=texts, report=report.append)
    assert done["tokens"] < done["tokens_before"] == len(tokenizer)
    before, after = (load(tmp_path / name) for name in ("model", "cut"))
    inputs = [its_tokenizer(texts) for _, its_tokenizer in (before, after)]
    np.testing.assert_array_equal(inputs[0]["input_mask"], inputs[1]["input_mask"])
    states = [
        np.asarray(model(given)["sequence_output"])[given["input_mask"] > 0]
        for (model, _), given in zip((before, after), inputs, strict=True)
    ]
    np.testing.assert_array_equal(*states)
    (whole,), (cut,) = (
        kb.fill_mask(model=tmp_path / name, text="The [MASK]", top_k=len(its_tokenizer))
        for name, (_, its_tokenizer) in zip(("model", "cut"), (before, after), strict=True)
    )
    assert len(cut) == done["tokens"]
    names = Counter(token for token, _ in whole)  # "the" may begin a word, or continue one
    whole = {token: probability for token, probability in whole if names[token] == 1}
    ratios = [probability / whole[token] for token, probability in cut if token in whole]
    assert len(ratios) > len(cut) / 2
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-4)
    config = json.loads((tmp_path / "cut" / "config.json").read_text())
    assert config["vocab_size"] == done["tokens"]
    pads = [
        its_tokenizer.vocabulary.token(model.config.pad_token_id)
        for model, its_tokenizer in (before, after)
    ]
    assert pads[0] == pads[1]


def _task(task_type, tokenizer):
    arguments, _, _ = TASKS[task_type]
    cls = task_class(task_type)
    if cls.MIN_LABELS and not arguments:
        arguments = {"labels": ["x", "y"]}
    return shake(cls(make_encoder(tokenizer), tokenizer, **arguments))


SLOW = {*finetuned_task_types()} - {"classifier", "tagger", "text-embedding", "regression"}


@pytest.mark.parametrize(
    "task_type",
    [pytest.param(t, marks=pytest.mark.slow if t in SLOW else ()) for t in finetuned_task_types()],
)
def test_every_task_answers_the_same(task_type, tmp_path):
    words = [f"w{n}" for n in range(9)]
    tokenizer = make_tokenizer(words)
    texts = ["w1 w2 w3 w4", "w2 w1 w4 w5", "w3 w1 w2 w5"]
    _task(task_type, tokenizer).save(tmp_path / "model")
    ending = "tsv" if task_type in HEADERS else "txt" if task_type == "tagger" else "jsonl"
    file = write_examples(tmp_path / f"file.{ending}", task_type, texts)
    # A tagger's file is read as texts by `predict`, with the tags in them.
    done = convert(tmp_path / "model", tmp_path / "cut", vocab_from=[*texts, "B-X I-X O"])
    assert done["tokens"] < len(tokenizer) and done["left_out"] == []
    one, other = (kb.predict(model=tmp_path / name, data=file) for name in ("model", "cut"))
    if task_type == "text-embedding":
        one, other = ([prediction["similarity"] for prediction in of] for of in (one, other))
        np.testing.assert_allclose(one, other, atol=1e-6)
    else:
        assert [*one] == [*other]
    assert load_task(tmp_path / "cut").settings == load_task(tmp_path / "model").settings


def test_prompts_are_kept_and_texts_read_as_the_model_reads_them(tmp_path):
    tokenizer = make_tokenizer(["query", "passage", "about"])
    prompts = {"query": "query: ", "passage": "passage: "}
    task = kb.TextEmbedder(make_encoder(tokenizer), tokenizer, prompts=prompts)
    shake(task).save(tmp_path / "model")
    convert(tmp_path / "model", tmp_path / "cut", vocab_from=["about"])
    one, other = (load_task(tmp_path / name) for name in ("model", "cut"))
    for encode in ("encode", "encode_query", "encode_document"):
        np.testing.assert_array_equal(*(getattr(t, encode)(["about"]) for t in (one, other)))


def test_layers_beside_the_encoder_are_cut(tmp_path):
    """Static vectors have the same vocabulary; a BiLM reads the characters of its tokens."""
    tokenizer = make_tokenizer(["w1", "w2"])
    vectors = kb.StaticEncoder(kb.StaticConfig(vocab_size=len(tokenizer), hidden_size=3))
    task = kb.Classifier(
        make_encoder(tokenizer), tokenizer, labels=["x", "y"], static_vectors=shake(vectors)
    )
    shake(task).save(tmp_path / "model")
    convert(tmp_path / "model", tmp_path / "cut", vocab_from=["w1 ab"])
    one, other = (load_task(tmp_path / name) for name in ("model", "cut"))
    assert other.reader.static_vectors.config.vocab_size == len(other.tokenizer)
    answers = ([*kb.predict(model=task, text=["w1 ab", "b a"])] for task in (one, other))
    first, second = answers
    assert first == second


def test_the_command_counts_what_is_dropped(tmp_path, capsys):
    tokenizer = make_tokenizer(["bank", "banks", "river"])
    save_folder(shake(make_encoder(tokenizer)), tokenizer, tmp_path / "model")
    (tmp_path / "texts.txt").write_text("the bank\na river\n")
    (tmp_path / "others.txt").write_text("the bank\nbanks\nthe rivers!\n")
    command = ["convert", "--input", str(tmp_path / "model"), "--output", str(tmp_path / "cut")]
    command += ["--vocab-from", str(tmp_path / "texts.txt")]
    assert main([*command, "--vocab-check", str(tmp_path / "others.txt")]) == 0
    said = capsys.readouterr().err
    kept = len(load(tmp_path / "cut")[1])
    assert f"Kept {kept:,} of {len(tokenizer)} tokens" in said and "those of 2 texts" in said
    # "banks", the continuation "s" of "rivers", and "!".
    assert "3 of the 11 tokens of the texts of" in said
    assert "2 of its 3 texts have other tokens" in said
    assert main(command) == 0
    assert "is already complete. Nothing was written." in capsys.readouterr().err
    (tmp_path / "others.txt").write_text("a bank\n")
    assert main([*command, "--vocab-check", str(tmp_path / "others.txt")]) == 0
    assert "All 1 text of the texts of" in capsys.readouterr().err


def test_bad_input(tmp_path):
    tokenizer = make_tokenizer()
    save_folder(make_encoder(tokenizer), tokenizer, tmp_path / "model")
    (tmp_path / "empty.txt").write_text("\n\n")
    given = {"input": tmp_path / "model", "output": tmp_path / "cut"}
    with raises_input_error("empty.txt is empty. At least one line of text is needed."):
        convert(**given, vocab_from=tmp_path / "empty.txt")
    with raises_input_error("`vocab_check` needs `vocab_from`"):
        convert(**given, vocab_check=["a"])
    with raises_input_error("`to` glove is a file of word vectors"):
        convert(**given, vocab_from=["a"], to="glove")
    assert not (tmp_path / "cut").exists()


@pytest.mark.peers
@pytest.mark.parametrize("model_type", FAMILIES)
def test_transformers_opens_what_is_written(model_type, tmp_path):
    variant = next(variant for name, variant in PUBLISHED if name == model_type)
    published = tmp_path / "published"
    published.mkdir()
    publish(model_type, variant, published)
    tokenizer = kb.Tokenizer.from_folder(published)
    save_folder(shake(small_encoder(model_type, tokenizer)), tokenizer, tmp_path / "model")
    convert(tmp_path / "model", tmp_path / "cut", vocab_from=TEXTS[::2])
    encoder, its_tokenizer = load(tmp_path / "cut")
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "cut")
    texts = ["The bank, the banks.", "a", unigram_models.SENTENCES[0]]
    expected = their_tokenizer(texts, split_special_tokens=True)["input_ids"]
    our_inputs = its_tokenizer(texts)
    rows = zip(our_inputs["input_ids"], our_inputs["input_mask"], strict=True)
    assert [ids[mask > 0].tolist() for ids, mask in rows] == expected
    model = transformers.AutoModel.from_pretrained(tmp_path / "cut")
    assert len(their_tokenizer) == model.config.vocab_size == encoder.config.vocab_size
    states = model(**their_tokenizer(texts, padding=True, return_tensors="pt")).last_hidden_state
    at_tokens = our_inputs["input_mask"] > 0
    output = np.asarray(encoder(our_inputs)["sequence_output"])
    np.testing.assert_allclose(
        output[at_tokens], states.detach().numpy()[at_tokens], atol=1e-4, rtol=0
    )
