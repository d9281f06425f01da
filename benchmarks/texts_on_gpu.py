"""Texts through a model on a GPU: embedded, classified and served, beside transformers.

`pretraining_step.py --gpu` calls this. The texts are lines of Python's manual and docstrings, the
weights are random and the same for both sides. `embed` and `predict` run on JAX in float32, in
batches of 32 as theirs, which are sorted by length. A served text is answered by a SavedModel in a
process that has TensorFlow alone (serving_contenders.py), on the GPU if TensorFlow has it.
"""

import dataclasses
import os
import statistics
import time

import numpy as np
from commands_on_gpu import write_text
from pretraining_contenders import torch_device
from serving import started
from serving_contenders import LABELS, MAX_LENGTH

from keras_bert.checkpoints import save_folder
from keras_bert.encoders.bert.encoder import BertEncoder
from keras_bert.exports.saved_model import export
from keras_bert.inference.embed import embed
from keras_bert.inference.predict import predict
from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary_files import load_vocabulary

BATCH_SIZE = 32
PRECISIONS = ("float32", "bfloat16")
AT_ONCE = (1, 32)  # texts in a request


def print_texts(point, *, texts, requests, folder):
    """Prints texts a second of `embed`, `predict` and a served model, and those of transformers.

    Args:
        point: the `Point` whose config the model has.
        texts: how many are embedded and classified.
        requests: how many a served model gets of each size.
        folder: the path of an empty folder.
    """
    files = write_text(point, folder)
    vocabulary = load_vocabulary(folder / "vocab.txt")
    config = dataclasses.replace(point.config, vocab_size=len(vocabulary))
    encoder, tokenizer = BertEncoder(config), Tokenizer.from_vocab(vocabulary, lowercase=True)
    save_folder(encoder, tokenizer, folder / "encoder")
    options = {"labels": LABELS, "max_length": MAX_LENGTH, "pooling": "cls"}
    Classifier(encoder, tokenizer, **options).save(folder / "model")
    lines = [line for file in files for line in file.read_text().splitlines() if len(line) > 20]
    lines = (lines * (1 + texts // len(lines)))[:texts]
    print_inference(lines, folder)
    print_served(lines, folder, requests=requests)


def print_inference(lines, folder):
    print(
        "\n| command, float32 | lines | lines/s | transformers, lines/s | ours / theirs |\n"
        "|---|---|---|---|---|"
    )
    given = {"text": lines, "batch_size": BATCH_SIZE}
    of_encoder = {"model": folder / "encoder", "tokens": "none", "max_length": MAX_LENGTH}
    for name, call, theirs in (
        ("embed", lambda: list(embed(**of_encoder, **given)), "AutoModel"),
        (
            "predict",
            lambda: list(predict(model=folder / "model", **given)),
            "AutoModelForSequenceClassification",
        ),
    ):
        seconds = seconds_of(call)
        path = of_encoder["model"] if name == "embed" else folder / "model"
        peer = in_transformers(path, theirs, lines)
        beside = " | "
        if peer is not None:
            beside = f"{len(lines) / peer:,.0f} | {peer / seconds:.2f}"
        print(f"| {name} | {len(lines):,} | {len(lines) / seconds:,.0f} | {beside} |", flush=True)


def in_transformers(path, name, lines):
    """Seconds of all lines, tokenized and in batches sorted by length; None without torch."""
    device = torch_device()
    if device is None:
        return None
    import torch
    import transformers

    torch.set_float32_matmul_precision("high")
    model = getattr(transformers, name).from_pretrained(path).to(device).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    ordered = sorted(lines, key=len, reverse=True)

    def call():
        for start in range(0, len(ordered), BATCH_SIZE):
            batch = ordered[start : start + BATCH_SIZE]
            batch = tokenizer(
                batch, truncation=True, padding=True, max_length=MAX_LENGTH, return_tensors="pt"
            ).to(device)
            with torch.inference_mode():
                outputs = model(**batch)
            if name != "AutoModel":
                outputs.logits.softmax(-1).cpu()
                continue
            mask = batch["attention_mask"][..., None]
            ((outputs.last_hidden_state * mask).sum(1) / mask.sum(1)).cpu()

    return seconds_of(call)


def print_served(lines, folder, *, requests):
    """Prints the time of a request with one text and with many, all contenders in turn."""
    contenders = [f"ours {precision}" for precision in PRECISIONS]
    for contender, precision in zip(contenders, PRECISIONS, strict=True):
        export(model=folder / "model", output=folder / contender, precision=precision)
    if torch_device() is not None:
        contenders += ["transformers", "transformers bfloat16"]
    os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # of the contenders, which share the device
    rng = np.random.default_rng(0)
    with started(contenders, folder) as workers:
        print("\n| served | device | texts | p50, ms | texts/s |\n|---|---|---|---|---|")
        for count in AT_ONCE:
            batches = [rng.choice(lines, count).tolist() for _ in range(requests)]
            seconds = {name: [] for name in workers}
            for _ in range(2):
                for name, worker in workers.items():
                    seconds[name] += worker.ask({"batches": batches})["seconds"]
            for name, taken in seconds.items():
                p50, device = statistics.median(taken), workers[name].loading["device"]
                print(
                    f"| {name} | {device} | {count} | {1000 * p50:.2f} | {count / p50:,.0f} |",
                    flush=True,
                )


def seconds_of(call):
    """Seconds of the second call: the first compiles."""
    call()
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
