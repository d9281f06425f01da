"""The worth of the choices of pre-training: on sixteen novels, one change at a time.

    python benchmarks/pretraining_choices.py regime --output runs/regime
    python benchmarks/pretraining_choices.py objectives --output runs/objectives --num-seeds 3
    python benchmarks/pretraining_choices.py small-batches --output runs/small
    python benchmarks/pretraining_choices.py masks --output runs/masks --num-seeds 3

`regime` (how the same rows are trained on) gives each choice the same minutes and, if it says
nothing else, batches of 128 rows; `objectives` (what is masked, and what else is predicted) the
same steps of 32 rows, which `regime` found to be better; `small-batches` asks again there what
helped in `regime`; and `masks` (drawn anew at each pass over the rows, or before) takes a single
novel, which is gone through eight times. All train `tiny` with four heads from rows of 64 tokens,
measure the masked-token loss on the same held-out rows (of `objectives`, masked in three ways; of
`masks`, of two novels), and fine-tune on the tasks of downstream.py that --tasks names, at one
rate. What is printed are means and deviations over the seeds. Each pre-training is a line of
OUTPUT/results.jsonl; stopped and started again, it goes on.
"""

import argparse
import functools
import shutil
import sys
from pathlib import Path

import real_tasks
from downstream import TASKS, tuned
from finetuning import spread
from pretraining_worth import books_vocabulary, write_architecture
from turns import Turns

# What a choice changes: the rows, the run, the architecture. Lists are those of phases.
TOKENS = {"objective": "mlm", "masking": "dynamic", "max_length": 64}
WHOLE_WORDS = {**TOKENS, "mask_unit": "whole-word"}
SPANS = {**TOKENS, "objective": "span"}
NOVEL = {"books": "pride_and_prejudice.txt"}
CHOICES = {
    "regime": {
        "as for an hour": ({}, {}, {}),  # pretraining_worth.py
        "BERT's start": ({}, {"initialization": "bert"}, {}),
        "dropout 0.1": ({}, {}, {"dropout": 0.1}),
        "two heads": ({}, {}, {"heads": 2}),
        "a rate of 1e-3": ({}, {"learning_rate": 1e-3}, {}),
        "a rate of 4e-3": ({}, {"learning_rate": 4e-3}, {}),
        "batches of 32 rows": ({}, {"batch_size": 32}, {}),
        "batches of 64 rows": ({}, {"batch_size": 64}, {}),
        "batches of 256 rows": ({}, {"batch_size": 256}, {}),
        "batches of 32, then 128, then 256": ({}, {"batch_size": [32, 128, 256]}, {}),
        "rows of 128 tokens, 64 a batch": ({"max_length": 128}, {"batch_size": 64}, {}),
        "rows of 64, then 128 tokens": ({"max_length": [64, 128]}, {"batch_size": [128, 64]}, {}),
        "25 % masked": ({"mlm_probability": 0.25}, {}, {}),
        "40 % masked, at most 20 tokens": ({"mlm_probability": 0.4}, {}, {}),
        "a quarter causal": ({}, {"causal_fraction": 0.25}, {}),
        "next sentence": ({"objective": "mlm-nsp"}, {}, {}),
        "order of sentences": ({"objective": "mlm-sop"}, {}, {}),
        "mini, a rate of 1.5e-3": ({}, {"learning_rate": 1.5e-3}, {"preset": "mini"}),
    },
    "objectives": {
        "masked tokens": ({}, {}, {}),
        "whole words": (WHOLE_WORDS, {}, {}),
        "spans": (SPANS, {"span_boundary_weight": 0.0}, {}),
        "spans and their boundaries": (SPANS, {}, {}),
        "masked tokens, static": ({"masking": "static"}, {}, {}),
        "masked tokens, next sentence": ({"objective": "mlm-nsp"}, {}, {}),
        "masked tokens, order of sentences": ({"objective": "mlm-sop"}, {}, {}),
        "masked tokens, a quarter causal": ({}, {"causal_fraction": 0.25}, {}),
    },
    "small-batches": {
        "as in objectives": ({}, {}, {}),
        "BERT's start": ({}, {"initialization": "bert"}, {}),
        "two heads": ({}, {}, {"heads": 2}),
        "dropout 0.1": ({}, {}, {"dropout": 0.1}),
        "a rate of 1e-3": ({}, {"learning_rate": 1e-3}, {}),
        "a rate of 4e-3": ({}, {"learning_rate": 4e-3}, {}),
        "25 % masked": ({"mlm_probability": 0.25}, {}, {}),
        "40 % masked, at most 20 tokens": ({"mlm_probability": 0.4}, {}, {}),
        "40 % masked": ({"mlm_probability": 0.4, "max_predictions": 26}, {}, {}),
    },
    "masks": {
        "at each pass": (NOVEL, {}, {}),
        "before, in five copies of the text": ({**NOVEL, "masking": "static"}, {}, {}),
        "before, once": ({**NOVEL, "masking": "static", "dupe_factor": 1}, {}, {}),
    },
}
# The rows on whose held-out part the loss of masked tokens is measured, by what it is called.
HELD_OUT = {
    "regime": {"loss of masked tokens": TOKENS},
    "objectives": {
        "loss of masked tokens": TOKENS,
        "of whole words": WHOLE_WORDS,
        "of spans": SPANS,
    },
    "small-batches": {"loss of masked tokens": TOKENS},
    "masks": {
        "loss on the same novel": {**TOKENS, **NOVEL},
        "on another": {**TOKENS, "books": "middlemarch.txt"},
    },
}
ROWS_A_BATCH = dict.fromkeys(CHOICES, 32) | {"regime": 128}
BUDGETS = dict.fromkeys(CHOICES, {"steps": 800}) | {"regime": {"minutes": 4.0}}
POOLING = {"sentiment": {"pooling": "mean"}}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("group", choices=CHOICES)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=real_tasks.DATA)
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--minutes", type=float, help="of each (default: 4 in `regime`)")
    budget.add_argument("--steps", type=int, help="of each (default: 800 in the others)")
    parser.add_argument("--rate", type=float, default=1e-3, help="of fine-tuning")
    parser.add_argument("--num-seeds", type=int, default=1)
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=[*TASKS], metavar="TASK")
    parser.add_argument("--only", nargs="+", metavar="CHOICE", help="some of them")
    arguments = parser.parse_args()
    choices = CHOICES[arguments.group]
    if unknown := [choice for choice in arguments.only or () if choice not in choices]:
        parser.error(f"{arguments.group} has no choice {unknown[0]!r}, but {[*choices]}.")
    if arguments.minutes is None and arguments.steps is None:
        vars(arguments).update(BUDGETS[arguments.group])
    arguments.output.mkdir(parents=True, exist_ok=True)
    settings = ("group", "minutes", "steps", "rate", "tasks")
    inferred_arguments = {name: getattr(arguments, name) for name in settings}
    results = arguments.output / "results.jsonl"
    turns = Turns(results, inferred_arguments, lambda line: print(line, file=sys.stderr))
    names = (*HELD_OUT[arguments.group], "millions of tokens", *arguments.tasks)
    print(f"| choice | {' | '.join(names)} |")
    print("|---" * (1 + len(names)) + "|")
    for choice in arguments.only or choices:
        work = functools.partial(worth, arguments)
        runs = [
            turns.result({"choice": choice, "seed": seed}, work)
            for seed in range(arguments.num_seeds)
        ]
        cells = [spread([run[name] for run in runs]) for name in names]
        print(f"| {choice} | {' | '.join(cells)} |", flush=True)


