"""What all tasks have in common."""

import numpy as np
import pytest

from keras_bert.tasks.tagging.tagger import Tagger
from tests.small_model import make_encoder, make_tokenizer


@pytest.mark.parametrize("frozen", [False, True])
def test_the_first_step_is_traced_once(monkeypatch, frozen):
    """Twice, where the optimizer's variables are made in it: seconds at the start of every fit."""
    encoder = make_encoder(make_tokenizer(), add_pooling_layer=False)
    encoder.trainable = not frozen
    task = Tagger(encoder, labels=["no", "yes"])
    task.compile_defaults("adamw", jit_compile=False)
    step, traces = task.train_step, []
    monkeypatch.setattr(task, "train_step", lambda data: traces.append(data) or step(data))
    ids = np.full((4, 6), 7)
    batch = {"input_ids": ids, "input_mask": ids // 7, "segment_ids": 0 * ids}
    task.fit(batch, {"logits": ids % 2}, batch_size=2, verbose=0)
    assert int(task.optimizer.iterations) == 2 and len(traces) == 1
    assert len(task.optimizer.variables) > 2 * len(task.trainable_variables)
