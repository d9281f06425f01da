"""The programs that serving.py compares, each in a process of its own: text in and label out.

    python benchmarks/serving_contenders.py CONTENDER FOLDER

answers lines of JSON on standard input; FOLDER holds what serving.py wrote for it.
"""

import json
import os
import sys
import time
from pathlib import Path

STARTED = time.perf_counter()  # what is waited for until the first answer begins with the imports

import numpy as np  # noqa: E402

CORES = os.cpu_count()
MAX_LENGTH = 128
LABELS = ("negative", "positive")


def work(contender, folder):
    """A contender's process: answers lines of JSON until there are no more."""
    answers, out = os.dup(1), sys.stdout
    os.dup2(2, 1)  # what libraries print is no answer
    out = os.fdopen(answers, "w")
    kind, _, precision = contender.partition(" ")
    makers = {
        "ours": Ours,
        "transformers": Transformers,
        "ONNX": OnnxRuntime,
        "products": Products,
    }
    model = makers[kind](Path(folder), precision)
    model.labels(["a text"])
    answered = time.perf_counter()
    loading = {"seconds": answered - STARTED, "load": answered - model.imported}
    loading["device"] = model.device
    print(json.dumps(loading), file=out, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        if "tokenization" in question:
            answer = {"share": model.tokenization(question["tokenization"])}
        else:
            answer = taking_turn(model, question["batches"])
        print(json.dumps(answer), file=out, flush=True)


def taking_turn(model, batches):
    """Answers batches of texts one after another; the one before them warms up."""
    model.labels(batches[0])
    seconds, labels = [], []
    for batch in batches:
        start = time.perf_counter()
        labels += model.labels(batch)
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "labels": labels}


def lay_kernels_out_once(precision):
    """Sets what `keras-bert serve` and savedmodels/compose.yaml set in bfloat16."""
    if precision == "bfloat16":
        os.environ["TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"] = "true"


class Ours:
    def __init__(self, folder, precision):
        lay_kernels_out_once(precision)
        import tensorflow as tf
        import tensorflow_text  # noqa: F401

        self.imported = time.perf_counter()
        (version,) = (folder / f"ours {precision}").glob("[0-9]*")
        self.device = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
        self._tf = tf
        self._model = tf.saved_model.load(str(version))
        self._answer = self._model.signatures["serving_default"]
        self._folder = folder / "model"
        self._tokenizer = None

    def labels(self, texts):
        encoded_labels = self._answer(text=self._tf.constant(texts))["label"].numpy()
        return [label.decode() for label in encoded_labels]

    def tokenization(self, texts):
        """The share of the time that strings take over ids, of medians of five calls each."""
        from transformers import AutoTokenizer

        self._tokenizer = self._tokenizer or AutoTokenizer.from_pretrained(self._folder)
        encoding = self._tokenizer(
            texts, truncation=True, padding=True, max_length=MAX_LENGTH, return_tensors="np"
        )
        names = ("input_ids", "attention_mask", "token_type_ids")
        ids = {
            ours: self._tf.constant(encoding[name], self._tf.int32)
            for ours, name in zip(("input_ids", "input_mask", "segment_ids"), names, strict=True)
        }
        strings = self._tf.constant(texts)
        from_ids = self._model.signatures["ids"]
        times = {"text": [], "ids": []}
        for _ in range(6):
            for name, call in (
                ("text", lambda: self._answer(text=strings)),
                ("ids", lambda: from_ids(**ids)),
            ):
                start = time.perf_counter()
                call()["label"].numpy()
                times[name].append(time.perf_counter() - start)
        whole, rest = (float(np.median(taken[1:])) for taken in times.values())
        return 1 - rest / whole


class Transformers:
    def __init__(self, folder, precision):
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        self.imported = time.perf_counter()
        torch.set_num_threads(CORES)
        dtype = getattr(torch, precision or "float32")
        load = AutoModelForSequenceClassification.from_pretrained
        self.device = "GPU" if torch.cuda.is_available() else "CPU"
        self._on = "cuda" if torch.cuda.is_available() else "cpu"
        self._model = load(folder / "model", dtype=dtype).to(self._on).eval()
        self._tokenizer = AutoTokenizer.from_pretrained(folder / "model")
        self._torch = torch

    def labels(self, texts):
        inputs = self._tokenizer(
            texts, truncation=True, padding=True, max_length=MAX_LENGTH, return_tensors="pt"
        ).to(self._on)
        with self._torch.inference_mode():
            label_ids = self._model(**inputs).logits.argmax(-1)
        return [LABELS[number] for number in label_ids.tolist()]


class OnnxRuntime:
    device = "CPU"

    def __init__(self, folder, precision):
        import onnxruntime
        from transformers import AutoTokenizer

        self.imported = time.perf_counter()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = CORES
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = AutoTokenizer.from_pretrained(folder / "model")

    def labels(self, texts):
        inputs = self._tokenizer(
            texts, truncation=True, padding=True, max_length=MAX_LENGTH, return_tensors="np"
        )
        names = ("input_ids", "attention_mask", "token_type_ids")
        feed = {name: inputs[name].astype(np.int64) for name in names}
        (logits,) = self._session.run(None, feed)
        return [LABELS[number] for number in logits.argmax(-1)]


class Products:
    """The dense layers of an encoder's blocks, on as many rows as a text has tokens."""

    device = "CPU"

    def __init__(self, folder, precision):
        lay_kernels_out_once(precision)
        import tensorflow as tf

        self.imported = time.perf_counter()
        config = json.loads((folder / "model" / "config.json").read_text())
        wide, inner = config["hidden_size"], config["intermediate_size"]
        # Query, key and value side by side, as our exports have them.
        block = [(wide, 3 * wide), (wide, wide), (wide, inner), (inner, wide)]
        shapes = block * config["num_hidden_layers"]
        self._rows = tf.cast(tf.random.normal((MAX_LENGTH, wide)), precision)
        layers = [
            [
                tf.Variable(tf.cast(tf.random.normal(shape), precision))
                for shape in (kernel, kernel[1:])
            ]
            for kernel in shapes
        ]

        @tf.function(autograph=False, reduce_retracing=True)
        def products(rows):
            for kernel, bias in layers:  # TensorFlow makes one operation of the two
                rows = tf.nn.bias_add(tf.matmul(rows[:, : kernel.shape[0]], kernel), bias)
            return rows

        self._products = products

    def labels(self, texts):
        length = min(MAX_LENGTH, 2 + max(len(text.split()) for text in texts))
        self._products(self._rows[:length]).numpy()
        return [LABELS[0]] * len(texts)


if __name__ == "__main__":
    work(*sys.argv[1:])
