"""The recipe of `docs/how_to/best_search.md`, step by step, on questions of XQuAD among passages.

    python benchmarks/search_recipe.py --output runs/recipe --seeds 0 1 2
    python benchmarks/search_recipe.py --output runs/recipe --table
    python benchmarks/search_recipe.py --output runs/recipe --picture recall.png

Corpus, queries and training pairs are those of `search_found.py`: 6,000 passages, the questions of
a third of the documents, and the pairs of the others (`--passages 2000` takes fewer). The steps,
each with the vectors of MiniLM:

    published    as it is
    pairs        trained on the pairs, one epoch in batches of 32
    mined        the same with negatives that `mine_negatives` finds by the published model
    mined twice  the same with negatives that the model of `pairs` finds
    large        `mined twice`, in batches of 256 computed 32 at a time, three epochs, with the
                 published model as the guide

Negatives are looked for among the paragraphs of the training pairs: those of the queries' documents
would be negatives alone, and a cross-encoder learns that by heart.

With `--rerank published mined`, the results of these steps are also reranked, the first 20 of each
query, by a cross-encoder: MiniLM trained on the pairs and the mined negatives.
With `--words`, each is also searched by vectors and words together. A cell is a line of
OUTPUT/cells.jsonl, with the recall at each k; the same command resumes.
"""

import argparse
import itertools
import json
import statistics
from pathlib import Path

import real_tasks
from needed import minilm_folder
from search_found import _TRAINING, PASSAGES, corpus
from turns import Turns

import keras_bert as kb

STEPS = ("published", "pairs", "mined", "mined twice", "large")
METRICS = ("ndcg@10", "mrr@10", "recall@10", "recall@100")
K = (1, 2, 3, 5, 10, 20, 50, 100)
_NEGATIVES = {"num_negatives": 3, "relative_margin": 0.05}
_LARGE = {"batch_size": 256, "chunk_size": 32, "epochs": 3}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=real_tasks.DATA)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=[*STEPS])
    parser.add_argument("--rerank", nargs="*", choices=STEPS, default=[])
    parser.add_argument("--reranker-rate", type=float, help="None is the default of finetune")
    parser.add_argument("--passages", type=int, default=PASSAGES)
    parser.add_argument("--words", action="store_true", help="search by words, too")
    parser.add_argument("--table", action="store_true", help="print the table of what is measured")
    parser.add_argument("--picture", type=Path, help="draw the recall by k, NAME.png")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "cells.jsonl"
    settings = {"words": arguments.words, "passages": arguments.passages}
    settings["reranker_rate"] = arguments.reranker_rate
    turns = Turns(path, settings, lambda line: print(line, flush=True))
    if arguments.table:
        print("\n".join(table(path)))
    elif arguments.picture:
        draw(path, arguments.picture)
    else:
        recipe = Recipe(arguments)
        for seed, step in itertools.product(arguments.seeds, arguments.steps):
            reranked = step in arguments.rerank
            if step != "published" or reranked or seed == arguments.seeds[0]:  # it has no seed
                turns.result({"step": step, "seed": seed, "reranked": reranked}, recipe.measured)


