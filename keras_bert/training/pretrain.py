"""Pre-training as one call: from a data folder to a model folder."""

import contextlib
import dataclasses
import math
import time
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.files import hash_of_json
from keras_bert.base.formatting import counted
from keras_bert.base.settings import takes
from keras_bert.inputs.batches import without_autograph
from keras_bert.optimizers.optimizer import depths, make_optimizer, options_of
from keras_bert.programs import Devices, make_deterministic
from keras_bert.readers.examples import not_reported
from keras_bert.records import DataFolder
from keras_bert.records.shard_reader import damage_is_named, reject_lost_records
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary_files import load_vocabulary
from keras_bert.training.added_words import with_added_words
from keras_bert.training.batch_size import memory_is_enough, run_or_say_what_fits, with_batch_size
from keras_bert.training.callbacks import check_callbacks
from keras_bert.training.costs import steps_in
from keras_bert.training.devices import run_of, scope_of_run
from keras_bert.training.health import health
from keras_bert.training.loop import train
from keras_bert.training.parts import Part
from keras_bert.training.parts.bad_batch import BadBatch
from keras_bert.training.parts.minutes import Minutes
from keras_bert.training.parts.tensorboard import TensorBoard
from keras_bert.training.parts.user_callbacks import UserCallbacks
from keras_bert.training.parts.window_batches import WindowBatches
from keras_bert.training.plan import plan_steps
from keras_bert.training.pretraining_examples import (
    ExamplesOfFolder,
    ExamplesOfPhases,
    sizes_of,
)
from keras_bert.training.pretraining_task import new_pretraining_task, pretraining_task_class
from keras_bert.training.run import Run, finish
from keras_bert.training.settings import PretrainSettings


@contextlib.contextmanager
def no_retracing_warnings():
    """Suppresses TensorFlow's warning that the same function is traced again.

    Each phase of a run has its own shapes, hence its own trace, and `minutes` measures them all
    before the first step.
    """

    def is_other(record):
        return "triggered tf.function retracing" not in record.getMessage()

    logger = tf.get_logger()
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


@takes(PretrainSettings)
@without_autograph
def pretrain(*, report=None, **settings) -> dict[str, Any]:
    """Pre-trains an encoder, or resumes an interrupted run.

    The objective is that of the data: "mlm-nsp" trains masked tokens and next sentences (a
    `Pretrainer`, whose folder is a BertForPreTraining), "mlm-sop" masked tokens and the order of
    sentences (a `SentenceOrderPretrainer`, a BertForPreTraining for other programs), "mlm" masked
    tokens alone (a `FillMask`, whose folder is a BertForMaskedLM, without a pooler if it starts
    from random weights), "span" masked spans and their boundaries (a `SpanPretrainer`, a
    BertForMaskedLM for other programs). With `objective="rtd"` the data of any objective train
    replaced-token detection (a `ReplacedTokenPretrainer`, an ElectraForPreTraining if the encoder
    is an ELECTRA's), with "causal-lm" a causal LM (a `CausalLM`, a BertLMHeadModel), and with
    `causal_fraction` the sequences of "mlm" are part masked, part causal (a `MaskedCausalLM`, a
    BertForMaskedLM for other programs).
    The default for an encoder that does not support the data's objective is its first one:
    "causal-lm" for "awd-lstm", "bidirectional-lm" (a `BidirectionalLM`) for "elmo", and
    "skip-gram" (a `SkipGram`, or with "cbow" a `Cbow`) for "static".

    Lists of `data`, `steps` (or `epochs` or `minutes`) and `batch_size` make phases, which follow
    one another with one optimizer and one schedule; each evaluates on its own folder's held-out
    examples.

    Calling it again with the same arguments resumes exactly: with `deterministic` the weights equal
    those of an uninterrupted run bit for bit. A finished run is not repeated.

    Args:
        **settings: the fields of `PretrainSettings`.
        report: called with each line about the start of the run, such as `print`.

    Returns:
        The contents of metrics.json: `steps`, `tokens`, `parameters`, `seconds`,
        `tokens_per_second` (without padding), `unigram_entropy` (nats per token: the loss of the
        unigram baseline), `eval_at_start`, `eval` and `train` (the last metrics; losses in nats),
        `eval_rows` (the number of held-out examples of `eval`), `history` (see
        `keras_bert.training.logs.History`) and `health` (`is_healthy` and a
        `sentence`). `eval` metrics are None without held-out examples. Metrics are named
        `OUTPUT_loss` and `OUTPUT_accuracy`; those of tokens also exist for masked, replaced and
        kept tokens (`masked_lm_kept_accuracy`), if there were any. `keras_bert.draw_run` draws
        their curves.

    Raises:
        InputError: an argument is invalid, or the output folder contains something else.
    """
    began = time.perf_counter()
    settings = PretrainSettings.of(settings)
    check_callbacks(settings.callbacks)
    report = report or not_reported
    scope = scope_of_run(settings, report, command="pretrain")
    with scope as settings, no_retracing_warnings():
        folders = _open_folders(settings)
        task_class = pretraining_task_class(folders[0], settings)
        tokenizer = _tokenizer_of(folders, settings)
        train_first = partial(_train_first, task_class, folders, tokenizer)
        most = min(folder.card.splits["train"].instances for folder in folders)
        settings = with_batch_size(
            settings, train_first, command="pretrain", most=most, report=report
        )
        _check_sizes(folders, settings)
        keras.utils.set_random_seed(settings.seed)
        if settings.deterministic:
            make_deterministic()
        run = partial(_run, task_class, folders, tokenizer, settings, began, report)
        return run_or_say_what_fits(run, settings, train_first, report=report)


