"""Replaced-token detection: sampling, metrics, a step beside transformers, folders."""

import keras
import numpy as np
import pytest
import sklearn.metrics
import tensorflow as tf

from keras_bert import ReplacedTokenPretrainer
from keras_bert.base.errors import InputError
from keras_bert.base.files import read_json
from keras_bert.checkpoints import load, load_task, save_folder
from keras_bert.checkpoints.model_folder import to_hugging_face
from keras_bert.encoders import new_encoder, read_config
from keras_bert.heads.lm_head import LMHead
from keras_bert.records import DataFolder
from keras_bert.tasks.pretraining.replaced_tokens import (
    DRAW_BITS,
    Discriminator,
    ReplacedTokens,
    sampled_tokens,
)
from keras_bert.text.tokenizer import Tokenizer
from tests.encoders.test_families import FAMILIES, config_of
from tests.layer_checks import check_layer
from tests.peers import torch, transformers
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.seeds import make_rng, shifted

SIZES = {
    "vocab_size": len(VOCABULARY),
    "embedding_size": 12,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def make(model_type="electra", *, tokenizer=True, **options):
    """A task with large random weights, so that samples differ from the text."""
    config = {"model_type": model_type, **SIZES}
    if model_type in FAMILIES and model_type != "electra":
        config = {"model_type": model_type, **config_of(model_type), "vocab_size": len(VOCABULARY)}
    keras.utils.set_random_seed(shifted(3))
    encoder = new_encoder(read_config(config, source="x"))
    given = Tokenizer.from_vocab(VOCABULARY, lowercase=True) if tokenizer else None
    task = ReplacedTokenPretrainer(encoder, given, **options)
    rng = make_rng(4)
    for weight in task.trainable_weights:
        weight.assign(rng.normal(size=weight.shape) * 0.3)
    return task


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    return {
        masking: DataFolder.open(
            make_data_folder(
                root / masking, objective="mlm", rows=24, eval_examples=10, masking=masking
            )
        )
        for masking in ("static", "dynamic")
    }


@pytest.fixture(scope="module")
def task():
    return make()


def first_batch(task, folder, **options):
    batch = next(iter(task.dataset(folder, batch_size=8, **options)))
    return tuple({name: np.array(x) for name, x in part.items()} for part in batch)


# Sampling.


@pytest.mark.parametrize("size", [5, 128, 129, 300])
def test_a_token_is_the_one_at_which_the_probabilities_pass_the_draw(size):
    rng = make_rng(1)
    logits = rng.normal(size=(4, 50, size), scale=3).astype("float32")
    draws = rng.integers(0, 2**DRAW_BITS, (4, 50)).astype("int32")
    draws[0, :2] = 0, 2**DRAW_BITS - 1
    for temperature in (1.0, 0.5):
        sampled = np.array(sampled_tokens(logits, draws, temperature=temperature))
        weights = np.exp((logits.astype("float64") - logits.max(-1, keepdims=True)) / temperature)
        ends = weights.cumsum(axis=-1) / weights.sum(axis=-1, keepdims=True)
        at = np.take_along_axis(ends, sampled[..., None], axis=-1)[..., 0]
        wide = np.take_along_axis(weights, sampled[..., None], axis=-1)[..., 0]
        begin = at - wide / weights.sum(axis=-1)
        # Sums of so many numbers of float32.
        rounding = size * np.finfo("float32").eps
        given = draws / 2**DRAW_BITS
        assert (begin - rounding <= given).all() and (given <= at + rounding).all()


def test_draws_in_equal_steps_give_every_token_its_probability():
    logits = make_rng(2).normal(size=(1, 1, 300)).astype("float32")
    count = 1 << 12
    draws = (np.arange(count, dtype="int32") << (DRAW_BITS - 12))[None]
    sampled = sampled_tokens(np.tile(logits, (1, count, 1)), draws)
    probabilities = np.exp(logits[0, 0]) / np.exp(logits[0, 0]).sum()
    found = np.bincount(np.array(sampled)[0], minlength=300) / count
    assert np.abs(found - probabilities).max() <= 1.01 / count


@pytest.mark.parametrize("masking", ["static", "dynamic"])
def test_only_predicted_tokens_are_replaced_and_others_are_those_of_the_text(
    task, folders, masking
):
    x, y, weights = first_batch(task, folders[masking], seed=shifted(5))
    is_predicted = x["masked_lm_index"] > 0
    assert is_predicted.sum() == weights["masked_lm"].sum()
    examples, positions = np.nonzero(is_predicted)
    columns = x["masked_lm_index"][is_predicted] - 1
    np.testing.assert_array_equal(x["masked_lm_positions"][examples, columns], positions)
    original = x["original_ids"]
    np.testing.assert_array_equal(y["masked_lm"][examples, columns], original[is_predicted])
    np.testing.assert_array_equal(x["input_ids"][~is_predicted], original[~is_predicted])
    assert (x["input_ids"] == VOCABULARY.mask_id).any()
    assert not (original == VOCABULARY.mask_id).any()
    np.testing.assert_array_equal(weights["replaced_tokens"], x["input_mask"])
    outputs = task(x)
    sampled = np.array(sampled_tokens(outputs["masked_lm"], x["sampling_draws"]))
    is_other = np.zeros(original.shape, bool)
    is_other[examples, positions] = sampled[examples, columns] != original[is_predicted]
    np.testing.assert_array_equal(np.array(outputs["replaced_tokens"])[..., 1], is_other)
    assert is_other.any()


def test_an_example_has_its_draws_in_any_batch_and_others_in_each_epoch(task, folders):
    def drawn(batches, size):
        dataset = task.dataset(folders["static"], batch_size=size, seed=shifted(5))
        rows = [x for x, _, _ in dataset.take(batches)]
        ids, draws = (
            np.concatenate([x[n] for x in rows]) for n in ("original_ids", "sampling_draws")
        )
        return {tuple(one): tuple(row_draws) for one, row_draws in zip(ids, draws, strict=True)}

    first, second = drawn(4, 6), drawn(3, 8)  # an epoch each, of the same examples
    assert first == second and len(set(first.values())) > len(first) // 2
    two = task.dataset(folders["static"], batch_size=24, seed=shifted(5)).take(2)
    (one, other) = (x for x, _, _ in two)
    at = {tuple(ids): n for n, ids in enumerate(np.array(other["original_ids"]))}
    order = [at[tuple(ids)] for ids in np.array(one["original_ids"])]
    again = np.array(other["sampling_draws"])[order]
    np.testing.assert_array_equal(np.array(other["input_ids"])[order], one["input_ids"])  # static
    assert (again != np.array(one["sampling_draws"])).mean() > 0.99


# Losses and metrics.


def test_losses_and_metrics_are_means_over_what_counts(task, folders):
    x, y, weights = first_batch(task, folders["static"], split="eval")
    outputs = {name: np.array(output, "float64") for name, output in task(x).items()}
    logits, is_replaced = outputs["replaced_tokens"][..., 0], outputs["replaced_tokens"][..., 1]
    counts = weights["replaced_tokens"]
    nats = np.log1p(np.exp(-np.abs(logits))) + np.maximum(logits, 0) - is_replaced * logits
    expected = {
        "replaced_tokens_cross_entropy": (nats * counts).sum() / counts.sum(),
        "replaced_tokens_accuracy": (((logits > 0) == is_replaced) * counts).sum() / counts.sum(),
        "replaced_tokens_fraction": (is_replaced * counts).sum() / counts.sum(),
    }
    scores = outputs["masked_lm"]
    scores = scores - scores.max(-1, keepdims=True)
    cross_entropy = np.log(np.exp(scores).sum(-1))
    cross_entropy -= np.take_along_axis(scores, y["masked_lm"][..., None], axis=-1)[..., 0]
    cross_entropy = (cross_entropy * weights["masked_lm"]).sum() / weights["masked_lm"].sum()
    expected["masked_lm_cross_entropy"] = cross_entropy
    expected["loss"] = cross_entropy + 50 * expected["replaced_tokens_cross_entropy"]
    task.compile_defaults("sgd", run_eagerly=True)
    logs = task.evaluate(x, y, sample_weight=weights, batch_size=8, return_dict=True, verbose=0)
    assert {name: logs[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    assert 0 <= logs["replaced_tokens_auc"] <= 1
    # By Keras's own loss of the same outputs, as somebody compiles who measures nothing else.
    task.compile("sgd", task.default_losses(), loss_weights=task.default_loss_weights())
    task.run_eagerly = True
    logs = task.evaluate(x, y, sample_weight=weights, batch_size=8, return_dict=True, verbose=0)
    assert logs["loss"] == pytest.approx(expected["loss"], rel=1e-5)


def test_the_area_is_that_of_logits_in_steps_over_uneven_batches():
    rng = make_rng(6)
    logits = rng.normal(size=1000, scale=3).astype("float32")
    is_replaced = (rng.random(1000) < 1 / (1 + np.exp(-logits))).astype("float32")
    weights = (rng.random(1000) < 0.8).astype("float32")
    metric = ReplacedTokens()
    for part in np.split(np.arange(1000), [10, 500]):
        metric.update_state(0 * logits[part], logits[part], is_replaced[part], weights[part])
    steps = np.searchsorted(metric.THRESHOLDS, logits)  # how many it is above
    expected = sklearn.metrics.roc_auc_score(is_replaced, steps, sample_weight=weights)
    assert float(metric.result()["replaced_tokens_auc"]) == pytest.approx(expected, abs=1e-5)
    exact = sklearn.metrics.roc_auc_score(is_replaced, logits, sample_weight=weights)
    assert expected == pytest.approx(exact, abs=0.002)


def test_without_a_replaced_token_there_is_no_area():
    metric = ReplacedTokens()
    ones = np.ones(3, "float32")
    metric.update_state(ones, ones, 0 * ones, ones)
    assert np.isnan(float(metric.result()["replaced_tokens_auc"]))


# The layers.


def test_the_discriminators_head(tmp_path):
    check_layer(
        lambda **options: Discriminator(
            hidden_size=8, hidden_act="gelu", initializer_range=0.3, **options
        ),
        inputs={"hidden": make_rng(1).normal(size=(2, 3, 8)).astype("float32")},
        output_shape=(2, 3),
        tmp_path=tmp_path,
        mixed_output="float32",
    )


def test_generator_and_discriminator_share_tables_and_nothing_else(task):
    embeddings, generator_embeddings = task.encoder.embeddings, task.generator.encoder.embeddings
    for name in ("token_embedding", "position_embedding", "segment_embedding"):
        assert getattr(embeddings, name) is getattr(generator_embeddings, name)
    shared = {id(w) for w in task.encoder.weights} & {id(w) for w in task.generator.weights}
    assert len(shared) == 3
    assert isinstance(task.generator.lm_head, LMHead)
    assert task.generator.lm_head.token_embedding is embeddings.token_embedding
    assert task.generator.config.hidden_size == 4
    assert len({weight.path for weight in task.weights}) == len(task.weights)


def test_a_causal_encoder_is_rejected():
    config = {**config_of("bert"), "is_decoder": True}
    with pytest.raises(InputError, match="sees all tokens.*bert encoder that is causal"):
        ReplacedTokenPretrainer(new_encoder(read_config(config, source="x")))
    with pytest.raises(InputError, match="as its vectors .* the folder `generator`"):
        make().signatures()


# Folders and files.


@pytest.mark.parametrize(
    "family",
    [
        "electra",
        "bert",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in sorted({*FAMILIES} - {"electra", "bert"})
        ),
    ],
)
def test_a_folder_gives_the_same_outputs(family, folders, tmp_path):
    task = make(family)
    x, _, _ = first_batch(task, folders["static"])
    outputs = {name: np.array(output) for name, output in task(x).items()}
    save_folder(task, task.tokenizer, tmp_path / "model")
    again = load_task(tmp_path / "model")
    assert type(again) is ReplacedTokenPretrainer and again.settings == task.settings
    for name, output in again(x).items():
        np.testing.assert_array_equal(output, outputs[name])
    generator = load_task(tmp_path / "model" / "generator")
    assert generator.TASK_TYPE == "fill-mask" and len(generator.tokenizer) == len(VOCABULARY)
    np.testing.assert_array_equal(
        generator({name: x[name] for name in generator.input})["masked_lm"], outputs["masked_lm"]
    )
    encoder, _ = load(tmp_path / "model")
    for one, other in zip(encoder.weights, task.encoder.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    config = read_json(tmp_path / "model" / "config.json")
    (architecture,) = config["architectures"]
    if family == "electra":
        assert architecture == "ElectraForPreTraining"
    else:
        assert architecture == again.encoder.tensor_names(again.config).base_class
    save_folder(task, task.tokenizer, tmp_path / "model", overwrite=True)  # all of it is ours


def test_a_keras_file_gives_the_same_outputs(task, folders, tmp_path):
    x, _, _ = first_batch(task, folders["static"])
    task.save(tmp_path / "task.keras")
    again = keras.models.load_model(tmp_path / "task.keras")
    for name, output in again(x).items():
        np.testing.assert_array_equal(output, task(x)[name])
    tables = (again.encoder.token_embedding, again.generator.encoder.token_embedding)
    assert tables[0] is tables[1]


def test_a_folder_whose_two_models_do_not_fit_is_rejected(task, tmp_path):
    folder = tmp_path / "model"
    save_folder(task, task.tokenizer, folder)
    other = make(generator_size=0.5)
    save_folder(other.generator, other.tokenizer, tmp_path / "wider")
    (folder / "generator").rename(tmp_path / "generator")
    with pytest.raises(InputError, match="has no folder generator, .*pre-train from it with a new"):
        load_task(folder)
    (tmp_path / "wider").rename(folder / "generator")
    with pytest.raises(InputError, match="Expected electra, 2 layers, hidden size 4"):
        load_task(folder)
    moved = make()
    moved.encoder.token_embedding.embeddings.assign_add(np.ones((len(VOCABULARY), 12)))
    save_folder(moved.generator, moved.tokenizer, folder / "generator", overwrite=True)
    with pytest.raises(InputError, match="different values of embeddings/token_embedding"):
        load_task(folder)


# One step beside the two models of transformers.


@pytest.mark.peers
def test_loss_and_gradients_of_a_step_are_those_of_transformers(folders, tmp_path):
    task = make()
    save_folder(task, task.tokenizer, tmp_path / "model")
    x, y, weights = first_batch(task, folders["static"])
    output = np.array(task(x)["replaced_tokens"])
    sampled = np.array(sampled_tokens(task(x)["masked_lm"], x["sampling_draws"]))
    at_each = np.take_along_axis(np.pad(sampled, ((0, 0), (1, 0))), x["masked_lm_index"], axis=1)
    corrupted = np.where(x["masked_lm_index"] > 0, at_each, x["original_ids"])

    names, before = to_hugging_face(task), to_hugging_face(task.generator)
    task.compile_defaults(keras.optimizers.SGD(1.0), jit_compile=False)
    batch = tf.data.Dataset.from_tensors((x, y, weights))
    (loss,) = task.fit(batch, epochs=1, verbose=0, shuffle=False).history["loss"]
    gradients = [
        {name: old[1][name] - new[1][name] for name in old[1]}
        for old, new in ((names, to_hugging_face(task)), (before, to_hugging_face(task.generator)))
    ]

    def opened(kind, folder):
        model, info = kind.from_pretrained(folder, output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"]
        return model.eval()

    discriminator = opened(transformers.ElectraForPreTraining, tmp_path / "model")
    generator = opened(transformers.ElectraForMaskedLM, tmp_path / "model" / "generator")
    embeddings, generator_embeddings = (
        discriminator.electra.embeddings,
        generator.electra.embeddings,
    )
    for table in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        setattr(generator_embeddings, table, getattr(embeddings, table))
    generator.tie_weights()
    tensors = {name: torch.tensor(np.array(x[name])).long() for name in x}
    given = {
        "attention_mask": tensors["input_mask"],
        "token_type_ids": tensors["segment_ids"],
    }
    labels = np.full(x["input_ids"].shape, -100)
    is_predicted = x["masked_lm_index"] > 0
    labels[is_predicted] = x["original_ids"][is_predicted]
    generator_output = generator(tensors["input_ids"], labels=torch.tensor(labels).long(), **given)
    is_replaced = torch.tensor(corrupted != x["original_ids"]).long()
    discriminator_output = discriminator(
        torch.tensor(corrupted).long(), labels=is_replaced, **given
    )
    total = generator_output.loss + 50 * discriminator_output.loss
    total.backward()
    is_token = x["input_mask"] > 0
    np.testing.assert_allclose(
        output[..., 0][is_token],
        discriminator_output.logits.detach().numpy()[is_token],
        rtol=1e-4,
        atol=1e-5,
    )
    assert loss == pytest.approx(total.item(), rel=1e-5)
    for embeddings, model in zip(gradients, (discriminator, generator), strict=True):
        expected = {name: weight.grad for name, weight in model.named_parameters()}
        for name, gradient in embeddings.items():
            wanted = expected[name].numpy()
            if name.endswith("word_embeddings.weight"):
                # A sampled [PAD] has no gradient there (`padding_idx`).
                gradient, wanted = gradient[1:], wanted[1:]
            # SGD's step is rounded to the size of the weight that it is subtracted from.
            np.testing.assert_allclose(
                gradient, wanted, rtol=1e-4, atol=2e-5 * max(1, np.abs(wanted).max()), err_msg=name
            )
