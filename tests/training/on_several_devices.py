"""Training on several devices and in several processes: the same numbers as on one device.

`test_strategies.py` runs this file in a process whose TensorFlow has four CPU devices; by itself:

    python -m pytest -p tests.four_devices tests/training/on_several_devices.py

What needs another number of devices, or several processes, is done by processes that are forked
before TensorFlow has begun here: they need not load it again. So those tests come first.
"""

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from keras_bert.checkpoints import save_folder
from keras_bert.cli.main import main
from keras_bert.optimizers.optimizer import make_optimizer
from keras_bert.programs import Devices, scope_of
from keras_bert.programs.datasets import parts
from keras_bert.programs.workers import Workers
from keras_bert.records import DataFolder
from keras_bert.tasks.classification.ranking_losses import ListLoss
from keras_bert.tasks.losses import GlobalMean, LossOfWholeBatch
from keras_bert.tasks.pretraining.features import training_dataset
from keras_bert.tasks.tagging.crf import CrfLoss, LinearChainCrf
from keras_bert.tasks.text_embedding.losses import ROW_LOSSES, GroupLoss
from keras_bert.training import devices as devices_of_runs
from keras_bert.training import loop
from keras_bert.training.finetune import finetune
from keras_bert.training.pretrain import pretrain
from tests.four_devices import see_devices
from tests.pretraining_folder import VOCABULARY, make_data_folder
from tests.seeds import make_rng, shifted
from tests.small_model import make_encoder, make_tokenizer
from tests.tasks.classification.killed_runs import assert_same_weights, copied

CONFIG = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


class Child:
    """A forked process that calls a function; what it prints is in `said` afterwards."""

    def __init__(self, log, function, *arguments, **options):
        self._log = log
        self._process = multiprocessing.get_context("fork").Process(
            target=self._run, args=(function, arguments, options)
        )
        self._process.start()

    def _run(self, function, arguments, options):
        file = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1, closefd=False) for n in (1, 2))
        try:
            status = function(*arguments, **options) or 0
        except BaseException:
            traceback.print_exc()
            status = 1
        os._exit(status)

    def wait(self):
        """-> its exit status, negative if a signal ended it."""
        self._process.join(240)
        self.said = self._log.read_text()
        return self._process.exitcode


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    assert Child(folder / "log", make_data, folder).wait() == 0
    return folder


def make_data(folder):
    make_data_folder(folder / "rows", rows=44, eval_examples=11, objective="mlm", masking="dynamic")
    make_data_folder(
        folder / "varied",  # with 3 or 4 predictions in an example
        rows=44,
        eval_examples=11,
        objective="mlm",
        masking="dynamic",
        max_predictions=6,
        settings={"mask_unit": "token", "masked_rate": 0.3},
    )
    (folder / "config.json").write_text(json.dumps(CONFIG))
    tokenizer = make_tokenizer(["good", "bad", "film", "plot"])
    save_folder(make_encoder(tokenizer, hidden_dropout_prob=0.2), tokenizer, folder / "model")
    for name, count in (("train", 45), ("dev", 13)):
        words = make_rng(count).choice(["good", "bad", "film", "plot"], (count, 6))
        lengths = np.arange(count) % 5 + 1
        lines = [f"{' '.join(row[:n])}\t{row[0]}\n" for row, n in zip(words, lengths, strict=True)]
        (folder / f"{name}.tsv").write_text("".join(["text\tlabel\n", *lines]))


def pretraining(data, output, **settings):
    """The arguments of a run of 20 steps, of which each is an entry of the curve.

    Its batches have 7 rows, of which four devices take parts of unequal size.
    """
    return {
        "data": data / "rows",
        "vocab": data / "rows" / "vocab.txt",
        "architecture": data / "config.json",
        "output": output,
        "steps": 20,
        "batch_size": 7,
        "checkpoint_every": 5,
        "eval_every": 20,
        "learning_rate": 3e-3,
        "deterministic": True,
        "keep_last_checkpoint": True,
        **settings,
    }


