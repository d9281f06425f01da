"""The program of a step on a GPU, on Keras's JAX backend without TensorFlow or a GPU.

`test_lowering.py` runs this file in its process; by itself:

    KERAS_BACKEND=jax python -m pytest -p tests.no_tensorflow tests/lowering_on_jax.py
"""

import warnings

import jax
import keras
import numpy as np
import pytest
from jax._src.cudnn import fused_attention_stablehlo as cudnn

from keras_bert.base.errors import InputError
from keras_bert.heads.lm_head import LMHead, NextTokenLoss
from keras_bert.layers.kernels.fused_attention import fused_attention
from keras_bert.layers.kernels.program import for_gpu
from keras_bert.layers.layout import Layout
from keras_bert.layers.positions import RotaryPositions
from keras_bert.layers.self_attention import SelfAttention
from tests import step_program
from tests.seeds import make_rng
from tests.step_program import (
    BATCH,
    LAYERS,
    LENGTH,
    VOCABULARY,
    batches,
    lowered_by_jax,
    lowered_for_tpu,
    lowered_step,
    make_task,
)

FORWARD, BACKWARD = "fmhaSoftmax", "fmhaSoftmaxBackward"
WITH_BIAS = ["fmhaScaleBiasSoftmax", "fmhaScaleBiasSoftmaxBackward"]


@pytest.fixture(autouse=True)
def cuda(monkeypatch):
    """JAX asks the device for its versions while it lowers."""
    monkeypatch.setattr(cudnn, "check_cudnn_version", lambda: 91300)
    monkeypatch.setattr(cudnn, "check_compute_capability", lambda capability: True)
    monkeypatch.setattr(cudnn, "is_cuda_compute_capability_equal", lambda capability: False)


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_step_without_dropout_has_fused_attention_and_nothing_slow(is_causal):
    layers = 1 if is_causal else LAYERS
    text = lowered_step(make_task(is_causal=is_causal, layers=layers))
    assert step_program.scatters(text) == ()
    assert step_program.float32_products(text, VOCABULARY) == []
    assert step_program.most_logits(text, VOCABULARY) <= 1024
    assert step_program.kernels(text) == [FORWARD] * layers + [BACKWARD] * layers


def test_a_step_with_dropout_has_nothing_slow():
    text = lowered_step(make_task(dropout=0.1, layers=1))
    assert step_program.scatters(text) == ()
    assert step_program.float32_products(text, VOCABULARY) == []
    assert step_program.most_logits(text, VOCABULARY) <= 1024
    assert step_program.kernels(text) == []


def test_the_step_is_lowered_for_a_tpu():
    text = lowered_for_tpu(make_task(layers=1))
    assert "stablehlo.dot_general" in text and step_program.kernels(text) == []
    assert step_program.scatters(text) == ()
    assert step_program.float32_products(text, VOCABULARY) == []


def test_the_backward_pass_keeps_no_float32_vectors_and_dropout_draws_once():
    task = make_task(dropout=0.1, layers=1)
    residuals = step_program.kept_for_the_gradient(task)
    vectors = [x for x in residuals if x.size >= BATCH * LENGTH * task.config.hidden_size]
    assert {x.dtype.name for x in vectors} == {"bfloat16", "bool"}
    # The input of a gelu, and its output, which is that of a dense layer.
    wide = (BATCH * LENGTH, task.config.intermediate_size)
    assert [x.shape for x in vectors].count(wide) == 2
    draws = lowered_step(task).count("call @threefry2x32")
    assert draws == 4  # for embeddings, probabilities and two outputs


def attention(query, key, value, is_token, sequence_ids, *, causal, window, packed):
    rows = {"sequence_ids": sequence_ids} if packed else {"input_mask": is_token}
    layout = Layout(**rows, causal=causal)
    return fused_attention(query, key, value, layout, window=window)


@pytest.mark.parametrize(
    "causal, window, packed, names",
    [
        (False, None, False, [FORWARD, BACKWARD]),
        (True, None, False, [FORWARD, BACKWARD]),
        (True, 4, False, [FORWARD, BACKWARD]),
        (False, 4, False, WITH_BIAS),
        (False, None, True, WITH_BIAS),
        (True, 4, True, WITH_BIAS),
    ],
)
def test_layouts_have_a_fused_kernel(causal, window, packed, names):
    vectors = jax.ShapeDtypeStruct((2, 16, 2, 8), "bfloat16")
    ids = jax.ShapeDtypeStruct((2, 16), "int32")

    def gradients(upstream, *arguments):
        rest = {"causal": causal, "window": window, "packed": packed}
        y, backward = jax.vjp(lambda *qkv: attention(*qkv, *arguments[3:], **rest), *arguments[:3])
        return y, backward(upstream)

    with for_gpu(), warnings.catch_warnings():
        warnings.simplefilter("error")
        text = lowered_by_jax(jax.jit(gradients), vectors, *[vectors] * 3, ids, ids)
    assert step_program.kernels(text) == names


