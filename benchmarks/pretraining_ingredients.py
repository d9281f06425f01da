"""Ingredients of pre-training, measured one at a time, and those that help together.

    python benchmarks/pretraining_ingredients.py --output runs/ingredients
    python benchmarks/pretraining_ingredients.py --output runs/ingredients --cells
    python benchmarks/pretraining_ingredients.py --output runs/ingredients --cells "Muon" "wsd"
    python benchmarks/pretraining_ingredients.py --output runs/ingredients \
        --cells "30 % masked + modern layers" --seed 1 --minutes 60
    python benchmarks/pretraining_ingredients.py --output runs/ingredients --table

pre-trains `tiny` on the novels but two for so many minutes: as `pretrain` did before (masked
tokens, AdamW, linear decay), with each of INGREDIENTS, and with all that are better than without.
Then the best two are trained with three seeds, and the best for --long minutes once. Better is the
mean of two accuracies, which every model has: tags (UD English EWT) from 100 sentences and
sentiment (SST-2) from 500, each at the rate and pooling that are best on dev. Beside them are the
nats of a masked token in the two novels that are held back (of masked LMs; all have one vocabulary)
and 1,000 minimal pairs (minimal_pairs.py): of language models by the (pseudo-)log-likelihood of
both sentences, of a discriminator by the log-probability that no token was replaced. Random weights
of both architectures are fine-tuned, too.

Minutes are steps: how long a step of each takes is measured first, and nothing else may run
meanwhile (`--cells` without names measures that alone). From then on other programs do no harm, and
two processes with other --cells may share an output. Each result is a line of OUTPUT/results.jsonl;
stopped and started again, it goes on, within a pre-training from its last checkpoint.
"""

import argparse
import functools
import operator
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import real_tasks
from downstream import TASKS, best, tuned
from finetuning import spread
from minimal_pairs import accuracy, minimal_pairs
from pretraining_worth import books_vocabulary, write_architecture
from turns import Turns

HELD_BACK = ("great_expectations.txt", "the_adventures_of_sherlock_holmes.txt")
ROWS = {"objective": "mlm", "masking": "dynamic", "max_length": 64}
RUN = {"batch_size": 32, "learning_rate": 2e-3}
# What each changes of the rows, the run and the architecture.
INGREDIENTS = {
    "30 % masked": ({"mlm_probability": 0.3, "max_predictions": 20}, {}, {}),
    "wsd": ({}, {"schedule": "wsd"}, {}),
    "Muon": ({}, {"optimizer": "muon"}, {}),
    "modern layers": ({}, {}, {"preset": "modern-tiny"}),
    "replaced tokens": ({}, {"objective": "rtd"}, {}),
    "causal LM": ({}, {"objective": "causal-lm"}, {"preset": "tiny"}),
}
AS_BEFORE = "masked LM as before"
# Without a run: random weights.
CELLS = {
    "random weights": ({}, None, {}),
    "modern layers, random weights": ({}, None, {"preset": "modern-tiny"}),
    AS_BEFORE: ({}, {}, {}),
    **INGREDIENTS,
}
MEASURED = ("tags, 100 sentences", "sentiment, 500 sentences")
FEW_AND_MANY_STEPS = 100, 500
ROUNDS = 2


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=real_tasks.DATA)
    parser.add_argument("--minutes", type=float, default=20.0, help="of a pre-training")
    parser.add_argument("--long", type=float, default=60.0, help="minutes of the best one's last")
    parser.add_argument("--num-seeds", type=int, default=3, help="of the best two")
    parser.add_argument("--rates", type=float, nargs="+", default=[5e-4, 2e-3])
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument(
        "--cells", nargs="*", type=cell, help="these alone; ingredients together by ' + '"
    )
    parser.add_argument("--seed", type=int, default=0, help="of --cells")
    parser.add_argument("--table", action="store_true", help="print what is known, and end")
    arguments = parser.parse_args()
    if arguments.seed and arguments.cells is None:
        parser.error("--seed is for --cells.")
    arguments.output.mkdir(parents=True, exist_ok=True)
    about = {"rates": arguments.rates, "pairs": arguments.pairs}
    path = arguments.output / "results.jsonl"
    turns = Turns(path, about, lambda line: print(line, file=sys.stderr, flush=True))
    if not arguments.table:
        for name, (_, run, _) in CELLS.items():
            if run is not None:
                seconds_of_a_step(arguments, turns, name)
        names = CELLS if arguments.cells is None else arguments.cells
        of = functools.partial(measured, arguments, turns)
        scores = {name: of(name, seed=arguments.seed) for name in names}
        if arguments.cells is None:
            measure_best(arguments, of, scores)
    print(table(turns.lines()))


