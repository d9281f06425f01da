"""Pre-training as one call: from a data folder to a model folder, over `model.fit`."""

import dataclasses
import hashlib
import json

import keras
import tensorflow as tf

from keras_bert.checkpoints import find_model_folder, load, load_task, save_folder
from keras_bert.encoder import BertEncoder
from keras_bert.errors import InputError
from keras_bert.records import DataFolder
from keras_bert.records.damage import damage_is_named, refuse_lost_rows
from keras_bert.settings import takes
from keras_bert.tasks.pretraining.features import evaluation_dataset, training_dataset
from keras_bert.tasks.pretraining.fill_mask import FillMask
from keras_bert.tasks.pretraining.pretrainer import Pretrainer
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.train.architecture import read_architecture
from keras_bert.train.loop import Feed, train
from keras_bert.train.optimizer import make_optimizer
from keras_bert.train.plan import plan_steps
from keras_bert.train.run_folder import RunFolder
from keras_bert.train.settings import PretrainSettings
from keras_bert.train.starting_point import fingerprint_of_folder, with_pooler

# The task that each objective of a data job trains.
_TASKS = {"mlm-nsp": Pretrainer, "mlm": FillMask}
_DEFAULT_ARCHITECTURE = "tiny"


@takes(PretrainSettings)
@tf.autograph.experimental.do_not_convert  # it writes Python files outside the output
def pretrain(*, report=None, **settings):
    """Pre-trains an encoder, or goes on where a run stopped.

    The objective is that of the rows: "mlm-nsp" trains masked tokens and next sentences (a
    `Pretrainer`, whose folder is a BertForPreTraining), "mlm" masked tokens alone (a `FillMask`,
    whose folder is a BertForMaskedLM, without a pooler where it starts from random weights; no
    figure of next sentences is reported).

    Calling it again with the same arguments resumes a run that was killed, exactly: with
    `deterministic` the weights are those of a run that was not, bit for bit. A finished run is not
    repeated.

    Args:
        {settings}
        report: a function that is told, in lines, what the run starts from.

    Returns:
        What metrics.json holds: `steps`, `parameters`, `seconds`, `tokens_per_second` (padding not
        counted), `unigram_entropy` (nats a token: the loss of a model that knows only word
        frequencies), `eval_at_start`, `eval` and `train` (the last figures; losses in nats), and
        `curve` (see `keras_bert.train.curve.Curve`). `eval` figures are None without eval rows.

    Raises:
        InputError: an argument is wrong, the rows are of an objective that cannot be trained yet,
            or the output folder holds something else.
    """
    settings = PretrainSettings.of(settings)
    report = report or (lambda line: None)
    folder = DataFolder.open(settings.data)
    task_class = _task_of(folder)
    vocabulary = Vocabulary.from_file(settings.vocab)  # its case is that of the rows
    folder.check_vocabulary(vocabulary)
    refuse_lost_rows(folder)
    tokenizer = Tokenizer.from_vocab(vocabulary, lowercase=folder.card.lowercase)
    keras.utils.set_random_seed(settings.seed)
    if settings.deterministic:
        tf.config.experimental.enable_op_determinism()
    if settings.model is not None:
        model, start = _from_folder(settings, folder, tokenizer, task_class)
        report(f"Starting from the weights in {settings.model}.")
    else:
        model, start = _from_random_weights(settings, folder, tokenizer, task_class)
    optimizer = make_optimizer(
        model,
        learning_rate=settings.learning_rate,
        warmup=settings.warmup,
        weight_decay=settings.weight_decay,
        steps=settings.steps,
    )
    inputs = {"data": _fingerprint(folder.card.to_dict()), "vocab": vocabulary.sha256, **start}
    with RunFolder.of(settings, command="pretrain", inputs=inputs) as run:
        if run.finished:
            report(f"The run in {run.path} is finished already; these are its results.")
            return run.read_metrics()
        return _train(model, optimizer, run, folder, settings)


def _train(model, optimizer, run, folder, settings):
    """The run itself; returns its metrics."""
    model.compile_defaults(
        optimizer,
        # "auto" is XLA on a GPU or TPU, and none on a CPU, where it measured slower.
        jit_compile="auto",
        steps_per_execution=settings.steps_per_execution,
    )
    plan = plan_steps(
        settings.steps,
        evaluate_every=settings.eval_every or settings.checkpoint_every,
        checkpoint_every=settings.checkpoint_every,
        steps_per_execution=settings.steps_per_execution,
    )
    with damage_is_named(folder):
        entries = train(
            model,
            run,
            _RowsOfFolder(folder, model.tokenizer.vocabulary, settings),
            plan,
            task=model,
            evaluate_first=True,
            constants={"unigram_entropy": {"masked_lm/loss": folder.card.unigram_entropy}},
        )
    save_folder(model, model.tokenizer, run.model, overwrite=True)
    return run.finish(_summary(entries, model, folder))


