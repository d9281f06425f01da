"""The whole line on real text: books in, a served sentiment classifier out.

    python benchmarks/real_run.py --output runs/real

learns a vocabulary of 16,000 pieces from 16 novels, makes MLM + NSP records of length 128 from all
of them, pre-trains `mini` on two cores, fine-tunes on SST-2 from the pre-trained and from random
weights (three seeds each), exports the first of them, and asks it in a fresh process. If
--rates names several learning rates of fine-tuning, each of the two starts takes the one that is
best on the dev file with the first seed. It takes about an hour on two cores; stopped and started
again, it goes on. The metrics in NOTES.md and the picture beside them are what it leaves in
OUTPUT/results.json and --picture.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from keras_bert import samples
from keras_bert.base.files import write_json
from keras_bert.training.settings import INITIALIZATIONS

SENTENCES = (
    "a warm , funny and beautifully acted film",
    "two hours of my life that i will never get back",
    "the plot is thin , but the actors are a joy to watch",
)
SEEDS = (0, 1, 2)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--picture", type=Path, default=Path("docs/images/pretraining_curve.png"))
    parser.add_argument("--steps", type=int, default=2400, help="of pre-training")
    parser.add_argument("--batch-size", type=int, default=32, help="of pre-training")
    parser.add_argument("--initialization", choices=INITIALIZATIONS, help="of pre-training")
    parser.add_argument("--epochs", type=int, default=3, help="of each fine-tuning")
    parser.add_argument("--rates", type=float, nargs="+", default=[3e-4], help="of fine-tuning")
    arguments = parser.parse_args()
    output = arguments.output
    output.mkdir(parents=True, exist_ok=True)
    books, vocab = str(arguments.data / "books" / "*.txt"), output / "vocab.txt"

    if not vocab.exists():
        from data_gen.vocabulary import learn_vocabulary

        timed("vocabulary", learn_vocabulary, input=books, output=vocab, size=16_000)
    card = make_data(books=books, vocab=vocab, output=output / "data")
    pretrained = pretrain(
        output,
        vocab=vocab,
        steps=arguments.steps,
        batch_size=arguments.batch_size,
        initialization=arguments.initialization,
    )
    draw(pretrained, arguments.picture, batch_size=arguments.batch_size)
    sst2 = finetune_all(
        output,
        vocab=vocab,
        sst2=arguments.data / "sst2",
        epochs=arguments.epochs,
        rates=arguments.rates,
    )
    results = {
        "train_rows": card.splits["train"].instances,
        "train_tokens": card.splits["train"].tokens,
        "unigram_entropy": card.unigram_entropy,
        **{
            name: pretrained[name]
            for name in ("steps", "parameters", "seconds", "tokens_per_second")
        },
        "eval_at_start": pretrained["eval_at_start"],
        "eval": pretrained["eval"],
        "sst2": sst2,
        "answers": serve(output, sst2["pretrained"]["learning_rate"]),
    }
    write_json(output / "results.json", results)
    print(json.dumps(results, indent=1))


def timed(name, function, **arguments):
    started = time.perf_counter()
    result = function(**arguments)
    print(f"{name}: {time.perf_counter() - started:.1f} s", flush=True)
    return result


def make_data(*, books, vocab, output):
    from data_gen.pretraining_data import pretraining_data
    from keras_bert.records import DataFolder

    if not (output / "COMPLETED").exists():
        timed("records", pretraining_data, input=books, vocab=vocab, output=output)
    return DataFolder.open(output).card


def pretrain(output, *, vocab, **settings):
    from keras_bert.training.pretrain import pretrain

    return pretrain(
        data=output / "data",
        vocab=vocab,
        output=output / "pretrained",
        architecture="mini",
        learning_rate=1e-3,
        eval_every=200,
        checkpoint_every=400,
        **settings,
    )


def finetune_all(output, *, vocab, sst2, epochs, rates):
    """By the weights that fine-tuning began with: the rate chosen on dev, and test accuracies."""
    from keras_bert.inference.evaluate import evaluate
    from keras_bert.training.finetune import finetune

    starts = {
        "pretrained": {"model": output / "pretrained"},
        "random": {"architecture": "mini", "vocab": vocab},
    }
    results = {}
    for start, weights in starts.items():

        def tune(rate, seed, start=start, weights=weights):
            return finetune(
                train=sst2 / "train.tsv",
                dev=sst2 / "dev.tsv",
                text_column="1",
                label_column="2",
                output=run_folder(output, start, rate, seed),
                epochs=epochs,
                learning_rate=rate,
                seed=seed,
                **weights,
            )["dev"]["accuracy"]

        dev = {rate: tune(rate, SEEDS[0]) for rate in rates}
        rate = max(dev, key=dev.get)
        accuracies = []
        for seed in SEEDS:
            tune(rate, seed)
            measured = evaluate(model=run_folder(output, start, rate, seed), data=sst2 / "test.tsv")
            accuracies.append(measured["accuracy"])
            print(f"{start}, rate {rate}, seed {seed}: {accuracies[-1]:.4f} on test", flush=True)
        results[start] = {
            "dev_accuracy_by_rate": dev,
            "learning_rate": rate,
            "test_accuracy": accuracies,
            "mean": statistics.mean(accuracies),
            "standard_deviation": statistics.stdev(accuracies),
        }
    return results


def run_folder(output, start, rate, seed):
    return output / f"sst2-{start}-{rate:g}-{seed}"


def serve(output, rate):
    """Exports seed 0, and asks it in a process that has only TensorFlow and TensorFlow Text."""
    from keras_bert.exports.saved_model import export

    version = export(
        model=run_folder(output, "pretrained", rate, SEEDS[0]),
        output=output / "savedmodels" / "sst2",
    )
    ask = Path(samples.__file__).with_name("ask.py")
    answered = subprocess.run(
        [sys.executable, "-I", str(ask), str(version), *SENTENCES],
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in answered.stdout.splitlines()]


def draw(metrics, path, *, batch_size):
    """Draws the masked-token loss of a pre-training run beside the unigram entropy."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    for split, style in (("train", {"alpha": 0.6}), ("eval", {"marker": "o", "markersize": 4})):
        rows = [row for row in metrics["history"] if row.get(split)]
        axes.plot(
            [row["step"] for row in rows],
            [row[split]["masked_lm_loss"] for row in rows],
            label=f"masked-token loss, {split}",
            **style,
        )
    axes.axhline(metrics["unigram_entropy"], color="grey", linestyle="--", linewidth=1)
    axes.annotate(
        f"unigram entropy {metrics['unigram_entropy']:.2f}: knows word frequencies only",
        (metrics["steps"], metrics["unigram_entropy"]),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        color="grey",
    )
    axes.set(xlabel=f"step ({batch_size} rows of 128 tokens)", ylabel="nats a masked token")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
