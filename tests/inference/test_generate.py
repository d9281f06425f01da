"""Generation against `transformers`, and its laws."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

import keras_bert as kb
from keras_bert import encoders
from keras_bert.cli.main import main
from keras_bert.encoders import new_encoder, read_config
from keras_bert.exports.saved_model import export
from keras_bert.inference.generate import generate, log_probability, next_tokens
from keras_bert.tasks.pretraining.generation import Generator, Sampling
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabularies.wordpiece import WordPieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from tests.encoders.toy_encoder import HOME, ToyConfig
from tests.peers import torch, transformers
from tests.seeds import shifted

WORDS = ["let", "'", "s", "stick", "to", "the", "plan", "un", "##happi", "##ly", "##ing", "."]
VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS, *WORDS])
PROMPTS = ["Let's stick to", "the plan", "", "unhappily the plan . the stick"]
# Rows without a token: embeddings are often padded to a round number.
ROWS = len(VOCABULARY) + 3
GPT = {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 24}
BERT = {
    **{"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"intermediate_size": 32, "max_position_embeddings": 24, "is_decoder": True},
}
CONFIGS = {"openai-gpt": GPT, "gpt2": GPT, "bert": BERT, "roberta": BERT, "toy": None}
CLASSES = {
    "openai-gpt": "OpenAIGPTLMHeadModel",
    "gpt2": "GPT2LMHeadModel",
    "bert": "BertLMHeadModel",
    "roberta": "RobertaForCausalLM",
}


@pytest.fixture(scope="module", autouse=True)
def entered():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(encoders.ENCODERS, "toy", HOME)
        yield


def make(model_type):
    tokenizer = Tokenizer.from_vocab(VOCABULARY)
    if model_type == "toy":
        config = ToyConfig(vocab_size=ROWS, hidden_size=24)
    else:
        more = {"model_type": model_type, "vocab_size": ROWS, "initializer_range": 0.3}
        if model_type == "roberta":
            more["pad_token_id"] = 0
        config = read_config({**CONFIGS[model_type], **more}, source="x")
    task = kb.CausalLM(new_encoder(config), tokenizer)
    if task.lm_head.bias is not None:
        task.lm_head.bias.assign(np.linspace(0, 1, ROWS))
    return task


MAX_TOKENS = 12
# A RoBERTa from left to right is a BERT with other numbers of positions.
PARAMS = [*CLASSES][:-1] + [pytest.param("roberta", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=PARAMS)
def task(request):
    tf.keras.utils.set_random_seed(shifted(7))
    return make(request.param)


# Each family gives the texts of plain calls; one of them does so exported and under XLA, too.
ONE_OF_ALL = pytest.mark.parametrize(
    "task",
    [name if name == "gpt2" else pytest.param(name, marks=pytest.mark.slow) for name in CLASSES],
    indirect=True,
)


@pytest.fixture(scope="module")
def gpt():
    tf.keras.utils.set_random_seed(shifted(7))
    return make("openai-gpt")


@pytest.fixture(scope="module")
def folder(gpt, tmp_path_factory):
    folder = tmp_path_factory.mktemp("generate") / "model"
    gpt.save(folder)
    return folder


def ids_of(prompt):
    (ids,) = Tokenizer.from_vocab(VOCABULARY).tokenize([prompt]).to_list()
    return [VOCABULARY.cls_id, *ids]


def by_task(task, folder):
    """A function of ids to the logits after each, (S, V), by a plain call of the task."""
    specs = {name: tf.TensorSpec([1, None], tf.int32) for name in task.input}
    call = tf.function(lambda inputs: task(inputs, training=False), input_signature=[specs])

    def logits_of(ids):
        row = np.array([[*ids, 0]], "int32")  # nothing is predicted after the last one
        inputs = {"input_ids": row, "input_mask": np.ones_like(row), "segment_ids": 0 * row}
        logits = call({name: inputs[name] for name in task.input})["causal_lm"]
        return np.asarray(logits)[0, :, : len(VOCABULARY)]

    return logits_of


def by_transformers(task, folder):
    """The same by the class of `transformers`, whose own `generate` must be greedy likewise."""
    task.save(folder)
    model = getattr(transformers, CLASSES[task.config.model_type]).from_pretrained(folder).eval()

    def logits_of(ids):
        with torch.no_grad():
            return model(torch.tensor([ids])).logits[0, :, : len(VOCABULARY)].numpy()

    if task.config.model_type != "roberta":  # with a cache its positions begin elsewhere
        for prompt in PROMPTS:
            ids = torch.tensor([ids_of(prompt)])
            generated = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=MAX_TOKENS,
                do_sample=False,
                eos_token_id=VOCABULARY.sep_id,
                pad_token_id=0,
                bad_words_ids=[[number] for number in range(len(VOCABULARY), ROWS)],
            )
            assert generated[0].tolist() == greedy(logits_of, ids_of(prompt))
    return logits_of


def greedy(logits_of, ids):
    """The ids of a prompt and those that follow."""
    longest = len(ids) + MAX_TOKENS
    while len(ids) < longest and ids[-1] != VOCABULARY.sep_id:
        ids = [*ids, int(logits_of(ids)[-1].argmax())]
    return ids


def expected_texts(logits_of, prompts):
    """The greedy ids after each prompt, and log-probabilities."""
    expected = []
    for prompt in prompts:
        ids = greedy(logits_of, ids_of(prompt))
        nats = log_softmax(logits_of(ids).astype("float64"), axis=-1)
        chosen = [nats[n, ids[n + 1]] for n in range(len(ids) - 1)]
        begin = len(ids_of(prompt))
        sums = sum(chosen[begin - 1 :]), sum(chosen[: begin - 1])
        expected.append((ids[begin:], *sums, nats))
    return expected


@pytest.mark.parametrize("by", [by_task, pytest.param(by_transformers, marks=pytest.mark.peers)])
def test_greedy_tokens_and_probabilities_are_those_of_plain_calls(task, by, tmp_path):
    generated = generate(model=task, prompt=PROMPTS, max_tokens=MAX_TOKENS)
    probabilities = log_probability(model=task, text=PROMPTS)
    expected = expected_texts(by(task, tmp_path / "model"), PROMPTS)
    for prompt, one, whole, (ids, nats, nats_of_prompt, logits) in zip(
        PROMPTS, generated, probabilities, expected, strict=True
    ):
        ended = ids[-1] == VOCABULARY.sep_id
        text = VOCABULARY.join([*ids_of(prompt), *ids[: len(ids) - ended]])
        assert VOCABULARY.join(ids_of(prompt)) + one.text == text
        assert one.log_probability == pytest.approx(nats, abs=1e-4)
        assert whole.log_probability == pytest.approx(nats_of_prompt, abs=1e-4)
        assert whole.tokens == len(ids_of(prompt)) - 1
        candidates = next_tokens(model=task, prompt=prompt, top_k=3)
        after = np.exp(logits[len(ids_of(prompt)) - 1])
        best = np.argsort(-after)[:3]
        assert [token for token, _ in candidates] == [VOCABULARY.tokens[id] for id in best]
        np.testing.assert_allclose([p for _, p in candidates], after[best], atol=1e-5)


@ONE_OF_ALL
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"top_p": 0.9, "seed": 3},
        pytest.param({"top_k": 4, "temperature": 2.0}, marks=pytest.mark.slow),
    ],
)
def test_with_xla_the_texts_are_the_same(task, options):
    given = {"model": task, "prompt": PROMPTS, "max_tokens": 12, **options}
    generated, expected = generate(**given, jit_compile=True), generate(**given)
    assert [text.text for text in generated] == [text.text for text in expected]
    for one, other in zip(generated, expected, strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)


def test_each_text_is_as_without_the_others(task):
    generated = generate(model=task, prompt=PROMPTS, max_tokens=6, top_p=0.9, seed=3)
    for number, prompt in enumerate(PROMPTS):
        (alone,) = generate(model=task, prompt=prompt, max_tokens=6, top_p=0.9, seed=3 + number)
        assert alone.text == generated[number].text
        assert alone.log_probability == pytest.approx(generated[number].log_probability, abs=1e-4)


@pytest.mark.slow
def test_an_encoder_without_its_own_prefill_and_positions_generates():
    """A GRU, whose step is given here alone: the contract is enough."""
    tf.keras.utils.set_random_seed(shifted(7))
    task = make("toy")
    with pytest.raises(kb.InputError, match="A toy encoder cannot generate text: it has no step"):
        generate(model=task, prompt="the")
    kind = type(task.encoder)

    def step(self, ids, cache, index):
        x, state = self.gru.cell(self.embedding(ids), [cache])
        return x, state[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "initial_cache", lambda self, n, _: tf.zeros([n, 24]))
        patch.setattr(kind, "step", step)
        generated = generate(model=task, prompt=PROMPTS, max_tokens=30)
        before = log_probability(model=task, text=[prompt for prompt in PROMPTS])
        for prompt, one, first in zip(PROMPTS, generated, before, strict=True):
            assert one.text and "[SEP]" not in one.text
            (whole,) = log_probability(model=task, text=prompt + one.text)
            if whole.tokens - first.tokens == 30:  # else there is [SEP], too
                nats = first.log_probability + one.log_probability
                assert whole.log_probability == pytest.approx(nats, abs=1e-3)


def test_a_full_cache_ends_a_text_and_so_does_max_tokens(gpt):
    gpt.lm_head.token_embedding.embeddings[VOCABULARY.sep_id].assign(np.zeros(24))
    (one,) = generate(model=gpt, prompt="the", max_tokens=1000)
    length = len(ids_of("the" + one.text))
    assert length == 24 or VOCABULARY.join(ids_of(one.text)[1:]) != one.text.strip()
    state = gpt.generator.begin(
        gpt.generator.read(some_inputs(), 24), Sampling.of(1, max_tokens=3, top_k=1)
    )
    sampling = Sampling.of(1, max_tokens=3, top_k=1)
    tokens, state = gpt.generator.proceed(state, sampling, 100)
    assert tokens.shape == (100, 1) and bool(state.has_ended[0])
    assert np.flatnonzero(tokens.numpy() >= 0).tolist() == [0, 1]


def some_inputs():
    ids = tf.constant([ids_of("the")])
    return {"input_ids": ids, "input_mask": tf.ones_like(ids)}


@pytest.mark.peers
@pytest.mark.parametrize(
    "options",
    [{}, {"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.7}, {"top_k": 6, "top_p": 0.8}],
    ids=str,
)
def test_tokens_are_drawn_with_the_probabilities_of_transformers(gpt, options):
    process = pytest.importorskip("transformers").generation.logits_process
    draws = 20000
    logits = gpt.generator.logits(gpt.generator.read(some_inputs(), 24).last) * 3
    scores = torch.tensor(logits.numpy())
    for name, kind in (
        ("temperature", process.TemperatureLogitsWarper),
        ("top_k", process.TopKLogitsWarper),
        ("top_p", process.TopPLogitsWarper),
    ):
        if name in options:
            scores = kind(options[name])(None, scores)
    expected = torch.softmax(scores.double(), dim=-1).numpy()[0]
    generator = Generator(gpt, compiled=False)
    generator.logits = lambda hidden: tf.repeat(logits, draws, axis=0)
    sampling = Sampling.of(draws, max_tokens=2, **options)
    choose = tf.function(lambda: generator._choose(None, sampling, number=5), autograph=False)
    tokens, nats = choose()
    frequencies = np.bincount(tokens, minlength=len(expected)) / draws
    np.testing.assert_allclose(frequencies, expected, atol=0.015)
    assert not frequencies[expected == 0].any()
    log_probabilities = torch.log_softmax(torch.tensor(logits.numpy()[0]), dim=-1).numpy()
    np.testing.assert_allclose(nats, log_probabilities[tokens.numpy()], atol=1e-5)


def test_the_lowest_temperature_is_greedy_and_the_largest_seed_draws(gpt):
    greedy = generate(model=gpt, prompt=PROMPTS, max_tokens=6)
    coldest = generate(model=gpt, prompt=PROMPTS, max_tokens=6, temperature=2e-38)
    assert [text.text for text in coldest] == [text.text for text in greedy]
    drawn = generate(model=gpt, prompt=PROMPTS, max_tokens=6, top_p=0.9, seed=2**32 - 1)
    alone = generate(model=gpt, prompt=PROMPTS[0], max_tokens=6, top_p=0.9, seed=2**32 - 1)
    assert drawn[0].text == alone[0].text
    after = generate(model=gpt, prompt=PROMPTS[1], max_tokens=6, top_p=0.9, seed=0)
    assert drawn[1].text == after[0].text


def test_a_text_appears_as_it_is_generated(gpt):
    (expected,) = generate(model=gpt, prompt="the plan", max_tokens=20)
    shown = []
    (generated,) = generate(model=gpt, prompt="the plan", max_tokens=20, on_text=shown.append)
    assert generated == expected and "".join(shown) == expected.text
    assert len(shown) > 1 or len(expected.text.split()) < 9


@ONE_OF_ALL
def test_the_export_answers_as_python_does(task, tmp_path):
    version = export_of(task, tmp_path)
    signatures = tf.saved_model.load(str(version)).signatures
    outputs = signatures["serving_default"](prompt=tf.constant(PROMPTS))
    texts = generate(model=task, prompt=PROMPTS, max_tokens=32)
    for number, (prompt, text) in enumerate(zip(PROMPTS, texts, strict=True)):
        assert outputs["text"][number].numpy().decode() == text.text
        candidates = next_tokens(model=task, prompt=prompt)
        assert [name.decode() for name in outputs["candidates"][number].numpy()] == [
            token for token, _ in candidates
        ]
        expected = [p for _, p in candidates]
        np.testing.assert_allclose(outputs["probabilities"][number], expected, atol=1e-5)
    expected = [score.log_probability for score in log_probability(model=task, text=PROMPTS)]
    np.testing.assert_allclose(outputs["log_probability"], expected, atol=1e-4)
    rows = tf.ragged.constant([ids_of(prompt) for prompt in PROMPTS], dtype=tf.int32)
    inputs = {"input_ids": rows.to_tensor(), "input_mask": tf.ones_like(rows).to_tensor()}
    if "segment_ids" in task.encoder.input_names:
        inputs["segment_ids"] = tf.zeros_like(inputs["input_ids"])
    outputs_of_ids = signatures["ids"](**inputs)
    assert outputs_of_ids["text"].numpy().tolist() == outputs["text"].numpy().tolist()
    drawn = generate(model=task, prompt=PROMPTS, max_tokens=6, temperature=0.8, top_k=9, seed=2)
    outputs = signatures["generate"](
        prompt=tf.constant(PROMPTS),
        max_tokens=tf.fill([4], 6),
        temperature=tf.fill([4], 0.8),
        top_k=tf.fill([4], 9),
        top_p=tf.fill([4], 1.0),
        seed=tf.range(2, 6),
    )
    assert [text.decode() for text in outputs["text"].numpy()] == [sample.text for sample in drawn]
    np.testing.assert_allclose(
        outputs["log_probability"], [sample.log_probability for sample in drawn], atol=1e-4
    )
    most = task.config.max_length - 1
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"may have at most {most} tokens"):
        signatures["serving_default"](prompt=tf.constant(["the " * 23]))


def export_of(task, tmp_path):
    task.save(tmp_path / "model")
    return export(model=tmp_path / "model", output=tmp_path / "served")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": 0.0}, "`temperature` must be above 0. Received: 0.0."),
        ({"temperature": -1.0}, "`temperature` must be above 0. Received: -1.0."),
        ({"top_k": 0}, "`top_k` must be at least 1. Received: 0."),
        ({"top_p": 1.5}, "`top_p` must be at most 1. Received: 1.5."),
        (
            {"temperature": 1e-38},
            "`temperature` is too small for a float32. Expected 0, or 1.2e-38",
        ),
        ({"top_k": 2**32 + 1}, "`top_k` must be at most 2147483647. Received: 4294967297."),
        ({"max_tokens": 0}, "`max_tokens` must be at least 1. Received: 0."),
        (
            {"prompt": "the " * 23},
            "The prompt that begins with 'the the the the the ' has 24 tokens, and the model has "
            "positions for 23. Pass a shorter prompt.",
        ),
        ({"prompt": ["a", "b"], "on_text": print}, "`on_text` is for a single prompt. Pass one"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
def test_bad_input_is_one_sentence(gpt, given, message):
    with pytest.raises(kb.InputError) as raised:
        generate(**{"model": gpt, "prompt": "the plan", **given})
    assert str(raised.value).startswith(message)


def test_a_model_of_another_task_is_one_sentence(gpt, folder, tmp_path):
    bert = make("bert").encoder
    masked = kb.FillMask(bert.rebuilt(is_decoder=False), gpt.tokenizer)
    masked.save(tmp_path / "masked")
    with pytest.raises(kb.InputError, match="contains a masked LM, which fills .MASK. and cannot"):
        generate(model=tmp_path / "masked", prompt="the")
    with pytest.raises(kb.InputError, match="contains a causal LM, which predicts the next token"):
        kb.fill_mask(model=folder, text="the [MASK]")
    classifier = kb.Classifier(gpt.encoder, gpt.tokenizer, labels=["a", "b"])
    with pytest.raises(kb.InputError, match="the task classifier, which has no language-model"):
        generate(model=classifier, prompt="the")


@pytest.mark.usefixtures("eager")
def test_the_command(gpt, folder, capsys):
    (expected,) = generate(model=gpt, prompt="The plan", max_tokens=9)
    command = ["generate", "--model", str(folder), "--prompt", "The plan"]
    assert main([*command, "--max-tokens", "9", "--quiet"]) == 0
    assert capsys.readouterr().out == f"The plan{expected.text}\n"
    assert main([*command, "to", "--top-p", "0.9", "--max-tokens", "4", "--quiet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main([*command, "--candidates", "--top-k", "2", "--quiet"]) == 0
    (first, second) = next_tokens(model=gpt, prompt="the plan", top_k=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[1:]] == [first.token, second.token]
    assert main([*command, "--log-probability", "--quiet"]) == 0
    (score,) = log_probability(model=gpt, text="the plan")
    assert capsys.readouterr().out.split()[0] == f"{score.log_probability:.4f}"
    assert main([*command, "--candidates", "--jit-compile"]) == 2
    message = "keras-bert: --jit-compile has no effect with --candidates. Leave it out.\n"
    assert capsys.readouterr().err == message
    assert main([*command, "--log-probability", "--top-k", "2"]) == 2
    message = "keras-bert: --top-k has no effect with --log-probability. Leave it out.\n"
    assert capsys.readouterr().err == message
    assert main([*command, "--temperature", "0"]) == 2
    assert capsys.readouterr().err == "keras-bert: --temperature must be above 0. Received: 0.0.\n"