def pretrain_on(devices, arguments, copied=None):
    """Pre-trains if there are so many devices.

    copied: a step, at whose end, before its checkpoint, the output is copied, and where to.
    """
    see_devices(devices)
    if arguments["data"] == "ram://rows":
        tf.io.gfile.makedirs("ram://rows")
        for path in arguments["vocab"].parent.iterdir():
            tf.io.gfile.copy(str(path), f"ram://rows/{path.name}")
    if copied is not None:
        step, copy = copied
        at_the_end_of(step, lambda: shutil.copytree(arguments["output"], copy))
    pretrain(**arguments)


def at_the_end_of(step, happens):
    """Has something happen in this process at the end of a step (from 0), before its checkpoint."""
    original = loop.EndOfRecord.on_train_batch_end

    def end(self, batch, logs=None):
        if self.first_step + batch == step:
            happens()
        original(self, batch, logs)

    loop.EndOfRecord.on_train_batch_end = end


@pytest.fixture(scope="module")
def alone(data):
    """The results of pre-training on one device."""
    child = Child(data / "log", pretrain_on, 1, pretraining(data, data / "one"))
    assert child.wait() == 0, child.said[-3000:]
    metrics = metrics_of(data / "one")
    assert len(metrics["history"]) == 21  # each of 20 steps, and the evaluation before them
    losses = [record["train"]["loss"] for record in metrics["history"][1:]]
    assert max(losses) - min(losses) > 0.1  # it is a curve
    return metrics


def finetuning(data, output, **settings):
    """The arguments of a run that trains a head, with dropout: it is traced in a moment.

    Its batches have 15 rows, and 13 in the evaluation.
    """
    return {
        "model": data / "model",
        "train": data / "train.tsv",
        "dev": data / "dev.tsv",
        "output": output,
        "freeze_encoder": True,
        "batch_size": 16,
        "epochs": 4,
        "checkpoint_every": 3,
        "class_weights": "good=2,bad=0.5",
        "deterministic": True,
        **settings,
    }


def metrics_of(output):
    return json.loads((output / "metrics.json").read_text())


def assert_same_histories(run, expected, *, to):
    """Every figure of every entry, to an absolute difference."""
    assert [record["step"] for record in run["history"]] == [e["step"] for e in expected["history"]]
    for record, other in zip(run["history"], expected["history"], strict=True):
        for part in ("train", "eval"):
            assert record.get(part) == pytest.approx(other.get(part), abs=to), record["step"]


@pytest.fixture(scope="module")
def tuned_alone(data):
    """The results of fine-tuning on one device, without dropout."""
    given = finetuning(data, data / "tuned", dropout=0.0, strategy="none")
    child = Child(data / "log", finetune_alone, given)
    assert child.wait() == 0, child.said[-3000:]
    return metrics_of(data / "tuned")


def finetune_alone(arguments):
    finetune(**arguments)


@pytest.mark.parametrize("loss", ["in-batch-negatives", "triplet"])
def test_text_vectors_on_four_devices_follow_those_on_one(data, loss):
    rows = make_rng(7).choice(["good", "bad", "film", "plot", *"abcdefgh"], (45, 3, 6))
    lengths = np.arange(3 * 45).reshape(45, 3) % 5 + 2  # of which devices have other longest ones
    lines = [
        "\t".join(" ".join(text[:n]) for text, n in zip(row, row_lengths, strict=True))
        for row, row_lengths in zip(rows, lengths, strict=True)
    ]
    head = "anchor\tpositive\tnegative\n"
    (data / "pairs.tsv").write_text(head + "".join(f"{line}\n" for line in lines))
    given = {"task": "text-embedding", "train": data / "pairs.tsv", "dev": data / "pairs.tsv"}
    given |= {"dense": "8:tanh", "loss": loss, "learning_rate": 1e-2}
    runs = []
    for devices, strategy in ((1, "none"), (4, "mirrored")):
        output = data / f"{loss}_{devices}"
        settings = finetuning(data, output, strategy=strategy, **given)
        del settings["class_weights"]
        child = Child(data / "log", finetune_on, devices, settings)
        assert child.wait() == 0, child.said[-3000:]
        runs.append(metrics_of(output))
    losses = [record["train"]["loss"] for record in runs[0]["history"] if "train" in record]
    assert losses[0] - losses[-1] > 0.01
    assert_same_histories(runs[1], runs[0], to=1e-5)


def finetune_on(devices, arguments):
    see_devices(devices)
    finetune(**arguments)


