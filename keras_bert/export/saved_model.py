"""Writes a task or an encoder as a SavedModel that stands alone.

Any process with TensorFlow and TensorFlow Text can run it.

A file for LiteRT (formerly TensorFlow Lite) takes token ids and gives logits. LiteRT has no
tokenizer of BERT's, so a program on a phone makes ids by itself; the operations that it lacks are
written with others while the model is traced (`for_litert`).
"""

import contextlib
import logging
import tempfile
from pathlib import Path

import tensorflow as tf

from keras_bert.base.errors import InputError
from keras_bert.base.files import (
    clear_leftovers_in,
    held_names,
    new_file,
    new_folder,
    owned,
    scratch_folder,
)
from keras_bert.base.settings import takes
from keras_bert.checkpoints import find_model_folder, holds_task, load, load_task
from keras_bert.export.precision import as_exported, difference, inputs_of, some_sequences
from keras_bert.export.server_files import (
    is_version,
    write_batching,
    write_server_files,
    write_warmup_requests,
)
from keras_bert.export.settings import ExportSettings
from keras_bert.inference.embed_signatures import encoder_signatures
from keras_bert.inputs.framing import check_max_length
from keras_bert.layers.kernels.program import for_litert, for_servers
from keras_bert.tasks.pretraining.pretrainer import PretrainingTask
from keras_bert.tasks.signatures import Signature


def write_saved_model(folder, signatures):
    """Writes `Signature`s by name, and the variables that they read, into `folder`.

    Not by Keras's ExportArchive, which stores every weight twice: as Keras's variable and as the
    one of TensorFlow inside it.
    """
    with _temporary_files_beside(folder):
        functions = {
            name: tf.function(
                signature.function, input_signature=list(signature.inputs), autograph=False
            ).get_concrete_function()
            for name, signature in signatures.items()
        }
        served = tf.Module()
        read = [variable for function in functions.values() for variable in function.variables]
        served.weights = list({id(variable): variable for variable in read}.values())
        # Of what is computed by hand (`custom_gradient`) nothing is traced backwards, which takes
        # time with each block: no gradient could be asked of rows worked on in turn anyway.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        with _told_nothing():
            tf.saved_model.save(served, str(folder), signatures=functions, options=options)


