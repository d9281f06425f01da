"""Surprisal and pseudo-perplexity against plain loops over models of `transformers`."""

import json

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

import keras_bert as kb
from keras_bert.cli.main import main
from keras_bert.encoders import new_encoder, read_config
from keras_bert.exports.saved_model import export
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabularies.byte_level import LETTERS, ByteLevelVocabulary
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS, SpecialTokens
from tests.peers import torch, transformers
from tests.seeds import shifted
from tests.small_model import make_encoder

WORDS = ["the", "cat", "sat", "on", "a", "mat", "un", "##happi", "##ly", "##ing", ".", ","]
END_OF_TEXT = "<|endoftext|>"
VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS, *WORDS])
TOKENIZER = Tokenizer.from_vocab(VOCABULARY)
TEXTS = ["The cat sat, unhappily, on a mat.", "", "a dog", "mat"]
LONG = "the unhappily cat sat on a mat , " * 4 + "the cat ."
POSITIONS = 16
# Rows without a token: embeddings are often padded to a round number.
ROWS = len(VOCABULARY) + 3


def masked_lm(kind=kb.FillMask, **sizes):
    sizes = {"num_hidden_layers": 1, "max_position_embeddings": POSITIONS, **sizes}
    encoder = make_encoder(TOKENIZER, vocab_size=ROWS, **sizes)
    task = kind(encoder, TOKENIZER)
    task.lm_head.bias.assign(np.linspace(-1, 1, ROWS))
    return task


@pytest.fixture(scope="module")
def task():
    return masked_lm()


@pytest.fixture(scope="module")
def folder(task, tmp_path_factory):
    task.save(tmp_path_factory.mktemp("surprisal") / "model")
    return tmp_path_factory.getbasetemp() / "surprisal0" / "model"


@pytest.fixture(
    scope="module", params=["task", pytest.param("transformers", marks=pytest.mark.peers)]
)
def log_probabilities(request, task, folder):
    """A function of ids with special tokens to float64 log-probabilities, (S, V).

    By a plain call of the task, and by the class of `transformers`.
    """
    if request.param == "task":

        def logits_of(ids):
            inputs = {"input_ids": [ids], "input_mask": [[1] * len(ids)]}
            inputs |= {"segment_ids": [[0] * len(ids)], "masked_lm_positions": [[*range(len(ids))]]}
            return task({name: np.array(inputs[name], "int32") for name in task.input})["masked_lm"]

    else:
        model = transformers.BertForMaskedLM.from_pretrained(folder).eval()

        def logits_of(ids):
            with torch.no_grad():
                return model(torch.tensor([ids])).logits

    return lambda ids: log_softmax(np.asarray(logits_of(ids))[0].astype("float64"), axis=-1)


def ids_of(text):
    (ids,) = TOKENIZER.tokenize([text]).to_list()
    return ids


def loop(log_probabilities, ids, *, masked=None):
    """-log p of each token of a text, masked alone or with those after it; the plain loop."""
    surprisals = []
    for n, id in enumerate(ids):
        last = n + 1 if masked is None else masked[n]
        row = [*ids[:n], *[VOCABULARY.mask_id] * (last - n), *ids[last:]]
        row = [VOCABULARY.cls_id, *row, VOCABULARY.sep_id]
        surprisals.append(-log_probabilities(row)[n + 1, id])
    return surprisals


@pytest.mark.usefixtures("eager")
def test_each_token_is_masked_alone_as_in_a_plain_loop(task, log_probabilities):
    scores = list(kb.surprisal(model=task, text=TEXTS))
    assert [score.line for score in scores] == [1, 2, 3, 4]
    for text, score in zip(TEXTS, scores, strict=True):
        ids = ids_of(text)
        expected = loop(log_probabilities, ids)
        np.testing.assert_allclose(score.surprisals, expected, atol=1e-4)
        assert score.tokens == [VOCABULARY.tokens[id] for id in ids]
        assert score.log_probability == pytest.approx(-sum(expected), abs=1e-3)
        if ids:
            assert score.perplexity == pytest.approx(np.exp(np.mean(expected)), rel=1e-4)
    assert [TEXTS[0][s:e] for s, e in zip(scores[0].starts, scores[0].ends, strict=True)] == [
        *("The", "cat", "sat", ",", "un", "happi", "ly", ",", "on", "a", "mat", ".")
    ]
    assert np.isnan(scores[1].perplexity)


@pytest.mark.usefixtures("eager")
def test_the_rest_of_a_word_is_masked_too(task, log_probabilities):
    (score,) = kb.surprisal(model=task, text=TEXTS[0], mask_rest_of_word=True)
    ids = ids_of(TEXTS[0])
    masked = [n + 1 for n in range(len(ids))]
    masked[4:6] = [7, 7]  # un ##happi ##ly
    expected = loop(log_probabilities, ids, masked=masked)
    np.testing.assert_allclose(score.surprisals, expected, atol=1e-4)
    (alone,) = kb.surprisal(model=task, text=TEXTS[0])
    is_same = np.isclose(score.surprisals, alone.surprisals, atol=1e-5)
    assert np.flatnonzero(~is_same).tolist() == [4, 5]


