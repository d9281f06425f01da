"""Memory of a run is free when it has ended, so that a process can train as often as it likes."""

import gc
import json
from collections import Counter

import pytest
import tensorflow as tf

from keras_bert.checkpoints import save_folder
from keras_bert.inputs.tokenized_examples import TokenizedExamples
from keras_bert.tasks.task import Task
from keras_bert.training.distill import distill
from keras_bert.training.finetune import finetune
from keras_bert.training.pretrain import pretrain
from keras_bert.training.teaching import TaughtExamples
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.small_model import make_encoder, make_tokenizer


def _is_graph_of_counter(one):
    return isinstance(one, tf.Graph) and getattr(one, "name", "") == "Dataset_scan_lambda"


def kept():
    """The numbers of graphs, variables, tasks and examples that are alive.

    Without the graph of six operations that each `tf.data.Dataset.counter` leaves.
    """
    gc.unfreeze()
    gc.collect()
    kinds = (tf.Graph, tf.Variable, Task, TokenizedExamples, TaughtExamples)
    alive = (one for one in gc.get_objects() if not _is_graph_of_counter(one))
    types = Counter(map(type, alive))
    gc.freeze()
    return {
        kind.__name__: sum(count for one, count in types.items() if issubclass(one, kind))
        for kind in kinds
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"lora_rank": 2}, marks=pytest.mark.slow),
        pytest.param({"contrastive": True}, marks=pytest.mark.slow),
    ],
    ids=str,
)
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


@pytest.mark.parametrize(
    "objective",
    ["mlm", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rtd", "causal-lm"))],
)
def test_a_run_of_pretraining_leaves_nothing_of_its_model(tmp_path, objective):
    options = {"rows": 20, "eval_examples": 10, "masking": "dynamic"}
    data = make_data_folder(tmp_path / "data", objective="mlm", **options)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 8, "max_position_embeddings": 16, "vocab_size": len(VOCABULARY)}
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    given = {"data": data, "architecture": tmp_path / "config.json", "steps": 2, "batch_size": 4}
    after = []
    for number in range(2):
        pretrain(output=tmp_path / str(number), objective=objective, **given)
        after.append(kept())
    assert all(after[1][kind] <= after[0][kind] for kind in after[0]), after


def test_a_distillation_leaves_nothing_of_its_models(tmp_path):
    rows = [{"text": f"the {word}", "label": word} for word in ("cat", "dog") * 4]
    tokenizer = make_tokenizer()
    save_folder(make_encoder(tokenizer, num_hidden_layers=1), tokenizer, tmp_path / "start")
    given = {"train": rows, "dev": rows, "epochs": 1, "model": tmp_path / "start"}
    finetune(task="classifier", output=tmp_path / "teacher", **given)
    after = []
    for number in range(2):
        distill(
            teacher=tmp_path / "teacher",
            student=tmp_path / "start",
            data=[row["text"] for row in rows],
            dev=rows,
            epochs=1,
            output=tmp_path / f"student{number}",
        )
        after.append(kept())
    assert all(after[1][kind] <= after[0][kind] for kind in after[0]), after
