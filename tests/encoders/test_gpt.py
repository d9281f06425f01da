"""OpenAI GPT and GPT-2 against `transformers`, with random weights."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

import keras_bert as kb
from keras_bert.checkpoints import load, load_task
from keras_bert.encoders import new_encoder, read_config
from keras_bert.encoders.encoder import Encoder
from tests.peers import torch, transformers
from tests.seeds import make_rng, shifted

SIZES = {"vocab_size": 41, "n_positions": 16, "n_embd": 24, "n_layer": 3, "n_head": 3}
NAMES = {"openai-gpt": "OpenAIGPT", "gpt2": "GPT2"}
RNG = make_rng(5)


@pytest.fixture(scope="module", params=NAMES)
def their_model(request, tmp_path_factory):
    """A random model with a head, and its folder as `transformers` writes it."""
    torch.manual_seed(shifted(3))
    config = getattr(transformers, f"{NAMES[request.param]}Config")(**SIZES)
    model = getattr(transformers, f"{NAMES[request.param]}LMHeadModel")(config).eval()
    with torch.no_grad():  # so that no weight is 0 or 1
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    folder = tmp_path_factory.mktemp("theirs") / request.param
    model.save_pretrained(folder)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = [*special, *(f"w{number}" for number in range(36))]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    return model, folder


@pytest.fixture(scope="module", params=NAMES)
def encoder(request):
    encoder = new_encoder(read_config({"model_type": request.param, **SIZES}, source="x"))
    for weight in encoder.trainable_weights:  # so that no weight is 0 or 1
        weight.assign_add(RNG.normal(size=weight.shape) * 0.1)
    return encoder


@pytest.fixture(scope="module")
def batch():
    ids = RNG.integers(0, 41, (3, 9)).astype("int32")
    mask = (np.arange(9) < np.array([9, 6, 2])[:, None]).astype("int32")
    return {"input_ids": ids, "input_mask": mask}


@pytest.mark.peers
def test_hidden_states_and_attention(their_model, batch):
    model, folder = their_model
    encoder, _ = load(folder)
    ours = encoder(batch, outputs=["hidden_states", "attention_probabilities"])
    tensors = {"input_ids": torch.tensor(batch["input_ids"]).long()}
    tensors["attention_mask"] = torch.tensor(batch["input_mask"]).long()
    model.transformer.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model.transformer(**tensors, output_hidden_states=True, output_attentions=True)
    at = batch["input_mask"].astype(bool)
    assert len(ours["hidden_states"]) == len(expected.hidden_states) == 4
    for mine, other in zip(ours["hidden_states"], expected.hidden_states, strict=True):
        np.testing.assert_allclose(np.asarray(mine)[at], other.numpy()[at], atol=1e-5)
    for mine, other in zip(ours["attention_probabilities"], expected.attentions, strict=True):
        mine, other = (np.moveaxis(np.asarray(x), 1, 2)[at] for x in (mine, other.numpy()))
        np.testing.assert_allclose(mine, other, atol=1e-5)


@pytest.mark.peers
def test_next_token_logits_and_back(their_model, batch, tmp_path):
    model, folder = their_model
    task = load_task(folder)
    assert isinstance(task, kb.CausalLM)
    full = {**batch, "input_mask": np.ones_like(batch["input_mask"])}
    logits = np.asarray(task(full)["causal_lm"])
    with torch.no_grad():
        expected = model(torch.tensor(batch["input_ids"]).long()).logits.numpy()
    np.testing.assert_allclose(logits, expected[:, :-1], atol=2e-5)
    task.save(tmp_path / "ours")
    again, info = type(model).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name]), name


def test_a_step_at_a_time_is_the_whole_sequence(encoder, batch):
    full = {**batch, "input_mask": np.ones_like(batch["input_mask"])}
    expected = np.asarray(encoder(full)["sequence_output"])
    cache = encoder.initial_cache(3, 12)
    # The sequences begin at different steps: each has an index of its own.
    delays = np.array([0, 2, 1])
    states = np.zeros_like(expected)
    for step in range(9 + 2):
        index = np.clip(step - delays, 0, 8)
        x, new = encoder.step(batch["input_ids"][np.arange(3), index], cache, ops.array(index))
        begun = (step >= delays)[:, None, None, None]
        keep_old = functools.partial(ops.where, begun)
        cache = keras.tree.map_structure(keep_old, new, cache)
        for row in range(3):
            if 0 <= step - delays[row] < 9:
                states[row, step - delays[row]] = np.asarray(x)[row]
    np.testing.assert_allclose(states, expected, atol=1e-5)


def test_prefill_is_as_many_steps(encoder, batch):
    states, cache = encoder.prefill(batch, 12)
    by_steps, cache_by_steps = Encoder.prefill(encoder, batch, 12)
    last = batch["input_mask"].sum(axis=1)
    for row, length in enumerate(last):
        np.testing.assert_allclose(states[row, :length], by_steps[row, :length], atol=1e-5)
    ids = ops.array([3, 4, 5])
    (one, _), (other, _) = (encoder.step(ids, filled, last) for filled in (cache, cache_by_steps))
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.peers
def test_gradients(their_model, batch):
    """The gradients of the sum of squares of all logits, by each weight."""
    import tensorflow as tf

    model, folder = their_model
    task = load_task(folder)
    full = {**batch, "input_mask": np.ones_like(batch["input_mask"])}
    with tf.GradientTape() as tape:
        loss = ops.sum(task(full, training=False)["causal_lm"] ** 2)
    gradients = tape.gradient(loss, [w.value for w in task.trainable_weights])
    model.zero_grad()
    (model(torch.tensor(batch["input_ids"]).long()).logits[:, :-1] ** 2).sum().backward()
    ours = dict(zip([w.path for w in task.trainable_weights], gradients, strict=True))
    their_parameters = dict(model.transformer.named_parameters())
    norms = sorted(float(np.linalg.norm(g)) for g in ours.values())
    expected = sorted(float(p.grad.norm()) for p in their_parameters.values())
    np.testing.assert_allclose(norms, expected, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_config(name):
    config = read_config({"model_type": name, **SIZES}, source="x")
    encoder = new_encoder(config)
    assert encoder.count_params() == config.parameter_count()
    weight_ids = {id(w) for group in encoder.layer_groups for layer in group for w in layer.weights}
    assert weight_ids == {id(w) for w in encoder.weights}
    assert config.to_dict() == type(config).from_dict(config.to_dict()).to_dict()
    copy = type(encoder).from_config(encoder.get_config())
    assert copy.config == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_head": 5}, r"\(`n_embd` in config.json\) must be a multiple of `num_attention_heads`"),
        ({"n_layer": 0}, r"\(`n_layer` in config.json\) must be at least 1"),
        ({"attn_pdrop": 1.0}, r"\(`attn_pdrop` in config.json\) must be in \[0, 1\)"),
        ({"add_cross_attention": True}, "add_cross_attention = True, which this encoder cannot"),
    ],
)
def test_what_no_config_can_have(changes, message):
    with pytest.raises(kb.InputError, match=message):
        read_config({"model_type": "openai-gpt", **SIZES, **changes}, source="x")
