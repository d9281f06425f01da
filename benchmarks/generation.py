"""Text from GPT-2, beside `generate` of `transformers` with its cache: tokens a second.

    python benchmarks/generation.py                              # both sizes, about ten minutes
    python benchmarks/generation.py --sizes gpt2-mini --rounds 5 --products

Both sides have the same random weights, which `transformers` wrote, the same prompts of 32 tokens
and the same number of threads, and generate greedily, without an end; ours also with `jit_compile`.
A measurement is one call, reading of the prompts counted in, after one like it to warm up (ours is
traced and compiled there); the sides take turns, each in a process of its own. That the tokens are
the same is checked. With `--products` another side is TensorFlow's matrix products of a token with
all weights, in a loop in the graph, and nothing else: no attention, no norms, no choice.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIDES = ("ours", "compiled", "theirs")
PROMPT = 32
VOCABULARY = {"gpt2-tiny": 8000, "gpt2-mini": 8000, "gpt2-small": 16000, "gpt2": 50257}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", choices=VOCABULARY, default=["gpt2-mini", "gpt2"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--tokens", type=int, default=128, help="new ones")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--products", action="store_true", help="a column of the products alone")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        side, folder, *numbers = arguments.one
        sides = {
            "make": make,
            "ours": measure_keras_bert,
            "theirs": measure_transformers,
            "products": products,
        }
        sides["compiled"] = functools.partial(measure_keras_bert, jit_compile=True)
        sides[side](Path(folder), *numbers)
        return
    sides = [*SIDES, "products"] if arguments.products else SIDES
    columns = ["model", "batch", "ours, tokens/s", "jit_compile", "transformers", "ratios"]
    columns += ["products alone"] if arguments.products else []
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    threads, count = str(arguments.threads), str(arguments.tokens)
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as folder:
            one = [sys.executable, __file__, "--one"]
            subprocess.run([*one, "make", folder, size, "0", threads], check=True)
            for batch in arguments.batches:
                rates, tokens = {side: [] for side in sides}, {}
                for _ in range(arguments.rounds):
                    for side in sides:
                        command = [*one, side, folder, str(batch), count, threads]
                        done = subprocess.run(command, check=True, capture_output=True, text=True)
                        measurement = json.loads(done.stdout.splitlines()[-1])
                        rates[side].append(batch * arguments.tokens / measurement["seconds"])
                        tokens[side] = measurement["tokens"]
                if not tokens["ours"] == tokens["compiled"] == tokens["theirs"]:
                    sys.exit(f"{size}, batch {batch}: the tokens differ.")
                middle = {side: statistics.median(rates[side]) for side in sides}
                cells = [size, str(batch), *(f"{middle[side]:.0f}" for side in sides)]
                ratios = [middle[side] / middle["theirs"] for side in SIDES[:-1]]
                cells.insert(2 + len(SIDES), ", ".join(f"{ratio:.1f}" for ratio in ratios))
                print(f"| {' | '.join(cells)} |", flush=True)


def make(folder, size, _, threads):
    """Writes a random model."""
    import torch
    import transformers

    from keras_bert.encoders import presets

    rows = VOCABULARY[size]
    sizes = presets()[size].preset(size, vocab_size=rows).to_dict()
    names = ("n_embd", "n_layer", "n_head", "n_positions")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=rows,
        bos_token_id=None,
        eos_token_id=None,
        # Large weights, so that the best token is far from the second and repetition is rare.
        initializer_range=0.1,
        **{name: sizes[name] for name in names},
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = [*special, *(f"w{number}" for number in range(rows - len(special)))]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")


def prompts(rows, batch):
    return np.random.default_rng(0).integers(0, rows, (int(batch), PROMPT)).astype(np.int32)


def tensorflow(threads):
    """TensorFlow as our commands have it."""
    from keras_bert.cli.cpu import configure_cpu

    configure_cpu()
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    tf.config.threading.set_inter_op_parallelism_threads(int(threads))
    return tf


def measure_keras_bert(folder, batch, count, threads, *, jit_compile=False):
    tf = tensorflow(threads)
    from keras_bert.checkpoints import load_task
    from keras_bert.tasks.pretraining.generation import NO_TOKEN, Generator, Sampling

    task = load_task(folder)
    generator = Generator(task, compiled=False)
    generator.end_id = NO_TOKEN - 1  # none of them
    generator._compile()
    ids = prompts(task.config.vocab_size, batch)
    inputs = {"input_ids": tf.constant(ids), "input_mask": tf.ones_like(ids)}
    sampling = Sampling.of(len(ids), max_tokens=int(count), top_k=1)
    proceed = generator.proceed_with_xla if jit_compile else generator.proceed

    def generate():
        state = generator.begin(generator.read(inputs, PROMPT + int(count)), sampling)
        tokens, _ = proceed(state, sampling, int(count) - 1)
        return np.concatenate([state.token.numpy()[None], tokens.numpy()]).T

    measure(generate)


def products(folder, batch, count, threads):
    tf = tensorflow(threads)
    config = json.loads((folder / "config.json").read_text())
    size, batch, count = config["n_embd"], int(batch), int(count)

    def random(*shape):
        return tf.Variable(tf.random.normal(shape, stddev=0.02))

    shapes = [(size, 3 * size), (size, size), (size, 4 * size), (4 * size, size)]
    layers = [[random(*shape) for shape in shapes] for _ in range(config["n_layer"])]
    table = random(config["vocab_size"], size)

    def next_token(number, x, logits):
        for query_key_value, projection, dense_in, dense_out in layers:
            x = tf.matmul(tf.matmul(x, query_key_value)[:, :size], projection)
            x = tf.matmul(tf.matmul(x, dense_in), dense_out)
        return number + 1, x, tf.matmul(x, table, transpose_b=True)

    @tf.function(autograph=False)
    def loop(x):
        state = 0, x, tf.zeros([batch, config["vocab_size"]])
        return tf.while_loop(
            lambda number, *_: number < count, next_token, state, parallel_iterations=1
        )

    x = tf.random.normal([batch, size])
    measure(lambda: loop(x)[2].numpy()[:, :0])


def measure_transformers(folder, batch, count, threads):
    import torch
    import transformers

    torch.set_num_threads(int(threads))
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    ids = torch.tensor(prompts(model.config.vocab_size, batch)).long()

    def generate():
        with torch.inference_mode():
            sequences = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=int(count),
                do_sample=False,
                use_cache=True,
                pad_token_id=0,
            )
        return sequences.numpy()[:, PROMPT:]

    measure(generate)


def measure(generate):
    """Prints the seconds of a call, after one to warm up, and its tokens."""
    generate()
    began = time.perf_counter()
    tokens = generate()
    print(json.dumps({"seconds": time.perf_counter() - began, "tokens": tokens.tolist()}))


if __name__ == "__main__":
    main()
