"""Domain words: a model that goes on in a book or in tweets, with and without words added.

    python benchmarks/domain_words.py --output runs/words
    python benchmarks/domain_words.py --output runs/words --table
    python benchmarks/domain_words.py --output runs/look --epochs 1 --num-seeds 1

MiniLM is pre-trained further on the text of each of DOMAINS, for so many epochs, with its own
vocabulary and with --words of the text's added to it. From there, and from MiniLM as it was, each
of --tasks is fine-tuned with the defaults of `finetune`; the seeds are those of the fine-tuning.
The table has the figures of test, and how many tokens the domain's text has. Each pre-training and
fine-tuning is a line of OUTPUT/results.jsonl; stopped and started again, it goes on.
"""

import argparse
import sys
from pathlib import Path

import real_tasks
from downstream import TASKS, tuned
from finetuning import spread
from needed import minilm_folder
from turns import Turns

DOMAINS = ("voyage of the Beagle", "tweets")
MEASURED = ("tags, 100 sentences", "entities, all 3,394 sentences")
BEFORE = "MiniLM"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=real_tasks.DATA)
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, default=DOMAINS)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=MEASURED, metavar="TASK")
    parser.add_argument("--words", type=int, default=500)
    parser.add_argument("--epochs", type=int, default=3, help="of the further pre-training")
    parser.add_argument("--num-seeds", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print what is known, and end")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    about = {"words": arguments.words, "epochs": arguments.epochs}
    path = arguments.output / "results.jsonl"
    turns = Turns(path, about, lambda line: print(line, file=sys.stderr, flush=True))
    if not arguments.table:
        measure_all(arguments, turns)
    print(table(turns.lines()))


def measure_all(arguments, turns):
    minilm = minilm_folder(data=arguments.data)
    starts = {BEFORE: minilm}
    for domain in arguments.domains:
        for words in (0, arguments.words):
            name = f"{domain}, {words} words" if words else domain
            starts[name] = arguments.output / name.replace(" ", "-").replace(",", "")
            turns.result(
                {"start": name, "domain": domain, "words": words},
                lambda **turn: further(arguments, minilm, starts[turn["start"]], **turn),
            )

    def tune(*, start, task, seed):
        given = {"task": task, "choice": {}, "seed": seed, "data": arguments.data}
        return tuned({"model": starts[start]}, output=arguments.output, **given)

    for seed in range(arguments.num_seeds):
        for task in arguments.tasks:
            for start in starts:
                turns.result({"start": start, "task": task, "seed": seed}, tune)


def further(arguments, minilm, folder, *, start, domain, words):
    """Pre-trains MiniLM further; returns the seconds, and the tokens of the domain's text."""
    import keras_bert as kb
    from data_gen.pretraining_data import pretraining_data
    from keras_bert.training.pretrain import pretrain

    text = domain_text(arguments, domain)
    data = arguments.output / f"data-{DOMAINS.index(domain)}"
    if not (data / "COMPLETED").exists():
        rows = {"objective": "mlm", "masking": "dynamic", "max_length": 64}
        pretraining_data(input=str(text), vocab=minilm, output=data, **rows)
    metrics = pretrain(
        data=data,
        model=minilm,
        output=folder,
        epochs=arguments.epochs,
        batch_size=32,
        learning_rate=5e-5,
        checkpoint_every=100,
        add_words=words or None,
        seed=0,
    )
    tokens = kb.load_task(folder).tokenizer.tokenize([text.read_text(encoding="utf-8")])
    return {"seconds": metrics["seconds"], "tokens": int(tokens.flat_values.shape[0])}


def domain_text(arguments, domain):
    """The path of the text: the book, or a file of a line a tweet of those that tasks train on."""
    if domain == DOMAINS[0]:
        return arguments.data / "books" / "the_voyage_of_the_beagle.txt"
    path = arguments.output / "tweets.txt"
    rows = (arguments.data / "wnut17" / "train.conll").read_text(encoding="utf-8").split("\n")
    words = [row.split("\t")[0] for row in rows]
    tweets = " ".join(word or "\n" for word in words).split("\n")
    path.write_text("\n\n".join(filter(None, map(str.strip, tweets))) + "\n", encoding="utf-8")
    return path


def table(lines):
    """The table of what is known; a cell that is not measured is a dash."""
    scores, tokens = {}, {BEFORE: "–"}
    for line in lines:
        if "task" in line:
            scores.setdefault((line["start"], line["task"]), []).append(line["test"])
        else:
            tokens[line["start"]] = f"{line['tokens']:,}"
    tasks = list(dict.fromkeys(task for _, task in scores))
    written = [f"| pre-trained further on | tokens of its text | {' | '.join(tasks)} |"]
    written.append("|---" * (2 + len(tasks)) + "|")
    for start, count in tokens.items():
        cells = [spread(found) if (found := scores.get((start, task))) else "–" for task in tasks]
        written.append(f"| {start} | {count} | {' | '.join(cells)} |")
    return "\n".join(written)


if __name__ == "__main__":
    main()
