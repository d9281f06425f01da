"""One pass over held-out rows says what Keras's `evaluate` and what `Inference` say."""

import numpy as np
import pytest

from keras_bert.tasks.classification.classifier import Classifier
from keras_bert.tasks.outputs import Inference
from keras_bert.training.finetuning_examples import Evaluation
from tests.small_model import make_encoder, make_tokenizer


def test_it_gives_keras_s_metrics_and_the_outputs_in_the_order_of_the_rows():
    tokenizer = make_tokenizer(["good", "bad"])
    task = Classifier(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, labels=["a", "b"])
    task.compile_defaults(jit_compile=False)
    examples = [("good " * (1 + i % 7), "ab"[i % 2]) for i in range(11)]
    rows = task.features(list(task.read(examples)), labelled=True)
    evaluation = Evaluation(task, rows, batch_size=4)
    batches = rows.evaluation_batches(batch_size=4)
    for _ in range(2):  # nothing is left of the first time, nor of the weights that it was of
        task.classifier.kernel.assign(task.classifier.kernel * 3)
        metrics, outputs = evaluation()
        assert metrics == pytest.approx(task.evaluate(batches, return_dict=True, verbose=0))
        expected = Inference(task, batch_size=4).outputs(rows)
        assert outputs.keys() == expected.keys() == {"logits"}
        np.testing.assert_allclose(outputs["logits"], expected["logits"], atol=1e-6)
