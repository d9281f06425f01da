"""What a run makes is gone when it has ended, so that a process can train as often as it likes."""

import gc
from collections import Counter

import pytest
import tensorflow as tf

from keras_bert.checkpoints import save_folder
from keras_bert.inputs.tokenized_examples import TokenizedExamples
from keras_bert.tasks.task import Task
from keras_bert.training.finetune import finetune
from tests.small_model import make_encoder, make_tokenizer


def kept():
    """The numbers of graphs, variables, tasks and examples that are alive."""
    gc.unfreeze()
    gc.collect()
    kinds = (tf.Graph, tf.Variable, Task, TokenizedExamples)
    types = Counter(map(type, gc.get_objects()))
    gc.freeze()
    return {
        kind.__name__: sum(count for one, count in types.items() if issubclass(one, kind))
        for kind in kinds
    }


@pytest.mark.parametrize("options", [{}, {"lora_rank": 2}, {"contrastive": True}], ids=str)
def test_a_run_leaves_nothing_of_its_model(tmp_path, options):
    rows = [{"text": f"the {word}", "label": word} for word in ("cat", "dog") * 4]
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer, num_hidden_layers=1)
    save_folder(encoder, tokenizer, tmp_path / "start")
    given = {"train": rows, "dev": rows, "epochs": 1, "model": tmp_path / "start", **options}
    after = []
    for number in range(2):
        finetune(task="classifier", output=tmp_path / str(number), **given)
        after.append(kept())
    assert all(after[1][kind] <= after[0][kind] for kind in after[0]), after
