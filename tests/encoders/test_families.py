"""The families of Transformers as data, and what holds for each of them."""

import dataclasses
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.base import rename
from keras_bert.base.errors import InputError
from keras_bert.checkpoints import load, load_task
from keras_bert.checkpoints.convert import convert
from keras_bert.checkpoints.model_folder import to_hugging_face
from keras_bert.encoders import ENCODERS, new_encoder, read_config
from tests.messages import raises_input_error
from tests.peers import torch, transformers
from tests.seeds import make_rng, shifted

HEADS = (
    *("MaskedLM", "SequenceClassification", "TokenClassification"),
    *("QuestionAnswering", "MultipleChoice"),
)


@dataclasses.dataclass(frozen=True)
class Family:
    """A `model_type` of `transformers`.

    Attributes:
        name: the beginning of the names of its classes.
        config: a small config, by its own keys.
        other: what another config has in place of that, every option changed.
        heads: what follows "For" in the names of its classes that are tasks here.
        encoders: the same of classes that are encoders here.
    """

    name: str
    config: Mapping
    other: Mapping
    heads: tuple = HEADS
    encoders: tuple = ()


_BERT = {
    "vocab_size": 31,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 20,
}
_OTHER = {"hidden_act": "relu", "num_attention_heads": 1, "num_hidden_layers": 1}
FAMILIES = {
    "bert": Family(
        name="Bert",
        config=_BERT,
        other={**_OTHER, "layer_norm_eps": 1e-3, "type_vocab_size": 3},
    ),
    "roberta": Family(
        name="Roberta",
        config={**_BERT, "type_vocab_size": 1},
        other={"hidden_act": "gelu", "num_attention_heads": 1, "pad_token_id": 3},
    ),
    "xlm-roberta": Family(
        name="XLMRoberta",
        config={**_BERT, "type_vocab_size": 1},
        other={"hidden_act": "gelu", "num_attention_heads": 1, "pad_token_id": 3},
    ),
    "camembert": Family(
        name="Camembert",
        config={**_BERT, "type_vocab_size": 1},
        other={"hidden_act": "gelu", "num_attention_heads": 1, "pad_token_id": 3},
    ),
    "distilbert": Family(
        name="DistilBert",
        config={
            "vocab_size": 31,
            "dim": 24,
            "n_layers": 2,
            "n_heads": 3,
            "hidden_dim": 20,
            "max_position_embeddings": 16,
        },
        other={
            **{"activation": "relu", "n_heads": 1, "n_layers": 1},
            **{"dropout": 0.05, "seq_classif_dropout": 0.3, "qa_dropout": 0.4},
        },
    ),
    "electra": Family(
        name="Electra",
        config={**_BERT, "embedding_size": 12},
        other={
            **{**_OTHER, "embedding_size": 24, "layer_norm_eps": 1e-3, "type_vocab_size": 1},
            **{"classifier_dropout": 0.3, "summary_last_dropout": 0.4},
        },
        encoders=("PreTraining",),
    ),
    "mpnet": Family(
        name="MPNet",
        config=_BERT,
        other={**_OTHER, "layer_norm_eps": 1e-3, "max_position_embeddings": 160},
    ),
    "albert": Family(
        name="Albert",
        config={**_BERT, "embedding_size": 12},
        other={
            **{**_OTHER, "embedding_size": 24, "layer_norm_eps": 1e-3, "type_vocab_size": 1},
            "classifier_dropout_prob": 0.3,
        },
        heads=(*HEADS, "PreTraining"),
    ),
    "deberta-v2": Family(
        name="DebertaV2",
        config={
            **_BERT,
            "max_position_embeddings": 16,
            "position_buckets": 4,
            "relative_attention": True,
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
            "pos_att_type": ["p2c", "c2p"],
        },
        other={
            **{**_OTHER, "layer_norm_eps": 1e-3, "pooler_hidden_act": "relu", "legacy": False},
            **{"position_biased_input": True, "type_vocab_size": 2, "pos_att_type": ["c2p"]},
            **{"position_buckets": -1, "max_relative_positions": 6, "cls_dropout": 0.3},
        },
    ),
    "modernbert": Family(
        name="ModernBert",
        config={
            **_BERT,
            "num_hidden_layers": 4,
            "local_attention": 4,
            "classifier_pooling": "mean",
            "pad_token_id": 2,
        },
        other={
            **{"hidden_activation": "relu", "num_attention_heads": 1, "norm_eps": 1e-3},
            **{"attention_bias": True, "mlp_bias": True, "norm_bias": True},
            **{"classifier_bias": True, "classifier_pooling": "cls"},
            **{"classifier_dropout": 0.3, "embedding_dropout": 0.2, "mlp_dropout": 0.1},
            **{"decoder_bias": False, "classifier_activation": "relu", "num_hidden_layers": 2},
            "max_position_embeddings": 160,
            "layer_types": ["sliding_attention", "full_attention"],
            "rope_parameters": {
                "full_attention": {"rope_theta": 100.0, "rope_type": "default"},
                "sliding_attention": {"rope_theta": 7.0, "rope_type": "default"},
            },
        },
    ),
}
WITH_HEADS = [(name, head) for name, family in FAMILIES.items() for head in family.heads]
_TYPES = ("full_attention", "sliding_attention")
LABELS = ["good", "bad", "odd"]
OUTPUTS = {"masked_lm": "prediction_logits", "sentence_order": "sop_logits"}
LENGTHS = (9, 5, 2)