@contextlib.contextmanager
def _told_nothing():
    """TensorFlow would tell a notebook where it writes, which is aside, under a hidden name."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _temporary_files_beside(folder):
    """Keeps temporary files of the process in a hidden folder beside `folder`.

    TensorFlow uses AutoGraph when it saves, whatever it is told, and that writes Python files,
    which a kill would leave in the system's temporary folder for good.
    """
    before = tempfile.tempdir
    with scratch_folder(folder) as scratch:
        tempfile.tempdir = str(scratch)
        try:
            yield
        finally:
            tempfile.tempdir = before


_SIGNATURE = "serving_default"
# How far what was written may be off in float32: another order of the same sums.
_ROUNDING = 1e-3


def export_litert(model, output, *, precision="float32", report=None):
    """Writes a task or an encoder as the file `output`, whole or not at all.

    The file takes what the model takes, by the same names, of any number and length of rows, and
    gives its outputs in float32. "float16" and "int8" store the weights so; LiteRT computes in
    float32 with the first, and rounds what it multiplies with the second ("dynamic range").

    Args:
        model: a task or an encoder.
        output: the path of a file that does not exist.
        precision: "float32", "float16" or "int8".
        report: a function that is told in a line what a precision costs.

    Returns the `Path` of the file.

    Raises:
        InputError: the file exists, LiteRT lacks the precision or an operation, or what was
            written is too far off from the model to be of use.
    """
    output = Path(output)
    if output.exists():
        raise InputError(f"The output {output} exists; give a new file.")
    if precision == "bfloat16":
        raise InputError("LiteRT has no bfloat16; give `precision` float16 or int8.")
    with scratch_folder(output) as scratch:
        written = _converted(model, precision, scratch=scratch)
    off = _difference(model, written, precision)
    if precision == "float32" and off > _ROUNDING:
        raise InputError(f"LiteRT computes something else: its outputs are {off:.1%} off.")
    if precision != "float32" and report is not None:
        report(f"In {precision} the model's outputs are {off:.1%} off those in float32.")
    with new_file(output) as temporary:
        temporary.write_bytes(written)
    return output


def _converted(model, precision, *, scratch):
    specs = [tf.TensorSpec(x.shape, x.dtype, name=name) for name, x in inputs_of(model).items()]

    def outputs(*inputs):
        found = model(dict(zip(inputs_of(model), inputs, strict=True)), training=False)
        return {name: tf.cast(values, tf.float32) for name, values in found.items()}

    with for_litert():
        write_saved_model(scratch, {_SIGNATURE: Signature(outputs, specs)})
    # By way of the files: converted from memory, it reads variables that nobody has filled.
    converter = tf.lite.TFLiteConverter.from_saved_model(str(scratch))
    if precision != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision == "float16":
        converter.target_spec.supported_types = [tf.float16]
    try:
        return converter.convert()
    except Exception as error:  # of a class that TensorFlow does not name publicly
        missing = [line for line in str(error).splitlines() if line.startswith("TF Select ops")]
        if not missing:
            raise
        raise InputError(
            f"LiteRT has no operation for a part of this model ({missing[0]})."
        ) from error


def _difference(model, written, precision):
    """How far the outputs of what was written are off: the most of any of them."""
    rows = some_sequences(inputs_of(model), model.config)
    interpreter = tf.lite.Interpreter(model_content=written)
    found = interpreter.get_signature_runner()(**rows)
    expected = model(rows, training=False)
    return max(difference(expected[name], found[name], precision=precision) for name in expected)


_DEFAULT = "serving_default"


@takes(ExportSettings)
def export(*, report=None, **settings):
    """Exports a model folder, or the output folder of a run that made it.

    A fine-tuned model is exported with its task's answers, a pre-trained one with the pieces for
    [MASK], and an encoder alone, or any with `encoder=True`, with embeddings.

    Args:
        {settings}
        report: a function that is told in a line what a precision costs, and what was not written.

    Returns the `Path` that was written: a version's folder, or the file.

    Raises:
        InputError: see `export_task`; or a setting is given that the model has no use for.
    """
    settings = ExportSettings.of(settings)
    if _is_litert(settings.output):
        for name in ("max_length", "layers", "tokens", "top_k"):
            if getattr(settings, name) is not None:
                raise InputError(
                    f"`{name}` is for a SavedModel; a file for LiteRT takes ids of any length, and "
                    "gives what the model does."
                )
    folder = find_model_folder(settings.model)
    embeds = settings.encoder or not holds_task(folder)
    if not embeds and (settings.layers or settings.tokens):
        raise InputError("`layers` and `tokens` are for embeddings; give `encoder=True`, too.")
    shared = {"max_length": settings.max_length, "precision": settings.precision, "report": report}
    if not embeds:
        task = load_task(folder)
        options = {"top_k": settings.top_k} if settings.top_k is not None else {}
        if options and not isinstance(task, PretrainingTask):
            raise InputError(
                f"`top_k` is for [MASK], and {folder} holds a model of the task {task.KIND}."
            )
        return export_task(task, settings.output, **shared, **options)
    if settings.top_k is not None:
        raise InputError("`top_k` is for [MASK]; embeddings have no candidates.")
    encoder, tokenizer = load(folder)
    return export_encoder(
        encoder,
        tokenizer,
        settings.output,
        layers=settings.layers or "last",
        tokens=settings.tokens or "words-mean",
        **shared,
    )


def export_task(task, output, *, max_length=None, precision="float32", report=None, **options):
    """Writes `task` under `output` as its next version: `output/1`, then `output/2`, …

    Args:
        task: a task with a tokenizer.
        output: the folder of all versions of this model, which a server is pointed at; or a file
            NAME.tflite (see `keras_bert.export.saved_model`).
        max_length: tokens that a text is cut to, special tokens counted in; None is the length
            that the task was trained with.
        precision: one of `keras_bert.export.settings.PRECISIONS` (see `as_exported`).
        report: a function that is told in a line what a precision costs, and what was not written.
        **options: what the task's `signatures` take beside `max_length`.

    Returns the `Path` of the new version. It appears there whole or not at all. Where the folder
    that `output` lies in holds nothing but models, TensorFlow Serving's list of them is written
    there, too; else `report` is told that it was not.

    Raises:
        InputError: `output` holds something else than versions of a SavedModel, `max_length` is
            over the model's positions, the model cannot be had in that precision, or there is
            nothing to export for this kind of task.
    """
    _check(task.tokenizer, task.config, max_length)
    if _is_litert(output):
        return export_litert(task, output, precision=precision, report=report)
    task.signatures(max_length=max_length, **options)  # what cannot be is told before any work
    _next_version(Path(output))  # so is a folder of other things
    task = _as_exported(task, precision, report)
    signatures = task.signatures(max_length=max_length, **options)
    return _write(signatures, output=Path(output), report=report)


def export_encoder(
    encoder,
    tokenizer,
    output,
    *,
    layers="last",
    tokens="words-mean",
    max_length=None,
    precision="float32",
    report=None,
):
    """Writes an encoder for embeddings (see `encoder_signatures`); the rest is as `export_task`.

    `layers` and `tokens` are those of `embed`. A text is cut to `max_length`, or to all positions
    of the model.
    """
    _check(tokenizer, encoder.config, max_length)
    if _is_litert(output):
        return export_litert(encoder, output, precision=precision, report=report)
    _next_version(Path(output))  # a folder of other things is refused before any work
    encoder = _as_exported(encoder, precision, report)
    signatures = encoder_signatures(
        encoder,
        tokenizer,
        layers=layers,
        tokens=tokens,
        max_length=max_length or encoder.config.max_length,
    )
    return _write(signatures, output=Path(output), report=report)


def _check(tokenizer, config, max_length):
    if tokenizer is None:
        raise InputError("The model has no tokenizer of ours, so no text can be given to it.")
    if max_length is not None:
        check_max_length(max_length, config, tokenizer)


def _is_litert(output):
    return Path(output).suffix == ".tflite"


def _as_exported(model, precision, report):
    model, off = as_exported(model, precision)
    if report is not None and off:
        report(f"In {precision} the encoder's outputs are {off:.1%} off those in float32.")
    return model


def _write(signatures, *, output, report):
    requests = [
        (name, inputs) for name, signature in signatures.items() for inputs in signature.warmup
    ]
    with owned(output):  # two exports at once must not have the same number
        version = output / str(_next_version(output))
        clear_leftovers_in(output)  # of an export that was killed
        with new_folder(version) as temporary:  # hidden: servers look at numbered folders only
            with for_servers():
                write_saved_model(temporary, signatures)
            write_warmup_requests(temporary, requests, model_name=output.resolve().name)
            write_batching(temporary, signatures[_DEFAULT].inputs)
    told = write_server_files(output.resolve().parent)
    if report is not None and told is not None:
        report(told)
    return version


def _next_version(output):
    """The number after the highest; refuses a folder of other things."""
    if not output.exists():
        return 1
    if not output.is_dir():
        raise InputError(f"The output {output} is a file; give a folder.")
    versions = [0]
    for entry in map(output.joinpath, held_names(output)):
        if not is_version(entry):
            raise InputError(
                f"The output folder {output} holds something else ({entry.name}); give a new "
                "folder, or one that holds only numbered versions of a SavedModel."
            )
        versions.append(int(entry.name))
    return max(versions) + 1