def test_pre_training_on_four_devices_follows_that_on_one(data, alone):
    given = pretraining(data, data / "four", strategy="mirrored")
    child = Child(data / "log", pretrain_on, 4, given)
    assert child.wait() == 0, child.said[-3000:]
    assert_same_histories(metrics_of(data / "four"), alone, to=1e-5)


def test_parts_of_a_step_on_two_devices_train_as_the_whole_step_on_one(data):
    """Each part counts by its predictions, which are on both devices."""
    given = pretraining(data, None, batch_size=8, strategy="mirrored")
    given["data"] = data / "varied"
    for count in (1, 2):
        run_arguments = {"output": data / f"parts-{count}", "gradient_accumulation": count}
        child = Child(data / "log", pretrain_on, count, given | run_arguments)
        assert child.wait() == 0, child.said[-3000:]
    results, expected = (metrics_of(data / f"parts-{count}") for count in (2, 1))
    assert_same_histories(results, expected, to=1e-5)


def test_pre_training_on_two_devices_follows_that_on_one_and_goes_on_bit_by_bit(data, alone):
    """It reads from another file system, as a TPU reads from gs://."""
    whole, part = data / "two", data / "part"
    given = {**pretraining(data, None, strategy="mirrored"), "data": "ram://rows"}
    child = Child(data / "log", pretrain_on, 2, {**given, "output": whole}, copied=(12, part))
    assert child.wait() == 0, child.said[-3000:]
    checkpoints = sorted(path.name for path in (part / "checkpoints").iterdir())
    assert checkpoints == ["step-000000005.safetensors", "step-000000010.safetensors"]
    child = Child(data / "log", pretrain_on, 2, {**given, "output": part})
    assert child.wait() == 0, child.said[-3000:]
    assert_same_histories(metrics_of(whole), alone, to=1e-5)
    assert_same_histories(metrics_of(part), metrics_of(whole), to=0)
    assert_same_weights(part, whole)
    last = "checkpoints/step-000000020.safetensors"
    states, expected = (load_file(folder / last) for folder in (part, whole))
    assert states.keys() == expected.keys()
    for name, state in expected.items():
        if name == "state":  # the history, with what a clock says
            continue
        np.testing.assert_array_equal(states[name], state, err_msg=name)


def work(
    address, number, command, arguments, dies_after=None, hears=None, awaited=None, dtype=None
):
    """A worker of two, as the command; returns its exit status.

    dies_after: the step after which it is killed.
    dtype: the one that its devices are faster in, if that is not float32.
    hears: a file that it writes a while after it has heard the results.
    awaited: a file that is there when the worker ends.
    """
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": address}, "task": {"type": "worker", "index": number}}
    )
    os.environ["TF_GRPC_REUSE_PORT"] = "true"  # beside the socket that holds it
    if dies_after is not None:
        at_the_end_of(dies_after, lambda: os.kill(os.getpid(), signal.SIGKILL))
    if dtype is not None:
        devices_of_runs.computes_in_bfloat16 = lambda: dtype == "mixed_bfloat16"
    if hears is not None:
        barrier = Workers.barrier

        def hear(self):
            time.sleep(1)
            hears.touch()
            barrier(self)

        Workers.barrier = hear
    flags = [f"--{name.replace('_', '-')}={v}" for name, v in arguments.items() if v is not True]
    switches = [f"--{name.replace('_', '-')}" for name, v in arguments.items() if v is True]
    status = main([command, *flags, *switches])
    assert awaited is None or awaited.exists()
    return status


def two_workers(folder, outputs, command, arguments, *, chief_options=None, follower_options=None):
    """-> the exit statuses of two workers, each told more of itself, and what they said."""
    given = [{**arguments, "output": output} for output in outputs]
    with held_ports(2) as address:
        children = [
            Child(folder / f"log{n}", work, address, n, command, given[n], **options)
            for n, options in enumerate((chief_options or {}, follower_options or {}))
        ]
        return [child.wait() for child in children], [child.said for child in children]