def config_of(family, *, other=False):
    return {**FAMILIES[family].config, **(FAMILIES[family].other if other else {})}


def small_encoder(family, **options):
    """An encoder with large random weights."""
    config = read_config({"model_type": family, **config_of(family, **options)}, source="x")
    encoder, rng = new_encoder(config), make_rng(3)
    for weight in encoder.trainable_weights:
        weight.assign(rng.normal(size=weight.shape, scale=0.3))
    return encoder


def batch(config, *, lengths=LENGTHS):
    """Inputs of an encoder by name, padded with the id of padding."""
    rng = make_rng(7)
    shape = (len(lengths), max(lengths))
    mask = (np.arange(shape[1]) < np.array(lengths)[:, None]).astype("int32")
    ids = rng.integers(5, config.vocab_size, shape)
    segments = rng.integers(0, max(1, config.num_segments), shape) * mask
    return {
        "input_ids": np.where(mask, ids, config.pad_token_id).astype("int32"),
        "input_mask": mask,
        "segment_ids": segments.astype("int32"),
    }


def test_every_transformer_is_a_family():
    others = {"openai-gpt", "gpt2", "awd-lstm", "bilm", "static"}
    assert set(FAMILIES) == set(ENCODERS) - others


def test_an_unknown_family_is_rejected_with_the_list_of_those_there_are():
    with pytest.raises(InputError, match="'longformer' model.*: bert, roberta, distilbert"):
        read_config({"model_type": "longformer"}, source="config.json")


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_counted_without_making_them(family):
    for other in (False, True):
        encoder = small_encoder(family, other=other)
        assert encoder.count_params() == encoder.config.parameter_count()
        groups = [w.path for group in encoder.layer_groups for x in group for w in x.weights]
        assert sorted(groups) == sorted({weight.path for weight in encoder.weights})


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("other", [False, True])
def test_a_packed_row_is_computed_as_its_sequences(family, other):
    """Distances and positions start at 0 in each sequence, too."""
    encoder = small_encoder(family, other=other)
    inputs = batch(encoder.config)
    is_token = inputs["input_mask"] > 0
    packed = {name: inputs[name][is_token][None] for name in encoder.input_names}
    del packed["input_mask"]
    packed["sequence_ids"] = np.repeat([1, 2, 3], LENGTHS)[None].astype("int32")
    padded = encoder({name: inputs[name] for name in encoder.input_names})
    expected = np.asarray(padded["sequence_output"])[is_token]
    packed_output = np.asarray(encoder(packed)["sequence_output"])[0]
    np.testing.assert_allclose(packed_output, expected, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_token_is_read_by_default_where_something_has_trained_it(family):
    encoder = small_encoder(family)
    by_config = {"modernbert": "mean"}
    assert encoder.default_pooling == by_config.get(family, "cls")
    encoder.came_with_pooler = False
    assert encoder.default_pooling == "mean"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_token_alone_is_computed_as_with_all_others(family):
    encoder = small_encoder(family)
    inputs = batch(encoder.config)
    inputs = {name: inputs[name] for name in encoder.input_names}
    first = encoder(inputs, outputs=("first_output",))["first_output"]
    every = encoder(inputs)["sequence_output"]
    np.testing.assert_allclose(np.asarray(first), np.asarray(every)[:, 0], atol=1e-5, rtol=0)

    any_shape = {name: tf.TensorSpec([None, None], tf.int32) for name in inputs}

    @tf.function(input_signature=[any_shape], autograph=False)
    def in_a_graph(inputs):
        return encoder(inputs, outputs=("first_output",))["first_output"]

    in_graph = in_a_graph({name: tf.constant(array) for name, array in inputs.items()})
    np.testing.assert_allclose(in_graph, first, atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="NOT TESTED: jax is not installed"
)
def test_jax_computes_states_and_gradients_as_tensorflow(tmp_path):
    import tensorflow as tf

    expected = {}
    for family in FAMILIES:
        encoder = small_encoder(family)
        np.savez(tmp_path / f"{family}.npz", *encoder.get_weights())
        inputs = batch(encoder.config)
        is_token = inputs["input_mask"] > 0
        directions = mean_directions(is_token, (encoder.config.hidden_size,))
        with tf.GradientTape() as tape:
            states = encoder({n: inputs[n] for n in encoder.input_names})["sequence_output"]
            total = tf.reduce_sum(states * directions)
        gradients = tape.gradient(total, [w.value for w in encoder.trainable_weights])
        arrays = [states.numpy()[is_token], *(tf.convert_to_tensor(x).numpy() for x in gradients)]
        expected[family] = arrays
    command = [sys.executable, "-m", "tests.encoders.families_on_jax", str(tmp_path)]
    run = subprocess.run(
        command,
        # (Most of the time goes into compiling.)
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "XLA_FLAGS": "--xla_backend_optimization_level=0",
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    for family, arrays in expected.items():
        with np.load(tmp_path / f"{family}.npz") as file:
            for number, array in enumerate(arrays):
                jax_array = file[f"arr_{number}"]
                np.testing.assert_allclose(jax_array, array, atol=1e-5, rtol=0, err_msg=family)


@pytest.mark.parametrize(
    "family, change, message",
    [
        ("distilbert", {"sinusoidal_pos_embds": True}, "sinusoidal_pos_embds = True"),
        ("distilbert", {"n_heads": 5}, r"`hidden_size` (`dim` in config.json) must be a multiple"),
        ("electra", {"summary_type": "mean"}, "summary_type = 'mean'"),
        ("electra", {"is_decoder": True}, "is_decoder = True"),
        ("electra", {"embedding_size": 0}, "`embedding_size` must be at least 1"),
        ("mpnet", {"relative_attention_num_buckets": 16}, "must be 32. Received"),
        ("mpnet", {"max_position_embeddings": 2}, "must be above the position offset"),
        ("albert", {"num_hidden_groups": 2}, "`num_hidden_groups` must be 1"),
        ("deberta-v2", {"conv_kernel_size": 3}, "conv_kernel_size = 3"),
        ("deberta-v2", {"share_att_key": False}, "`share_att_key` must be true"),
        ("deberta-v2", {"relative_attention": False}, "`relative_attention` must be true"),
        ("deberta-v2", {"norm_rel_ebd": "none"}, "`norm_rel_ebd` must be 'layer_norm'"),
        ("deberta-v2", {"pos_att_type": "c2p|p2p"}, "`pos_att_type` must be 'c2p' or 'p2c'"),
        ("deberta-v2", {"embedding_size": 12}, "`embedding_size` must be the hidden size"),
        ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "'yarn'"),
        ("modernbert", {"layer_types": ["full_attention"]}, "for each of 4 layers"),
        ("modernbert", {"num_attention_heads": 8}, "heads of an even size"),
        ("modernbert", {"global_attn_every_n_layers": 0}, "must be at least 1"),
        ("modernbert", {"classifier_pooling": "max"}, "must be 'cls' or 'mean'"),
    ],
)
def test_what_a_family_cannot_compute_is_rejected(family, change, message):
    with raises_input_error(message):
        read_config({"model_type": family, **config_of(family), **change}, source="config.json")


# Beside `transformers`.


def reference_model(family, head, **options):
    """A model of `transformers` with large random weights."""
    kind = getattr(transformers, FAMILIES[family].name + (f"For{head}" if head else "Model"))
    config = kind.config_class(**config_of(family, **options))
    if head.endswith("Classification"):
        config.id2label = dict(enumerate(LABELS))
    torch.manual_seed(shifted(1))
    model = kind._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.3)
    return model


