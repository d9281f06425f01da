"""What a head over a whole text should read of an encoder whose first token no objective trained.

    python benchmarks/pooling_choices.py --output runs/pooling --family mpnet

Pre-trains a small encoder of a family as a masked LM on the novels, fine-tunes it on the first
examples of SST-2 with each pooling and seed, and prints accuracies on the dev file: means and
deviations over the seeds. Stopped and started again, it goes on.
"""

import argparse
import functools
import itertools
import statistics
from pathlib import Path

from pretraining_worth import books_vocabulary

from keras_bert.base.files import write_json

SIZES = {
    **{"vocab_size": 8000, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"intermediate_size": 512, "max_position_embeddings": 258},
    **{"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
}
OWN = {"electra": {"embedding_size": 128}, "mpnet": {"pad_token_id": 0}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--family", default="mpnet")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--examples", type=int, nargs="+", default=[500, 4000])
    parser.add_argument("--num-seeds", type=int, default=3)
    arguments = parser.parse_args()
    model = pretrained(arguments)
    print("| family | examples | pooling | accuracy |")
    print("|---|---|---|---|", flush=True)
    for count, pooling in itertools.product(arguments.examples, ("cls", "mean")):
        scores = [
            tuned(arguments, model, count=count, pooling=pooling, seed=seed)
            for seed in range(arguments.num_seeds)
        ]
        mean, deviation = 100 * statistics.mean(scores), 100 * statistics.pstdev(scores)
        cells = f"{arguments.family} | {count} | {pooling} | {mean:.1f} ± {deviation:.1f}"
        print(f"| {cells} |", flush=True)


def pretrained(arguments):
    """The folder of a run that ended, or ends now."""
    from data_gen.pretraining_data import pretraining_data
    from keras_bert.training.pretrain import pretrain

    arguments.output.mkdir(parents=True, exist_ok=True)
    vocab, rows = books_vocabulary(arguments.output, arguments.data), arguments.output / "rows"
    if not (rows / "COMPLETED").exists():
        books = str(arguments.data / "books" / "*.txt")
        settings = {"objective": "mlm", "masking": "dynamic", "max_length": 64}
        pretraining_data(input=books, vocab=vocab, output=rows, **settings)
    config = arguments.output / f"{arguments.family}.json"
    own = {"model_type": arguments.family, **OWN.get(arguments.family, {})}
    write_json(config, {**SIZES, **own})
    run = arguments.output / arguments.family
    metrics = pretrain(
        data=rows,
        vocab=vocab,
        output=run,
        architecture=config,
        steps=arguments.steps,
        batch_size=32,
        learning_rate=2e-3,
        checkpoint_every=500,
    )
    print(f"Masked-token loss after {arguments.steps} steps: {metrics['history'][-1]['loss']:.2f}.")
    return run


def tuned(arguments, model, *, count, pooling, seed):
    """The accuracy of one fine-tuning."""
    from keras_bert.training.finetune import finetune

    folder = arguments.data / "sst2"
    metrics = finetune(
        task="classifier",
        train=_first(folder / "train.tsv", count, arguments.output),
        dev=folder / "dev.tsv",
        model=model,
        output=arguments.output / f"{arguments.family}-{count}-{pooling}-{seed}",
        pooling=pooling,
        seed=seed,
        max_length=64,
        epochs=3,
        learning_rate=3e-4,
    )
    return metrics["dev"]["accuracy"]


@functools.cache
def _first(path, count, output):
    """A file of the header, if there is one, and the first examples."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    part = output / f"train-{count}.tsv"
    part.write_text("".join(lines[: count + 1]), encoding="utf-8")
    return part


if __name__ == "__main__":
    main()
