"""How fast a fine-tuning step can be: ours, PyTorch's, and the kernels that none goes without.

    python benchmarks/training_floor.py
    python benchmarks/training_floor.py --task tagger --texts 16 --length 24

trains a classifier or a tagger with MiniLM's weights on batches of texts of one length, in turns
with the same of `transformers`, and beside both runs TensorFlow's kernels alone (kernels.py; of a
classifier the last block's for the first tokens alone, as ours computes it). Medians of a step, and
PyTorch's over them. The processor is used as each side's commands have it (of ours, see
keras_bert.cli.cpu).
"""

import argparse
import json
import os
import statistics
import time
from pathlib import Path

import peers  # noqa: F401

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import real_tasks
from kernels import DECAY, NORM, RATE, Kernels
from needed import minilm_folder

from keras_bert.cli.cpu import configure_cpu

# The class of `transformers`, our class, and the labels.
TASKS = {
    "classifier": ("AutoModelForSequenceClassification", "Classifier", ["negative", "positive"]),
    "tagger": ("AutoModelForTokenClassification", "Tagger", ["O", "B-NAME", "I-NAME"]),
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=real_tasks.DATA)
    parser.add_argument("--task", choices=TASKS, default="classifier")
    parser.add_argument("--texts", type=int, default=32, help="of a batch")
    parser.add_argument("--length", type=int, default=24, help="tokens of a text")
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    configure_cpu()
    minilm = minilm_folder(data=arguments.data)
    rng, shape = np.random.default_rng(0), (arguments.texts, arguments.length)
    ids = rng.integers(1000, 30_000, shape)
    config = json.loads((minilm / "config.json").read_text())
    their_class, our_class, names = TASKS[arguments.task]
    is_per_token = arguments.task == "tagger"
    labels = rng.integers(0, len(names), shape if is_per_token else arguments.texts)
    task = our_task(minilm, our_class, names)
    products = products_of(config, shape=shape, all_tokens_are_read=is_per_token)
    inner = config["intermediate_size"]
    gelus = [(rows, out) for rows, _, out in products if out == inner]
    kernels = Kernels(products, task.trainable_variables, gelus=gelus)
    sides = {
        "transformers": transformers_step(minilm, their_class, ids, labels, count=len(names)),
        "ours": our_step(task, ids, labels),
        "the products": kernels.step(),
        "… and gelu": kernels.step(gelu=True),
        "… and AdamW": kernels.step(gelu=True, adamw=True),
    }
    seconds = {side: [] for side in sides}
    for number in range(5 + arguments.steps):
        for side, step in sides.items():
            started = time.perf_counter()
            step()
            if number >= 5:
                seconds[side].append(time.perf_counter() - started)
    peer = statistics.median(seconds["transformers"])
    print("| a step | ms | as fast as transformers |\n|---|---|---|")
    for side, taken in seconds.items():
        median = statistics.median(taken)
        print(f"| {side} | {1e3 * median:.0f} | {peer / median:.2f} times |")


def our_task(minilm, class_name, labels):
    """A task that reads what the class of `transformers` reads, compiled as `finetune` does."""
    import keras_bert as kb

    encoder, tokenizer = kb.load(minilm)
    pooling = {"pooling": "cls"} if class_name == "Classifier" else {}
    task = getattr(kb, class_name)(encoder, tokenizer, labels=labels, **pooling)
    task.compile_defaults(learning_rate=RATE)
    return task


def our_step(task, ids, labels):
    import tensorflow as tf

    inputs = {
        "input_ids": tf.constant(ids, tf.int32),
        "input_mask": tf.ones(ids.shape, tf.int32),
        "segment_ids": tf.zeros(ids.shape, tf.int32),
    }
    labels = tf.constant(labels, tf.int32)
    return lambda: task.train_on_batch(inputs, labels)


def transformers_step(minilm, class_name, ids, labels, *, count):
    """A step as `Trainer` makes it."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    model = getattr(transformers, class_name).from_pretrained(minilm, num_labels=count).train()
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=DECAY, fused=True)
    inputs = {
        "input_ids": torch.tensor(ids),
        "attention_mask": torch.ones(ids.shape, dtype=torch.long),
        "labels": torch.tensor(labels),
    }

    def step():
        loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), NORM)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def products_of(config, *, shape, all_tokens_are_read):
    """(rows, into, out) of each product of a step's dense layers, forward."""
    wide, inner = config["hidden_size"], config["intermediate_size"]
    everywhere = read = shape[0] * shape[1]
    if not all_tokens_are_read:
        read = shape[0]
    block = [(wide, 3 * wide), (wide, wide), (wide, inner), (inner, wide)]
    last = [(everywhere, wide, 2 * wide), (read, wide, wide)]  # keys and values; queries
    last += [(read, *kernel) for kernel in block[1:]]
    before = [(everywhere, *kernel) for kernel in block] * (config["num_hidden_layers"] - 1)
    return before + last


if __name__ == "__main__":
    main()