def _run(task_class, folders, tokenizer, settings, began, report):
    """Makes the run on the `DataFolder` of each phase, or resumes it; returns its metrics."""
    task, start = new_pretraining_task(task_class, folders, tokenizer, settings, report=report)
    if settings.add_words is not None:
        task, folders = with_added_words(task, folders, settings.add_words, report=report)
    cards = [folder.card.to_dict() for folder in folders]
    inputs = {
        "data": hash_of_json(cards if len(cards) > 1 else cards[0]),
        "vocab": task.tokenizer.vocabulary.sha256,
        **start,
    }
    with run_of(settings, command="pretrain", inputs=inputs, rewrites_model=True) as folder:
        if folder.finished:
            report(f"The run in {settings.output} is finished already. These are its results.")
            return folder.read_metrics()
        if folder.damage is not None:
            report(f"Resuming from the last checkpoint to write the model again: {folder.damage}.")
            folder.reopen()
        with contextlib.ExitStack() as stack:
            for data in folders:
                stack.enter_context(damage_is_named(data))
            run, records = _train(task, folder, folders, settings, began, report)
        return finish(run, records)


def _train(task, folder, folders, settings, began, report):
    """Trains, and plans the steps again while that is needed; returns (run, records)."""
    with memory_is_enough(settings):
        steps = _steps(task, folder, folders, settings, began=began, report=report)
    before = time.perf_counter() - began
    while True:
        run = _planned_run(task, folder, folders, settings, steps, before, report)
        run.take_parts(PARTS)
        records = train(run)
        planned = _steps_again(run.parts, records)
        if planned is None or run.was_stopped:
            return run, records
        report(f"Planned again for the given time: {_counted(planned)}.")
        steps = folder.resolve("steps", planned)


@dataclasses.dataclass(kw_only=True)
class PretrainingRun(Run):
    """A `Run` on data folders.

    Attributes:
        folders: the `DataFolder` of each phase.
        steps: the planned steps of each phase.
        before: the seconds before it, which count toward the minutes of the run.
    """

    evaluates_first: bool = True
    folders: list[DataFolder]
    steps: list[int]
    before: float


