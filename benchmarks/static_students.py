"""Static students of MiniLM, beside model2vec's own: Spearman on STS, nDCG@10 on XQuAD, speed.

    python benchmarks/static_students.py --output runs/static
    ENVIRONMENT/bin/python benchmarks/static_students.py --output runs/static --model2vec

The second command, in an environment with model2vec and PyTorch, writes OUTPUT/model2vec (float32,
256 numbers); it may be left out. The first measures the teacher, the static
students of 64, 128 and 256 numbers, one that is trained on 50,000 sentences of the books (with
`--trained`), and what the second has written, all by `keras_bert.evaluate` with the same texts: the
3,000 pairs of STS, and XQuAD's English questions, each with its paragraph among all. Speed is in
texts per processor second, of the sentences of STS in batches of 256. The same command resumes.
"""

import argparse
import json
import time
from pathlib import Path

from needed import minilm_folder
from real_tasks import DATA
from turns import Turns


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=DATA)
    parser.add_argument("--sizes", nargs="+", type=int, default=[64, 128, 256])
    parser.add_argument("--trained", action="store_true", help="also the one trained on the books")
    parser.add_argument("--model2vec", action="store_true", help="write model2vec's student")
    parser.add_argument("--teacher", type=Path, help="the folder of MiniLM")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    teacher = arguments.teacher or minilm_folder(data=arguments.folder)
    if arguments.model2vec:
        from model2vec.distill import distill

        distill(str(teacher), quantize_to="float32").save_pretrained(
            str(arguments.output / "model2vec")
        )
        return
    turns = Turns(arguments.output / "cells.jsonl", {}, lambda line: print(line, flush=True))
    models = {"teacher": lambda: teacher}
    models |= {f"static, {n}": lambda n=n: static(arguments, teacher, n) for n in arguments.sizes}
    if arguments.trained:
        models["static, trained"] = lambda: trained(arguments, teacher)
    if (arguments.output / "model2vec").exists():
        models["model2vec, 256"] = lambda: arguments.output / "model2vec"
    for name, make in models.items():
        turns.result({"model": name}, lambda model, make=make: measured(arguments, make()))
    print("\n".join(table(turns.lines())))


def static(arguments, teacher, size):
    import keras_bert as kb

    output = arguments.output / f"static-{size}"
    kb.distill(teacher=teacher, static=True, dimensions=size, output=output, force=True)
    return output


def trained(arguments, teacher):
    from distilled import book_sentences

    import keras_bert as kb

    output = arguments.output / "trained"
    data = book_sentences(arguments.folder / "books", 50_000)
    kb.distill(teacher=teacher, static=True, data=data, output=output)
    return output


def measured(arguments, model):
    """Spearman, nDCG@10, numbers and megabytes of a folder, and its texts per processor second."""
    import keras_bert as kb

    task = kb.load_task(model)
    pairs = sts(arguments.folder)
    pair_metrics = kb.evaluate(model=task, data=pairs)
    question_metrics = kb.evaluate(model=task, data=xquad(arguments.folder))
    texts = [text for pair in pairs for text in (pair["sentence1"], pair["sentence2"])]
    task.encode(texts[:256], batch_size=256)
    begin = time.process_time()
    task.encode(texts, batch_size=256)
    seconds = time.process_time() - begin
    return {
        "spearman": round(pair_metrics["spearman"], 4),
        "ndcg@10": round(question_metrics["ndcg@10"], 4),
        "numbers": task.size_of(None),
        "megabytes": round(4 * task.count_params() / 1e6, 1),
        "texts_per_second": round(len(texts) / seconds),
    }


def sts(folder):
    lines = (folder / "sts" / "2015.train.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [{"sentence1": a, "sentence2": b, "score": score} for score, a, b in rows if score]


def xquad(folder):
    return [
        {"question": question["question"], "context": paragraph["context"]}
        for document in json.loads((folder / "xquad" / "en.json").read_text("utf-8"))["data"]
        for paragraph in document["paragraphs"]
        for question in paragraph["qas"]
    ]


def table(lines):
    names = ("spearman", "ndcg@10", "numbers", "megabytes", "texts_per_second")
    yield f"| model | {' | '.join(names)} |"
    yield "|---|" + "---|" * len(names)
    for line in lines:
        yield f"| {line['model']} | " + " | ".join(str(line[name]) for name in names) + " |"


if __name__ == "__main__":
    main()
