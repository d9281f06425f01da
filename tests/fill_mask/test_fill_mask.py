"""fill-mask against Hugging Face's BertForMaskedLM with the same weights, and its laws."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.checkpoints import load_task, save_folder
from keras_bert.cli.main import main
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.inference.fill_mask import fill_mask
from keras_bert.tasks.pretraining.language_models import CausalLM
from keras_bert.tasks.pretraining.pretrainer import FillMask, Pretrainer
from tests.messages import raises_input_error
from tests.peers import torch, transformers
from tests.small_model import make_encoder, make_tokenizer

WORDS = "mask the cat dog sat on mat red paris is capital of france bank river money"
TEXTS = [
    "The cats sat on the [MASK].",
    "[MASK] is the capital of [MASK], [MASK][MASK]",
    "a[MASK]s [mask] [CLS] cat",
]


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(WORDS.split())


def make(kind, tokenizer, **changes):
    # Rows without a piece: embeddings are often padded to a round number.
    sizes = {"vocab_size": len(tokenizer) + 3, "max_position_embeddings": 24}
    task = kind(make_encoder(tokenizer, **{**sizes, **changes}), tokenizer)
    bias = task.lm_head.bias
    bias.assign(np.linspace(-1, 1, bias.shape[0]))  # not all zero, so that it counts
    return task


@pytest.fixture(scope="module")
def task(tokenizer):
    return make(FillMask, tokenizer)


@pytest.fixture(scope="module")
def folder(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fill_mask") / "model"
    task.save(folder)
    return folder


@pytest.mark.peers
def test_equals_transformers(task, folder, tokenizer):
    model, loading = transformers.BertForMaskedLM.from_pretrained(folder, output_loading_info=True)
    unexpected = loading.pop("unexpected_keys")
    assert all(name.startswith("keras_bert.") for name in unexpected)
    assert not any(loading.values()), loading
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for text in TEXTS[:2]:  # the third has a [CLS] that is no text to them
        inputs = their_tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            logits = model.eval()(**inputs).logits
        places = inputs["input_ids"][0] == their_tokenizer.mask_token_id
        expected = torch.softmax(logits[0, places].double(), dim=-1).numpy()
        predictions = fill_mask(model=task, text=text, top_k=len(tokenizer))
        assert len(predictions) == len(expected) == text.count("[MASK]")
        for candidates, row in zip(predictions, expected, strict=True):
            for token, probability in candidates:
                assert abs(probability - row[their_tokenizer.convert_tokens_to_ids(token)]) < 1e-5


def test_only_a_literal_mask_is_special(task, tokenizer):
    vocabulary = tokenizer.vocabulary
    ids = tokenizer.tokenize(["a", "s [mask] [CLS] cat"])
    row = [vocabulary.cls_id, *ids[0].numpy(), vocabulary.mask_id, *ids[1].numpy()]
    row = np.array([[*row, vocabulary.sep_id]], np.int32)
    inputs = {"input_ids": row, "input_mask": np.ones_like(row), "segment_ids": 0 * row}
    logits = task({**inputs, "masked_lm_positions": np.array([[2]], np.int32)})["masked_lm"]
    expected = np.asarray(keras.ops.softmax(logits))[0, 0]
    (candidates,) = fill_mask(model=task, text=TEXTS[2], top_k=3)
    for token, probability in candidates:
        assert abs(probability - expected[vocabulary.id(token)]) < 1e-6


def test_an_export_gives_the_encoder_no_rows_without_a_mask(task, monkeypatch):
    """A megabyte with no [MASK] took 19 s."""
    rows = []
    call = BertEncoder.__call__

    def count(self, inputs, **options):
        rows.append(inputs["input_ids"].shape[0])
        return call(self, inputs, **options)

    monkeypatch.setattr(BertEncoder, "__call__", count)
    tf.config.run_functions_eagerly(True)
    try:
        signature = task.signatures(max_length=8)["serving_default"]
        texts = ["cat " * 500, "cat " * 100 + "[MASK] dog [MASK]" + " cat" * 100, "", "a [MASK]"]
        outputs = signature.function(tf.constant(texts))
    finally:
        tf.config.run_functions_eagerly(False)
    assert outputs["lengths"].numpy().tolist() == [0, 2, 0, 1]
    assert 0 < sum(rows) <= 4
    answer = tf.function(signature.function, input_signature=signature.inputs, autograph=False)
    assert answer(tf.constant(["cat " * 50, ""]))["lengths"].numpy().tolist() == [0, 0]


def test_candidates_fall_and_all_of_them_are_the_vocabulary(task, tokenizer):
    for candidates in fill_mask(model=task, text=TEXTS[1], top_k=1000):
        probabilities = [probability for _, probability in candidates]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sorted(token for token, _ in candidates) == sorted(tokenizer.vocabulary.tokens)
        assert 0.5 < sum(probabilities) < 1  # rows without a piece have the rest
    assert fill_mask(model=task, text=TEXTS[1], top_k=2) == [
        candidates[:2] for candidates in fill_mask(model=task, text=TEXTS[1], top_k=9)
    ]
    assert task.fill(TEXTS[0], top_k=2) == fill_mask(model=task, text=TEXTS[0], top_k=2)


def test_a_pretrained_model_answers_as_its_masked_lm_head_does(tokenizer, task, tmp_path):
    pretrainer = make(Pretrainer, tokenizer)
    for variable, source in zip(pretrainer.encoder.variables, task.encoder.variables, strict=True):
        variable.assign(source)
    pretrainer.lm_head.transform.dense.kernel.assign(task.lm_head.transform.dense.kernel)
    run = tmp_path / "run"
    run.mkdir()
    save_folder(pretrainer, tokenizer, run / "model")
    (expected,) = fill_mask(model=task, text=TEXTS[0])
    (candidates,) = fill_mask(model=run, text=TEXTS[0])
    assert [token for token, _ in candidates] == [token for token, _ in expected]
    np.testing.assert_allclose(*([p for _, p in x] for x in (candidates, expected)), atol=1e-5)


@pytest.mark.parametrize("model_type", ["bert", "roberta"])
def test_a_folder_gives_the_task_back(model_type, tokenizer, tmp_path):
    task = make(FillMask, tokenizer, model_type=model_type, pad_token_id=0)
    task.save(tmp_path / "model")
    loaded = load_task(tmp_path / "model")
    assert isinstance(loaded, FillMask)
    assert fill_mask(model=loaded, text=TEXTS[1]) == fill_mask(model=task, text=TEXTS[1])


def test_learns_and_ignores_weights_of_zero(tokenizer):
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    task = make(FillMask, tokenizer, pooler=False, **still)
    rows = np.tile(np.array([[2, 8, 4, 10, 3], [2, 9, 4, 11, 3]], np.int32), (40, 1))
    inputs = {
        "input_ids": rows,
        "input_mask": np.ones_like(rows),
        "segment_ids": np.zeros_like(rows),
        "masked_lm_positions": np.full((80, 2), 2, np.int32),
    }
    labels = {"masked_lm": np.tile(np.array([[12, 1], [13, 1]]), (40, 1))}
    weights = {"masked_lm": np.tile(np.array([[1.0, 0.0]], "float32"), (80, 1))}
    task.compile_defaults(keras.optimizers.Adam(0.01), jit_compile=False)
    task.fit(inputs, labels, sample_weight=weights, batch_size=2, epochs=3, verbose=0)
    metrics = task.evaluate(inputs, labels, sample_weight=weights, verbose=0, return_dict=True)
    assert metrics["masked_lm_accuracy"] == 1 and metrics["loss"] < 0.2
    assert metrics["loss"] == pytest.approx(metrics["masked_lm_cross_entropy"], abs=1e-5)


@pytest.mark.parametrize(
    "text, options, sentence",
    [
        ("no place", {}, "no [MASK]. Write"),
        ("[mask]", {}, "no [MASK]. Write"),
        ("[MASK] " + "cat " * 22, {}, "has 23 tokens, more than the 22"),
        ("[MASK]", {"top_k": 0}, "at least 1"),
    ],
)
def test_rejects_invalid_texts(text, options, sentence, task):
    with raises_input_error(sentence):
        fill_mask(model=task, text=text, **options)


def test_answers_that_are_no_numbers_are_a_sentence(tokenizer):
    task = make(FillMask, tokenizer)
    for weight in task.weights:
        if "float" in weight.dtype:
            weight.assign(np.full(weight.shape, 3e38))
    with raises_input_error("its weights are too large to compute with"):
        fill_mask(model=task, text="[MASK]")


def test_rejects_a_model_without_the_head(tokenizer, tmp_path):
    from keras_bert.tasks.classification.classifier import Classifier

    encoder = make(FillMask, tokenizer).encoder
    Classifier(encoder, tokenizer, labels=["a", "b"]).save(tmp_path / "spam")
    with raises_input_error("of the task classifier, which has no masked-LM head"):
        fill_mask(model=tmp_path / "spam", text="[MASK]")


def test_a_causal_lm_fills_no_mask(tokenizer, tmp_path):
    """At a [MASK] its head predicts what comes after it."""
    make(CausalLM, tokenizer, is_decoder=True).save(tmp_path / "model")
    with raises_input_error("a causal LM, which ... cannot fill [MASK]"):
        fill_mask(model=tmp_path / "model", text="[MASK]")


def test_the_command_prints_candidates_and_what_comes_next(folder, task, capsys):
    assert main(["fill-mask", "--model", str(folder), "--text", TEXTS[0], "--top-k", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    ((first, second),) = fill_mask(model=task, text=TEXTS[0], top_k=2)
    assert lines[0] == "[MASK]" and lines[3].startswith("Next: keras-bert finetune")
    assert lines[1].split() == [f"{first.probability:.4f}", first.token]
    assert lines[2].split() == [f"{second.probability:.4f}", second.token]
    assert main(["fill-mask", "--model", str(folder), "--text", "cat"]) == 2
    assert capsys.readouterr().err.startswith("keras-bert: The text has no [MASK]")
