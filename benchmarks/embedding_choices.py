"""The feature-based choices of the BERT paper (table 7) on WNUT-17: what a BiLSTM makes of each.

    python benchmarks/embedding_choices.py --output runs/choices

computes the vectors of each word's first piece once for each choice of layers (`kb.embed`, MiniLM's
weights), trains the package's two layers of BiLSTM, which pass padding over, and a dense layer on
them, and prints the entities' F1 on dev (seqeval's), mean and deviation over the seeds. Each
training is a line of OUTPUT/results.jsonl; stopped and started again, it goes on.
"""

import argparse
import functools
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import real_tasks
from finetuning import minilm, spread
from seqeval.metrics import f1_score
from turns import Turns

import keras_bert as kb
from keras_bert.heads.reader import BiLstm

CHOICES = ("first", "second-to-last", "last", "sum-last-4", "concat-last-4", "sum-all")
BATCH_SIZE = 32


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=real_tasks.DATA)
    parser.add_argument("--units", type=int, default=192, help="of a BiLSTM, each way")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--num-seeds", type=int, default=3)
    parser.add_argument("--choices", nargs="+", choices=CHOICES, default=CHOICES)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    inferred_arguments = {"units": arguments.units, "epochs": arguments.epochs}
    results = arguments.output / "results.jsonl"
    turns = Turns(results, inferred_arguments, lambda line: print(line, file=sys.stderr))
    print("| layers | F1 on dev |\n|---|---|")
    for layers in arguments.choices:
        work = functools.partial(trained, arguments)
        runs = [
            turns.result({"layers": layers, "seed": seed}, work)
            for seed in range(arguments.num_seeds)
        ]
        print(f"| {layers} | {spread([run['f1'] for run in runs])} |", flush=True)


def trained(arguments, *, layers, seed):
    """Trains on the vectors of a choice; returns the F1 of the last epoch."""
    (train, train_tags), (dev, dev_tags) = (
        read(arguments.data / "wnut17" / f"{name}.conll", layers) for name in ("train", "dev")
    )
    labels = sorted({tag for tags in train_tags for tag in tags})
    keras.utils.set_random_seed(seed)
    model = tagger(train[0].shape[-1], units=arguments.units, labels=len(labels))
    steps = arguments.epochs * -(-len(train) // BATCH_SIZE)
    rate = keras.optimizers.schedules.PolynomialDecay(1e-3, steps, 0.0)
    model.compile(keras.optimizers.Adam(rate), loss="sparse_categorical_crossentropy")
    order = np.random.default_rng(seed)
    for _ in range(arguments.epochs):
        places = order.permutation(len(train))
        for first in range(0, len(places), BATCH_SIZE):
            some = places[first : first + BATCH_SIZE]
            inputs = padded([train[place] for place in some])
            mask = inputs["mask"]
            ids = np.zeros(mask.shape, "int32")
            for row, place in enumerate(some):
                tags = train_tags[place]
                ids[row, : len(tags)] = [labels.index(tag) for tag in tags]
            model.train_on_batch(inputs, ids, sample_weight=mask.astype("float32"))
    predicted_tags = []
    for first in range(0, len(dev), BATCH_SIZE):
        some = dev[first : first + BATCH_SIZE]
        most_probable = np.argmax(model.predict_on_batch(padded(some)), axis=-1)
        predicted_tags += [
            [labels[tag] for tag in row[: len(words)]]
            for row, words in zip(most_probable, some, strict=True)
        ]
    return {"f1": float(f1_score(dev_tags, predicted_tags))}


@functools.lru_cache(maxsize=2)
def read(path, layers):
    """-> (vectors (words, D) of each sentence, its tags)."""
    sentences, tags = real_tasks.wnut17(path)
    texts = [" ".join(words) for words in sentences]
    vectors = []
    embedded = kb.embed(model=minilm(), data=texts, layers=layers, tokens="subwords")
    for words, tokens in zip(sentences, embedded, strict=True):
        places = dict(
            zip(reversed(tokens.starts), reversed(range(len(tokens.starts))), strict=True)
        )
        starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
        sentence_vectors = np.zeros((len(words), tokens.vectors.shape[-1]), "float32")
        for number, start in enumerate(starts):
            if start in places:  # a word of nothing but what BERT drops has no piece
                sentence_vectors[number] = tokens.vectors[places[start]]
        vectors.append(sentence_vectors)
    return vectors, tags


def padded(vectors):
    """-> `vectors` (B, S, D), `mask` (B, S); S is a multiple of 16, for few shapes to be traced."""
    length = -(-max(map(len, vectors)) // 16) * 16
    rows = np.zeros((len(vectors), length, vectors[0].shape[-1]), "float32")
    mask = np.zeros(rows.shape[:2], "int32")
    for number, words in enumerate(vectors):
        rows[number, : len(words)] = words
        mask[number, : len(words)] = 1
    return {"vectors": rows, "mask": mask}


def tagger(width, *, units, labels):
    """The result of `padded` -> probabilities of tags (B, S, labels)."""
    inputs = {
        "vectors": keras.Input((None, width), name="vectors"),
        "mask": keras.Input((None,), dtype="int32", name="mask"),
    }
    states = BiLstm(units=units)(inputs["vectors"], inputs["mask"])
    return keras.Model(inputs, keras.layers.Dense(labels, activation="softmax")(states))


if __name__ == "__main__":
    main()
