"""A run in TensorBoard: charts, histograms of weights, the projector, a sweep's table.

Keras's TensorBoard callback writes other things: its steps are epochs, it has one tag per metric
without groups, no tokens, and what a killed session wrote after its last checkpoint stays.
"""

import contextlib
import shutil
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from tensorboard.compat.proto import summary_pb2
from tensorboard.plugins import projector
from tensorboard.plugins.hparams import api
from tensorboard.plugins.scalar.summary_v2 import scalar_pb

from keras_bert.base.files import delete
from keras_bert.base.formatting import percent
from keras_bert.text.vocabulary import MASK
from keras_bert.training.checkpoint import best_metric_value, value_of
from keras_bert.training.optimizers import GRADIENT_NORM

# Metrics of a record that are of the run, not of the task.
_RUN_METRICS = ("learning_rate", GRADIENT_NORM, "tokens_per_second", "input_wait", "mfu")


class TensorBoardHistory(keras.callbacks.Callback):
    """Writes the records of a `History` under `folder`, in runs that share their charts.

    `folder/train` and `folder/eval` have each metric under the same tag (`masked_lm/loss`), so that
    both are lines of one chart; `constants` maps the name of a further run to {tag: value}, drawn
    as horizontal lines (`{"unigram_entropy": {"masked_lm/loss": 6.8}}`). Every metric is there over
    the steps and, in charts of its own (`over_tokens/masked_lm/loss`), over the tokens, where these
    are known. `folder/eval` also has the `examples` of the records as text.

    The runs depend on the records alone: a session first writes them again from the records so far,
    so that steps that a killed session did and this one repeats are there once. `history` must come
    before this callback in `fit`'s list. `outputs` are the names of the model's outputs, by which
    metrics are grouped.
    """

    def __init__(self, folder, history, constants, *, outputs):
        super().__init__()
        self.folder = Path(folder)
        self.history = history
        self.constants = constants
        self.outputs = outputs
        self._writers = {}
        self._written = 0

    def on_train_begin(self, logs=None):
        for run in ("train", "eval", *self.constants):
            if (self.folder / run).exists():
                shutil.rmtree(self.folder / run)
            self._writers[run] = tf.summary.create_file_writer(str(self.folder / run))
        self._write()

    def on_epoch_end(self, epoch, logs=None):
        self._write()

    def on_train_end(self, logs=None):
        for writer in self._writers.values():
            writer.close()

    def _write(self):
        for record in self.history.records[self._written :]:
            scalars = {
                run: by_tag(record.get(run, {}), outputs=self.outputs) for run in ("train", "eval")
            }
            for name in _RUN_METRICS:
                if record.get(name) is not None:
                    scalars["train"][f"run/{name}"] = record[name]
            for run, tagged in {**scalars, **self.constants}.items():
                with self._writers[run].as_default():
                    _write_scalars(tagged, step=record["step"])
                    if record.get("tokens") is not None:
                        over_tokens = {f"over_tokens/{tag}": v for tag, v in tagged.items()}
                        _write_scalars(over_tokens, step=record["tokens"])
            if "examples" in record:
                with self._writers["eval"].as_default(step=record["step"]):
                    tf.summary.text("masked tokens", as_table(record["examples"]))
        self._written = len(self.history.records)
        for writer in self._writers.values():
            writer.flush()


def _write_scalars(tagged, *, step):
    """Writes metrics by tag in one event; `tf.summary.scalar` takes several operations for each."""
    values = [scalar_pb(tag, value).value[0] for tag, value in tagged.items()]
    if values:
        summary = summary_pb2.Summary(value=values)
        tf.summary.experimental.write_raw_pb(summary.SerializeToString(), step=step)


def by_tag(metrics, *, outputs):
    """`masked_lm_loss` -> `masked_lm/loss`, which groups charts by output.

    Metrics of no output are in the group `total`.
    """
    tagged = {}
    for name, value in metrics.items():
        output = next((output for output in outputs if name.startswith(f"{output}_")), None)
        metric = name if output is None else name.removeprefix(f"{output}_")
        tagged[f"{output or 'total'}/{metric}"] = value
    return tagged


def as_table(examples):
    """The `examples` of a record as a Markdown table; the correct token is bold."""

    def marked(token, expected):
        return f"**{_plain(token)}**" if token == expected else _plain(token)

    lines = ["| text | predictions |", "|---|---|"]
    for example in examples:
        expected = example["expected"]
        guesses = " · ".join(
            f"{marked(token, expected)} {percent(probability)}"
            for token, probability in example["candidates"]
        )
        if all(token != expected for token, _ in example["candidates"]):
            guesses += f"; correct: {marked(expected, expected)}"
        lines.append(
            f"| {_plain(example['before'])} **{_plain(MASK)}** {_plain(example['after'])} "
            f"| {guesses} |"
        )
    return "\n".join(lines)


def _plain(text):
    """The text with everything escaped that could be Markdown."""
    return "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in text)


