"""Pre-training as one call: from a data folder to a model folder, over `model.fit`."""

import dataclasses
import hashlib
import json
import math
import os

import keras
import tensorflow as tf

from keras_bert.checkpoints import save_folder
from keras_bert.encoder import BertEncoder
from keras_bert.errors import InputError
from keras_bert.input_pipeline.pretraining import evaluation_dataset, training_dataset
from keras_bert.records import DataFolder
from keras_bert.tasks.fill_mask import FillMask
from keras_bert.tasks.pretrainer import Pretrainer
from keras_bert.text.tokenizer import Tokenizer
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.train.architecture import is_path, read_architecture
from keras_bert.train.checkpoint import Checkpoint
from keras_bert.train.curve import Curve
from keras_bert.train.optimizer import make_optimizer
from keras_bert.train.progress import Progress
from keras_bert.train.run_folder import RunFolder
from keras_bert.train.tensorboard import TensorBoardCurve

# A row of the curve stands for at most this many steps, and a run has at least twenty rows.
_STEPS_OF_A_ROW = 50
_ROWS_OF_A_RUN = 20

_SHOWN = {
    "masked_lm_loss": "masked-token loss",
    "masked_lm_accuracy": "accuracy",
    "next_sentence_loss": "next-sentence loss",
    "next_sentence_accuracy": "accuracy",
}


def pretrain(
    *,
    data,
    vocab,
    output,
    steps,
    architecture="tiny",
    batch_size=32,
    learning_rate=5e-4,
    warmup=0.1,
    weight_decay=0.01,
    seed=0,
    eval_every=None,
    eval_batches=None,
    checkpoint_every=500,
    deterministic=False,
    force=False,
):
    """Pre-trains an encoder, or goes on where a run stopped.

    The objective is that of the rows: "mlm-nsp" trains masked tokens and next sentences (a
    `Pretrainer`, whose folder is a BertForPreTraining), "mlm" masked tokens alone (a `FillMask`
    without a pooler, whose folder is a BertForMaskedLM; no figure of next sentences is reported).

    Calling it again with the same arguments resumes a run that was killed, exactly: with
    `deterministic` the weights are those of a run that was not, bit for bit. A finished run is not
    repeated.

    Args:
        data: the folder that `pretraining-data` wrote.
        vocab: the vocabulary that its rows were made with: a vocab.txt, or a folder.
        output: the run's folder: gets model/, metrics.json, run.json, logs/ (for TensorBoard) and
            checkpoints/.
        steps: optimizer steps.
        architecture: "tiny", "mini", "small", "medium", "base", "large", or the path of a
            config.json.
        batch_size: rows in a step.
        learning_rate: the highest rate, reached at the end of the warm-up.
        warmup: the share of the steps in which the rate rises from 0.
        weight_decay: decoupled weight decay of the matrices.
        seed: the same seed, data and settings give the same run.
        eval_every: steps between two evaluations (None: at every checkpoint). There is one before
            the first step and one after the last, too.
        eval_batches: how many batches of the eval split to evaluate on (None: all of it).
        checkpoint_every: steps between two checkpoints.
        deterministic: have TensorFlow compute the same bits in every run (slower). This setting
            holds for the whole process.
        force: delete what a former run left in `output`, and begin anew.

    Returns:
        What metrics.json holds: `steps`, `parameters`, `seconds`, `tokens_per_second` (padding not
        counted), `unigram_entropy` (nats a token: the loss of a model that knows only word
        frequencies), `eval_at_start`, `eval` and `train` (the last figures; losses in nats), and
        `curve` (see `keras_bert.train.curve.Curve`). `eval` figures are None without eval rows.

    Raises:
        InputError: an argument is wrong, the rows are of an objective that cannot be trained yet,
            or the output folder holds something else.
    """
    for name, value in {
        "steps": steps,
        "batch_size": batch_size,
        "checkpoint_every": checkpoint_every,
        "eval_every": eval_every,
        "eval_batches": eval_batches,
    }.items():
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; at least 1 is needed.")
    folder = DataFolder.open(data)
    _check_objective(folder)
    vocabulary = Vocabulary.from_file(vocab)  # its case is that of the rows
    folder.check_vocabulary(vocabulary)
    config = read_architecture(architecture, vocabulary)
    if folder.card["max_length"] > config.max_length:
        raise InputError(
            f"The rows of {data} have up to {folder.card['max_length']} tokens, and the model has "
            f"positions for {config.max_length}; make shorter rows, or give an architecture with "
            "more positions."
        )
    settings = {
        "data": _absolute(data),
        "vocab": _absolute(vocab),
        "architecture": _absolute(architecture) if is_path(architecture) else architecture,
        "steps": steps,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "warmup": warmup,
        "weight_decay": weight_decay,
        "seed": seed,
        "eval_every": eval_every,
        "eval_batches": eval_batches,
        "checkpoint_every": checkpoint_every,
        "deterministic": deterministic,
    }
    inputs = {
        "data": _fingerprint(folder.card),
        "vocab": vocabulary.sha256,
        "architecture": _fingerprint(config.to_dict()),
    }

    keras.utils.set_random_seed(seed)
    if deterministic:
        tf.config.experimental.enable_op_determinism()
    tokenizer = Tokenizer.from_vocab(vocabulary, lowercase=folder.card["lowercase"])
    if folder.card["objective"] == "mlm-nsp":
        model = Pretrainer(BertEncoder(config), tokenizer)
    else:
        # Nothing would train a pooler.
        config = dataclasses.replace(config, add_pooling_layer=False)
        model = FillMask(BertEncoder(config), tokenizer)
    optimizer = make_optimizer(
        model, learning_rate=learning_rate, warmup=warmup, weight_decay=weight_decay, steps=steps
    )
    run = RunFolder(output, command="pretrain", settings=settings, inputs=inputs, force=force)
    if run.finished:
        return run.read_metrics()
    # "auto" is XLA on a GPU or TPU, and none on a CPU, where it measured slower.
    model.compile_defaults(optimizer, jit_compile="auto")
    rows = _fit(
        model,
        folder,
        run,
        steps=steps,
        batch_size=batch_size,
        seed=seed,
        eval_every=eval_every or checkpoint_every,
        eval_batches=eval_batches,
        checkpoint_every=checkpoint_every,
    )
    save_folder(model, tokenizer, run.model, overwrite=True)
    metrics = _summary(rows, model, folder)
    run.write_metrics(metrics)
    return metrics


