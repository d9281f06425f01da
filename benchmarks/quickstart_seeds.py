"""How reliably the quickstart's pre-training helps: the whole of it, seed by seed.

    python benchmarks/quickstart_seeds.py --output runs/quickstarts

goes the quickstart's whole way once a seed, each in a folder of its own, and prints for each number
of tagged sentences the accuracies of the taggers from random and from pre-trained weights, their
difference, and in how many of the seeds it is so many points or more. Stopped and started again, it
goes on. A quickstart takes four minutes on two cores.
"""

import argparse
import statistics
from pathlib import Path

from keras_bert.samples.quickstart import quickstart


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--points", type=float, default=5.0, help="that pre-training is to give")
    arguments = parser.parse_args()
    results = []
    for seed in range(arguments.seeds):
        results.append(quickstart(arguments.output / f"seed-{seed}", seed=seed))
        print(one(results[-1]), flush=True)
    print("\n".join(table(results, points=arguments.points)))


def one(results):
    """A line on a quickstart."""
    loss, tags = results["masked_lm"], results["tags"]
    taggers = ", ".join(
        f"{100 * each['random']:.1f} -> {100 * each['pretrained']:.1f} % by {each['sentences']}"
        for each in tags
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
    for of_seeds in zip(*(each["tags"] for each in results), strict=True):
        gains = [100 * (each["pretrained"] - each["random"]) for each in of_seeds]
        cells = [_spread([each[start] for each in of_seeds]) for start in ("random", "pretrained")]
        enough = sum(gain >= points for gain in gains)
        yield f"| {of_seeds[0]['sentences']} | {' | '.join(cells)} | {enough} of {len(gains)} |"
    yield ""
    yield f"Spam filter: {_spread([each['spam']['accuracy'] for each in results])}"


def _spread(shares):
    deviation = statistics.stdev(shares) if len(shares) > 1 else 0.0
    return f"{100 * statistics.mean(shares):.1f} % ± {100 * deviation:.1f}"


if __name__ == "__main__":
    main()
