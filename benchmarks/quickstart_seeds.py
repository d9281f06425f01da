"""How reliably the quickstart's pre-training helps: the whole of it, seed by seed.

    python benchmarks/quickstart_seeds.py --output runs/quickstarts

goes the quickstart's whole way once a seed, each in a folder of its own, and prints for each number
of tagged sentences the accuracies of the taggers from random and from pre-trained weights, their
difference, and in how many of the seeds it is so many points or more; and then the same apart for
words that the labelled sentences have and for those that they have not. Stopped and started again,
it goes on. A quickstart takes four minutes on two cores.
"""

import argparse
import statistics
from pathlib import Path

from keras_bert.inference.predict import predict
from keras_bert.samples.quickstart import QuickstartSizes, quickstart


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--num-seeds", type=int, default=10)
    parser.add_argument("--points", type=float, default=5.0, help="that pre-training is to give")
    parser.add_argument("--architecture", help="a preset or a config.json, in place of its own")
    arguments = parser.parse_args()
    sizes, results = QuickstartSizes(), []
    if arguments.architecture:
        sizes = QuickstartSizes(architecture=arguments.architecture)
    for seed in range(arguments.num_seeds):
        results.append(quickstart(arguments.output / f"seed-{seed}", sizes=sizes, seed=seed))
        print(one(results[-1]), flush=True)
    print("\n".join(table(results, points=arguments.points)))
    folders = [arguments.output / f"seed-{seed}" for seed in range(arguments.num_seeds)]
    print("\n".join(table_of_words(folders, [tags["sentences"] for tags in results[0]["tags"]])))


def one(results):
    """A line on a quickstart."""
    loss, tags = results["masked_lm"], results["tags"]
    taggers = ", ".join(
        f"{100 * score['random']:.1f} -> {100 * score['pretrained']:.1f} % by {score['sentences']}"
        for score in tags
    )
    return (
        f"seed {results['seed']}: loss {loss['end']:.2f} (unigram {loss['unigram_entropy']:.2f}); "
        f"tags {taggers}; spam {100 * results['spam']['accuracy']:.1f} %; "
        f"{results['total_seconds']:.0f} s"
    )


def table(results, *, points):
    """Lines of Markdown: mean and deviation over the seeds."""
    yield ""
    yield f"| sentences | from random weights | pre-trained | seeds with {points:g} points more |"
    yield "|---|---|---|---|"
    for scores in zip(*(result["tags"] for result in results), strict=True):
        gains = [100 * (score["pretrained"] - score["random"]) for score in scores]
        cells = [_spread([score[start] for score in scores]) for start in ("random", "pretrained")]
        enough = sum(gain >= points for gain in gains)
        yield f"| {scores[0]['sentences']} | {' | '.join(cells)} | {enough} of {len(gains)} |"
    yield ""
    yield f"Spam filter: {_spread([result['spam']['accuracy'] for result in results])}"


def table_of_words(folders, sizes):
    """Lines of Markdown: means over the seeds, of labelled words and of others."""
    yield ""
    yield "| sentences | words | number | from random weights | pre-trained |"
    yield "|---|---|---|---|---|"
    for sentences in sizes:
        judged_words = {
            start: [right_words(folder, sentences, start) for folder in folders]
            for start in ("random", "pretrained")
        }
        for labelled, words in ((True, "in them"), (False, "others")):
            judgements = {
                start: [
                    is_right
                    for seed in seeds
                    for is_known, is_right in seed
                    if is_known is labelled
                ]
                for start, seeds in judged_words.items()
            }
            number = len(judgements["random"]) // len(folders)
            fractions = " | ".join(
                f"{100 * statistics.mean(is_right):.1f} %" for is_right in judgements.values()
            )
            yield f"| {sentences} | {words} | {number} | {fractions} |"


def right_words(folder, sentences, start):
    """For each word of the test: (whether the labelled sentences have it, whether it is right)."""
    labelled = (folder / "tags" / f"train-{sentences}.conll").read_text(encoding="utf-8")
    labelled_words = {line.split("\t")[0].lower() for line in labelled.splitlines() if line}
    model = folder / "taggers" / f"{sentences}-{start}" / "model"
    return [
        (word.lower() in labelled_words, tag == expected)
        for answer in predict(model=model, data=folder / "tags" / "test.conll")
        for word, tag, expected in zip(
            answer["words"], answer["tags"], answer["expected"], strict=True
        )
    ]


def _spread(fractions):
    deviation = statistics.stdev(fractions) if len(fractions) > 1 else 0.0
    return f"{100 * statistics.mean(fractions):.1f} % ± {100 * deviation:.1f}"


if __name__ == "__main__":
    main()