@pytest.mark.usefixtures("eager")
def test_a_token_of_a_long_text_is_read_where_it_has_most_context(task, log_probabilities):
    (score,) = kb.surprisal(model=task, text=LONG)
    ids, room = ids_of(LONG), POSITIONS - 2
    starts = [*range(0, len(ids) - room, room // 2), len(ids) - room]
    nats_by_start = {start: loop(log_probabilities, ids[start : start + room]) for start in starts}
    for n, nats in enumerate(score.surprisals):
        inside = [start for start in starts if start <= n < start + room]
        context = [
            min(n - start if start else room, start + room - 1 - n)
            if start != starts[-1]
            else (n - start)
            for start in inside
        ]
        best = [s for s, size in zip(inside, context, strict=True) if size >= max(context) - 1]
        assert min(abs(nats - nats_by_start[start][n - start]) for start in best) < 1e-4


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def causal(request):
    tf.keras.utils.set_random_seed(shifted(7))
    return causal_lm(request.param)


def causal_lm(model_type):
    sizes = {"n_embd": 24, "n_layer": 1, "n_head": 4, "n_positions": POSITIONS}
    vocabulary = VOCABULARY
    if model_type == "bert":
        sizes = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4}
        sizes |= {"intermediate_size": 32, "max_position_embeddings": POSITIONS}
        sizes |= {"is_decoder": True}
    else:
        merges = [("Ġ", "t"), ("h", "e"), ("Ġt", "he")]
        tokens = [END_OF_TEXT, *LETTERS, *("".join(pair) for pair in merges)]
        special = SpecialTokens(eos=END_OF_TEXT)
        vocabulary = ByteLevelVocabulary(tokens, merges, special_tokens=special)
    tokenizer = Tokenizer.from_vocab(vocabulary)
    more = {"model_type": model_type, "vocab_size": len(vocabulary) + 2, "initializer_range": 0.3}
    return kb.CausalLM(new_encoder(read_config({**sizes, **more}, source="x")), tokenizer)


@pytest.mark.peers
def test_left_to_right_as_in_transformers(causal, tmp_path):
    is_bert = causal.config.model_type == "bert"
    kind = transformers.BertLMHeadModel if is_bert else transformers.GPT2LMHeadModel
    causal.save(tmp_path / "model")
    model = kind.from_pretrained(tmp_path / "model").eval()
    before = [VOCABULARY.cls_id] if is_bert else []
    room, num_tokens = POSITIONS - len(before), len(causal.tokenizer)
    texts = [*TEXTS[:3], " the the", LONG]
    scores = list(kb.surprisal(model=causal, text=texts))
    for text, score in zip(texts, scores, strict=True):
        (ids,) = causal.tokenizer.tokenize([text]).to_list()
        expected, start, end = {}, 0, min(room, len(ids))
        while True:
            row = [*before, *ids[start:end]]
            if row:
                with torch.no_grad():
                    logits = model(torch.tensor([row])).logits[0, :, :num_tokens].double()
                nats = -torch.log_softmax(logits, dim=-1).numpy()
                for n in range(start, end):
                    column = n - start + len(before)
                    if column and n not in expected:
                        expected[n] = nats[column - 1, ids[n]]
            if end == len(ids):
                break
            start = min(start + room // 2, len(ids) - room)
            end = start + room
        np.testing.assert_allclose(score.surprisals, list(expected.values()), atol=1e-4)
        assert len(score.tokens) == len(score.starts) == max(0, len(ids) - (not before))
        (whole,) = kb.log_probability(model=causal, text=text)
        assert whole.log_probability == pytest.approx(-sum(expected.values()), abs=1e-3)
        assert whole.tokens == len(expected)
    total = sum(len(score.tokens) for score in scores)
    nats = sum(score.surprisals.sum() for score in scores)
    perplexity = kb.pseudo_perplexity(model=causal, text=texts)
    assert perplexity == pytest.approx(np.exp(nats / total), rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("gpt2", False),
        ("pretrainer", False),
        pytest.param("gpt2", True, marks=pytest.mark.slow),
        pytest.param("pretrainer", True, marks=pytest.mark.slow),
    ],
)
def test_an_export_answers_as_python_does(kind, written, tmp_path):
    """Its file, or the functions that are written into it."""
    task = causal_lm(kind) if kind == "gpt2" else masked_lm(kb.Pretrainer)
    if written:
        task.save(tmp_path / "model")
        version = export(model=tmp_path / "model", output=tmp_path / "served")
        signatures = tf.saved_model.load(str(version)).signatures
    else:
        signatures = {name: signature.function for name, signature in task.signatures().items()}
    texts = [*TEXTS, LONG]
    outputs = signatures["surprisal"](text=tf.constant(texts))
    expected = list(kb.surprisal(model=task, text=texts))
    assert outputs["lengths"].numpy().tolist() == [len(score.tokens) for score in expected]
    for row, score in enumerate(expected):
        count = len(score.tokens)
        pieces = [piece.decode() for piece in outputs["pieces"][row].numpy()]
        assert pieces == [*score.tokens, *[""] * (len(pieces) - count)]
        for name in ("starts", "ends", "surprisals"):
            column = outputs[name][row].numpy()
            np.testing.assert_allclose(column[:count], getattr(score, name), atol=1e-4)
            assert not column[count:].any()
    alone = signatures["surprisal"](text=tf.constant([""]))
    assert alone["surprisals"].shape == (1, 0)
    empty = signatures["surprisal"](text=tf.constant([], tf.string))
    assert empty["surprisals"].shape == (0, 0)
    if kind == "pretrainer":
        pairs = {"text_a": [*TEXTS[:2], LONG], "text_b": ["a mat", "the cat", LONG]}
        outputs = signatures["next_sentence"](**{name: tf.constant(x) for name, x in pairs.items()})
        expected = [pair.probability for pair in kb.follows(model=task, **pairs)]
        np.testing.assert_allclose(outputs["probability"], expected, atol=1e-5)


@pytest.mark.usefixtures("eager")
def test_a_file_a_text_and_a_picture_by_the_command(folder, task, tmp_path, capsys):
    data = tmp_path / "texts.txt"
    data.write_text("".join(f"{text}\n" for text in TEXTS))
    command = ["surprisal", "--model", str(folder)]
    assert main([*command, "--data", str(data)]) == 0
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert "Next: keras-bert finetune" in err
    expected = list(kb.surprisal(model=task, data=data))
    assert [line["tokens"] for line in lines] == [score.tokens for score in expected]
    for line, score in zip(lines, expected, strict=True):
        np.testing.assert_allclose(line["surprisals"], score.surprisals, atol=1e-5)
        assert line["log_probability"] == pytest.approx(score.log_probability, abs=1e-4)
    assert main([*command, "--data", str(data), "--perplexity"]) == 0
    number = json.loads(capsys.readouterr().out)["pseudo_perplexity"]
    assert number == pytest.approx(kb.pseudo_perplexity(model=task, data=data), abs=1e-4)
    picture = tmp_path / "cat.png"
    assert main([*command, "--text", TEXTS[0], "--picture", str(picture), "--quiet"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == TEXTS[0] and shown[1].split()[1] == "the"
    assert shown[-1] == f"Wrote {picture}" and picture.read_bytes().startswith(b"\x89PNG")
    assert shown[-2].endswith(f"12 tokens, perplexity {expected[0].perplexity:.2f}")


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (kb.surprisal, {}, "Pass `data`, a file of texts, or `text`."),
        (kb.surprisal, {"text": ["a"], "data": "x"}, "Pass either `data`, a file of texts, or"),
        (kb.surprisal, {"data": "missing.txt"}, "missing.txt"),
        (
            kb.draw_surprisal,
            {"text": "a " * 61, "output": "a.png"},
            "The text has 61 tokens. A picture of surprisal shows 1 to 60.",
        ),
        (kb.draw_surprisal, {"text": "", "output": "a.png"}, "The text has 0 tokens. A picture"),
        (kb.draw_surprisal, {"output": "a.png"}, "Pass either `model` and `text`, or `found`."),
        (kb.draw_surprisal, {"text": "a", "output": "a.jpg"}, "A picture is a PNG file. a.jpg"),
    ],
)
def test_bad_input_is_one_sentence(function, given, message, task):
    with pytest.raises(kb.InputError) as raised:
        list(function(**{"model": task, **given}))
    assert message in str(raised.value)


def test_a_model_without_a_head_is_one_sentence(task, tmp_path, capsys):
    classifier = kb.Classifier(task.encoder, TOKENIZER, labels=["a", "b"])
    with pytest.raises(kb.InputError, match="the task classifier, which has no masked-LM head"):
        kb.surprisal(model=classifier, text="a")
    with pytest.raises(kb.InputError, match="`mask_rest_of_word` is for masked language models"):
        kb.surprisal(model=causal_lm("bert"), text="a", mask_rest_of_word=True)
    command = ["surprisal", "--model", "x", "--text", "a", "--text", "b", "--picture", "a.png"]
    assert main(command) == 2
    assert "--picture is for a single text. Pass one --text." in capsys.readouterr().err
    assert main([*command[:-2], "--perplexity", "--picture", "a.png"]) == 2
    assert "Pass either --picture or --perplexity, not both." in capsys.readouterr().err