def their_inputs(inputs, *, names):
    keys = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    return {keys.get(k, k): torch.tensor(inputs[k]).long() for k in names}


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:.* has no tokenizer")
@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_states_and_gradients_are_those_of_transformers(family, other, tmp_path):
    import tensorflow as tf

    reference = reference_model(family, "", other=other)
    reference.save_pretrained(tmp_path / "model")
    if family == "bert":
        with_vocabulary(tmp_path / "model")
    encoder, _ = load(tmp_path / "model")
    lengths = (150, 40, 2) if encoder.config.max_position_embeddings == 160 else LENGTHS
    inputs = batch(encoder.config, lengths=lengths)
    is_token = inputs["input_mask"] > 0
    directions = mean_directions(is_token, (24,))
    expected = reference(
        **their_inputs(inputs, names=encoder.input_names), output_hidden_states=True
    )
    (expected.last_hidden_state * torch.tensor(directions)).sum().backward()
    with tf.GradientTape() as tape:
        outputs = encoder(
            {name: inputs[name] for name in encoder.input_names},
            outputs=("sequence_output", "hidden_states"),
        )
        total = tf.reduce_sum(outputs["sequence_output"] * directions)
    gradients = tape.gradient(total, [w.value for w in encoder.trainable_weights])
    for state, other_state in zip(outputs["hidden_states"], expected.hidden_states, strict=True):
        np.testing.assert_allclose(
            np.asarray(state)[is_token], other_state.detach().numpy()[is_token], atol=1e-5, rtol=0
        )
    for weight, gradient in zip(encoder.trainable_weights, gradients, strict=True):
        weight.assign(tf.convert_to_tensor(gradient))
    names = encoder.tensor_names(encoder.config)
    ours = rename.gather(encoder, names.table(), sizes=names.sizes)
    check_gradients(ours, reference, encoder)


