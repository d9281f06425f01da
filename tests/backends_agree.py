"""Metrics of folders by the backend of the process, which must be those of the other one.

    KERAS_BACKEND=jax python -m tests.backends_agree FOLDER

`make_folders`, under TensorFlow, writes a model of every kind of task over BERT, and a classifier
over each other family. `figures` evaluates each, and trains those over BERT on. Prints JSON.
"""

import json
import sys
from pathlib import Path

import keras

from keras_bert.checkpoints import save_folder
from keras_bert.encoders import new_encoder, read_config
from keras_bert.inference.evaluate import evaluate
from keras_bert.inference.predict import predict
from keras_bert.training.finetune import finetune
from tests.encoders.every_kind import LINES, write_examples
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_tokenizer

EXTENSIONS = {"tagger": "conll"}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
# The same batches and no random numbers, so that only rounding differs.
OPTIONS = {"batch_size": 8, "epochs": 1, "learning_rate": 1e-3, "keep": "last"}


def make_folders(folder, kinds=tuple(LINES), families=()):
    """Fine-tunes a model of each kind, and of each family, for an epoch."""
    tokenizer = make_tokenizer([f"w{k}" for k in range(9)])
    rng = make_rng(0)
    texts = [" ".join(f"w{k}" for k in rng.integers(0, 9, rng.integers(4, 12))) for _ in range(21)]
    starts = {"bert": make_encoder(tokenizer, **NO_DROPOUT)}
    for family, config in families:
        keras.utils.set_random_seed(shifted(4))
        config = {**config, "model_type": family, "vocab_size": len(tokenizer)}
        starts[family] = new_encoder(read_config(config, source="the test"))
    cases = [(kind, "bert") for kind in kinds] + [("classifier", family) for family, _ in families]
    for kind, family in cases:
        case = folder / f"{kind} {family}"
        case.mkdir(parents=True)
        start = case / "start"
        save_folder(starts[family], tokenizer, start)
        extension = "jsonl" if LINES[kind](0, texts[0]).startswith("{") else "tsv"
        name = f"train.{EXTENSIONS.get(kind, extension)}"
        data = write_examples(case / name, kind, texts)
        finetune(task=kind, model=start, train=data, dev=data, output=case / "run", **OPTIONS)


def figures(folder):
    """-> by case: the metrics of the folder, and the losses and metrics of a run that goes on."""
    found = {}
    for case in sorted(folder.iterdir()):
        kind, family = case.name.split(" ")
        (data,) = case.glob("train.*")
        numbers_of_case = found[case.name] = {
            "evaluated": numbers(evaluate(model=case / "run", data=data))
        }
        list(predict(model=case / "run", data=data))
        if family == "bert":
            output = case / f"on {keras.backend.backend()}"
            given = {"task": kind, "model": case / "run", "train": data, "dev": data}
            metrics = finetune(**given, output=output, **OPTIONS)
            numbers_of_case["trained"] = numbers(metrics["dev"])
            numbers_of_case["loss"] = metrics["history"][-1]["train"]["loss"]
    return found


def numbers(metrics):
    return {name: value for name, value in metrics.items() if isinstance(value, float)}


if __name__ == "__main__":
    print(json.dumps(figures(Path(sys.argv[1]))))
