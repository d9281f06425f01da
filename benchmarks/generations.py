"""Five generations of language model on the same text: static vectors, ELMo, AWD-LSTM, GPT, BERT.

    python benchmarks/generations.py --output runs/generations
    python benchmarks/generations.py --output runs/first-look --minutes 2 --num-seeds 1

learns one vocabulary of 8,000 tokens from the sixteen books, makes one data folder, pre-trains each
model of MODELS on it for the same time, and fine-tunes each on the tasks of `downstream.TASKS`,
whole and as frozen features. Seed 0 tries each rate of --rates, and the other seeds have the one
that is best on dev; the table has the metrics of test, mean and standard deviation over the seeds.
Stopped and started again, it resumes; --table prints what there is, with a dash for what is not,
and --picture draws it.
"""

import argparse
import functools
import statistics
import sys
from pathlib import Path

import real_tasks
from downstream import best, tuned
from pretraining_worth import TOKENS, books_vocabulary, write_architecture
from turns import Turns

from keras_bert.base.files import write_json
from keras_bert.encoders import read_config
from keras_bert.pictures import COLOURS, GREY, LIGHT, hide_box, save_picture

# About as many parameters each, most of them the token embedding.
ENCODERS = {
    "static": {"model_type": "static", "hidden_size": 128},
    "elmo": {"preset": "elmo-tiny"},
    "awd-lstm": {"preset": "awd-lstm-tiny"},
    "gpt": {
        "preset": "gpt-tiny",
        "embedding_dropout": 0.0,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
}
# Name in the table: the pre-training run, and settings of every fine-tuning.
MODELS = {
    "static vectors": ("static", {}),
    "static vectors, BiLSTM": ("static", {"bilstm": 128}),
    "ELMo": ("elmo", {}),
    "AWD-LSTM": ("awd-lstm", {}),
    "GPT": ("gpt", {}),
    "BERT": ("bert", {}),
    "BERT, left to right": ("bert-causal", {}),
    "BERT, left to right, BiLSTM": ("bert-causal", {"bilstm": 128}),
}
RUNS = {
    "static": {"objective": "skip-gram", "learning_rate": 0.05},
    "elmo": {"learning_rate": 2e-3},
    "awd-lstm": {"learning_rate": 4e-3},
    "gpt": {"learning_rate": 2e-3},
    "bert": {"learning_rate": 2e-3},
    "bert-causal": {"objective": "causal-lm", "learning_rate": 2e-3},
}
FROZEN = "tags, 400 sentences, frozen"
COLUMNS = (
    "tags, 100 sentences",
    "tags, 400 sentences",
    FROZEN,
    "entities, all 3,394 sentences",
    "sentiment, 500 sentences",
)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=real_tasks.DATA)
    parser.add_argument("--minutes", type=float, default=20.0, help="of pre-training, each")
    parser.add_argument("--batch-size", type=int, default=128, help="of pre-training")
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3, 4e-3, 2e-2])
    parser.add_argument("--num-seeds", type=int, default=3)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=[*MODELS], metavar="MODEL")
    parser.add_argument("--table", action="store_true", help="print what there is, and end")
    parser.add_argument("--picture", type=Path, help="a PNG file of the table")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    settings = {"minutes": arguments.minutes, "batch_size": arguments.batch_size}
    turns = Turns(
        arguments.output / "results.jsonl", settings, lambda line: print(line, file=sys.stderr)
    )
    work = functools.partial(_missing if arguments.table else _fine_tuned, arguments)
    if not arguments.table:
        for name in dict.fromkeys(MODELS[model][0] for model in arguments.models):
            print(f"{name}: {_pretrained(arguments, name)}", file=sys.stderr, flush=True)
    rows = {name: [] for name in arguments.models}
    for column in COLUMNS:  # a column is finished for all models before the next begins
        for name, cells in rows.items():
            cells.append(_percents(turns, work, arguments, model=name, task=column))
    print(f"| | parameters | {' | '.join(COLUMNS)} |\n|---|---|{'---|' * len(COLUMNS)}")
    for name, cells in rows.items():
        print(f"| {name} | {_parameters(arguments, name)} | {' | '.join(map(_shown, cells))} |")
    if arguments.picture:
        save_picture(lambda figure: _draw(figure, rows), arguments.picture, size=(11, 3))