def _fit(
    model, folder, run, *, steps, batch_size, seed, eval_every, eval_batches, checkpoint_every
):
    """Trains from the latest checkpoint (or from nothing) to the last step; returns the rows."""
    vocabulary = model.tokenizer.vocabulary
    checkpoint = Checkpoint(run.checkpoints, model)
    first_step, rows = 0, []
    if checkpoint.latest is not None:
        first_step, rows = checkpoint.restore()
    has_eval = folder.card["splits"]["eval"]["instances"] > 0
    evaluation = None
    if has_eval:
        evaluation = evaluation_dataset(
            folder, vocabulary=vocabulary, batch_size=batch_size, batches=eval_batches
        )
    if first_step == steps:
        return rows  # killed after the last checkpoint

    between = _steps_of_a_row(steps, eval_every, checkpoint_every)
    split = folder.card["splits"]["train"]
    curve = Curve(
        steps_between=between,
        last_step=steps,
        tokens_a_step=batch_size * split["tokens"] / split["instances"],
        rows=rows,
    )
    epochs = math.ceil(steps / between)

    def after_epoch(epoch, logs):
        step = rows[-1]["step"]
        if step % checkpoint_every == 0 or step == steps:
            checkpoint.save(step, rows)

    def after_batch(batch, logs):
        # Batches are numbered from 0 within an epoch. The last epoch may be a short one.
        if int(model.optimizer.iterations) >= steps:
            model.stop_training = True

    progress = Progress(curve, first_step=first_step, names=_SHOWN)
    entropy = {"unigram_entropy": {"masked_lm/loss": folder.card["unigram_entropy"]}}
    callbacks = [
        curve,
        progress,
        TensorBoardCurve(run.logs, curve, entropy),
        keras.callbacks.LambdaCallback(on_epoch_end=after_epoch, on_train_batch_end=after_batch),
    ]
    if not rows and has_eval:
        curve.set_model(model)
        results = model.evaluate(evaluation, return_dict=True, verbose=0)
        curve.start({f"val_{name}": value for name, value in results.items()})
    try:
        model.fit(
            training_dataset(
                folder,
                vocabulary=vocabulary,
                batch_size=batch_size,
                seed=seed,
                first_step=first_step,
            ),
            steps_per_epoch=between,
            initial_epoch=first_step // between,
            epochs=epochs,
            validation_data=evaluation,
            validation_freq=[
                epoch
                for epoch in range(1, epochs + 1)
                if epoch * between % eval_every == 0 or epoch == epochs
            ],
            callbacks=callbacks,
            shuffle=False,
            verbose=0,
        )
    finally:
        progress.close()
    return rows


def _steps_of_a_row(steps, eval_every, checkpoint_every):
    """The longest stretch that evaluations and checkpoints are both whole numbers of."""
    common = math.gcd(eval_every, checkpoint_every)
    longest = max(1, min(_STEPS_OF_A_ROW, steps // _ROWS_OF_A_RUN))
    return max(n for n in range(1, longest + 1) if common % n == 0)


def _summary(rows, model, folder):
    speeds = sorted(row["tokens_per_second"] for row in rows if row.get("tokens_per_second"))
    evaluated = [row["eval"] for row in rows if "eval" in row]
    return {
        "steps": rows[-1]["step"],
        "parameters": model.count_params(),
        "seconds": rows[-1]["seconds"],
        "tokens_per_second": speeds[len(speeds) // 2] if speeds else None,
        "unigram_entropy": folder.card["unigram_entropy"],
        "eval_at_start": evaluated[0] if evaluated else None,
        "eval": evaluated[-1] if evaluated else None,
        "train": rows[-1]["train"],
        "curve": rows,
    }


def _check_objective(folder):
    # Trained without their boundaries such rows would give a model that is not SpanBERT's, and the
    # same command would give another one once there is the head.
    if folder.card["objective"] == "span":
        raise InputError(
            f"The rows of {folder.path} were made for the objective span, whose span-boundary head "
            "is still to come; make rows with --objective mlm or mlm-nsp to pre-train today."
        )


def _absolute(path):
    path = os.fspath(path)
    return path if "://" in path else os.path.abspath(path)


def _fingerprint(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