def measure_best(arguments, of, scores):
    """Measures what helps together, the best two with more seeds, and the best for longer."""
    better = [name for name in INGREDIENTS if scores[name] > scores[AS_BEFORE]]
    # An objective has the last word on the model, and of two the better one.
    better.sort(key=lambda name: ("objective" in INGREDIENTS[name][1], scores[name]))
    if len(better) > 1:
        together = " + ".join(better)
        scores[together] = of(together)
    first, second = sorted(scores, key=scores.get, reverse=True)[:2]
    for seed in range(1, arguments.num_seeds):
        for name in (first, second):
            of(name, seed=seed)
    of(first, minutes=arguments.long)


def cell(name):
    """The name of a cell, or of ingredients together; an error of argparse for another."""
    if name in CELLS or all(part in INGREDIENTS for part in name.split(" + ")):
        return name
    raise argparse.ArgumentTypeError(f"unknown: {name!r}. Choose from {', '.join(CELLS)}.")


def ingredients_of(cell):
    """All that the ingredients of a cell change of the rows, the run and the architecture."""
    parts = zip(*(CELLS[name] for name in cell.split(" + ")), strict=True)
    return tuple(functools.reduce(operator.or_, part) for part in parts)


def seconds_of_a_step(arguments, turns, name):
    """Returns the least of some runs, without the first steps, in which the model is built."""
    ingredients = ingredients_of(name)
    vocab = books_vocabulary(arguments.output, arguments.data)
    few, many = FEW_AND_MANY_STEPS

    def timed(**turn):
        seconds = []
        for steps in (few, many):
            with tempfile.TemporaryDirectory(dir=arguments.output) as folder:
                run = Path(folder) / "run"
                metrics = pretrained(arguments, vocab, run, ingredients, steps=steps)
                seconds.append(metrics["seconds"])
        return {"seconds": (seconds[1] - seconds[0]) / (many - few)}

    rounds = ({"cell": name, "measure": "a step", "round": number} for number in range(ROUNDS))
    return min(turns.result(turn, timed)["seconds"] for turn in rounds)


def measured(arguments, turns, name, *, minutes=None, seed=0):
    """Pre-trains if that is not done; returns the mean accuracy of the tasks on test."""
    output, ingredients = arguments.output, ingredients_of(name)
    minutes = minutes or arguments.minutes
    vocab = books_vocabulary(output, arguments.data)
    if ingredients[1] is None:
        initial = architecture(output / "random.json", **ingredients[2])
        weights = {"architecture": initial, "vocab": vocab}
    else:
        steps = round(60 * minutes / seconds_of_a_step(arguments, turns, name))
        label = f"{name}-{minutes:g}-{seed}".replace(" ", "-").replace("%", "percent")
        folder = output / f"pretrained-{label}"
        turns.result(
            {"cell": name, "minutes": minutes, "seed": seed, "measure": "pre-training"},
            lambda **turn: pretrained_and_measured(
                arguments, vocab, folder, ingredients, steps=steps, seed=seed
            ),
        )
        weights = {"model": folder}
    accuracies = []
    for task in MEASURED:
        found, _ = best(
            lambda **turn: turns.result(
                {"cell": name, "minutes": minutes, "pretraining_seed": seed, **turn},
                lambda **turn: tuned(
                    weights, task=turn["task"], choice=turn["choice"], seed=turn["seed"],
                    data=arguments.data, output=output,
                ),
            ),
            task=task,
            rates=arguments.rates,
            seeds=1,
        )  # fmt: skip
        accuracies.append(found[0])
        turns.result(
            {"cell": name, "minutes": minutes, "seed": seed, "measure": task},
            lambda **turn: {"score": found[0]},  # noqa: B023 (called at once)
        )
    return statistics.mean(accuracies)


