"""The speed of LSTMs in training beside Keras's and PyTorch's, alone and in whole models.

Alone, a step is forward and backward over random inputs of full length. A layer of ours
(keras_bert/layers/lstm.py) has the input's product outside its loop and its gradient written out;
Keras's is `keras.layers.LSTM`, as it is and unrolled, which has no projection; PyTorch's is
`torch.nn.LSTM`, which has oneDNN's kernel if there is no projection.

ELMo is a whole pre-training step: two directions of two layers over token embeddings, residuals,
one softmax, clipping and AdamW, with dropout, the same sizes and tokens in both programs.

AWD-LSTM is a whole pre-training step, too: PyTorch's layers are `torch.nn.LSTM` with the dropped
recurrent kernel in place of their own, with the same dropouts and the tied softmax.

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

from keras_bert.encoders.bilm import BilmConfig
from keras_bert.encoders.bilm.encoder import BilmEncoder
from keras_bert.encoders.lstm import AwdLstmConfig
from keras_bert.encoders.lstm.encoder import AwdLstmEncoder
from keras_bert.layers.lstm import Lstm
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.tasks.pretraining.language_models import BidirectionalLM, CausalLM

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
# Name, and rows and tokens of a batch.
AWD_LSTMS = [
    ("awd-lstm-tiny", 32, 128),
    ("awd-lstm-mini", 32, 128),
    ("awd-lstm", 32, 70),
]
QUICK = Shape(2, 8, 6, 8, 4)


def our_step(shape):
    layer = Lstm(
        units=shape.units,
        projection_size=shape.projection,
        cell_clip=None,
        projection_clip=None,
        backward=False,
    )
    return _keras_step(layer, shape)


def keras_step(shape, unroll=False):
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


def torch_step(shape):
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


# A whole step: what ELMo and the AWD-LSTM share.


def _our_optimizer(task):
    return make_optimizer(
        task,
        optimizer="adamw",
        learning_rate=RATE,
        warmup=0.0,
        schedule="constant",
        weight_decay=DECAY,
        clip_norm=NORM,
        steps=None,
    )


def _torch_step(model, loss):
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY, fused=True)

    def step():
        optimizer.zero_grad()
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), NORM)
        optimizer.step()

    return step


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
    task.compile_defaults(_our_optimizer(task))
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
    ids = torch.tensor(ids).long()
    loss = nn.CrossEntropyLoss()

    def losses():
        forward, backward = model(ids)
        total = loss(forward.flatten(0, 1), ids[:, 1:].flatten())
        return (total + loss(backward.flatten(0, 1), ids[:, :-1].flatten())) / 2

    return _torch_step(model, losses)


# A whole step of an AWD-LSTM.


def our_awd_lstm(config, ids):
    task = CausalLM(AwdLstmEncoder(config))
    task.compile_defaults(_our_optimizer(task))
    x = {"input_ids": ids, "input_mask": np.ones_like(ids)}
    y = {"causal_lm": ids[:, 1:]}
    weights = {"causal_lm": np.ones(ids[:, 1:].shape, "float32")}
    return lambda: task.train_on_batch(x, y, weights)


class TorchAwdLstm(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        sizes = [config.hidden_size, *config.layer_sizes]
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.lstms = nn.ModuleList(
            nn.LSTM(inputs, units, batch_first=True)
            for inputs, units in zip(sizes[:-1], sizes[1:], strict=True)
        )
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, ids):
        config, dropout = self.config, nn.functional.dropout

        def for_all_positions(x, rate):
            return x * dropout(torch.ones_like(x[:, :1]), rate)

        word_mask = dropout(torch.ones(config.vocab_size, 1), config.embedding_dropout)
        x = for_all_positions(self.embedding(ids) * word_mask[ids], config.input_dropout)
        for lstm in self.lstms:
            weights = dict(lstm.named_parameters())
            weights["weight_hh_l0"] = dropout(weights["weight_hh_l0"], config.weight_dropout)
            x, _ = torch.func.functional_call(lstm, weights, x)
            is_last = lstm is self.lstms[-1]
            x = for_all_positions(x, config.output_dropout if is_last else config.hidden_dropout)
        return nn.functional.linear(x[:, :-1], self.embedding.weight, self.bias)


def torch_awd_lstm(config, ids):
    model = TorchAwdLstm(config).train()
    ids = torch.tensor(ids).long()
    loss = nn.CrossEntropyLoss()
    return _torch_step(model, lambda: loss(model(ids).flatten(0, 1), ids[:, 1:].flatten()))


# Turns.


def measure(contenders, rounds):
    """{name: milliseconds of a step}, the median of turns; None if there is no such step."""
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


def row(title, milliseconds):
    cells = ["" if value is None else f"{value:.0f}" for value in milliseconds.values()]
    others = [value for name, value in milliseconds.items() if name != "ours" and value is not None]
    return f"| {title} | {' | '.join(cells)} | {min(others) / milliseconds['ours']:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=("layers", "elmo", "awd-lstm"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    given = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    rounds = 1 if given.quick else given.rounds
    if given.only in (None, "layers"):
        print(
            "| batch, length, inputs, units, projection | ours | Keras | Keras unrolled "
            "| PyTorch | fastest other / ours |\n|---|---|---|---|---|---|"
        )
        for shape in [QUICK] if given.quick else LAYERS:
            contenders = {
                "ours": our_step(shape),
                "keras": keras_step(shape),
                "keras unrolled": keras_step(shape, unroll=True),
                "torch": torch_step(shape),
            }
            title = ", ".join("none" if size is None else str(size) for size in shape)
            print(row(title, measure(contenders, rounds)), flush=True)
    if given.only in (None, "elmo"):
        print(
            "\n| ELMo: hidden size, units, vocabulary | ours | PyTorch | PyTorch / ours |"
            "\n|---|---|---|---|"
        )
        batch, length = (2, 8) if given.quick else (32, 128)
        for sizes in [(8, 6, 50)] if given.quick else ELMOS:
            ids = np.random.default_rng(1).integers(0, sizes[2], (batch, length)).astype("int32")
            contenders = {"ours": our_elmo(*sizes, ids), "torch": torch_elmo(*sizes, ids)}
            print(row(", ".join(map(str, sizes)), measure(contenders, rounds)), flush=True)

    if given.only in (None, "awd-lstm"):
        print("\n| AWD-LSTM, batch, length | ours | PyTorch | PyTorch / ours |\n|---|---|---|---|")
        for name, batch, length in [("awd-lstm-tiny", 2, 8)] if given.quick else AWD_LSTMS:
            config = AwdLstmConfig.preset(name, vocab_size=8000)
            ids = np.random.default_rng(1).integers(0, 8000, (batch, length)).astype("int32")
            contenders = {"ours": our_awd_lstm(config, ids), "torch": torch_awd_lstm(config, ids)}
            print(row(f"{name}, {batch}, {length}", measure(contenders, rounds)), flush=True)


if __name__ == "__main__":
    main()
