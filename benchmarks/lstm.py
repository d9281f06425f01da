"""The speed of LSTMs in training beside Keras's and PyTorch's, alone and in a whole ELMo.

Alone, a step is forward and backward over random inputs of full length. A layer of ours
(keras_bert/layers/lstm.py) has the input's product outside its loop and its gradient written out;
Keras's is `keras.layers.LSTM`, as it is and unrolled, which has no projection; PyTorch's is
`torch.nn.LSTM`, which has oneDNN's kernel where there is no projection.

ELMo is a whole pre-training step: two directions of two layers over token embeddings, residuals,
one softmax, clipping and AdamW, with dropout, the same sizes and tokens in both programs.

All contenders take turns in one process, so that the ratios hold on a busy machine; a number is the
median of its turns, in milliseconds.

    python benchmarks/lstm.py
    python benchmarks/lstm.py --only elmo
    python benchmarks/lstm.py --quick               # that it runs
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Threads that wait for work would take the other contenders' processors.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import statistics
import time
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
import torch
from torch import nn

from keras_bert.encoders.bilm.config import BilmConfig
from keras_bert.encoders.bilm.encoder import BilmEncoder
from keras_bert.layers.lstm import Lstm
from keras_bert.tasks.pretraining.bidirectional_lm import BidirectionalLM
from keras_bert.training.optimizers.optimizer import make_optimizer

RATE, DECAY, NORM = 5e-4, 0.01, 1.0
UNROLLED_AT_MOST = 256  # units: tracing takes a minute


class Shape(NamedTuple):
    """B, S, the size of the inputs, U, and the projection or None."""

    batch: int
    length: int
    inputs: int
    units: int
    projection: int | None


# Of elmo-tiny, elmo-mini and elmo-small, and of an AWD-LSTM of medium and of the published size.
LAYERS = [
    Shape(32, 128, 64, 256, 64),
    Shape(32, 128, 128, 512, 128),
    Shape(32, 128, 128, 1024, 128),
    Shape(32, 128, 256, 256, None),
    Shape(32, 70, 400, 1150, None),
]
# (hidden size, units, tokens in the vocabulary) of an ELMo.
ELMOS = [(128, 256, 8000), (256, 512, 8000)]
QUICK = Shape(2, 8, 6, 8, 4)


def ours(shape):
    layer = Lstm(
        units=shape.units,
        projection_size=shape.projection,
        cell_clip=None,
        projection_clip=None,
        backward=False,
    )
    return _keras_step(layer, shape)


def of_keras(shape, unroll=False):
    if shape.projection or (unroll and shape.units > UNROLLED_AT_MOST):
        return None
    return _keras_step(keras.layers.LSTM(shape.units, return_sequences=True, unroll=unroll), shape)


def _keras_step(layer, shape):
    x = tf.constant(_inputs(shape))
    layer.build(x.shape)

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(layer(x, training=True) ** 2)
        return tape.gradient(loss, [x, *layer.trainable_variables])

    return lambda: [gradient.numpy() for gradient in step()]


def of_torch(shape):
    layer = nn.LSTM(shape.inputs, shape.units, proj_size=shape.projection or 0, batch_first=True)
    x = torch.tensor(_inputs(shape), requires_grad=True)

    def step():
        layer.zero_grad()
        y, _ = layer(x)
        (y**2).sum().backward()

    return step


def _inputs(shape):
    rng = np.random.default_rng(0)
    return rng.normal(size=(shape.batch, shape.length, shape.inputs)).astype("float32")


# A whole step of ELMo.


def our_elmo(hidden, units, vocabulary, ids):
    encoder = BilmEncoder(
        BilmConfig(
            vocab_size=vocabulary,
            hidden_size=hidden,
            lstm_size=units,
            character_filters=None,
            cell_clip=None,
            projection_clip=None,
        )
    )
    task = BidirectionalLM(encoder)
    optimizer = make_optimizer(
        task,
        optimizer="adamw",
        learning_rate=RATE,
        warmup=0.0,
        schedule="constant",
        weight_decay=DECAY,
        clip_norm=NORM,
        steps=None,
    )
    task.compile_defaults(optimizer)
    x = {"input_ids": ids, "input_mask": np.ones_like(ids)}
    y = {"forward_lm": ids[:, 1:], "backward_lm": ids[:, :-1]}
    weights = {name: np.ones(ids[:, 1:].shape, "float32") for name in y}
    return lambda: task.train_on_batch(x, y, weights)


class TorchElmo(nn.Module):
    def __init__(self, hidden, units, vocabulary):
        super().__init__()
        size = hidden // 2
        self.embedding = nn.Embedding(vocabulary, size)
        self.lstms = nn.ModuleList(
            nn.LSTM(size, units, proj_size=size, batch_first=True) for _ in range(4)
        )
        self.softmax = nn.Linear(size, vocabulary)
        self.dropout = nn.Dropout(0.1)

    def forward(self, ids):
        x = self.embedding(ids)
        states = []
        for lstms, y in ((self.lstms[:2], x), (self.lstms[2:], x.flip(1))):
            for number, lstm in enumerate(lstms):
                y = self.dropout(y)
                out, _ = lstm(y)
                y = y + out if number else out
            states.append(self.dropout(y))
        forward, backward = states
        return self.softmax(forward[:, :-1]), self.softmax(backward.flip(1)[:, 1:])


def torch_elmo(hidden, units, vocabulary, ids):
    model = TorchElmo(hidden, units, vocabulary).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY, fused=True)
    ids = torch.tensor(ids).long()
    loss = nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        forward, backward = model(ids)
        total = loss(forward.flatten(0, 1), ids[:, 1:].flatten())
        total = (total + loss(backward.flatten(0, 1), ids[:, :-1].flatten())) / 2
        total.backward()
        nn.utils.clip_grad_norm_(model.parameters(), NORM)
        optimizer.step()

    return step


# Turns.


def measure(contenders, rounds):
    """{name: milliseconds of a step}, the median of turns; None where there is no such step."""
    steps = {name: step for name, step in contenders.items() if step is not None}
    for step in steps.values():
        step(), step()
    taken = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            begun = time.perf_counter()
            step()
            taken[name].append(1000 * (time.perf_counter() - begun))
    return {name: statistics.median(taken[name]) if name in taken else None for name in contenders}


def row(what, found):
    cells = ["" if value is None else f"{value:.0f}" for value in found.values()]
    others = [value for name, value in found.items() if name != "ours" and value is not None]
    return f"| {what} | {' | '.join(cells)} | {min(others) / found['ours']:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=("layers", "elmo"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="one small layer and ELMo")
    given = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    rounds = 1 if given.quick else given.rounds
    if given.only != "elmo":
        print(
            "| batch, length, inputs, units, projection | ours | Keras | Keras unrolled "
            "| PyTorch | fastest other / ours |\n|---|---|---|---|---|---|"
        )
        for shape in [QUICK] if given.quick else LAYERS:
            contenders = {
                "ours": ours(shape),
                "keras": of_keras(shape),
                "keras unrolled": of_keras(shape, unroll=True),
                "torch": of_torch(shape),
            }
            what = ", ".join("none" if size is None else str(size) for size in shape)
            print(row(what, measure(contenders, rounds)), flush=True)
    if given.only != "layers":
        print(
            "\n| ELMo: hidden size, units, vocabulary | ours | PyTorch | PyTorch / ours |"
            "\n|---|---|---|---|"
        )
        batch, length = (2, 8) if given.quick else (32, 128)
        for sizes in [(8, 6, 50)] if given.quick else ELMOS:
            ids = np.random.default_rng(1).integers(0, sizes[2], (batch, length)).astype("int32")
            contenders = {"ours": our_elmo(*sizes, ids), "torch": torch_elmo(*sizes, ids)}
            print(row(", ".join(map(str, sizes)), measure(contenders, rounds)), flush=True)


if __name__ == "__main__":
    main()