def pretrained_and_measured(arguments, vocab, folder, ingredients, **given):
    """Pre-trains, and returns what is measured without labels."""
    from keras_bert.inference.evaluate import evaluate

    metrics = pretrained(arguments, vocab, folder, ingredients, **given)
    found = {"millions of tokens": metrics["tokens"] / 1e6, "steps": metrics["steps"]}
    if ingredients[1].get("objective") is None:
        held_back = data_folder(arguments, vocab, books=HELD_BACK, **ROWS)
        found["nats"] = evaluate(model=folder, data=held_back)["masked_lm_loss"]
    pairs = minimal_pairs(arguments.pairs)
    return {**found, "pairs": accuracy(pairs, scores_of(folder, pairs))}


def pretrained(arguments, vocab, folder, ingredients, *, steps, seed=0):
    """Pre-trains for so many steps; returns what is in metrics.json."""
    from keras_bert.training.pretrain import pretrain

    rows, run, model = ingredients
    return pretrain(
        data=data_folder(arguments, vocab, **{**ROWS, **rows}),
        output=folder,
        architecture=architecture(folder.with_suffix(".json"), **model),
        steps=steps,
        checkpoint_every=1000,
        seed=seed,
        **{**RUN, **run},
    )


def architecture(path, *, preset="tiny"):
    """The architecture by name, or for BERT's the file of one with four heads and no dropout."""
    return write_architecture(path) if preset == "tiny" else preset


def data_folder(arguments, vocab, *, books=None, **settings):
    """The rows of some of the books, by default of all that are not held back."""
    from data_gen.pretraining_data import pretraining_data

    parts = ["rows" if books is None else "held-back", *map(str, settings.values())]
    folder = arguments.output / "-".join(parts)
    if not (folder / "COMPLETED").exists():
        paths = sorted((arguments.data / "books").glob("*.txt"))
        if books is None:
            given = [str(path) for path in paths if path.name not in HELD_BACK]
        else:
            given = [str(path) for path in paths if path.name in books]
            settings |= {"eval_fraction": 0.5}  # evaluations read that part
        pretraining_data(input=given, vocab=vocab, output=folder, **settings)
    return folder


def scores_of(folder, pairs):
    """(score of the right sentence, of the wrong one) for each pair, by a pre-trained model."""
    import keras_bert as kb

    texts = [text for _, *both in pairs for text in both]
    task = kb.load_task(folder)
    if "replaced_tokens" in task.output:
        scores = [score for batch in _batches(texts) for score in _unreplaced(task, batch)]
    else:
        scores = [found.log_probability for found in kb.surprisal(model=task, text=texts)]
    return [*zip(scores[::2], scores[1::2], strict=True)]


def _unreplaced(task, texts):
    """The log-probability that no token of each text was replaced, token by token, summed."""
    from keras_bert.inputs.framing import frame

    inputs = frame(
        [task.tokenizer.tokenize(texts)],
        tokenizer=task.tokenizer,
        names=task.encoder.input_names,
        max_length=64,
    )
    logits = np.asarray(task.discriminator(task.encoded(inputs)["sequence_output"]))
    is_token = np.asarray(inputs["input_mask"]) > 0
    return (-np.logaddexp(0, logits) * is_token).sum(axis=1).tolist()


def _batches(texts, size=64):
    return (texts[start : start + size] for start in range(0, len(texts), size))


def table(lines):
    """The table of what is known; a cell that is not measured is a dash."""
    cells = {}
    for line in lines:
        if "minutes" in line and "measure" in line:
            row = cells.setdefault((line["cell"], line["minutes"]), {})
            found = line.get("score")
            values = {line["measure"]: found} if found is not None else line
            for name in ("nats", *MEASURED):
                if values.get(name) is not None:
                    row.setdefault(name, []).append(values[name])
            if "pairs" in values:
                row.setdefault("pairs", []).append(values["pairs"]["all"])
    names = ("nats", *MEASURED, "pairs")
    written = [f"| | minutes | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|"]
    for (cell, minutes), row in cells.items():
        values = [spread(row[name]) if name in row else "–" for name in names]
        written.append(f"| {cell} | {minutes:g} | {' | '.join(values)} |")
    return "\n".join(written)


assert set(MEASURED) <= TASKS.keys()

if __name__ == "__main__":
    main()
