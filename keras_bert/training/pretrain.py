"""Pre-training as one call: from a data folder to a model folder, over `model.fit`."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.base.settings import takes
from keras_bert.checkpoints import save_folder
from keras_bert.records import DataFolder
from keras_bert.records.examples import damage_is_named, readable_examples, reject_lost_records
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary_files import load_vocabulary
from keras_bert.training.followed_run import run_of
from keras_bert.training.loop import train
from keras_bert.training.monitoring.health import health
from keras_bert.training.monitoring.tensorboard import EmbeddingProjector, WeightHistograms
from keras_bert.training.optimizers.optimizer import depths, make_optimizer
from keras_bert.training.plan import plan_steps, steps_in
from keras_bert.training.pretrain_settings import PretrainSettings
from keras_bert.training.pretraining_examples import (
    ExamplesOfFolder,
    ExamplesOfPhases,
    SettleWindowBatches,
    sizes_of,
)
from keras_bert.training.pretraining_start import fingerprint, task_at_start, task_class_of
from keras_bert.training.strategies.devices import Devices
from keras_bert.training.strategies.strategy import scope_of

_WARNING = "triggered tf.function retracing"


@contextlib.contextmanager
def retracing_on_purpose():
    """Within it TensorFlow does not warn that the same step is traced again and again.

    Each phase of a run has its own shapes, hence its own trace, and `minutes` measures them all
    before the first step.
    """
    logger = tf.get_logger()
    logger.addFilter(_says_something_else)
    try:
        yield
    finally:
        logger.removeFilter(_says_something_else)


def _says_something_else(record):
    return _WARNING not in record.getMessage()


@takes(PretrainSettings)
@tf.autograph.experimental.do_not_convert  # it writes Python files outside the output
def pretrain(*, report: Callable[[str], None] | None = None, **settings) -> dict[str, Any]:
    """Pre-trains an encoder, or goes on where a run stopped.

    The objective is that of the rows: "mlm-nsp" trains masked tokens and next sentences (a
    `Pretrainer`, whose folder is a BertForPreTraining), "mlm-sop" masked tokens and the order of
    sentences (a `SentenceOrderPretrainer`, the same to others), "mlm" masked tokens alone (a
    `FillMask`, whose folder is a BertForMaskedLM, without a pooler where it starts from random
    weights), "span" masked spans and their boundaries (a `SpanPretrainer`, a BertForMaskedLM to
    others, too). With `objective="causal-lm"` the data of any objective train a causal LM (a
    `CausalLM`, a BertLMHeadModel), and with `causal_fraction` the sequences of "mlm" are masked or
    causal by turns (a `MaskedCausalLM`, a BertForMaskedLM to others).

    Lists of `data`, `steps` (or `minutes`) and `batch_size` make phases, which follow one another
    with one optimizer and one schedule; each evaluates on its own folder's held-out rows.

    Calling it again with the same arguments resumes a run that was killed, exactly: with
    `deterministic` the weights are those of a run that was not, bit for bit. A finished run is not
    repeated.

    Args:
        {settings}
        report: a function that is told, in lines, what the run starts from.

    Returns:
        What metrics.json holds: `steps`, `tokens`, `parameters`, `seconds`, `tokens_per_second`
        (padding not counted), `unigram_entropy` (nats a token: the loss of a model that knows only
        word frequencies), `eval_at_start`, `eval` and `train` (the last figures; losses in nats),
        `eval_rows` (how many held-out rows `eval` is of), `history` (see
        `keras_bert.training.monitoring.history.History`) and `health` (whether the run looks
        healthy, `is_healthy`, and a `sentence`). `eval` figures are None without eval rows. Figures
        are named `OUTPUT_loss` and `OUTPUT_accuracy`; those of tokens also stand there for the
        masked, replaced and kept ones (`masked_lm_kept_accuracy`), where there were such.
        `keras_bert.draw_run` draws their curves.

    Raises:
        InputError: an argument is wrong, or the output folder holds something else.
    """
    began = time.perf_counter()
    settings = PretrainSettings.of(settings)
    report = report or (lambda line: None)
    with scope_of(settings.strategy, report), retracing_on_purpose():
        return _pretrain(settings, report, began=began)


def _pretrain(settings, report, *, began):
    """`pretrain` in the scope of its strategy."""
    folders = [DataFolder.open(phase.data) for phase in settings.phases]
    folder = _of_one_kind(folders)
    task_class = task_class_of(folder, settings)
    vocabulary = load_vocabulary(settings.vocab)  # its case is that of the rows
    for each, phase in zip(folders, settings.phases, strict=True):
        each.check_vocabulary(vocabulary)
        if settings.bad_records == "error":
            reject_lost_records(each)
        size, rows = sizes_of(each, phase, parts=settings.gradient_accumulation)
        Devices().check_sequences(rows, by=next(iter(size)))
    card = folder.card
    tokenizer = Tokenizer(vocabulary, lowercase=card.lowercase, template=card.template)
    keras.utils.set_random_seed(settings.seed)
    if settings.deterministic:
        tf.config.experimental.enable_op_determinism()
    model, start = task_at_start(task_class, folders, tokenizer, settings, report=report)
    inputs = {"data": _fingerprint_of_examples(folders), "vocab": vocabulary.sha256, **start}
    with run_of(settings, command="pretrain", inputs=inputs, rewrites_model=True) as run:
        if run.finished:
            report(f"The run in {settings.output} is finished already; these are its results.")
            return run.read_metrics()
        if run.damage is not None:
            report(f"The run resumes from its last checkpoint to write it again: {run.damage}.")
            run.reopen()
        if settings.bad_records == "skip":
            folders = _readable(folders, run, report)
        return _train(model, run, folders, settings, began, report)


def _readable(folders, run, report):
    """The phases' rows without those that cannot be read, settled when the run begins."""
    if Devices().workers > 1:
        raise InputError(
            '`bad_records` is "skip", which settles the rows in the folder of one process; make '
            "the data again where several train together."
        )
    found = [
        readable_examples(folder, run.readable_examples / str(n))
        for n, folder in enumerate(folders)
    ]
    for rows in found:
        for shard, count in rows.left_out.items():
            report(f"{rows.path}/{shard}: {counted(count, 'row')} left out that cannot be read.")
    return found


