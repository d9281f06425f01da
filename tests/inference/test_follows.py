"""Next sentences against `transformers`, and the span-boundary head against its equations."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf, softmax

import keras_bert as kb
from keras_bert.cli.main import main
from keras_bert.exports.saved_model import export
from tests.peers import torch, transformers
from tests.seeds import make_rng
from tests.small_model import make_encoder, make_tokenizer

WORDS = "the cat sat on mat dog bank of river mask".split()
PAIRS = {
    "text_a": ["The cat sat.", "On the mat!", "the bank", "a mat"],
    "text_b": ["On the mat.", "dog", "of the river", "cat " * 60],
}


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(WORDS)


@pytest.fixture(scope="module")
def task(tokenizer):
    task = kb.Pretrainer(make_encoder(tokenizer, num_hidden_layers=1), tokenizer)
    task.next_sentence_head.dense.kernel.assign(make_rng(3).normal(size=(16, 2)))
    return task


@pytest.fixture(scope="module")
def folder(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("follows") / "model"
    task.save(folder)
    return folder


@pytest.mark.peers
def test_the_next_sentence_head_is_that_of_transformers(task, folder):
    model = transformers.BertForPreTraining.from_pretrained(folder).eval()
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    pairs = kb.follows(model=folder, **PAIRS)
    assert [pair[:2] for pair in pairs] == list(zip(*PAIRS.values(), strict=True))
    for text_a, text_b, probability in pairs:
        inputs = their_tokenizer(
            text_a, text_b, truncation="longest_first", max_length=40, return_tensors="pt"
        )
        with torch.no_grad():
            logits = model(**inputs).seq_relationship_logits[0].double()
        assert probability == pytest.approx(float(torch.softmax(logits, dim=0)[0]), abs=1e-5)


def test_no_pairs_have_no_probabilities(task):
    assert kb.follows(model=task, text_a=[], text_b=[]) == []


def test_the_order_of_sentences(tokenizer, task, tmp_path):
    order = kb.SentenceOrderPretrainer(task.encoder, tokenizer)
    order.next_sentence_head.dense.kernel.assign(task.next_sentence_head.dense.kernel)
    order.transform.set_weights(task.transform.get_weights())
    order.save(tmp_path / "model")
    assert kb.follows(model=tmp_path / "model", **PAIRS) == kb.follows(model=task, **PAIRS)
    assert "sentence_order" in order.signatures()


def test_the_command_follows(folder, task, capsys):
    command = ["follows", "--model", str(folder), "--text-a", "the bank", "--text-b"]
    assert main([*command, "of the river"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (pair,) = kb.follows(model=task, text_a="the bank", text_b="of the river")
    assert lines[0].split(maxsplit=1) == [f"{pair.probability:.4f}", "the bank | of the river"]
    assert lines[1].startswith("Next: keras-bert finetune --task pair-classifier")
    assert main([*command, "a", "b"]) == 2
    expected = "--text-a and --text-b must have the same length. Received: 1 and 2."
    assert expected in capsys.readouterr().err


def test_a_model_without_the_head_is_one_sentence(tokenizer, task):
    for other in (
        kb.FillMask(task.encoder, tokenizer),
        kb.Classifier(task.encoder, tokenizer, labels=["a", "b"]),
    ):
        with pytest.raises(kb.InputError, match="no next-sentence or sentence-order head. Use a"):
            kb.follows(model=other, text_a="a", text_b="b")
    with pytest.raises(kb.InputError, match="is_no_folder"):
        kb.follows(model="is_no_folder", text_a="a", text_b="b")


LONGEST = 4
TEXTS = [
    "The [MASK] [MASK] on the [MASK].",
    "[MASK]",
    "the [MASK][MASK] [MASK] [MASK]",
    "no span",
    "[MASK] of [MASK][MASK]",
]


@pytest.fixture(scope="module")
def span_task(tokenizer):
    encoder = make_encoder(tokenizer, num_hidden_layers=1, vocab_size=len(tokenizer) + 3)
    task = kb.SpanPretrainer(encoder, tokenizer, max_span_length=LONGEST)
    rng = make_rng(4)
    for weight in task.span_boundary.weights:
        if "token_embedding" not in weight.path and "word" not in weight.path:
            weight.assign(rng.normal(0, 0.3, weight.shape))
    return task


def expected_probabilities(task, text):
    """The span-boundary head by its equations (Joshi et al. 2020, section 3.2), in float64."""
    tokenizer, head = task.tokenizer, task.span_boundary
    vocabulary = tokenizer.vocabulary
    ids = []
    for number, part in enumerate(text.split("[MASK]")):
        ids += ([vocabulary.mask_id] if number else []) + tokenizer.tokenize([part])[
            0
        ].numpy().tolist()
    ids = [vocabulary.cls_id, *ids, vocabulary.sep_id]
    row = np.array([ids], np.int32)
    inputs = {"input_ids": row, "input_mask": np.ones_like(row), "segment_ids": 0 * row}
    hidden = np.asarray(task.encoder(inputs)["sequence_output"][0], np.float64)
    weights = [
        [np.asarray(x, np.float64) for x in (dense.kernel, dense.bias, norm.gamma, norm.beta)]
        for dense, norm in zip(head.dense_layers, head.layer_norms, strict=True)
    ]
    probabilities = []
    for place, id in enumerate(ids):
        if id != vocabulary.mask_id:
            continue
        left = right = place
        while ids[left] == vocabulary.mask_id:
            left -= 1
        while ids[right] == vocabulary.mask_id:
            right += 1
        offset = np.asarray(head.offset_embedding.embeddings, np.float64)[place - left - 1]
        x = np.concatenate([hidden[left], hidden[right], offset])
        for kernel, bias, gamma, beta in weights:
            x = x @ kernel + bias
            x = x * (1 + erf(x / np.sqrt(2))) / 2
            x = (x - x.mean()) / np.sqrt(x.var() + 1e-12) * gamma + beta
        table = np.asarray(head.token_embedding.embeddings, np.float64)
        probabilities.append(softmax(table @ x + np.asarray(head.bias, np.float64)))
    return np.array(probabilities)


def test_the_span_boundary_head_is_its_equations(span_task, tokenizer):
    vocabulary = tokenizer.vocabulary
    for text in (TEXTS[0], TEXTS[1], TEXTS[2], TEXTS[4]):
        expected = expected_probabilities(span_task, text)
        predictions = kb.fill_mask(model=span_task, text=text, head="span-boundary", top_k=1000)
        assert len(predictions) == len(expected) == text.count("[MASK]")
        for candidates, row in zip(predictions, expected, strict=True):
            for token, probability in candidates:
                assert probability == pytest.approx(row[vocabulary.id(token)], abs=1e-4)
    by_mask = kb.fill_mask(model=span_task, text=TEXTS[0])
    assert by_mask != kb.fill_mask(model=span_task, text=TEXTS[0], head="span-boundary")


def test_an_exported_span_boundary_head_answers_as_python_does(span_task, tmp_path):
    span_task.save(tmp_path / "model")
    version = export(model=tmp_path / "model", output=tmp_path / "served")
    signatures = tf.saved_model.load(str(version)).signatures
    outputs = signatures["span_boundary"](text=tf.constant(TEXTS))
    assert outputs["lengths"].numpy().tolist() == [text.count("[MASK]") for text in TEXTS]
    for row, text in enumerate(TEXTS):
        if "[MASK]" not in text:
            continue
        expected = kb.fill_mask(model=span_task, text=text, head="span-boundary")
        for number, candidates in enumerate(expected):
            names = [name.decode() for name in outputs["pieces"][row, number].numpy()]
            assert names == [token for token, _ in candidates]
            np.testing.assert_allclose(
                outputs["probabilities"][row, number], [p for _, p in candidates], atol=1e-5
            )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"A span may have at most 4 \[MASK\]"):
        signatures["span_boundary"](text=tf.constant(["[MASK]" * 5]))
    # In a long text, a span is whole in the window that predicts it.
    long = "the cat sat on the mat. " * 8 + "the [MASK][MASK] sat" + " on the mat" * 9
    assert signatures["span_boundary"](text=tf.constant([long]))["lengths"].numpy().tolist() == [2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[MASK]" * 5, "The text has a span of 5 [MASK]. The span-boundary head of the model was"),
        ("cat", "The text has no [MASK]"),
    ],
)
def test_bad_spans_are_one_sentence(text, message, span_task, task):
    with pytest.raises(kb.InputError) as raised:
        kb.fill_mask(model=span_task, text=text, head="span-boundary")
    assert str(raised.value).startswith(message)
    with pytest.raises(kb.InputError, match="which has no span-boundary head. Use a model that"):
        kb.fill_mask(model=task, text="[MASK]", head="span-boundary")
