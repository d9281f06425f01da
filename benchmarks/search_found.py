"""Retrieval by vectors, by words and by both: questions of XQuAD among passages of books.

    python benchmarks/search_found.py --output runs/search --seeds 0 1 2

The corpus has the paragraphs of XQuAD's English part and passages of about 120 words of the sixteen
books in `../shared/data/books`, 6,000 in all; the queries are the questions of a third of the
documents, each with its paragraph as the relevant one. MiniLM is as published, and trained for one
epoch on the questions of the other two thirds, in batches of 32 (`text_vectors_learned.py`). A cell
is a line of OUTPUT/cells.jsonl; the same command resumes.
"""

import argparse
import json
import random
import shutil
from pathlib import Path

import real_tasks
from needed import minilm_folder
from turns import Turns

import keras_bert as kb

_WORDS, PASSAGES = 120, 6000
_METRICS = ("ndcg@10", "mrr@10", "recall@100")
_TRAINING = {"fields": "anchor=question,positive=context", "max_length": 160}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=real_tasks.DATA)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    train, retrieval = corpus(arguments.folder, arguments.output / "corpus")
    turns = Turns(arguments.output / "cells.jsonl", {}, lambda line: print(line, flush=True))
    for seed in (None, *arguments.seeds):  # None is the model as published
        turns.result({"seed": seed}, lambda seed: found(arguments, train, retrieval, seed=seed))


def corpus(data, folder, *, passages=PASSAGES):
    """-> (training pairs, the retrieval folder, which is written)."""
    documents = json.loads((data / "xquad" / "en.json").read_text("utf-8"))["data"]
    random.Random(0).shuffle(documents)
    edge = len(documents) * 2 // 3
    train, queries, grades, texts = [], [], ["query-id\tcorpus-id\tscore"], []
    for number, document in enumerate(documents):
        for paragraph in document["paragraphs"]:
            id = f"xquad-{len(texts)}"
            texts.append({"_id": id, "title": "", "text": paragraph["context"]})
            for question in paragraph["qas"]:
                if number < edge:
                    pair = {"question": question["question"], "context": paragraph["context"]}
                    train.append(pair)
                else:
                    queries.append({"_id": question["id"], "text": question["question"]})
                    grades.append(f"{question['id']}\t{id}\t1")
    for path in sorted((data / "books").glob("*.txt")):
        words = path.read_text(encoding="utf-8", errors="replace").split()
        parts = [words[n : n + _WORDS] for n in range(0, len(words), _WORDS)]
        texts += [
            {"_id": f"{path.stem}-{n}", "title": "", "text": " ".join(part)}
            for n, part in enumerate(parts)
        ]
    paragraphs = [text for text in texts if text["_id"].startswith("xquad-")]
    others = [text for text in texts if not text["_id"].startswith("xquad-")]
    others = random.Random(1).sample(others, min(len(others), passages - len(paragraphs)))
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, records in (("corpus", paragraphs + others), ("queries", queries)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("\n".join(grades) + "\n", encoding="utf-8")
    return train, folder


def found(arguments, train, retrieval, *, seed):
    """The metrics by vectors, by words and by both."""
    model = minilm_folder(data=arguments.folder)
    if seed is not None:
        run = arguments.output / "run"
        shutil.rmtree(run, ignore_errors=True)
        kb.finetune(
            task="text-embedding",
            model=model,
            train=train,
            output=run,
            epochs=1,
            batch_size=32,
            learning_rate=1e-4,
            seed=seed,
            **_TRAINING,
        )
        model = run / "model"
    index = kb.Index.build(str(model), retrieval, words=True)
    metrics = index.evaluate(retrieval)
    return {
        "documents": metrics["documents"],
        "queries": metrics["queries"],
        **{
            f"{by} {name}": round(scores[name], 4)
            for by, scores in metrics["by"].items()
            for name in _METRICS
        },
    }


if __name__ == "__main__":
    main()