@contextlib.contextmanager
def held_ports(count):
    """Addresses that nobody else can take before a worker does (see `TF_GRPC_REUSE_PORT`)."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind(("127.0.0.1", 0))
        yield [f"127.0.0.1:{sock.getsockname()[1]}" for sock in sockets]


def test_workers_end_with_a_chief_that_is_killed_and_pre_train_on_as_one_device_does(data, alone):
    given = pretraining(data, None)
    outputs = [data / "pretrained", data / "not-written"]
    statuses, said = two_workers(data, outputs, "pretrain", given, chief_options={"dies_after": 7})
    assert statuses == [-signal.SIGKILL, 2], said
    assert said[1].endswith(
        "keras-bert: Another worker has ended. Interrupted. Run the same command "
        "on all workers again to resume from the chief's last checkpoint.\n"
    )
    other = {"dtype": "mixed_bfloat16"}  # of another machine, which takes the chief's
    statuses, said = two_workers(data, outputs, "pretrain", given, follower_options=other)
    assert statuses == [0, 0], said
    assert not outputs[1].exists()
    assert_same_histories(metrics_of(outputs[0]), alone, to=1e-5)


def test_workers_end_with_one_that_is_killed_and_go_on_where_they_were(data, tuned_alone):
    given = finetuning(data, None, dropout=0.0)
    outputs = [data / "chief", data / "follower"]
    statuses, said = two_workers(
        data, outputs, "finetune", given, follower_options={"dies_after": 7}
    )
    assert statuses == [2, -signal.SIGKILL], said
    assert said[0].endswith(
        "keras-bert: Another worker has ended. Interrupted. Checkpoint saved "
        f"at step 6 in {outputs[0]}. Run the same command again to resume.\n"
    )
    heard = data / "heard"
    slow, waits = {"hears": heard}, {"awaited": heard}
    statuses, said = two_workers(
        data, outputs, "finetune", given, chief_options=waits, follower_options=slow
    )
    assert statuses == [0, 0], said
    assert "Next: keras-bert predict" in said[0] and "Next:" not in said[1]
    assert not outputs[1].exists()  # only the chief writes
    assert_same_histories(metrics_of(outputs[0]), tuned_alone, to=1e-5)


# From here on in this process, on four devices.


@contextlib.contextmanager
def mirrored():
    """The scope of the strategy that runs here have, too: a process can have but one."""
    with scope_of("mirrored"):
        yield tf.distribute.get_strategy()


def test_fine_tuning_on_four_devices_follows_that_on_one(data, tuned_alone, tmp_path):
    given = finetuning(data, tmp_path / "mirrored", dropout=0.0, strategy="mirrored")
    metrics = finetune(**given)
    assert_same_histories(metrics, tuned_alone, to=1e-5)
    for name in ("accuracy", "macro_f1"):
        assert metrics["dev"][name] == tuned_alone["dev"][name]


def test_a_run_on_four_devices_goes_on_bit_by_bit(data, tmp_path):
    """With dropout, of which every device draws its own, and three steps an execution."""
    whole, part = tmp_path / "whole", tmp_path / "part"
    given = {"strategy": "mirrored", "steps_per_execution": 3}
    with copied(whole, part, after_step=6):
        metrics = finetune(**finetuning(data, whole, **given))
    resumed = finetune(**finetuning(data, part, **given))
    assert_same_weights(whole, part)
    assert_same_histories(resumed, metrics, to=0)


def test_replicas_draw_their_own_dropout():
    with mirrored() as strategy:
        keras.utils.set_random_seed(shifted(0))
        ones = keras.Input((50,))
        model = keras.Model(ones, keras.layers.Dropout(0.5)(ones))
        drawn = tf.function(
            lambda: strategy.run(lambda: model(tf.ones((1, 50)), training=True)), autograph=False
        )
        rows = []
        for _ in range(2):  # what a checkpoint has, put into all replicas, separates them again
            model.variables[0].assign([7, 0])
            Devices().separate_seeds(model)
            rows.append(np.concatenate(strategy.experimental_local_results(drawn())))
    np.testing.assert_array_equal(rows[0], rows[1])
    assert len(np.unique(rows[0], axis=0)) == 4


def test_replicas_get_the_rows_of_a_batch_in_order_each_row_once(data):
    options = {"vocabulary": VOCABULARY, "batch_size": 8, "seed": shifted(3), "first_step": 4}
    dataset = training_dataset(DataFolder.open(data / "rows"), **options)
    with mirrored() as strategy:
        distributed = iter(Devices().distributed(dataset))
        for batch in dataset.take(6):
            shards = strategy.experimental_local_results(next(distributed))
            for name, rows in batch[0].items():
                replicas = [part[0][name].numpy() for part in shards]
                assert [len(part) for part in replicas] == [2, 2, 2, 2]
                np.testing.assert_array_equal(np.concatenate(replicas), rows)


def test_workers_get_the_parts_of_their_replicas():
    batches = tf.data.Dataset.range(21).batch(8)  # of 8, 8 and 5 rows
    parts_of_workers = [parts(batches, range(2 * n, 2 * n + 2), count=4) for n in range(2)]
    rows_of_workers = [[part.numpy().tolist() for (part,) in one] for one in parts_of_workers]
    assert rows_of_workers[0] == [[0, 1], [2, 3], [8, 9], [10, 11], [16], [17]]
    assert rows_of_workers[1] == [[4, 5], [6, 7], [12, 13], [14, 15], [18], [19, 20]]


def crf_loss():
    crf = LinearChainCrf(transitions=([[1] * 3] * 3, [1] * 3, [1] * 3), name="crf")
    crf.build((None, None, 3))
    return CrfLoss(crf)


LOSSES = {
    "by weight": lambda: keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    ),
    "by values": lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    "a random field": crf_loss,
}


@pytest.mark.parametrize(
    ("name", "divisors"),
    [
        *((name, {}) for name in LOSSES),
        ("by weight", {"batch": 20.0}),
        ("a random field", {"example": 3}),
    ],
)
def test_a_mean_is_over_all_replicas_though_their_weights_differ(name, divisors):
    rng = make_rng(0)
    logits = tf.constant(rng.normal(size=(7, 5, 3)), tf.float32)
    labels = tf.constant(rng.integers(0, 3, (7, 5)), tf.int32)
    weights = tf.constant(np.arange(5) < np.array([5, 1, 4, 0, 0, 2, 1])[:, None], tf.float32)

    def gradient(loss, *batch):
        with tf.GradientTape() as tape:
            tape.watch(batch[1])
            value = loss(*batch)
        return value, tape.gradient(value, batch[1])

    batch = (labels, logits, weights)
    expected, slope = gradient(LOSSES[name](), *batch)
    if divisors:  # 13 words in 7 rows
        factor = 13 / (divisors.get("batch") or 7 * divisors["example"])
        expected, slope = expected * factor, slope * factor
    # The third replica has no weights at all.
    edges = ((0, 2), (2, 3), (3, 5), (5, 7))
    with mirrored() as strategy:
        loss = GlobalMean(LOSSES[name]())
        if divisors:
            loss.divide_by(**divisors)
        replicas = strategy.experimental_distribute_values_from_function(
            lambda c: [x[slice(*edges[c.replica_id_in_sync_group])] for x in batch]
        )
        results = strategy.run(lambda replica: gradient(loss, *replica), [replicas])
        losses, slopes = (strategy.experimental_local_results(result) for result in results)
    assert [4 * float(value) for value in losses] == pytest.approx([float(expected)] * 4)
    np.testing.assert_allclose(np.concatenate(slopes), slope, atol=1e-7)


GROUP_LOSSES = {
    "in-batch-negatives": {"symmetric": True},
    "simcse": {},
    "triplet": {},
    "cosent": {},
    "cosine-error": {},
    "contrastive": {"sizes": [4, 2], "weights": [1.0, 0.5]},
}
LIST_LOSSES = {
    "ranknet": ListLoss("listwise", list_loss="ranknet"),
    "listnet": ListLoss("listwise"),
    "binary-crossentropy": ListLoss("binary-crossentropy"),
    "margin-mse": ListLoss("margin-mse"),
}


@pytest.mark.parametrize("name", [*GROUP_LOSSES, *LIST_LOSSES])
def test_a_loss_of_a_whole_batch_is_that_of_one_device(name):
    rng = make_rng(0)
    if name in LIST_LOSSES:
        present = np.arange(4) < rng.integers(2, 5, (7, 1))
        labels = np.stack([rng.integers(0, 2, (7, 4)) * present, present], axis=-1)
        scores = tf.constant(rng.normal(size=(7, 4)), tf.float32)
        check_of_whole_batch(LIST_LOSSES[name], [tf.constant(labels, tf.float32), scores])
        return
    texts = 2 if name in ("cosent", "cosine-error", "contrastive") else 3
    vectors = tf.constant(rng.normal(size=(7, texts, 4)), tf.float32)
    labels = tf.ones([7, 3]) if texts == 3 else tf.constant(rng.integers(0, 2, (7, 1)), tf.float32)
    batch = [labels, vectors]
    if name in ROW_LOSSES:
        batch.append(tf.range(7, dtype=tf.float32))
    check_of_whole_batch(GroupLoss(name, **GROUP_LOSSES[name]), batch)


def check_of_whole_batch(loss, batch):
    """A loss of a batch of 7 rows, divided between four replicas, has its value and gradient."""

    def gradient(loss, *batch):
        with tf.GradientTape() as tape:
            tape.watch(batch[1])
            value = loss(*batch)
        return value, tape.gradient(value, batch[1])

    expected, slope = gradient(loss, *batch)
    for edges in (((0, 2), (2, 3), (3, 5), (5, 7)), ((0, 3), (3, 3), (3, 4), (4, 7))):
        with mirrored() as strategy:
            whole = LossOfWholeBatch(loss)
            replicas = strategy.experimental_distribute_values_from_function(
                lambda c, edges=edges: [x[slice(*edges[c.replica_id_in_sync_group])] for x in batch]
            )
            results = strategy.run(
                lambda replica, whole=whole: gradient(whole, *replica), [replicas]
            )
            losses, slopes = (strategy.experimental_local_results(result) for result in results)
        assert [4 * float(x) for x in losses] == pytest.approx([float(expected)] * 4, rel=1e-5)
        np.testing.assert_allclose(np.concatenate(slopes), slope, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"optimizer": "lamb", "gradient_accumulation": 2},
        {"optimizer": "muon", "gradient_accumulation": 2},
        {"fractions": [0.5, 1.0, 1.0], "first_steps": [2, 0, 0]},
        {"optimizer": "adagrad"},
    ],
    ids=["adamw", "accumulated", "muon", "layerwise", "adagrad"],
)
def test_updates_are_those_of_the_whole_gradient(options):
    """Clipped together, accumulated together, and of a lookup's rows, too."""
    rng = make_rng(1)
    ids = tf.constant(rng.integers(0, 6, (8,)), tf.int32)
    wanted = tf.constant(
        rng.normal(size=(8, 3)) * 20, tf.float32
    )  # far away: gradients are clipped

    def trained(devices):
        keras.utils.set_random_seed(shifted(0))
        table, dense = keras.layers.Embedding(6, 4, name="e"), keras.layers.Dense(3, name="d")
        ids_in = keras.Input((), dtype="int32")
        model = keras.Model(ids_in, dense(table(ids_in)))
        model.encoder = SimpleNamespace(layer_groups=[[table], [dense]])
        optimizer = make_optimizer(
            model, learning_rate=0.1, warmup=0.0, weight_decay=0.1, steps=4, **options
        )

        def step(ids, wanted):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(model(ids) - wanted)) / 8
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply(gradients, model.trainable_variables)

        rows = (ids, wanted)
        if devices.num_replicas_in_sync > 1:
            rows = devices.experimental_distribute_values_from_function(
                lambda c: [x[c.replica_id_in_sync_group :: 4] for x in (ids, wanted)]
            )
        train_step = tf.function(lambda: devices.run(step, rows), autograph=False)
        for _ in range(4):
            train_step()
        copies = [np.stack([np.array(w) for w in _copies(v)]) for v in model.variables]
        return copies, int(np.array(optimizer.iterations))

    one, steps = trained(tf.distribute.get_strategy())
    with mirrored() as strategy:
        four, as_many = trained(strategy)
    assert steps == as_many
    for replicas, expected in zip(four, one, strict=True):
        assert len(replicas) == 4
        assert (replicas == replicas[0]).all()  # the copies are the same to the bit
        np.testing.assert_allclose(replicas[0], expected[0], atol=1e-5)


def _copies(variable):
    """A variable on each of its devices."""
    return getattr(variable.value, "values", [variable])