@pytest.mark.parametrize(
    "causal, window, packed, names",
    [
        (False, None, False, [FORWARD, BACKWARD]),
        (False, 16, False, WITH_BIAS),  # in blocks
        (False, 16, True, WITH_BIAS),
        (True, 16, True, WITH_BIAS),
        (True, 16, False, [FORWARD, BACKWARD]),  # the kernel knows windows
    ],
)
def test_rotary_positions_and_windows_have_a_fused_kernel(causal, window, packed, names):
    length = 192
    layer = SelfAttention(
        **{"hidden_size": 16, "num_heads": 2, "dropout": 0.0, "output_dropout": 0.0},
        **{"initializer_range": 0.02, "dtype": "mixed_bfloat16", "window": window},
        positions=RotaryPositions(theta=100.0, dtype="mixed_bfloat16"),
    )
    layer.build()

    def loss(x, ids):
        layout = Layout(**{"sequence_ids" if packed else "input_mask": ids}, causal=causal)
        return layer(layout.unpad(x), layout=layout, training=True).sum()

    vectors = jax.ShapeDtypeStruct((3, length, 16), "bfloat16")
    ids = jax.ShapeDtypeStruct((3, length), "int32")
    with for_gpu(), warnings.catch_warnings():
        warnings.simplefilter("error")
        text = lowered_by_jax(jax.jit(jax.grad(loss)), vectors, ids)
    assert step_program.kernels(text) == names
    assert f"{length}x{length}x" not in text  # no mask of whole rows


@pytest.mark.parametrize("dtype, size, length", [("float32", 8, 16), ("bfloat16", 12, 16)])
def test_other_cases_are_left_to_xla_without_a_message(dtype, size, length, capsys):
    x = np.ones((2, length, 2, size), dtype)
    layout = Layout(input_mask=np.ones((2, length), "int32"), causal=False)
    with for_gpu(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fused_attention(x, x, x, layout, window=None) is None
    assert capsys.readouterr() == ("", "")


def test_keras_does_not_try_again_what_no_kernel_takes(monkeypatch):
    """It would print an error for each layer."""
    options, plain = [], keras.ops.dot_product_attention

    def noted(*arguments, **given):
        options.append(given["flash_attention"])
        return plain(*arguments, **given)

    monkeypatch.setattr(keras.ops, "dot_product_attention", noted)
    task = make_task("float32", layers=1)
    x, _, _ = batches(task)
    with for_gpu():
        task(x)
    assert options == [False]


def test_the_next_token_loss_beside_a_task_is_that_of_its_logits():
    rng = make_rng(2)
    embedding = keras.layers.Embedding(11, 8)
    head = LMHead(token_embedding=embedding, transform=None, use_bias=True)
    layer = NextTokenLoss(lm_head=head, weight=0.5)
    inputs = rng.normal(size=(2, 5, 8)).astype("float32"), rng.integers(0, 11, (2, 5), "int32")
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")
    layer(*inputs, mask, training=True)
    (plain,) = layer.losses
    with for_gpu():
        layer(*inputs, mask, training=True)
    np.testing.assert_allclose(layer.losses[-1], plain, rtol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_rows_whose_padding_is_not_last_are_nan_where_attention_reads_lengths(causal, monkeypatch):
    """By the same function of JAX without a kernel."""
    plain = jax.nn.dot_product_attention

    def without_kernel(*arguments, implementation, **options):
        assert implementation == "cudnn"
        return plain(*arguments, **options)

    monkeypatch.setattr(jax.nn, "dot_product_attention", without_kernel)
    is_token = np.array([[1, 1, 1, 0], [0, 1, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]])
    x = make_rng(0).normal(size=(3, 5, 4, 2, 8)).astype("float16")
    layout = Layout(input_mask=is_token, causal=causal)
    with for_gpu():
        context = fused_attention(*x, layout, window=None)
    expected = plain(*x, mask=layout.mask())
    np.testing.assert_array_equal(np.isnan(context).any(axis=(1, 2, 3)), [0, 1, 1, 0, 0])
    for row, count in (0, 3), (3, 4):
        np.testing.assert_allclose(context[row, :count], expected[row, :count], atol=2e-3)


@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
def test_padding_before_tokens_is_an_error_where_attention_reads_lengths():
    x, y, weights = batches(make_task(layers=1))
    x["input_mask"] = x["input_mask"][:, ::-1].copy()

    def check(method, *data):
        method = getattr(make_task(layers=1), method)
        with for_gpu(), pytest.raises(InputError, match="must be 1 at the tokens of a row"):
            method(*data)

    make_task(layers=1).test_on_batch(x, y, weights)  # without a GPU it is no error
    check("fit", x, y)
    check("__call__", x)
    for method in ("fit", "evaluate", "predict"):
        check(method, (batch for batch in [(x, y, weights)]))


def test_a_kernel_that_cannot_be_used_is_said_once(monkeypatch):
    def missing():
        raise RuntimeError("cuDNN is not detected.")

    monkeypatch.setattr(cudnn, "check_cudnn_version", missing)
    x = np.ones((2, 16, 2, 8), jax.numpy.bfloat16)
    layout = Layout(input_mask=np.ones((2, 16), "int32"), causal=False)
    with for_gpu(), pytest.warns(RuntimeWarning, match="cuDNN is not detected") as warned:
        for _ in range(2):
            assert fused_attention(x, x, x, layout, window=None) is None
    assert len(warned) == 1


@pytest.mark.slow
def test_a_float16_step_scales_its_loss():
    """On TensorFlow it is not slow: test_lowering.py."""
    step_program.check_float16(jit_compile=True)


@pytest.mark.slow
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-4), ("mixed_bfloat16", 0.01)])
def test_the_losses_of_200_steps_follow(dtype, tolerance):
    """Executed on a CPU, so with dropout, which has no fused kernel."""
    plain, _ = step_program.losses_of_steps(dtype, steps=200)
    assert plain[-20:].mean() < plain[:20].mean() - 1
    with for_gpu():
        accelerated, _ = step_program.losses_of_steps(dtype, steps=200)
    np.testing.assert_allclose(accelerated, plain, atol=tolerance)
