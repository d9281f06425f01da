"""A local layer of ModernBERT: in blocks, with the mask of whole rows, and `transformers`' own.

One attention layer of 4 heads of 64, which see 64 tokens to either side, over one row of a length,
in float32: milliseconds of processor, forward and with backward, the least of several, and the
MiB that the process grew by for either. Each contender has a process of its own.

    python benchmarks/local_attention.py --length 512 1024 2048 4096 8192
"""

import os
import subprocess
import sys

import peers  # noqa: F401

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import argparse
import time

import numpy as np

HEADS, SIZE, WINDOW = 4, 256, 64
CONTENDERS = ("blocks", "whole rows", "transformers")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--length", type=int, nargs="+", default=[512, 2048, 8192])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--contender", choices=CONTENDERS, help="this one alone, in this process")
    arguments = parser.parse_args()
    if arguments.contender:
        measure(arguments.contender, arguments.length, rounds=arguments.rounds)
        return
    columns = []
    for name in CONTENDERS:
        command = [sys.executable, __file__, "--contender", name, "--rounds", str(arguments.rounds)]
        command += ["--length", *map(str, arguments.length)]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        columns.append(run.stdout.splitlines()[-len(arguments.length) :])
    print("| tokens | " + " | ".join(f"{name}: ms, MiB" for name in CONTENDERS) + " |")
    print("|---" * (1 + len(CONTENDERS)) + "|")
    for length, *cells in zip(arguments.length, *columns, strict=True):
        print(f"| {length} | {' | '.join(cells)} |")


def measure(name, lengths, *, rounds):
    """Prints a contender's cell of the table for each length."""
    make = transformers_steps if name == "transformers" else own_steps
    x = np.random.default_rng(0).normal(size=(1, max(lengths), SIZE)).astype("float32")
    steps = make(x, in_blocks=name == "blocks")
    for step in steps:
        step(64)  # what a library loads at its first call is not counted
    for length in lengths:
        times, memory = [], []
        for step in steps:
            memory.append(growth(lambda step=step, length=length: step(length)))
            seconds = []
            for _ in range(rounds):
                start = time.process_time()
                step(length)
                seconds.append(time.process_time() - start)
            times.append(1000 * min(seconds))
        print(f"{times[0]:.0f} / {times[1]:.0f}, {memory[0]:.0f} / {memory[1]:.0f}", flush=True)


def growth(work):
    """MiB by which the peak of the process's memory is above what it has before `work()`."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is counted from here
    before = in_memory("VmRSS")
    work()
    return in_memory("VmHWM") - before


def in_memory(name):
    """A line of the process's status, in MiB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) / 1024


def own_steps(x, *, in_blocks):
    """Functions of a length: forward, and forward with backward."""
    import tensorflow as tf

    from keras_bert.layers import layout as layouts
    from keras_bert.layers.positions import RotaryPositions
    from keras_bert.layers.self_attention import SelfAttention

    if not in_blocks:
        layouts._FEWEST_BLOCKS = 10**6
    layer = SelfAttention(
        **{"hidden_size": SIZE, "num_heads": HEADS, "dropout": 0.0, "output_dropout": 0.0},
        **{"initializer_range": 0.02, "use_bias": False, "window": WINDOW},
        positions=RotaryPositions(theta=10_000.0),
    )
    layer.build()

    def states(x, training):
        layout = layouts.Layout(input_mask=tf.ones(tf.shape(x)[:2], "int32"), causal=False)
        return layout.pad(layer(layout.unpad(x), layout=layout, training=training))

    signature = [tf.TensorSpec([1, None, SIZE])]

    @tf.function(input_signature=signature)
    def forward(x):
        return states(x, training=False)

    @tf.function(input_signature=signature)
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_mean(tf.square(states(x, training=True)))
        return tape.gradient(loss, [x, *layer.trainable_variables])

    x = tf.constant(x)
    return [lambda length: forward(x[:, :length]), lambda length: both(x[:, :length])]


def transformers_steps(x, *, in_blocks):
    """The same of `transformers`' layer by PyTorch's scaled dot-product attention."""
    import torch
    import transformers
    from transformers.masking_utils import create_bidirectional_sliding_window_mask
    from transformers.models.modernbert import modeling_modernbert as modeling

    config = transformers.ModernBertConfig(
        **{"hidden_size": SIZE, "num_attention_heads": HEADS, "num_hidden_layers": 2},
        **{"vocab_size": 10, "pad_token_id": 0, "local_attention": 2 * WINDOW},
        layer_types=["full_attention", "sliding_attention"],
        attn_implementation="sdpa",
    )
    layer = modeling.ModernBertAttention(config, layer_idx=1)
    rotary = modeling.ModernBertRotaryEmbedding(config)
    x = torch.tensor(x)

    def states(x):
        mask = create_bidirectional_sliding_window_mask(
            config=config, inputs_embeds=x, attention_mask=torch.ones(x.shape[:2]).long()
        )
        positions = torch.arange(x.shape[1])[None]
        angles = rotary(x, positions, "sliding_attention")
        return layer(x, position_embeddings=angles, attention_mask=mask)[0]

    def forward(length):
        with torch.no_grad():
            return states(x[:, :length])

    def both(length):
        given = x[:, :length].detach().requires_grad_()
        states(given).square().mean().backward()

    return [forward, both]


if __name__ == "__main__":
    main()