def _train(model, run, folders, settings, began, report):
    """The run itself; returns its metrics."""
    with contextlib.ExitStack() as damage:
        for folder in folders:
            damage.enter_context(damage_is_named(folder))
        steps = _steps(model, run, folders, settings, began=began, report=report)
        records = _trained(model, run, folders, settings, steps=steps, report=report)
    if not Devices().is_chief:
        return run.finish()
    save_folder(model, model.tokenizer, run.model, overwrite=True)
    return run.finish(_summary(records, model, folders[-1], settings, phases=steps))


def _steps(model, run, folders, settings, *, began, report):
    """The steps of each phase: those given, or as many as there are minutes for.

    The latter is settled once, and a run that goes on keeps to it.
    """
    if settings.steps is not None:
        return [phase.steps for phase in settings.phases]
    if Devices().replicas > 1:
        raise InputError(
            "`minutes` is planned by measuring on one device; give `steps` where several train "
            "together."
        )
    held = run.resolved("steps")
    if held is not None:
        return held
    phases = settings.phases
    steps = steps_in(
        [phase.minutes for phase in phases],
        model,
        [
            ExamplesOfFolder(folder, model, phase=phase, settings=settings)
            for folder, phase in zip(folders, phases, strict=True)
        ],
        spent=lambda: time.perf_counter() - began,
        compile_model=lambda: _compile(model, settings, steps=None),
        evaluate_every=settings.eval_every or settings.checkpoint_every,
        multiple_of=settings.steps_per_execution,
    )
    report(
        f"Planned for the time there is: {' and then '.join(counted(n, 'step') for n in steps)}."
    )
    return run.settle("steps", steps)


def _trained(model, run, folders, settings, *, steps, report):
    """Trains to the last step; returns the entries of the curve."""
    _compile(model, settings, steps=sum(steps))
    plan = plan_steps(
        steps,
        evaluate_every=settings.eval_every or settings.checkpoint_every,
        checkpoint_every=settings.checkpoint_every,
        steps_per_execution=settings.steps_per_execution,
    )
    known = run.resolved("window_batches") if Devices().is_chief else None
    rows = ExamplesOfPhases.of(folders, model, steps=steps, settings=settings, window_batches=known)
    return train(
        model,
        run,
        rows,
        plan,
        task=model,
        evaluate_first=True,
        constants={"unigram_entropy": _unigram_entropy(model, folders[-1])},
        keep_checkpoints=settings.keep_checkpoints,
        watchers=_watchers(model, run, folders[0], plan, settings, rows),
        report=report,
    )