class _RowsOfFolder(Feed):
    """The rows of a data folder."""

    def __init__(self, folder, vocabulary, settings):
        self.folder = folder
        self.vocabulary = vocabulary
        self.settings = settings
        split = folder.card.splits["train"]
        if split.instances:
            self.tokens_a_step = settings.batch_size * split.tokens / split.instances

    def training(self, first_step):
        return training_dataset(
            self.folder,
            vocabulary=self.vocabulary,
            batch_size=self.settings.batch_size,
            seed=self.settings.seed,
            first_step=first_step,
        )

    def evaluation(self):
        if not self.folder.card.splits["eval"].instances:
            return None
        return evaluation_dataset(
            self.folder,
            vocabulary=self.vocabulary,
            batch_size=self.settings.batch_size,
            batches=self.settings.eval_batches,
        )


def _task_of(folder):
    objective = folder.card.objective
    if objective not in _TASKS:
        # Trained without their boundaries such rows would give a model that is not SpanBERT's, and
        # the same command would give another one once there is the head.
        raise InputError(
            f"The rows of {folder.path} were made for the objective {objective}, whose "
            'span-boundary head is still to come; make rows with `objective="mlm"` or '
            '`objective="mlm-nsp"` to pre-train today.'
        )
    return _TASKS[objective]


def _from_random_weights(settings, folder, tokenizer, task_class):
    """-> (the task, fingerprints of what its weights depend on)."""
    architecture = settings.architecture or _DEFAULT_ARCHITECTURE
    config = read_architecture(architecture, tokenizer.vocabulary)
    _check_fits(config, folder, architecture)
    start = {"architecture": _fingerprint(config.to_dict())}
    if "pooled_output" not in task_class.READS:
        # Nothing would train a pooler.
        config = dataclasses.replace(config, add_pooling_layer=False)
    return task_class(BertEncoder(config, dtype=settings.dtype), tokenizer), start


def _from_folder(settings, folder, tokenizer, task_class):
    """The same from a model folder; heads that it has not are new."""
    path = find_model_folder(settings.model)
    encoder, its_tokenizer = load(path, dtype=settings.dtype)
    if its_tokenizer is not None and (
        its_tokenizer.vocabulary.sha256 != tokenizer.vocabulary.sha256
        or its_tokenizer.lowercase != tokenizer.lowercase
    ):
        raise InputError(
            f"The rows of {folder.path} were made with another vocabulary, or another case of it, "
            f"than the model in {path} has; make rows with the model's own."
        )
    _check_fits(encoder.config, folder, path)
    if "pooled_output" in task_class.READS:
        encoder = with_pooler(encoder, dtype=settings.dtype)
    task = task_class(encoder, tokenizer)
    _take_heads(task, path)
    return task, {"model": fingerprint_of_folder(path)}


def _take_heads(task, path):
    """Gives a task the heads that the folder at `path` has of it."""
    try:
        source = load_task(path)
    except InputError:
        return  # a bare encoder
    for head in task.HEADS:
        if head in source.HEADS:
            getattr(task, head).set_weights(getattr(source, head).get_weights())


def _check_fits(config, folder, source):
    """Raises `InputError` where a model of this config cannot take the rows."""
    longest = folder.card.max_length
    if longest > config.max_length:
        raise InputError(
            f"The rows of {folder.path} have up to {longest} tokens, and the model has positions "
            f"for {config.max_length}; make shorter rows, or give an architecture with more "
            "positions."
        )
    if folder.card.objective == "mlm-nsp" and config.type_vocab_size < 2:
        raise InputError(
            f"The rows of {folder.path} have two segments, and {source} has type_vocab_size "
            f'{config.type_vocab_size}; make rows with `objective="mlm"`, or give an architecture '
            "with two types."
        )


def _summary(entries, model, folder):
    speeds = sorted(e["tokens_per_second"] for e in entries if e.get("tokens_per_second"))
    evaluated = [entry["eval"] for entry in entries if "eval" in entry]
    return {
        "steps": entries[-1]["step"],
        "parameters": model.count_params(),
        "seconds": entries[-1]["seconds"],
        "tokens_per_second": speeds[len(speeds) // 2] if speeds else None,
        "unigram_entropy": folder.card.unigram_entropy,
        "eval_at_start": evaluated[0] if evaluated else None,
        "eval": evaluated[-1] if evaluated else None,
        "train": entries[-1]["train"],
        "curve": entries,
    }


def _fingerprint(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
