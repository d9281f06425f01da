"""FLOPs and bytes of a pre-training step for a GPU and a TPU, without either, beside keras-nlp's.

FLOPs are those of the formula (`forward_flops`, three times for forward and backward) and those of
the lowered program; bytes are what the operations of the lowered program read and write, as XLA's
cost analysis counts them before anything is fused, so that they compare programs, and are not what
a device would move. A kernel that is called, such as fused attention, counts nothing.

    KERAS_BACKEND=jax python benchmarks/step_costs.py
    KERAS_BACKEND=jax python benchmarks/step_costs.py --architecture tiny   # that it runs
"""

import argparse
import sys
from pathlib import Path

import jax
import keras
import numpy as np
from jax._src.cudnn import fused_attention_stablehlo as cudnn
from peers import keras_nlp_backbone
from pretraining_contenders import VOCABULARY, Point, our_model
from pretraining_step import flops_of

from keras_bert.layers.kernels.program import for_gpu, for_tpu
from keras_bert.programs import training_steps

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for tests.step_program
from tests.step_program import jax_state

PLATFORMS = {"cuda": for_gpu, "tpu": for_tpu}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--architecture", choices=tuple(VOCABULARY), default="base")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    arguments = parser.parse_args()
    if keras.backend.backend() != "jax":
        raise SystemExit("Set KERAS_BACKEND=jax.")
    # JAX asks a GPU for its versions while it lowers.
    cudnn.check_cudnn_version = lambda: 91300
    cudnn.check_compute_capability = lambda capability: True
    cudnn.is_cuda_compute_capability_equal = lambda capability: False
    sizes = arguments.rows, arguments.length
    print("| program | dropout | GFLOP by the formula | GFLOP lowered | GB, unfused | scatters |")
    print("|---|---|---|---|---|---|")
    for dropout in (0.1, 0.0):
        point = Point(arguments.architecture, "full", "bfloat16", 1, sizes=sizes, dropout=dropout)
        formula = flops_of(point, our_model(point, jit_compile=True)) * np.prod(sizes) / 1e9
        for platform in PLATFORMS:
            for name, lower in (("ours", our_step), ("keras-nlp's", keras_nlp_step)):
                lowered = lower(point, platform)
                costs = lowered.cost_analysis()
                scatters = lowered.as_text().count('stablehlo.scatter"')
                print(
                    f"| {name}, {platform} | {dropout} | {formula:,.0f} | "
                    f"{costs['flops'] / 1e9:,.0f} | {costs['bytes accessed'] / 1e9:.2f} | "
                    f"{scatters} |",
                    flush=True,
                )


def our_step(point, platform):
    task, (batch,) = our_model(point, jit_compile=True), point.batches()
    state = jax_state(task, batch)
    with PLATFORMS[platform]():
        step = training_steps(task)._jit(state)
        return step.trace(state, [], batch).lower(lowering_platforms=(platform,))


def keras_nlp_step(point, platform):
    from keras_nlp.models import BertMaskedLM

    backbone = keras_nlp_backbone(point.config, dtype=point.policy)
    model = BertMaskedLM(backbone, preprocessor=None, dtype=point.policy)
    optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0)
    optimizer.build(model.trainable_variables)
    model.compile(optimizer=optimizer)
    ((x, y, weights),) = point.batches()
    names = {"input_ids": "token_ids", "input_mask": "padding_mask"}
    names |= {"masked_lm_positions": "mask_positions"}
    x = {names.get(name, name): array for name, array in x.items()}
    batch = x, *y.values(), *weights.values()
    state = jax_state(model, batch)
    step = jax.jit(model.train_step, donate_argnums=0)
    return step.trace(state, batch).lower(lowering_platforms=(platform,))


if __name__ == "__main__":
    main()
