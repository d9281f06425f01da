"""The program of a training step, lowered for a device that this machine does not have."""

import re

import keras
import numpy as np
from keras import ops

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.layers.kernels.program import for_gpu, for_tpu
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.programs import training_steps
from keras_bert.tasks.pretraining.language_models import CausalLM
from keras_bert.tasks.pretraining.pretrainer import FillMask
from tests.seeds import make_rng, shifted

VOCABULARY = 1031  # no other size of the program
LAYERS = 2
BATCH, LENGTH, PREDICTIONS = 4, 24, 3


def make_task(
    dtype="mixed_bfloat16",
    dropout=0.0,
    is_causal=False,
    steps=100,
    layers=LAYERS,
    jit_compile=True,
):
    keras.utils.set_random_seed(shifted(1))
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=600,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        is_decoder=is_causal,
    )
    task = (CausalLM if is_causal else FillMask)(BertEncoder(config, dtype=dtype))
    options = {"learning_rate": 2e-3, "warmup": 0.1, "weight_decay": 0.01}
    task.compile_defaults(make_optimizer(task, steps=steps, **options), jit_compile=jit_compile)
    return task


def batches(task, count=1):
    """(x, y, sample_weight) of `count` batches of ids that occur often and seldom, with padding."""
    rng = make_rng(0)
    rows = count * BATCH
    ids = np.minimum(rng.geometric(0.02, (rows, LENGTH)), VOCABULARY - 2).astype("int32")
    is_token = np.arange(LENGTH) < rng.integers(8, LENGTH + 1, (rows, 1))
    mask = is_token.astype("int32")
    segments = (np.arange(LENGTH) > 5).astype("int32") * mask
    x = {"input_ids": ids * mask, "input_mask": mask, "segment_ids": segments}
    if isinstance(task, CausalLM):
        y, weights = x["input_ids"][:, 1:], mask[:, 1:].astype("float32")
        return x, {"causal_lm": y}, {"causal_lm": weights}
    positions = np.argsort(rng.random((rows, LENGTH)), axis=1)[:, :PREDICTIONS].astype("int32")
    positions[0, 1:] = 0  # as at padding
    x["masked_lm_positions"] = positions
    labels = np.take_along_axis(ids, positions, axis=1)
    np.put_along_axis(x["input_ids"], positions, VOCABULARY - 1, axis=1)
    weights = np.take_along_axis(mask, positions, axis=1).astype("float32")
    return x, {"masked_lm": labels}, {"masked_lm": weights}


def losses_of_steps(dtype, steps, dropout=0.1, jit_compile=True):
    """The loss of each of so many steps, (steps,), and the task."""
    task = make_task(dtype, dropout=dropout, steps=steps, layers=1, jit_compile=jit_compile)
    x, y, weights = batches(task, count=steps)
    losses = []

    class Losses(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            self.model.reset_metrics()

        def on_train_batch_end(self, batch, logs=None):
            losses.append(float(logs["loss"]))

    options = {"batch_size": BATCH, "shuffle": False, "verbose": 0}
    task.fit(x, y, sample_weight=weights, callbacks=[Losses()], **options)
    return np.array(losses), task


def check_float16(jit_compile):
    """Twenty steps in mixed_float16 have float32's losses, with loss scaling."""
    expected, _ = losses_of_steps("float32", steps=20, jit_compile=jit_compile)
    losses, task = losses_of_steps("mixed_float16", steps=20, jit_compile=jit_compile)
    np.testing.assert_allclose(losses, expected, atol=2e-3)
    assert isinstance(task.optimizer, keras.optimizers.LossScaleOptimizer)
    assert float(task.optimizer.dynamic_scale) == task.optimizer.initial_scale  # no overflow
    assert int(task.optimizer.iterations) == 20
    assert all(weight.dtype == "float32" for weight in task.trainable_weights)


def lowered_step(task):
    """The StableHLO of the task's step on one batch, for CUDA; on JAX and TensorFlow.

    The batch has more predictions than a block of the loss.
    """
    batch = batches(task, count=90)
    with for_gpu():
        if keras.backend.backend() == "jax":
            return _lowered_by_jax(task, batch)
        return _lowered_by_tensorflow(task, batch)


def _lowered_by_jax(task, batch, platform="cuda"):
    """The program of the step that `fit` and the commands call."""
    state = jax_state(task, batch)
    steps = training_steps(task)
    assert steps is not None
    return lowered_by_jax(steps._jit(state), state, [], batch, platform=platform)


def lowered_for_tpu(task):
    """The StableHLO of the task's step on one batch, for a TPU; on JAX."""
    with for_tpu():
        return _lowered_by_jax(task, batches(task, count=90), platform="tpu")


def jax_state(task, batch):
    """Variables that a step changes: weights, other variables, the optimizer's, the metrics'."""
    specs = keras.tree.map_structure(lambda a: keras.KerasTensor(a.shape, a.dtype.name), batch)
    task._symbolic_build(data_batch=specs)
    kinds = ("trainable_variables", "non_trainable_variables")
    kinds += ("optimizer_variables", "metrics_variables")
    return task._get_jax_state(**dict.fromkeys(kinds, True))


def kept_for_the_gradient(task):
    """The shapes and types of what the forward pass of a step keeps for a GPU's backward pass."""
    import jax

    x, y, weights = batch = batches(task)

    def forward_pass(trained, others, optimizer_state, metrics_state):
        def loss(trained):
            options = {"training": True, "optimizer_variables": optimizer_state}
            arguments = (trained, others, metrics_state, x, y, weights)
            return task.compute_loss_and_updates(*arguments, **options)[0]

        return jax.tree.leaves(jax.vjp(loss, trained)[1])

    with for_gpu():
        return jax.eval_shape(forward_pass, *jax_state(task, batch))


def lowered_by_jax(function, *arguments, platform="cuda"):
    return function.trace(*arguments).lower(lowering_platforms=(platform,)).as_text()


def _lowered_by_tensorflow(task, batch):
    import tensorflow as tf

    tensors = keras.tree.map_structure(ops.convert_to_tensor, batch)
    step = tf.function(lambda *data: task.train_step(data), jit_compile=True, autograph=False)
    return step.experimental_get_compiler_ir(*tensors)(stage="stablehlo")


def scatters(text):
    """The shapes that are scattered into, such as ("2x16xbf16", …)."""
    pattern = r"stablehlo\.scatter.*?\}\) : \(tensor<(\w+)>"
    return tuple(re.findall(pattern, text, re.DOTALL))


def float32_products(text, size):
    """The operands of products that have an axis of `size` and an operand of float32."""
    pattern = r"stablehlo\.dot_general.*: \(tensor<(\w+)>, tensor<(\w+)>\) -> tensor<(\w+)>"
    products = re.findall(pattern, text)
    return [
        product
        for product in products
        if any(str(size) in shape.split("x") for shape in product)
        and any(shape.endswith("xf32") for shape in product[:2])
    ]


def most_logits(text, size):
    """The most rows of a tensor whose last axis has `size` numbers."""
    shapes = re.findall(rf"tensor<((?:\d+x)+){size}xf32>", text)
    return max(np.prod([int(n) for n in shape.split("x")[:-1]]) for shape in shapes)


def kernels(text):
    """The fused attention kernels that the program calls, forward and backward."""
    return sorted(re.findall(r"custom_call @__cudnn\$(\w+)", text))