def worth(arguments, *, choice, seed):
    """Pre-trains, and returns the losses on held-out rows and the figures of the tasks."""
    from keras_bert.inference.evaluate import evaluate
    from keras_bert.training.pretrain import pretrain

    output = arguments.output
    vocab = books_vocabulary(output, arguments.data)
    sequence_settings, run_settings, model_settings = CHOICES[arguments.group][choice]
    settings = {"batch_size": ROWS_A_BATCH[arguments.group], "learning_rate": 2e-3, **run_settings}
    name, budget = ("minutes", arguments.minutes)
    if budget is None:
        name, budget = ("steps", arguments.steps)
    sizes = settings["batch_size"]
    if isinstance(sizes, list):  # the phases share it
        budget = [budget / len(sizes) if name == "minutes" else budget // len(sizes)] * len(sizes)
    settings[name] = budget
    named = f"{choice.replace(' ', '-')}-{seed}"
    run = output / f"pretrained-{named}"
    metrics = pretrain(
        data=rows(arguments, vocab, **{**TOKENS, **sequence_settings}),
        vocab=vocab,
        output=run,
        architecture=write_architecture(output / f"{named}.json", **model_settings),
        checkpoint_every=500,
        seed=seed,
        **settings,
    )
    scores = {"millions of tokens": metrics["history"][-1]["tokens"] / 1e6}
    for name, held_out_settings in HELD_OUT[arguments.group].items():
        evaluation = evaluate(model=run, data=rows(arguments, vocab, **held_out_settings))
        scores[name] = evaluation["masked_lm_loss"]
    for task in arguments.tasks:
        pooling = POOLING.get(task.split(",")[0], {})
        about = {"choice": {"learning_rate": arguments.rate, **pooling}, "seed": seed}
        evaluation = tuned({"model": run}, task=task, **about, data=arguments.data, output=output)
        scores[task] = evaluation["test"]
    shutil.rmtree(run)
    return scores


def rows(arguments, vocab, *, books="*.txt", **settings):
    """The folder of the books' rows, made if it is not there yet; of several lengths a list."""
    from data_gen.pretraining_data import pretraining_data

    lengths = settings["max_length"]
    if isinstance(lengths, list):
        settings_by_length = (
            {**settings, "books": books, "max_length": length} for length in lengths
        )
        return [rows(arguments, vocab, **length_settings) for length_settings in settings_by_length]
    named = [] if books == "*.txt" else [Path(books).stem]
    folder = arguments.output / "-".join(("rows", *named, *map(str, settings.values())))
    if not (folder / "COMPLETED").exists():
        text = str(arguments.data / "books" / books)
        pretraining_data(input=text, vocab=vocab, output=folder, **settings)
    return folder


if __name__ == "__main__":
    main()
