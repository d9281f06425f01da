"""Each way to make a text embedder smaller, for one teacher, MiniLM: size, speed and quality.

    python benchmarks/smaller_embedders.py --output runs/smaller
    ENVIRONMENT/bin/python benchmarks/smaller_embedders.py --output runs/smaller --model2vec
    python benchmarks/smaller_embedders.py --output runs/smaller --picture smaller.png

The first command measures the teacher; its int8 export; the teacher with the tokens of the measured
texts alone; three of its six layers, trained toward its vectors on sentences of the books
(`--sentences`, one epoch); static students of 64, 128 and 256 numbers, and one that is trained on
the same sentences. The second, in an environment with model2vec and PyTorch, writes
OUTPUT/model2vec (float32, 256 numbers), which the first then measures, too; it may be left out.

Everything is measured on the SavedModel of a model: its megabytes, Spearman's correlation on the
3,000 pairs of STS, nDCG@10 of XQuAD's English questions, each with its paragraph among all, and
sentences of STS per processor second in batches of 32. The same command resumes.
"""

import argparse
import json
import shutil
import time
from functools import partial
from pathlib import Path

import numpy as np
from needed import minilm_folder
from real_tasks import DATA
from turns import Turns

SIZES = (64, 128, 256)
MARKERS = "o^vs<>DPX"
NAMES = ("spearman", "ndcg@10", "numbers", "megabytes", "texts_per_second")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=DATA)
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--model2vec", action="store_true", help="write model2vec's student")
    parser.add_argument("--teacher", type=Path, help="the folder of MiniLM")
    parser.add_argument("--picture", type=Path, help="draw quality and size, NAME.png")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    settings = {"sentences": arguments.sentences}
    path = arguments.output / "cells.jsonl"
    turns = Turns(path, settings, lambda line: print(line, flush=True))
    if arguments.picture:
        draw(turns.lines(), arguments.picture)
        return
    teacher = arguments.teacher or minilm_folder(data=arguments.folder)
    if arguments.model2vec:
        from model2vec.distill import distill

        distill(str(teacher), quantize_to="float32").save_pretrained(
            str(arguments.output / "model2vec")
        )
        return
    for name, make, precision in ways(arguments, teacher):
        turns.result(
            {"model": name},
            lambda model, make=make, precision=precision: measured(arguments, make(), precision),
        )
    print("\n".join(table(turns.lines())))


def ways(arguments, teacher):
    """Yields (a name, a function that returns the folder, the precision of its export)."""
    # Imported here, as model2vec's environment needs no TensorFlow.
    from distilled import book_sentences

    import keras_bert as kb

    def student(name, **given):
        output = arguments.output / name
        kb.distill(teacher=teacher, output=output, **given)
        return output

    def fewer_tokens():
        texts = [text for texts in measured_texts(arguments.folder) for text in texts]
        kb.convert(teacher, arguments.output / "cut", vocab_from=texts)
        return arguments.output / "cut"

    data = book_sentences(arguments.folder / "books", arguments.sentences)
    yield "teacher", lambda: teacher, "float32"
    yield "int8", lambda: teacher, "int8"
    yield "fewer tokens", fewer_tokens, "float32"
    layers = {"data": data, "keep_layers": [0, 2, 4], "epochs": 1}
    yield "3 layers", partial(student, "layers", **layers), "float32"
    for size in SIZES:
        static = partial(student, f"static-{size}", static=True, dimensions=size, force=True)
        yield f"static {size}", static, "float32"
    yield "static, trained", partial(student, "trained", static=True, data=data), "float32"
    if (arguments.output / "model2vec").exists():
        yield "model2vec 256", lambda: arguments.output / "model2vec", "float32"


def measured(arguments, folder, precision):
    """The figures of the SavedModel of a folder."""
    import tensorflow as tf

    import keras_bert as kb
    from keras_bert.tasks.text_embedding.metrics import (
        pair_similarities,
        rated_pair_metrics,
        retrieval_metrics,
        similarities,
    )

    place = arguments.output / "export"
    shutil.rmtree(place, ignore_errors=True)
    version = kb.export(model=folder, output=place, precision=precision)
    size = sum(path.stat().st_size for path in Path(version).rglob("*") if path.is_file())
    loaded = tf.saved_model.load(str(version))
    answer = loaded.signatures["serving_default"]

    def encode(texts):
        order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
        batches = [order[n : n + 32] for n in range(0, len(texts), 32)]
        vectors = [
            answer(text=tf.constant([texts[n] for n in batch]))["embedding"] for batch in batches
        ]
        return np.concatenate(vectors)[np.argsort(order)]

    first, second, scores = sts(arguments.folder)
    questions, contexts, answered = xquad(arguments.folder)
    encode(first[:64])
    begin = time.process_time()
    vectors = encode(first + second)
    seconds = time.process_time() - begin
    similarity = pair_similarities(*np.split(vectors, 2))
    found = similarities(encode(questions), encode(contexts))
    ranked = np.argsort(-found, axis=1, kind="stable")[:, :100].tolist()
    shutil.rmtree(place)
    return {
        "spearman": round(rated_pair_metrics(similarity, scores)["spearman"], 4),
        "ndcg@10": round(retrieval_metrics(ranked, [{n: 1.0} for n in answered])["ndcg@10"], 4),
        "numbers": vectors.shape[1],
        "megabytes": round(size / 1e6, 1),
        "texts_per_second": round(len(vectors) / seconds),
    }


def measured_texts(folder):
    """The lists of texts that are encoded."""
    return *sts(folder)[:2], *xquad(folder)[:2]


def sts(folder):
    """-> (the first texts, the second ones, the scores) of the rated pairs."""
    lines = (folder / "sts" / "2015.train.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    scores, first, second = zip(*(row for row in rows if row[0]), strict=True)
    return [*first], [*second], [*map(float, scores)]


def xquad(folder):
    """-> (the questions, the paragraphs, for each question the number of its paragraph)."""
    documents = json.loads((folder / "xquad" / "en.json").read_text("utf-8"))["data"]
    paragraphs = [paragraph for document in documents for paragraph in document["paragraphs"]]
    questions = [
        (question["question"], number)
        for number, paragraph in enumerate(paragraphs)
        for question in paragraph["qas"]
    ]
    texts, answered = zip(*questions, strict=True)
    return [*texts], [paragraph["context"] for paragraph in paragraphs], [*answered]


def table(lines):
    """Lines of Markdown."""
    yield f"| model | {' | '.join(NAMES)} |"
    yield "|---|" + "---|" * len(NAMES)
    for line in lines:
        yield f"| {line['model']} | " + " | ".join(str(line[name]) for name in NAMES) + " |"


def draw(lines, picture):
    """Draws the quality of each model by its size."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    labels = {"megabytes": "SavedModel, MB", "texts_per_second": "texts per processor second"}
    for place, (name, label) in zip(axes, labels.items(), strict=True):
        for line, marker in zip(lines, MARKERS, strict=False):
            place.plot(line[name], line["ndcg@10"], marker, markersize=9, label=line["model"])
        place.set(xscale="log", xlabel=label)
        place.xaxis.set_major_formatter("{x:,.0f}")
        place.grid(alpha=0.3)
    axes[0].set_ylabel("nDCG@10 on XQuAD")
    axes[1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
