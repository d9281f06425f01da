"""The training of a classifier on labelled texts, from its latest checkpoint to its last step."""

import math
import sys

import keras
from tqdm import tqdm

from keras_bert.train.best_model import BestModel
from keras_bert.train.checkpoint import Checkpoint
from keras_bert.train.curve import Curve
from keras_bert.train.frozen import FrozenTexts
from keras_bert.train.progress import Progress
from keras_bert.train.tensorboard import TensorBoardCurve

# A row of the curve stands for at most this many steps, and an epoch has at least eight rows.
_STEPS_OF_A_ROW = 50
_ROWS_OF_AN_EPOCH = 8
_SHOWN = {"loss": "loss", "accuracy": "accuracy"}
_SECONDS_BETWEEN_LINES = 10


def steps_of(count, batch_size, checkpoint_every):
    """Returns (steps of a row of the curve, steps of an epoch) for `count` texts.

    A row is a Keras epoch. Checkpoints and epochs of the data are both whole numbers of it; for the
    latter, an epoch gets a few steps more, of batches that are a little smaller.
    """
    needed = math.ceil(count / batch_size)
    longest = max(1, min(_STEPS_OF_A_ROW, needed // _ROWS_OF_AN_EPOCH))
    between = max(n for n in range(1, longest + 1) if checkpoint_every % n == 0)
    return between, math.ceil(needed / between) * between


def fit_texts(
    model,
    run,
    train_rows,
    dev_rows,
    *,
    task,
    features,
    steps,
    an_epoch,
    between,
    batch_size,
    seed,
    checkpoint_every,
    best_folder,
):
    """Trains from the latest checkpoint (or from nothing) to the last step; returns the rows.

    Args:
        model: what is trained, compiled: the task, or the head alone that `freeze` gives.
        run: the `RunFolder`.
        train_rows, dev_rows: `TokenizedTexts`.
        task: the task that `model` is, or is the head of: what is saved.
        features: what `freeze` gives beside the head, or None where the whole task is trained.
        steps, an_epoch, between: steps of the run, of an epoch and of a row (see `steps_of`).
        batch_size: rows at a time in evaluation and for the features.
        seed: of the order of the rows.
        checkpoint_every: steps; there is one after each epoch, too.
        best_folder: where the best model so far is kept, or None.
    """
    checkpoint = Checkpoint(run.checkpoints, model)
    first_step, rows = 0, []
    if checkpoint.latest is not None:
        first_step, rows = checkpoint.restore()
    if first_step == steps:
        return rows  # killed after the last checkpoint
    curve = Curve(
        steps_between=between,
        last_step=steps,
        # A head alone reads no tokens.
        tokens_a_step=None if features else float(train_rows.lengths.sum() / an_epoch),
        rows=rows,
    )
    if features is not None:
        train_rows, dev_rows = _computed_once(
            [train_rows, dev_rows], features, batch_size=batch_size, folder=run.checkpoints
        )

    def after_row(_, logs):
        step = rows[-1]["step"]
        if step % checkpoint_every == 0 or step % an_epoch == 0:
            checkpoint.save(step, rows)

    progress = Progress(curve, first_step=first_step, names=_SHOWN)
    callbacks = [curve, progress, TensorBoardCurve(run.logs, curve, {})]
    if best_folder is not None:
        callbacks.append(BestModel(task, best_folder, curve, figure="accuracy"))
    callbacks.append(keras.callbacks.LambdaCallback(on_epoch_end=after_row))
    try:
        model.fit(
            train_rows.training_batches(
                steps=an_epoch, seed=seed, epochs=steps // an_epoch, first_step=first_step
            ),
            steps_per_epoch=between,
            initial_epoch=first_step // between,
            epochs=steps // between,
            validation_data=dev_rows.evaluation_batches(batch_size=batch_size),
            validation_freq=list(
                range(an_epoch // between, steps // between + 1, an_epoch // between)
            ),
            callbacks=callbacks,
            shuffle=False,
            verbose=0,
        )
    finally:
        progress.close()
    return rows


def _computed_once(splits, features, *, batch_size, folder):
    """The `FrozenTexts` of several `TokenizedTexts`, with a bar on standard error."""
    folder.mkdir(parents=True, exist_ok=True)
    with tqdm(
        total=sum(len(rows) for rows in splits),
        desc="computing features",
        unit=" texts",
        mininterval=0.1 if sys.stderr.isatty() else _SECONDS_BETWEEN_LINES,
        dynamic_ncols=True,
        file=sys.stderr,
    ) as bar:
        return [
            FrozenTexts(rows, features, batch_size=batch_size, folder=folder, on_batch=bar.update)
            for rows in splits
        ]