def _percents(turns, work, arguments, **turn):
    """The metric of each seed in percent; an empty list if a run is missing."""

    def run(**turn):
        return turns.result(turn, work)

    task = turn.pop("task")
    frozen = task == FROZEN
    turn |= {"task": task.removesuffix(", frozen"), "frozen": frozen}
    try:
        # Which vector of a text is read is the encoder's default, and no choice.
        scores, _ = best(run, rates=arguments.rates, seeds=arguments.num_seeds, others=[{}], **turn)
    except _Missing:
        return []
    return [100 * value for value in scores]


def _shown(percents):
    if not percents:
        return "–"
    spread = f" ± {statistics.stdev(percents):.1f}" if len(percents) > 1 else ""
    return f"{statistics.mean(percents):.1f}{spread}"


def _draw(figure, rows):
    """A panel per column that has values: a line per model, a point per seed, a bar at the mean."""
    names = [*rows][::-1]
    shown = [n for n, _ in enumerate(COLUMNS) if any(cells[n] for cells in rows.values())]
    for axis, column in zip(figure.subplots(1, len(shown), sharey=True), shown, strict=True):
        for height, name in enumerate(names):
            percents = rows[name][column]
            axis.plot(percents, [height] * len(percents), "o", color=COLOURS[0], markersize=4)
            if percents:
                axis.plot(statistics.mean(percents), height, "|", color=COLOURS[1], markersize=14)
        axis.set_yticks(range(len(names)), names)
        axis.grid(axis="y", color=LIGHT)
        axis.set_axisbelow(True)
        axis.set_title(COLUMNS[column].replace(", ", "\n", 1), loc="left", fontsize=9)
        hide_box(axis)
    figure.supxlabel("accuracy, or F1 of entities, in percent", fontsize=9, color=GREY, y=-0.05)


class _Missing(Exception):
    """A run that has not been done."""


def _missing(arguments, **turn):
    raise _Missing


def _fine_tuned(arguments, *, model, frozen, **turn):
    name, settings = MODELS[model]
    weights = {"model": arguments.output / name, **settings}
    if frozen:
        weights["freeze_encoder"] = True
    return tuned(weights, data=arguments.data, output=arguments.output, **turn)


def _pretrained(arguments, name):
    """Pre-trains, unless that is finished; returns a line about the run."""
    from data_gen.pretraining_data import pretraining_data
    from keras_bert.training.pretrain import pretrain

    vocab, data = books_vocabulary(arguments.output, arguments.data), arguments.output / "data"
    if not (data / "COMPLETED").exists():
        pretraining_data(
            input=str(arguments.data / "books" / "*.txt"),
            vocab=vocab,
            output=data,
            objective="mlm",
            masking="dynamic",
            max_length=64,
        )
    metrics = pretrain(
        data=data,
        vocab=vocab,
        output=arguments.output / name,
        architecture=_architecture(arguments, name),
        minutes=arguments.minutes,
        batch_size=arguments.batch_size,
        checkpoint_every=500,
        **RUNS[name],
    )
    return {key: metrics[key] for key in ("steps", "parameters", "seconds", "eval")}


def _architecture(arguments, name):
    """The path of the config.json of a run."""
    path = arguments.output / f"{name}.json"
    if name.startswith("bert"):
        return write_architecture(path)
    config = dict(ENCODERS[name])
    if "preset" in config:
        from keras_bert.encoders import presets

        preset = config.pop("preset")
        config = {**presets()[preset].preset(preset, vocab_size=TOKENS).to_dict(), **config}
    write_json(path, read_config({"vocab_size": TOKENS, **config}, source=name).to_dict())
    return path


def _parameters(arguments, model):
    from keras_bert.base.files import read_json

    path = arguments.output / MODELS[model][0] / "metrics.json"
    return f"{read_json(path)['parameters'] / 1e6:.2f} M" if path.exists() else "–"


if __name__ == "__main__":
    main()
