"""Fine-tuning as one call: from labelled text to a model folder, over `model.fit`."""

import math
import os
import shutil

import keras
import numpy as np
import tensorflow as tf

from keras_bert.checkpoints import load_task, save_folder
from keras_bert.errors import InputError
from keras_bert.input_pipeline.classification import TokenizedTexts
from keras_bert.input_pipeline.features import check_max_length
from keras_bert.input_pipeline.labelled_files import LabelledTexts
from keras_bert.tasks.classifier import Classifier
from keras_bert.tasks.mixed_encoder import MixedEncoder
from keras_bert.train.architecture import is_path
from keras_bert.train.best_model import best_row
from keras_bert.train.classification_metrics import classification_metrics
from keras_bert.train.fit_texts import fit_texts, steps_of
from keras_bert.train.frozen import freeze
from keras_bert.train.inference import Inference
from keras_bert.train.optimizer import make_optimizer
from keras_bert.train.run_folder import RunFolder
from keras_bert.train.starting_point import StartingPoint

TASKS = ("classifier",)
KEEP = ("best", "last")

# The highest learning rate where none is given: of all weights, and of a head alone.
_RATE, _RATE_OF_A_HEAD = 5e-5, 1e-3
# What the result does not depend on.
_NOT_SETTINGS = ("output", "force", "report")


def finetune(
    *,
    train,
    dev,
    output,
    task="classifier",
    model=None,
    architecture=None,
    vocab=None,
    cased=False,
    epochs=3,
    batch_size=32,
    learning_rate=None,
    warmup=0.1,
    weight_decay=0.01,
    dropout=None,
    frozen=False,
    scalar_mix=False,
    scalar_mix_l2=0.0,
    scalar_mix_layer_norm=False,
    max_length=128,
    seed=0,
    keep="best",
    text_column=None,
    label_column=None,
    header=None,
    checkpoint_every=500,
    deterministic=False,
    force=False,
    report=None,
):
    """Fine-tunes an encoder on labelled texts, or goes on where a run stopped.

    Calling it again with the same arguments resumes a run that was killed, exactly: with
    `deterministic` the weights are those of a run that was not, bit for bit. A finished run is not
    repeated.

    Args:
        train: the labelled file to train on (TSV or JSON Lines), or `-` for standard input.
        dev: the labelled file to evaluate on after each epoch.
        output: the run's folder: gets model/, metrics.json, run.json, logs/ (for TensorBoard) and
            checkpoints/.
        task: "classifier".
        model: the model folder to start from, or the output folder of a run.
        architecture: instead of `model`: "tiny" … "large" or the path of a config.json, to start
            from random weights.
        vocab: the vocabulary of an architecture: a vocab.txt, or a folder.
        cased: the vocabulary of an architecture keeps capitals and accents; a folder may say so
            itself.
        epochs: passes over the training data.
        batch_size: rows in a step; some have one less, so that all steps weigh about the same.
        learning_rate: the highest rate, reached at the end of the warm-up. None is 5e-5, which
            suits base sizes (small ones take 1e-4 to 5e-4), and 1e-3 for a frozen encoder's head.
        warmup: the share of the steps in which the rate rises from 0.
        weight_decay: decoupled weight decay of the matrices.
        dropout: of the pooled output; None is the model's own.
        frozen: train the head alone (pooler, classifier, and the mix): the encoder's embeddings and
            blocks stay as they are, and what they make of each text is computed once, without
            dropout, into a temporary file in `output`.
        scalar_mix: the head reads a learned mix of all layers (see `ScalarMix`) and not the last.
        scalar_mix_l2: λ of the penalty that pulls the mix toward the average.
        scalar_mix_layer_norm: normalise every layer before mixing, with the model's own epsilon.
        max_length: tokens that a text is cut to, [CLS] and [SEP] counted in.
        seed: the same seed, data and settings give the same run.
        keep: "best": the model of the epoch with the highest dev accuracy; "last": of the last one.
        text_column, label_column, header: see `LabelledTexts`; for both files.
        checkpoint_every: steps between two checkpoints; there is one after each epoch, too.
        deterministic: have TensorFlow compute the same bits in every run (slower). This setting
            holds for the whole process.
        force: delete what a former run left in `output`, and begin anew.
        report: a function that is told, in lines, how the files are read and what is trained.

    Returns:
        What metrics.json holds: `kept` (which model, with its `step` and `epoch`), `dev` (its
        measures, see `classification_metrics`), `labels`, `steps`, `parameters`, `seconds` and
        `curve` (see `keras_bert.train.curve.Curve`); `trained_parameters`; and where there is a
        mix, `scalar_mix`: the `shares` of the layers in it, the embeddings first, and `gamma`.

    Raises:
        InputError: an argument or a file is wrong, a label of `dev` does not occur in `train`, or
            the output folder holds something else.
    """
    settings = {name: value for name, value in locals().items() if name not in _NOT_SETTINGS}
    _check(settings)
    report = report or (lambda line: None)
    start = StartingPoint(model=model, architecture=architecture, vocab=vocab, cased=cased)
    keras.utils.set_random_seed(seed)
    if deterministic:
        tf.config.experimental.enable_op_determinism()
    encoder, tokenizer = start.build()
    max_length = check_max_length(max_length, encoder)
    train_rows, dev_rows = _read(
        train,
        dev,
        tokenizer=tokenizer,
        max_length=max_length,
        report=report,
        text_column=text_column,
        label_column=label_column,
        header=header,
    )
    report(start.description)
    if scalar_mix:
        epsilon = encoder.config.layer_norm_eps if scalar_mix_layer_norm else None
        encoder = MixedEncoder(encoder, layer_norm_eps=epsilon, l2=scalar_mix_l2)
    classifier = Classifier(
        encoder,
        tokenizer,
        labels=train_rows.label_names,
        dropout=dropout,
        max_length=max_length,
    )
    features, trained = freeze(classifier) if frozen else (None, classifier)
    between, an_epoch = steps_of(len(train_rows), batch_size, checkpoint_every)
    steps = epochs * an_epoch
    if learning_rate is None:
        learning_rate = _RATE_OF_A_HEAD if frozen else _RATE
    optimizer = make_optimizer(
        trained,
        learning_rate=learning_rate,
        warmup=warmup,
        weight_decay=weight_decay,
        steps=steps,
    )
    inputs = {
        "model": start.fingerprint,
        "train": train_rows.fingerprint,
        "dev": dev_rows.fingerprint,
    }
    run = RunFolder(output, command="finetune", settings=settings, inputs=inputs, force=force)
    if run.finished:
        report(f"The run in {run.path} is finished already; these are its results.")
        return run.read_metrics()
    trained.compile(
        optimizer=optimizer,
        loss=classifier.default_losses(),
        weighted_metrics=classifier.default_metrics(),
        jit_compile=False,  # XLA would compile anew for every length of rows
    )
    trained_parameters = sum(math.prod(weight.shape) for weight in trained.trainable_weights)
    best_folder = run.checkpoints / "best"
    rows = fit_texts(
        trained,
        run,
        train_rows,
        dev_rows,
        task=classifier,
        features=features,
        steps=steps,
        an_epoch=an_epoch,
        between=between,
        batch_size=batch_size,
        seed=seed,
        checkpoint_every=checkpoint_every,
        best_folder=best_folder if keep == "best" else None,
    )
    kept = rows[-1]
    if keep == "best":
        kept = best_row(rows, "accuracy")
        classifier = load_task(best_folder)
    epoch = kept["step"] // an_epoch
    report(
        f"Kept the model of epoch {epoch} of {epochs}, the {keep} one"
        f"{' on the dev data' if keep == 'best' else ''}."
    )
    save_folder(classifier, tokenizer, run.model, overwrite=True)
    inference = Inference(classifier, max_length=max_length, batch_size=batch_size)
    metrics = {
        "kept": {"which": keep, "epoch": epoch, "step": kept["step"]},
        "dev": classification_metrics(
            dev_rows.labels,
            inference.of_tokens(dev_rows.tokens),
            labels=classifier.labels,
        ),
        "labels": list(classifier.labels),
        "steps": steps,
        "parameters": classifier.count_params(),
        "trained_parameters": trained_parameters,
        "seconds": rows[-1]["seconds"],
        "curve": rows,
    }
    if scalar_mix:
        mix = classifier.encoder.scalar_mix
        metrics["scalar_mix"] = {
            "shares": [round(float(share), 6) for share in mix.shares],
            "gamma": round(float(mix.gamma), 6),
        }
    run.write_metrics(metrics)
    shutil.rmtree(best_folder, ignore_errors=True)  # it is in model/ now
    return metrics