def _watchers(model, run, folder, plan, settings, rows):
    """What writes more than the curve: for TensorBoard, and for a run that resumes."""
    if not Devices().is_chief:
        return []
    watchers = [EmbeddingProjector(run.logs, model, folder.card.unigram_counts)]
    if rows.window_batches is not None:
        watchers.append(SettleWindowBatches(run, rows, plan))
    return [*watchers, WeightHistograms(run.logs, plan)] if settings.histograms else watchers


def _unigram_entropy(model, folder):
    """The level line beside the losses of ordinary tokens."""
    outputs = [name for name in model.TOKEN_OUTPUTS if name != "span_boundary"]
    return {f"{name}/loss": folder.card.unigram_entropy for name in outputs}


def _compile(model, settings, *, steps):
    """Compiles the task with the optimizer of a run of so many steps; None is a level rate."""
    below = depths(model, model.trainable_variables)
    optimizer = make_optimizer(
        model,
        optimizer=settings.optimizer,
        learning_rate=settings.learning_rate,
        warmup=settings.warmup,
        schedule=settings.schedule,
        weight_decay=settings.weight_decay,
        clip_norm=settings.clip_norm,
        gradient_accumulation_steps=settings.gradient_accumulation,
        steps=steps,
        fractions=[settings.layer_decay**depth for depth in below],
        measures_gradients=True,
    )
    model.compile_defaults(
        optimizer,
        counts_finite=True,
        # "auto" is XLA on a GPU or TPU, and none on a CPU, where it measured slower.
        jit_compile="auto",
        steps_per_execution=settings.steps_per_execution * settings.gradient_accumulation,
    )


def _of_one_kind(folders):
    """The first of the phases' data folders; raises `InputError` where another differs in kind."""
    first, *others = folders
    for other in others:
        for what in ("objective", "lowercase", "template"):
            mine, its = (getattr(folder.card, what) for folder in (first, other))
            if mine != its:
                raise InputError(
                    f"The rows of {first.path} have the {what} {mine!r} and those of {other.path} "
                    f"{its!r}; the phases of a run need the same."
                )
    return first


def _summary(records, model, folder, settings, *, phases):
    """What metrics.json holds; `folder` is that of the last of the `phases`, each in steps."""
    speeds = sorted(e["tokens_per_second"] for e in records if e.get("tokens_per_second"))
    evaluated = [record["eval"] for record in records if "eval" in record]
    summary = {
        "steps": records[-1]["step"],
        "tokens": records[-1].get("tokens"),
        "parameters": model.count_params(),
        "seconds": records[-1]["seconds"],
        "tokens_per_second": speeds[len(speeds) // 2] if speeds else None,
        "unigram_entropy": folder.card.unigram_entropy,
        "eval_at_start": evaluated[0] if evaluated else None,
        "eval": evaluated[-1] if evaluated else None,
        "eval_rows": _eval_examples(folder, settings),
        "train": records[-1]["train"],
        "history": records,
    }
    since = sum(phases[:-1]) if len(phases) > 1 else None
    return {**summary, "health": health(summary, chance=_chance(folder), since=since)}


def _chance(folder):
    """The share of the held-out pairs that one answer to all of them gets right."""
    split = folder.card.splits["eval"]
    pairs = split.counters["random_pairs"] + split.counters["swapped_pairs"]
    fraction = pairs / split.instances if pairs else 0.5  # a card may be silent
    return max(fraction, 1 - fraction)


def _eval_examples(folder, settings):
    """How many held-out rows the last phase is measured on."""
    rows = folder.card.splits["eval"].instances
    if settings.eval_batches is None:
        return rows
    _, batch = sizes_of(folder, settings.phases[-1], parts=settings.gradient_accumulation)
    return min(rows, settings.eval_batches * batch)


def _fingerprint_of_examples(folders):
    cards = [folder.card.to_dict() for folder in folders]
    return fingerprint(cards if len(cards) > 1 else cards[0])