def mean_directions(is_token, size):
    """Random numbers, 0 at padding, for a mean over tokens of what they are multiplied by."""
    directions = make_rng(1).normal(size=(*is_token.shape, *size))
    directions *= is_token.reshape(*is_token.shape, *(1 for _ in size))
    return (directions / is_token.sum()).astype("float32")


def check_gradients(ours, reference, encoder):
    """Our gradients, by the names of tensors, are those of the model's parameters."""
    parameters = reference.named_parameters(remove_duplicate=False)
    their_gradients = {name: x.grad for name, x in parameters if x.grad is not None}
    # A tied weight has several names.
    assert (
        their_gradients.keys() - encoder.tensor_names(encoder.config).copies.keys() == ours.keys()
    )
    pad = encoder.config.pad_token_id
    for name, gradient in ours.items():
        wanted = their_gradients[name].numpy()
        if re.search(r"(position|word|tok)_embeddings\.weight$", name):
            wanted[pad] = gradient[pad] = 0  # PyTorch does not train the row of padding
        size = np.abs(wanted).max()
        np.testing.assert_allclose(
            gradient, wanted, atol=min(1e-5, 2e-5 * size + 1e-6), rtol=0, err_msg=name
        )


def check_dropout(task, reference):
    """Before the last layer, in training, it is that of the class."""
    head_dropouts = {
        module.p
        for name, module in reference.named_modules()
        if isinstance(module, torch.nn.Dropout)
        and not name.startswith(f"{reference.base_model_prefix}.")
    }
    assert head_dropouts - {0.0} == ({task.dropout.rate} if task.dropout else set()) - {0.0}