def _check(settings):
    """Raises InputError for a setting that cannot be; makes paths absolute in place."""
    if settings["task"] not in TASKS:
        raise InputError(f"There is no task {settings['task']!r}; it is {' or '.join(TASKS)}.")
    if settings["keep"] not in KEEP:
        raise InputError(f"The model to keep is {' or '.join(KEEP)}, not {settings['keep']!r}.")
    for name in ("epochs", "batch_size", "checkpoint_every"):
        if settings[name] < 1:
            raise InputError(f"{name} is {settings[name]}; at least 1 is needed.")
    if settings["dropout"] is not None and not 0 <= settings["dropout"] < 1:
        raise InputError(f"The dropout is {settings['dropout']}; give a share from 0 to below 1.")
    if not settings["scalar_mix_l2"] >= 0:
        raise InputError(f"scalar_mix_l2 is {settings['scalar_mix_l2']}; it must not be negative.")
    if not settings["scalar_mix"]:
        for name in ("scalar_mix_l2", "scalar_mix_layer_norm"):
            if settings[name]:
                raise InputError(f"{name} is a setting of the mix of layers; give scalar_mix, too.")
    for name in ("model", "vocab", "train", "dev", "architecture"):
        value = settings[name]
        if value is None or value == "-" or (name == "architecture" and not is_path(value)):
            continue
        settings[name] = os.path.abspath(value)


def _read(train, dev, *, tokenizer, max_length, report, **columns):
    """Returns the `TokenizedTexts` of both files; the labels are those of `train`."""
    train_file = LabelledTexts(train, **columns)
    report(train_file.description)
    train_rows = TokenizedTexts.from_examples(
        train_file, tokenizer=tokenizer, labels=None, max_length=max_length
    )
    labels = train_rows.label_names
    if len(labels) < 2:
        raise InputError(
            f'{train_file.name} has one label only ("{labels[0]}"); a classifier needs two or more.'
        )
    dev_file = LabelledTexts(dev, labels=labels, like=train_file, **columns)
    report(dev_file.description)
    dev_rows = TokenizedTexts.from_examples(
        dev_file, tokenizer=tokenizer, labels=labels, max_length=max_length
    )
    counts = np.bincount(train_rows.labels)
    shares = np.bincount(dev_rows.labels) / len(dev_rows)
    report(
        f"{len(train_rows):,} training texts ("
        + ", ".join(f'"{label}": {count:,}' for label, count in zip(labels, counts, strict=True))
        + f") and {len(dev_rows):,} dev texts, of which {shares.max():.1%} have the label "
        f'"{labels[shares.argmax()]}".'
    )
    return train_rows, dev_rows