class Results(Part):
    """The metrics on held-out data and in training, speeds, and the health of the run."""

    def metrics(self, run, records):
        return _summary(records, run.task, run.folders[-1], run.settings, steps=run.steps)


# In the order in which their callbacks are called.
PARTS = (TensorBoard, BadBatch, WindowBatches, UserCallbacks, Minutes, Results)


def _planned_run(task, folder, folders, settings, steps, before, report):
    """The `PretrainingRun` of the planned steps of each phase, with its compiled task."""
    plan = plan_steps(
        steps,
        evaluate_every=settings.eval_every or settings.checkpoint_every,
        checkpoint_every=settings.checkpoint_every,
        steps_per_execution=settings.steps_per_execution,
    )
    _compile(task, settings, steps=plan.steps)
    counts = folder.resolved("window_batches") if Devices().is_chief else None
    return PretrainingRun(
        folder=folder,
        settings=settings,
        task=task,
        plan=plan,
        report=report,
        source=ExamplesOfPhases.of(
            folders, task, steps=steps, settings=settings, window_batches=counts
        ),
        constants={"unigram_entropy": _unigram_losses(task, folders[-1])},
        folders=folders,
        steps=steps,
        before=before,
    )


def _steps_again(parts, records):
    """The steps of each phase of a new plan, if the run has ended for one; else None."""
    for part in parts:
        if isinstance(part, Minutes):
            return part.new_steps(records)
    return None


def _counted(steps):
    """The steps of each phase in words."""
    return ", then ".join(counted(number, "step") for number in steps)


def _open_folders(settings):
    """The `DataFolder` of each phase; `InputError` if they differ in form."""
    first, *others = folders = [DataFolder.open(phase.data) for phase in settings.phases]
    for other in others:
        for name in ("objective", "lowercase", "template"):
            expected, received = (getattr(folder.card, name) for folder in (first, other))
            if received != expected:
                raise InputError(
                    f"The data of all phases must have the same {name}. Received: {expected!r} in "
                    f"{first.path}, and {received!r} in {other.path}."
                )
    return folders


def _tokenizer_of(folders, settings):
    """The `Tokenizer` of the data; `InputError` for data that the run cannot train on."""
    # The case of a given vocabulary is that of the data.
    given = settings.vocab
    vocabulary = folders[0].vocabulary() if given is None else load_vocabulary(given)
    for folder in folders:
        folder.check_vocabulary(vocabulary)
        reject_lost_records(folder)
    card = folders[0].card
    return Tokenizer(vocabulary, lowercase=card.lowercase, template=card.template)


def _check_sizes(folders, settings):
    """Raises `InputError` if a batch of a phase has no room for an example, or for a device."""
    for folder, phase in zip(folders, settings.phases, strict=True):
        size, examples = sizes_of(folder, phase, parts=settings.gradient_accumulation)
        Devices().check_batch_size(examples, setting=next(iter(size)))


def _train_first(task_class, folders, tokenizer, settings):
    """Trains a new model for a step on the first examples of each phase."""
    devices = Devices()
    for folder, phase in zip(folders, settings.phases, strict=True):
        task, _ = new_pretraining_task(
            task_class, folders, tokenizer, settings, report=not_reported
        )
        _compile(task, settings, steps=None)
        source = ExamplesOfFolder(folder, task, phase=phase, settings=settings)
        training = source.training(0)
        devices.prepare(task, training)
        devices.renew_steps(task)
        batches, count = devices.distributed(training), source.batches_per_step
        task.fit(batches, steps_per_epoch=count, shuffle=False, verbose=0)


