"""The speed of skip-gram and CBOW beside word2vec's algorithm in C, PyTorch's, and gensim's.

Tokens of a data folder a second, those that subsampling drops included, by the wall clock, with the
same vocabulary, size, window, negatives and threads:

- ours: the steps of `pretrain`, as fast as batches are made and trained on (`fit`'s loop)
- C: word2vec.c beside this file, compiled here with gcc -O3 -march=native -ffast-math: one token
  after another, as the published program and gensim's Cython do it. The floor of that algorithm.
- PyTorch: two `nn.Embedding(sparse=True)` and Adagrad, k negatives of their own for each pair
- gensim: `Word2Vec`, if it is installed

All train one epoch in each turn and take turns, so that the ratios hold on a busy machine; a figure
is the median of its turns. With --epochs N the held-out loss of ours and of C after N epochs is
printed, by the same evaluation, which is what the speed is worth.

    python benchmarks/static_vectors.py --data DATA --vocab vocab.txt
    python benchmarks/static_vectors.py --data DATA --vocab vocab.txt --cbow --size 300
    python benchmarks/static_vectors.py --data DATA --vocab vocab.txt --epochs 5
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # keras_bert.cli.cpu

import argparse
import ctypes
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import keras
import numpy as np

import keras_bert as kb
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.records import DataFolder
from keras_bert.tasks.pretraining.static_vectors import ContextWindows
from keras_bert.text.tokenizer import Tokenizer

RATE = 0.025  # of word2vec and gensim; CBOW's is 0.05
PAIRS = 8192  # of a step in PyTorch


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--window", type=int, default=5)
    parser.add_argument("--negatives", type=int, default=5)
    parser.add_argument("--subsample", type=float, default=1e-3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--cbow", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="the held-out loss after so many")
    options = parser.parse_args()
    corpus = Corpus(options)
    print(f"{corpus.count:,} tokens, {len(corpus.tokenizer):,} in the vocabulary, {options}")
    if options.epochs:
        for name, tables in (("ours", ours_tables(corpus)), ("C", c_tables(corpus))):
            print(f"{name}: held-out loss {held_out_loss(corpus, tables):.4f}")
        return
    contenders = {"ours": ours(corpus), "C": in_c(corpus), "PyTorch": in_torch(corpus)}
    if (one := in_gensim(corpus)) is not None:
        contenders["gensim"] = one
    speeds = {name: [] for name in contenders}
    for turn in range(1 + options.rounds):
        for name, run in contenders.items():
            began = time.perf_counter()
            count = run()
            if turn:  # the first one compiles
                speeds[name].append(count / (time.perf_counter() - began))
    for name, side_speeds in speeds.items():
        ratio = statistics.median(speeds["ours"]) / statistics.median(side_speeds)
        speed = statistics.median(side_speeds)
        print(f"{name:8} {speed:12,.0f} tokens/s; ours is {ratio:.2f} times that")


class Corpus:
    """The train split of a data folder: its tokens without special ones, sequence by sequence."""

    def __init__(self, options):
        self.options = options
        self.folder = DataFolder.open(options.data)
        self.tokenizer = Tokenizer.from_vocab(options.vocab)
        vocabulary = self.tokenizer.vocabulary
        import tensorflow as tf

        ids = []
        for batch in tf.data.TFRecordDataset(self.folder.shards("train")).batch(1024):
            ids.append(self.folder.spec.parse(batch)["input_ids"])
        ids = tf.concat(ids, axis=0)
        is_text = ~np.isin(ids.values.numpy(), vocabulary.special_ids)
        sequence = ids.value_rowids().numpy()[is_text]
        self.tokens = np.ascontiguousarray(ids.values.numpy()[is_text])
        self.starts = np.searchsorted(sequence, np.arange(int(ids.nrows()) + 1)).astype(np.int64)
        self.count = len(self.tokens)
        self.windows = ContextWindows(
            self.folder.card.unigram_counts,
            vocabulary.special_ids,
            window=options.window,
            subsample=options.subsample,
        )

    def new_vectors(self):
        size = self.options.size
        draw = np.random.default_rng(0).uniform(-0.5, 0.5, (len(self.tokenizer), size)) / size
        return draw.astype(np.float32)


def new_task(corpus):
    options = corpus.options
    keras.utils.set_random_seed(0)
    config = kb.StaticConfig(vocab_size=len(corpus.tokenizer), hidden_size=options.size)
    kind = kb.Cbow if options.cbow else kb.SkipGram
    given = {name: getattr(options, name) for name in ("window", "negatives", "subsample")}
    return kind(kb.StaticEncoder(config), corpus.tokenizer, **given)


def ours(corpus):
    options = corpus.options
    task = new_task(corpus)
    steps = corpus.folder.card.splits["train"].instances // options.batch_size
    task.compile_defaults(
        make_optimizer(
            task,
            optimizer="adagrad",
            learning_rate=options.learning_rate,
            warmup=0.0,
            weight_decay=0.0,
            steps=steps * (1 + options.rounds),
        )
    )
    task.make_train_function()
    batches = iter(task.dataset(corpus.folder, batch_size=options.batch_size))

    def epoch():
        for _ in range(steps):
            logs = task.train_function(batches)
        keras.tree.map_structure(np.asarray, logs)  # waits for the last step
        return steps * options.batch_size * corpus.count / (len(corpus.starts) - 1)

    return epoch


def in_c(corpus, tables=None):
    options = corpus.options
    v, u = tables or (corpus.new_vectors(), np.zeros_like(corpus.new_vectors()))
    source = Path(__file__).with_name("word2vec.c")
    library = Path(tempfile.mkdtemp()) / "word2vec.so"
    flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", "-pthread", "-lm"]
    subprocess.run(["gcc", str(source), *flags, "-o", str(library)], check=True)
    program = ctypes.CDLL(str(library))
    rng = np.random.default_rng(0)
    table = rng.choice(len(v), 1_000_000, p=corpus.windows.negative).astype(np.int32)
    keep_rates = corpus.windows.kept.astype(np.float32)

    def epochs(count=1):
        def pointer(array):
            return array.ctypes.data_as(ctypes.c_void_p)

        program.train(
            pointer(corpus.tokens),
            pointer(corpus.starts),
            ctypes.c_int64(len(corpus.starts) - 1),
            pointer(keep_rates),
            pointer(table),
            ctypes.c_int64(len(table)),
            pointer(v),
            pointer(u),
            options.size,
            options.window,
            options.negatives,
            int(options.cbow),
            ctypes.c_float(2 * RATE if options.cbow else RATE),
            ctypes.c_int64(count),
            options.threads,
        )
        return count * corpus.count

    return epochs


def in_torch(corpus):
    """A part of an epoch: it is slower by so much."""
    import torch

    options, windows = corpus.options, corpus.windows
    torch.set_num_threads(options.threads)
    shape = (len(corpus.tokenizer), options.size)
    v, u = (torch.nn.Embedding(*shape, sparse=True) for _ in range(2))
    optimizer = torch.optim.Adagrad([*v.parameters(), *u.parameters()], lr=0.05)
    rng = np.random.default_rng(0)
    part = 100_000

    def step(centers, contexts, mean):
        negatives = rng.choice(shape[0], (len(centers), options.negatives), p=windows.negative)
        h = v(torch.from_numpy(contexts))
        h = (h * mean[..., None]).sum(1) if options.cbow else h
        target = u(torch.from_numpy(centers))
        positive = torch.nn.functional.softplus(-(h * target).sum(-1))
        others = u(torch.from_numpy(negatives))
        negative = torch.nn.functional.softplus(torch.einsum("nd,nkd->nk", h, others)).sum(-1)
        optimizer.zero_grad()
        (positive + negative).mean().backward()
        optimizer.step()

    def epoch():
        tokens = corpus.tokens[:part]
        tokens = tokens[rng.random(part) < windows.kept[tokens]].astype(np.int64)
        reach = rng.integers(1, options.window + 1, len(tokens))
        offsets = np.array([o for o in range(-options.window, options.window + 1) if o])
        positions = (np.arange(len(tokens))[:, None] + offsets) % len(tokens)
        is_context = abs(offsets) <= reach[:, None]
        if options.cbow:
            mean = torch.from_numpy((is_context / is_context.sum(1, keepdims=True)).astype("f4"))
            for i in range(0, len(tokens), PAIRS):
                part_of = slice(i, i + PAIRS)
                step(tokens[part_of], tokens[positions[part_of]], mean[part_of])
            return part
        centers, columns = np.nonzero(is_context)
        contexts = tokens[positions[centers, columns]]
        for i in range(0, len(centers), PAIRS):
            part_of = slice(i, i + PAIRS)
            step(tokens[centers[part_of]], contexts[part_of], None)
        return part

    return epoch


def in_gensim(corpus):
    try:
        from gensim.models import Word2Vec
    except ImportError:
        return None
    options = corpus.options
    names = corpus.tokenizer.vocabulary.tokens
    parts = np.split(corpus.tokens, corpus.starts[1:-1])
    sentences = [[names[id] for id in part] for part in parts]
    model = Word2Vec(
        vector_size=options.size,
        window=options.window,
        negative=options.negatives,
        sample=options.subsample,
        sg=not options.cbow,
        workers=options.threads,
        min_count=1,
    )
    model.build_vocab(sentences)

    def epoch():
        model.train(sentences, total_examples=len(sentences), epochs=1)
        return corpus.count

    return epoch


def ours_tables(corpus):
    options = corpus.options
    steps = options.epochs * corpus.folder.card.splits["train"].instances // options.batch_size
    task = new_task(corpus)
    given = {"optimizer": "adagrad", "warmup": 0.0, "weight_decay": 0.0}
    optimizer = make_optimizer(task, learning_rate=options.learning_rate, steps=steps, **given)
    task.compile_defaults(optimizer)
    task.make_train_function()
    batches = iter(task.dataset(corpus.folder, batch_size=options.batch_size))
    for _ in range(steps):
        task.train_function(batches)
    return task.encoder.embedding.embeddings.numpy(), task.contexts.output_vectors.numpy()


def c_tables(corpus):
    tables = corpus.new_vectors(), np.zeros_like(corpus.new_vectors())
    in_c(corpus, tables)(corpus.options.epochs)
    return tables


def held_out_loss(corpus, tables):
    task = new_task(corpus)
    task.encoder.embedding.embeddings.assign(tables[0])
    task.contexts.output_vectors.assign(tables[1])
    task.compile_defaults()
    batches = task.dataset(corpus.folder, split="eval", batch_size=64)
    logs = task.evaluate(batches, return_dict=True, verbose=0)
    return next(value for name, value in logs.items() if name.endswith("cross_entropy"))


if __name__ == "__main__":
    main()