class WeightHistograms(keras.callbacks.Callback):
    """Writes a histogram of each variable at every evaluation, into the run `folder/weights`.

    Each evaluation has its own file, so that a resumed session can delete what the last one wrote
    of later steps.

    Args:
        folder: the `Path` of the run's logs.
        plan: the `Plan` of the run.
    """

    def __init__(self, folder, plan):
        super().__init__()
        self.folder = folder / "weights"
        self.plan = plan

    def on_epoch_begin(self, epoch, logs=None):
        for path in self.folder.glob("*"):
            step = path.suffix[1:]
            if step.isdecimal() and int(step) > self.plan.first_step_of(epoch):
                delete(path)

    def on_epoch_end(self, epoch, logs=None):
        step = self.plan.step_of(epoch)
        if not self.plan.evaluates(step):
            return
        writer = tf.summary.create_file_writer(str(self.folder), filename_suffix=f".{step}")
        with writer.as_default(step=step):
            for variable in self.model.trainable_variables:
                tf.summary.histogram(f"weights/{variable.path}", np.asarray(variable))
        writer.close()


# The projector's methods (t-SNE, UMAP) take no more, and a browser has to load them.
_MOST_TOKENS = 5000


class EmbeddingProjector(keras.callbacks.Callback):
    """Writes the embeddings of the most frequent tokens at the end of a session.

    The run `folder/embeddings` has `vectors.tsv`, `tokens.tsv` (each token with its count in the
    training text) and the projector's configuration; they replace those of the last session.

    Args:
        folder: the `Path` of the run's logs.
        task: the task, whose tokenizer names the tokens.
        counts: the count of each token in the text, (V,); where it is empty, tokens are in the
            order of the vocabulary, which our learners sort by frequency.
    """

    def __init__(self, folder, task, counts):
        super().__init__()
        self.folder = folder / "embeddings"
        self.task = task
        self.counts = np.asarray(counts)

    def on_train_end(self, logs=None):
        if self.folder.exists():
            shutil.rmtree(self.folder)
        shown = self._shown()
        # A folder without an event is not a run, and TensorBoard ignores it.
        with tf.summary.create_file_writer(str(self.folder)).as_default(step=0):
            tf.summary.text("embeddings", f"{len(shown):,} tokens; see the projector")
        table = np.asarray(self.task.encoder.token_embedding.embeddings, np.float32)
        np.savetxt(self.folder / "vectors.tsv", table[shown], fmt="%.5g", delimiter="\t")
        name = self.task.tokenizer.vocabulary.token_name
        lines = ["token\tcount", *(f"{name(int(id))}\t{self._count(id)}" for id in shown)]
        (self.folder / "tokens.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        config = projector.ProjectorConfig()
        config.embeddings.add(
            tensor_name="token embeddings", tensor_path="vectors.tsv", metadata_path="tokens.tsv"
        )
        projector.visualize_embeddings(str(self.folder), config)

    def _shown(self):
        """The ids of the tokens that are shown, the most frequent first."""
        ids = np.arange(len(self.task.tokenizer.vocabulary))
        if len(self.counts):
            ids = np.argsort(-self.counts, kind="stable")
        return ids[:_MOST_TOKENS]

    def _count(self, id):
        return self.counts[id] if len(self.counts) else ""


def write_hparams(folder, runs, settings, *, names):
    """Writes the runs of a sweep under `folder`, in place of what it contains.

    The experiment (the settings that are tried and the metric) is in the folder itself, and each
    run in a folder of its name: its settings, `dev/METRIC` after every evaluation, and
    `kept/METRIC` of the model that it keeps. METRIC is the metric that selects a model.

    Args:
        folder: OUTPUT/logs of the sweep.
        runs: the metrics of each finished run, by name.
        settings: the settings of each run, finished or not, by name.
        names: the settings that are tried.
    """
    folder = Path(folder)
    (metric,) = {metrics["best_metric"] for metrics in runs.values()}
    if folder.exists():
        shutil.rmtree(folder)
    tried = {
        name: sorted({getattr(of_run, name) for of_run in settings.values()}) for name in names
    }
    with _writing(folder):
        api.hparams_config(
            hparams=[api.HParam(name, api.Discrete(values)) for name, values in tried.items()],
            metrics=[
                api.Metric(f"kept/{metric}", display_name=f"{metric} of the model that is kept"),
                api.Metric(f"dev/{metric}", display_name=f"{metric} on the dev data"),
            ],
        )
    for run, metrics in runs.items():
        with _writing(folder / run):
            api.hparams({name: getattr(settings[run], name) for name in names}, trial_id=run)
            values = [
                (f"dev/{metric}", value_of(record, metric), record["step"])
                for record in metrics["history"]
                if "eval" in record
            ]
            values.append((f"kept/{metric}", best_metric_value(metrics), metrics["kept"]["step"]))
            for tag, value, step in values:
                if value is not None:
                    tf.summary.scalar(tag, value, step=step)


@contextlib.contextmanager
def _writing(folder):
    """Summaries within it are written into a file in the folder."""
    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default(step=0):
        yield
    writer.close()
