"""The models that the conformance test asks for: a real classifier, and an echo."""

import sys
from pathlib import Path

import numpy as np

from keras_bert.exports.saved_model import export_task
from keras_bert.inputs.framing import frame
from keras_bert.tasks.classification.classifier import Classifier
from tests.serving.toy_models import write_echo
from tests.small_model import make_encoder, make_tokenizer


def write_models(folder):
    """Writes version 1 of `classifier` and of `echo` under `folder`, and the list of both.

    The export writes the list, so it comes last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_echo(folder / "echo", 1)
    tokenizer = make_tokenizer(["win", "cash", "london", "ada"])
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    task = Classifier(encoder, tokenizer, labels=["ham", "spam"])
    task.classifier.kernel.assign(20 * task.classifier.kernel)
    # Untrained logits differ little from text to text: spread them about zero.
    ids = tokenizer.tokenize(["win cash", "ada", "london", "the long text"])
    inputs = frame(
        [ids], tokenizer=tokenizer, names=("input_ids", "input_mask", "segment_ids"), max_length=20
    )
    task.classifier.bias.assign(-np.mean(task(inputs)["logits"], axis=0))
    export_task(task, folder / "classifier")


if __name__ == "__main__":
    write_models(Path(sys.argv[1]))