class Recipe:
    """The steps; models, indexes and negatives stay in folders of the output."""

    def __init__(self, arguments):
        self._arguments = arguments
        self.train, self.retrieval = corpus(
            arguments.folder, arguments.output / "corpus", passages=arguments.passages
        )
        self._published = minilm_folder(data=arguments.folder)

    def measured(self, *, step, seed, reranked):
        index = self.index(step, seed)
        records = (self.retrieval / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        queries = {query["_id"]: query["text"] for query in map(json.loads, records)}
        grades = (self.retrieval / "qrels" / "test.tsv").read_text().splitlines()[1:]
        relevant = dict(line.split("\t")[:2] for line in grades)
        found = {"queries": len(queries), "documents": len(index)}
        rerank = {"rerank": self.reranker(seed), "rerank_top": 20} if reranked else {}
        for by, scores in index.evaluate(self.retrieval, **rerank)["by"].items():
            found |= {f"{by} {name}": round(scores[name], 4) for name in METRICS}
        for by, ranked in index.ranked_ids([*queries.values()], top_k=max(K)):
            places = [
                ids.index(relevant[id]) if relevant[id] in ids else max(K)
                for id, ids in zip(queries, ranked, strict=True)
            ]
            recall = {k: statistics.mean(place < k for place in places) for k in K}
            found[f"{by} recall"] = {str(k): round(value, 4) for k, value in recall.items()}
        return found

    def index(self, step, seed):
        folder = self._folder(step, seed) / "index"
        model = str(self.model(step, seed))
        options = {"words": self._arguments.words, "output": folder}
        return kb.Index.build(model, self.retrieval, **options)

    def model(self, step, seed):
        if step == "published":
            return self._published
        run, train, options = self._folder(step, seed) / "run", self.train, {}
        if step != "pairs":
            train = self.mined(step, seed)
            options = {"fields": "anchor=anchor,positive=positive,negatives=negatives"}
        if step == "large":
            options |= {"guide": self._published, **_LARGE}
        given = {"epochs": 1, "batch_size": 32, "learning_rate": 1e-4, **_TRAINING, **options}
        kb.finetune(
            task="text-embedding",
            model=self._published,
            train=train,
            output=run,
            keep="last",
            seed=seed,
            **given,
        )
        return run / "model"

    def reranker(self, seed):
        """The folder of the cross-encoder."""
        run = self._folder("reranker", seed) / "run"
        kb.finetune(
            task="regression",
            model=self._published,
            train=self.mined("mined", seed, format="labels"),
            output=run,
            loss="binary-crossentropy",
            max_length=192,
            learning_rate=self._arguments.reranker_rate,
            keep="last",
            seed=seed,
        )
        return run / "model"

    def mined(self, step, seed, format="list"):
        """The file of the pairs with negatives."""
        finder = "published" if step == "mined" else "pairs"
        path = self._folder(step, seed) / f"negatives-{format}.parquet"
        if not path.exists():
            mined = kb.mine_negatives(
                data=self.train,
                fields=_TRAINING["fields"],
                model=str(self.model(finder, seed)),
                format=format,
                output=path,
                **_NEGATIVES,
            )
            print("\n".join(mined.lines()), flush=True)
        return path

    def _folder(self, step, seed):
        name = step if step == "published" else f"{step.replace(' ', '-')}-{seed}"
        folder = self._arguments.output / name
        folder.mkdir(exist_ok=True)
        return folder


def cells_of(path):
    """{step: its cells}."""
    cells = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        cells.setdefault(json.loads(line)["step"], []).append(json.loads(line))
    return cells


def table(path):
    """Lines of Markdown: the mean of the seeds, ± their deviation."""
    yield f"| step | by | {' | '.join(METRICS)} |"
    yield f"|---|---|{'---|' * len(METRICS)}"
    for step, cells in cells_of(path).items():
        for by in ("vectors", "words", "both", "reranked"):
            if f"{by} {METRICS[0]}" in cells[0]:
                values = (shown([cell[f"{by} {name}"] for cell in cells]) for name in METRICS)
                yield f"| {step} | {by} | {' | '.join(values)} |"


def shown(values):
    mean = f"{statistics.mean(values):.3f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.3f}"


def draw(path, picture):
    """Draws the mean recall of each step by k, by vectors and by vectors and words."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    steps = sorted(cells_of(path).items(), key=lambda item: STEPS.index(item[0]))
    curves = {"words": ("words recall", steps[0][1], "k:")}
    for number, (step, cells) in enumerate(steps):
        curves[f"vectors, {step}"] = "vectors recall", cells, f"C{number}-"
        curves[f"vectors and words, {step}"] = "both recall", cells, f"C{number}--"
    for label, (name, cells, style) in curves.items():
        if name in cells[0]:
            recall = [statistics.mean(cell[name][str(k)] for cell in cells) for k in K]
            axes.plot(K, recall, style, marker="o", markersize=3, label=label)
    axes.set(xscale="log", xlabel="k", ylabel="recall@k", xticks=K, xticklabels=K)
    axes.minorticks_off()
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(picture, dpi=150)


if __name__ == "__main__":
    main()
