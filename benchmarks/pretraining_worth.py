"""The worth of pre-training: an hour of it on sixteen novels, and what is learned from there.

    python benchmarks/pretraining_worth.py --output runs/hour
    python benchmarks/pretraining_worth.py --output runs/minute --minutes 1     # a first look

learns a vocabulary of 8,000 pieces from the books, makes rows of 64 tokens with dynamic masks,
pre-trains on them for so many minutes (or takes an encoder's folder, --model), and fine-tunes each
task of TASKS from there and from random weights of the same architecture: seed 0 at every rate of
--rates (and, for sentences, with each pooling), the other seeds with what was best on dev. What is
printed are the figures of test, mean and deviation over the seeds. Each fine-tuning is a line of
OUTPUT/results.jsonl; stopped and started again, it goes on.
"""

import argparse
import functools
import json
import statistics
import sys
from pathlib import Path

import real_tasks
from downstream import TASKS, best, tuned
from finetuning import spread
from turns import Turns

from data_gen.settings import OBJECTIVES
from keras_bert.base.files import write_json
from keras_bert.encoders.bert import BertConfig
from keras_bert.training.settings import INITIALIZATIONS

TOKENS = 8000


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=real_tasks.DATA)
    parser.add_argument("--minutes", type=float, default=60.0, help="of pre-training")
    parser.add_argument("--objective", choices=OBJECTIVES, default="mlm", help="of pre-training")
    parser.add_argument("--architecture", default="tiny")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=128, help="of pre-training")
    parser.add_argument("--learning-rate", type=float, default=2e-3, help="of pre-training")
    parser.add_argument("--initialization", choices=INITIALIZATIONS, help="of pre-training")
    parser.add_argument("--rates", type=float, nargs="+", default=[5e-4, 2e-3])
    parser.add_argument("--num-seeds", type=int, default=5)
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=[*TASKS], metavar="TASK")
    parser.add_argument("--model", type=Path, help="what was pre-trained before, in place of that")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    vocab = books_vocabulary(arguments.output, arguments.data)
    config = write_architecture(
        arguments.output / "config.json", preset=arguments.architecture, heads=arguments.heads
    )
    model = arguments.model or pretrain(arguments, vocab, config)
    starts = {
        "random": {"architecture": config, "vocab": vocab},
        "pre-trained": {"model": model},
    }
    inferred_arguments = {
        "model": model,
        "architecture": arguments.architecture,
        "heads": arguments.heads,
    }
    results = arguments.output / "results.jsonl"
    turns = Turns(results, inferred_arguments, lambda line: print(line, file=sys.stderr))
    work = functools.partial(tuning, arguments, starts)
    print("\n| trained on | from random weights | pre-trained | points more |\n|---|---|---|---|")
    for task in arguments.tasks:
        best_runs = {
            start: best(
                lambda **turn: turns.result(turn, work),
                task=task,
                start=start,
                rates=arguments.rates,
                seeds=arguments.num_seeds,
            )
            for start in starts
        }
        means = {start: statistics.mean(scores) for start, (scores, _) in best_runs.items()}
        cells = [f"{spread(scores)} {told(choice)}" for scores, choice in best_runs.values()]
        gain = 100 * (means["pre-trained"] - means["random"])
        print(f"| {task} | {' | '.join(cells)} | {gain:+.1f} |", flush=True)


def tuning(arguments, starts, *, start, **turn):
    return tuned(starts[start], data=arguments.data, output=arguments.output, **turn)


def books_vocabulary(output, data):
    """The vocabulary of 8,000 pieces, learned if it is not there yet."""
    from data_gen.vocabulary import learn_vocabulary

    vocab = output / "vocab.txt"
    if not vocab.exists():
        learn_vocabulary(input=str(data / "books" / "*.txt"), output=vocab, size=TOKENS)
    return vocab


def write_architecture(path, *, preset="tiny", tokens=TOKENS, heads=4, dropout=0.0):
    """Writes a config.json; returns `path`."""
    config = BertConfig.preset(
        preset,
        vocab_size=tokens,
        num_attention_heads=heads,
        max_position_embeddings=256,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    write_json(path, config.to_dict())
    return path


def pretrain(arguments, vocab, config):
    """Makes the rows, pre-trains, and prints what came of it; returns the run's folder."""
    from data_gen.pretraining_data import pretraining_data
    from keras_bert.training.pretrain import pretrain

    data = arguments.output / "data"
    if not (data / "COMPLETED").exists():
        pretraining_data(
            input=str(arguments.data / "books" / "*.txt"),
            vocab=vocab,
            output=data,
            objective=arguments.objective,
            masking="dynamic",
            max_length=64,
        )
    metrics = pretrain(
        data=data,
        vocab=vocab,
        output=arguments.output / "pretrained",
        architecture=config,
        minutes=arguments.minutes,
        batch_size=arguments.batch_size,
        learning_rate=arguments.learning_rate,
        initialization=arguments.initialization,
        checkpoint_every=500,
    )
    print("| step | tokens, millions | masked-token loss, held-out |\n|---|---|---|")
    for row in metrics["history"]:
        if row.get("eval"):
            tokens = row.get("tokens", 0) / 1e6
            print(f"| {row['step']:,} | {tokens:.1f} | {row['eval']['masked_lm_loss']:.3f} |")
    names = ("steps", "parameters", "seconds", "tokens_per_second", "unigram_entropy", "eval")
    print(json.dumps({name: metrics[name] for name in names}, indent=1), flush=True)
    return arguments.output / "pretrained"


def told(choice):
    """(at 0.001, mean)"""
    rate, *others = choice.values()
    return f"({', '.join([f'at {rate:g}', *others])})"


if __name__ == "__main__":
    main()
