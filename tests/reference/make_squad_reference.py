"""Makes squad_figures.json: what the official SQuAD programs say, to compare our figures with.

    python make_squad_reference.py --v1 evaluate-v1.1.py --v2 evaluate-v2.0.py \
        --output squad_figures.json

The two programs are those of rajpurkar.github.io/SQuAD-explorer. Each case has predictions, gold
answers and, for version 2.0, null scores, made of words and signs that the rules treat specially;
the figures are the programs' own, in percent. (Version 2.0 stops at a missing prediction.)
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

WORDS = [
    *("a", "an", "the", "A", "The", "THE", "cat", "cat", "Cat", "dog", "dog.", "theatre", "banana"),
    *(
        "“the”",
        "’s",
        "a.b",
        "x-a",
        "don't",
        "É",
        "é",
        "e\u0301",
        "ß",
        "İ",
        "½",
        "１２",
        "北京",
        "😀",
    ),
    *("!", "—", "...", "_", "a_b", "$5", "5", "5%", "\u00a0", "\u2003the", "\u200bthe", "\n", "\t"),
]
QUESTIONS = 40


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--v1", "--v2", "--output"):
        parser.add_argument(name, required=True, type=Path)
    arguments = parser.parse_args()
    rng = random.Random(7)
    cases = [first_version(rng, arguments.v1, missing=missing) for missing in (0.0, 0.2)]
    cases += [
        second_version(rng, arguments.v2, **options)
        for options in (
            {"unanswerable": 0.4, "ties": False},
            {"unanswerable": 0.4, "ties": True},
            {"unanswerable": 0.95, "ties": False},
            {"unanswerable": 1.0, "ties": False},
            {"unanswerable": 0.0, "ties": True},
        )
    ]
    text = json.dumps(cases, ensure_ascii=False, indent=1)
    arguments.output.write_text(text + "\n", encoding="utf-8")


def words(rng, least):
    return " ".join(rng.choices(WORDS, k=rng.randint(least, 4)))


def near(rng, golds):
    """A prediction that often has something in common with a gold answer."""
    parts = [word for word in rng.choice(golds).split(" ") if rng.random() < 0.8] if golds else []
    return " ".join([*parts, *rng.choices(WORDS, k=rng.randint(0, 2))])


def first_version(rng, program, *, missing):
    golds = [[words(rng, 0) for _ in range(rng.randint(1, 3))] for _ in range(QUESTIONS)]
    predictions = [None if rng.random() < missing else near(rng, texts) for texts in golds]
    metrics = asked(program, predictions, golds)
    metrics = {"exact": metrics["exact_match"], "f1": metrics["f1"], "total": QUESTIONS}
    return {"version": 1, "predictions": predictions, "golds": golds, "figures": metrics}


def second_version(rng, program, *, unanswerable, ties):
    golds = [
        [] if rng.random() < unanswerable else [words(rng, 0) for _ in range(rng.randint(1, 3))]
        for _ in range(QUESTIONS)
    ]
    predictions = ["" if rng.random() < 0.2 else near(rng, texts) for texts in golds]
    # Lower for most that have an answer, so that some are best answered.
    scores = [rng.gauss(-1.5 if texts else 0.5, 1) for texts in golds]
    if ties:
        scores = [float(round(score)) for score in scores]
    return {
        "version": 2,
        "predictions": predictions,
        "golds": golds,
        "null_scores": scores,
        "figures": asked(program, predictions, golds, null_scores=scores),
    }


def asked(program, predictions, golds, *, null_scores=None):
    """The figures that a program prints."""
    questions = [
        {"id": str(number), "answers": [{"text": text} for text in texts]}
        for number, texts in enumerate(golds)
    ]
    files = {
        "data": {"version": "1.1", "data": [{"paragraphs": [{"qas": questions}]}]},
        "predictions": {str(n): text for n, text in enumerate(predictions) if text is not None},
    }
    if null_scores is not None:
        files["null"] = {str(number): score for number, score in enumerate(null_scores)}
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder, f"{name}.json") for name in files}
        for name, value in files.items():
            paths[name].write_text(json.dumps(value))
        command = [sys.executable, program, paths["data"], paths["predictions"]]
        if null_scores is not None:
            # Its own threshold, of probabilities, would turn some predictions into no answer.
            command += ["--na-prob-file", paths["null"], "--na-prob-thresh", "1e9"]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


if __name__ == "__main__":
    main()
