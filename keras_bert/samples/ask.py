"""Asks an exported classifier: `python ask.py FOLDER TEXT …` prints one JSON object per line.

FOLDER is the version folder of a SavedModel. This needs TensorFlow and TensorFlow Text, but not
keras-bert.
"""

import json
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the operations of the tokenizer)


def main(folder, texts):
    model = tf.saved_model.load(folder)
    answers = model.signatures["serving_default"](text=tf.constant(texts))
    for text, label, score in zip(
        texts, answers["label"].numpy(), answers["score"].numpy(), strict=True
    ):
        print(json.dumps({"text": text, "label": label.decode(), "score": float(score)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