def _steps(task, run_folder, folders, settings, *, began, report):
    """The steps of each phase: those given, those of its epochs, or those there is time for.

    The last are planned once, and stored for a resumed run.
    """
    if settings.steps is not None:
        return [phase.steps for phase in settings.phases]
    if settings.epochs is not None:
        return [
            _steps_of_epochs(folder, task, phase, settings)
            for folder, phase in zip(folders, settings.phases, strict=True)
        ]
    if Devices().count > 1:
        raise InputError.naming(
            "{minutes} is planned on a single device. Use {steps} with several."
        )
    steps = run_folder.resolved("steps")
    if steps is not None:
        return steps
    steps = steps_in(
        [phase.minutes for phase in settings.phases],
        task,
        [
            ExamplesOfFolder(folder, task, phase=phase, settings=settings)
            for folder, phase in zip(folders, settings.phases, strict=True)
        ],
        spent=lambda: time.perf_counter() - began,
        compile_model=lambda: _compile(task, settings, steps=None),
        evaluate_every=settings.eval_every or settings.checkpoint_every,
        multiple_of=settings.steps_per_execution,
    )
    report(f"Planned for the given time: {_counted(steps)}.")
    return run_folder.resolve("steps", steps)


def _steps_of_epochs(folder, task, phase, settings):
    """The steps of a phase's epochs: rounded up, also to whole executions."""
    split = folder.card.splits["train"]
    steps = phase.epochs * split.instances / phase.batch_size
    if phase.batch_tokens is not None:  # about: batches are of sequences of similar length
        source = ExamplesOfFolder(folder, task, phase=phase, settings=settings)
        steps = phase.epochs * split.tokens / source.tokens_per_step
    return max(1, math.ceil(steps / settings.steps_per_execution)) * settings.steps_per_execution


def _unigram_losses(task, folder):
    """The loss of the unigram baseline by its tag in TensorBoard."""
    outputs = [name for name in task.TOKEN_OUTPUTS if name != "span_boundary"]
    return {f"{name}/loss": folder.card.unigram_entropy for name in outputs}


def _compile(task, settings, *, steps):
    """Compiles the task for a run of so many steps; None is a constant learning rate."""
    below = depths(task, task.trainable_variables)
    optimizer = make_optimizer(
        task,
        **options_of(settings, **task.RUN_DEFAULTS),
        steps=steps,
        fractions=[settings.layer_decay**depth for depth in below],
        measures_gradients=True,
    )
    task.compile_defaults(
        optimizer,
        counts_finite=True,
        # "auto" is XLA on a GPU or TPU, and not on a CPU, where it was measured to be slower.
        jit_compile="auto",
        steps_per_execution=settings.steps_per_execution * settings.gradient_accumulation,
    )


def _summary(records, task, folder, settings, *, steps):
    """The contents of metrics.json; `folder` is that of the last phase, `steps` those of each."""
    speeds = sorted(e["tokens_per_second"] for e in records if e.get("tokens_per_second"))
    evaluated = [record["eval"] for record in records if "eval" in record]
    split = folder.card.splits["eval"]
    eval_examples = split.instances
    if settings.eval_batches is not None:
        _, size = sizes_of(folder, settings.phases[-1], parts=settings.gradient_accumulation)
        eval_examples = min(eval_examples, settings.eval_batches * size)
    summary = {
        "steps": records[-1]["step"],
        "tokens": records[-1].get("tokens"),
        "parameters": task.count_params(),
        "seconds": records[-1]["seconds"],
        "tokens_per_second": speeds[len(speeds) // 2] if speeds else None,
        "unigram_entropy": folder.card.unigram_entropy,
        "eval_at_start": evaluated[0] if evaluated else None,
        "eval": evaluated[-1] if evaluated else None,
        "eval_rows": eval_examples,
        "train": records[-1]["train"],
        "history": records,
    }
    pairs = split.counters["random_pairs"] + split.counters["swapped_pairs"]
    fraction = pairs / split.instances if pairs else 0.5  # a card may lack it
    since = sum(steps[:-1]) if len(steps) > 1 else None
    return {
        **summary,
        "health": health(summary, chance=max(fraction, 1 - fraction), since=since),
    }
