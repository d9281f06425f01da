"""Behaviour that all datasets have in common."""

import numpy as np
from tensorflow.python.autograph.impl import api

from keras_bert.inputs.batches import planned_batches
from keras_bert.records import DataFolder
from keras_bert.tasks.pretraining.features import evaluation_dataset, training_dataset
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.seeds import shifted


def test_nothing_is_converted_by_autograph(monkeypatch, tmp_path):
    """Which would take seconds, and write Python files into the temporary folder."""
    converted, transform = [], api._TRANSPILER.transform
    monkeypatch.setattr(
        api._TRANSPILER, "transform", lambda *args: converted.append(args[0]) or transform(*args)
    )
    folder = DataFolder.open(make_data_folder(tmp_path / "rows", rows=9, eval_examples=3))
    for size in ({"batch_size": 2}, {"batch_tokens": 64}):
        training_dataset(folder, vocabulary=VOCABULARY, seed=shifted(0), **size)
    evaluation_dataset(folder, vocabulary=VOCABULARY, batch_size=2)
    planned_batches([np.arange(3)], lambda sequences: sequences + 1)
    assert not converted