def with_vocabulary(folder):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(26))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:.* has no tokenizer")
@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("family, head", WITH_HEADS)
def test_a_head_computes_what_its_class_does_and_keeps_every_bit(family, head, other, tmp_path):
    import tensorflow as tf

    reference = reference_model(family, head, other=other)
    reference.save_pretrained(tmp_path / "theirs")
    if family == "bert":
        with_vocabulary(tmp_path / "theirs")
    task = load_task(tmp_path / "theirs")
    inputs = batch(task.config)
    is_token = inputs["input_mask"] > 0
    names = task.encoder.input_names
    given = {**inputs, "masked_lm_positions": np.tile(np.arange(9, dtype="int32"), (3, 1))}
    if head == "MultipleChoice":
        given = {name: x[None] for name, x in inputs.items()}
    if head in HEADS:
        check_dropout(task, reference)
    expected = reference(**their_inputs(given, names=names))
    weights = task.trainable_weights
    with tf.GradientTape() as tape:
        outputs = task({name: given[name] for name in task.input})
        totals = []
        for name, output in outputs.items():
            names_of_output = (name, OUTPUTS.get(name), "logits")
            wanted = next(expected[key] for key in names_of_output if key in expected)
            is_per_token = tuple(output.shape[:2]) == is_token.shape
            chosen = is_token if is_per_token else np.ones(output.shape[:1], bool)
            directions = mean_directions(chosen, tuple(output.shape[chosen.ndim :]))
            totals.append(tf.reduce_sum(output * directions))
            (wanted * torch.tensor(directions)).sum().backward(retain_graph=True)
            output, wanted = np.asarray(output)[chosen], wanted.detach().numpy()[chosen]
            np.testing.assert_allclose(output, wanted, atol=1e-5, rtol=0, err_msg=name)
        total = tf.add_n(totals)
    gradients = tape.gradient(total, [weight.value for weight in weights])
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.assign(tf.convert_to_tensor(gradient))
    _, ours = to_hugging_face(task)
    check_gradients(ours, reference, task.encoder)
    done = convert(tmp_path / "theirs", tmp_path / "ours")
    class_name = type(reference).__name__
    assert done == {"found": "huggingface", "wrote": class_name, "left_out": []}
    again, info = type(reference).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    for key, tensor in reference.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[key]), key
    written = json.loads((tmp_path / "ours" / "config.json").read_text())
    for key, value in config_of(family, other=other).items():
        assert written[key] == value, key


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:.* has no tokenizer")
@pytest.mark.parametrize(
    "family, head", [(name, head) for name, one in FAMILIES.items() for head in one.encoders]
)
def test_a_class_that_is_no_task_here_is_an_encoder(family, head, tmp_path):
    reference = reference_model(family, head)
    reference.save_pretrained(tmp_path / "model")
    encoder, _ = load(tmp_path / "model")
    inputs = batch(encoder.config)
    with torch.no_grad():
        base = reference.base_model(**their_inputs(inputs, names=encoder.input_names))
    output = encoder({name: inputs[name] for name in encoder.input_names})["sequence_output"]
    is_token = inputs["input_mask"] > 0
    np.testing.assert_allclose(
        np.asarray(output)[is_token], base.last_hidden_state.numpy()[is_token], atol=1e-5, rtol=0
    )
    whose = "whose head is not supported. Fine-tune its encoder first. Supported heads"
    with raises_input_error("has no folder generator" if head == "PreTraining" else whose):
        load_task(tmp_path / "model")


@pytest.mark.peers
def test_a_config_of_modernberts_first_generation_is_the_same_there_and_back():
    fields = {
        **config_of("modernbert"),
        **{"global_attn_every_n_layers": 2, "global_rope_theta": 100.0, "local_rope_theta": 7.0},
    }
    ours = read_config({"model_type": "modernbert", **fields}, source="x")
    assert fields.items() <= ours.to_dict().items()
    their_config = transformers.ModernBertConfig(**fields)
    written = transformers.ModernBertConfig(**ours.to_dict())
    for config in (their_config, written):
        assert tuple(config.layer_types) == ours.layer_types
        thetas = [config.rope_parameters[kind]["rope_theta"] for kind in sorted(_TYPES)]
        assert thetas == [ours.global_rope_theta, ours.local_rope_theta]
    second_config = read_config(their_config.to_dict(), source="x")
    assert dataclasses.replace(second_config, global_attn_every_n_layers=2) == ours


@pytest.mark.peers
@pytest.mark.parametrize("count, farthest", [(256, 512), (4, 16), (32, 100)])
def test_debertas_distances_share_buckets_as_in_transformers(count, farthest):
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    config = {**config_of("deberta-v2"), "position_buckets": count}
    config |= {"max_position_embeddings": farthest, "model_type": "deberta-v2"}
    positions = new_encoder(read_config(config, source="x")).positions
    distances = torch.arange(-2 * farthest, 2 * farthest + 1)
    their_buckets = make_log_bucket_position(distances, count, farthest).long() + count
    our_buckets = np.asarray(positions.bucket(distances.numpy()))
    np.testing.assert_array_equal(our_buckets, their_buckets.clamp(0, 2 * count - 1).numpy())


@pytest.mark.peers
@pytest.mark.parametrize("family", FAMILIES)
def test_the_defaults_of_missing_keys_are_those_of_transformers(family):
    config = getattr(transformers, f"{FAMILIES[family].name}Config")(**config_of(family))
    ours = read_config({"model_type": family, **config_of(family)}, source="x")
    for key, name in type(ours).fields_by_key().items():
        if hasattr(config, key) and not isinstance(getattr(config, key), list):
            assert getattr(ours, name) == getattr(config, key), key
    assert read_config(config.to_dict(), source="x") == ours
