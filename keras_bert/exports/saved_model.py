"""Writes a task or an encoder as a SavedModel, or as a file for LiteRT.

A SavedModel runs in any process with TensorFlow and TensorFlow Text. A file for LiteRT (formerly
TensorFlow Lite), which has no BERT tokenizer, takes token ids and returns logits.
"""

import contextlib
import functools
import logging
import tempfile
from pathlib import Path

import tensorflow as tf

from keras_bert.base.errors import InputError, argument
from keras_bert.base.files import clear_leftovers_in, new_file, new_folder, scratch_folder
from keras_bert.base.ownership import held_names, lock_folder
from keras_bert.base.settings import takes
from keras_bert.checkpoints import find_model_folder, save_folder
from keras_bert.checkpoints.model_folder import build_task
from keras_bert.checkpoints.pretrained_checkpoint import TEXT_EMBEDDING, PretrainedCheckpoint
from keras_bert.encoders.config import check_max_length
from keras_bert.exports import ExportSettings
from keras_bert.exports.precision import as_exported, difference, inputs_of, some_sequences
from keras_bert.exports.server_files import (
    is_version,
    write_batching,
    write_server_files,
    write_warmup_requests,
)
from keras_bert.inference.embed import ANY_LENGTH, layers_model
from keras_bert.inference.exported_task import about_export
from keras_bert.inference.settings import ABOUT_EXPORT
from keras_bert.inputs.framing import frame
from keras_bert.inputs.words import cut, ends_word
from keras_bert.layers.kernels.program import for_litert, for_servers
from keras_bert.programs import BACKEND
from keras_bert.programs.process import under_tensorflow_only
from keras_bert.tasks.signatures import (
    Signature,
    chunk_size,
    examples_signature,
    ids_signature,
    in_chunks,
    traced_on_ids,
    traced_on_texts,
    warmup_texts,
)
from keras_bert.text.ragged import leading, select

_DEFAULT = "serving_default"
# The relative error allowed in float32, where sums are only computed in another order.
_ROUNDING = 1e-3


@takes(ExportSettings)
@under_tensorflow_only
def export(*, report=None, **settings) -> Path:
    """Exports a model folder, or the output folder of a run.

    A fine-tuned model is exported with its task's predictions, a text embedder, also one of
    sentence-transformers, with its vector, a pre-trained model with the tokens for [MASK], and an
    encoder alone, or any with `encoder=True`, with embeddings.

    Args:
        **settings: the fields of `ExportSettings`.
        report: a function that receives one line on the cost of a precision, and on files that were
            not written.

    Returns:
        The path that was written: a version's folder, such as OUTPUT/1, or the file.

    Raises:
        InputError: `output` contains something else than versions of a SavedModel, `max_length` is
            over the model's positions, the precision does not suit the model, this task type
            has no export, or a setting does not apply to the model.
    """
    settings = ExportSettings.of(settings)
    if _is_litert(settings.output):
        for name in ("max_length", "layers", "tokens", "top_k"):
            if getattr(settings, name) is not None:
                raise InputError.naming(
                    "{} is for a SavedModel. A file for LiteRT takes ids of any length and "
                    "returns the model's outputs.",
                    argument(name),
                )
    checkpoint = PretrainedCheckpoint(find_model_folder(settings.model))
    embeds = settings.encoder or not checkpoint.holds(TEXT_EMBEDDING)
    if not embeds and (settings.layers or settings.tokens):
        raise InputError.naming(
            "{layers} and {tokens} are for embeddings. Pass {encoder=True}, too."
        )
    shared = {"max_length": settings.max_length, "precision": settings.precision, "report": report}
    if not embeds:
        task = build_task(checkpoint)
        options = {"top_k": settings.top_k} if settings.top_k is not None else {}
        if options and "data-folders" not in task.OFFERS:
            raise InputError.naming(
                "{top_k} is for [MASK], and {} contains a model of the task {}.",
                checkpoint.name,
                task.TASK_TYPE,
            )
        return export_task(task, settings.output, **shared, **options)
    if settings.top_k is not None:
        raise InputError.naming("{top_k} is for [MASK]. Embeddings have no candidates.")
    return export_encoder(
        checkpoint.encoder(),
        checkpoint.tokenizer,
        settings.output,
        layers=settings.layers or "last",
        tokens=settings.tokens or "words-mean",
        **shared,
    )


def export_task(task, output, *, max_length=None, precision="float32", report=None, **options):
    """Writes `task` under `output` as its next version: `output/1`, then `output/2`, …

    Args:
        task: a task with a tokenizer.
        output: the folder of all versions of this model, which a server reads; or a file
            NAME.tflite (see `export_litert`).
        max_length: the maximum length of a text in tokens, including special tokens; None is the
            length that the task was trained with.
        precision: one of `keras_bert.exports.PRECISIONS` (see `as_exported`).
        report: a function that receives one line on the cost of a precision, and on files that were
            not written.
        **options: further arguments of the task's `signatures`.

    Returns the `Path` of the new version, which is published atomically. If the folder above
    `output` contains only models, TensorFlow Serving's list of them is written there.

    Raises:
        InputError: `output` contains something else than versions of a SavedModel, `max_length` is
            over the model's positions, the precision does not suit the model, or this task type
            has no export.
    """
    _check(task.tokenizer, task.config, max_length)
    if BACKEND != "tensorflow":
        options |= {"max_length": max_length, "precision": precision, "report": report}
        with tempfile.TemporaryDirectory(prefix="keras-bert-") as folder:
            models = [f"{folder}/{number}" for number in range(1 + len(task._members))]
            for member, path in zip((task, *task._members), models, strict=True):
                member.save(path)
            return _export_folders(models=models, output=output, **options)

    def signatures(task):
        return task.signatures(max_length=max_length, **options)

    if not _is_litert(output):
        signatures(task)  # unsupported options fail before any work
    about = about_export(task) if task.reads_files() else None
    return _export(task, signatures, output, precision=precision, report=report, about=about)


@under_tensorflow_only
def _export_folders(*, models, output, **options):
    """`export_task` of the folder of a task, or of those of several that are averaged."""
    task, *others = (build_task(PretrainedCheckpoint(folder)) for folder in models)
    if others:
        task.average_with(others)
    return export_task(task, output, **options)


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
    of the model, or to 512 tokens if it takes any number.
    """
    _check(tokenizer, encoder.config, max_length)
    if BACKEND != "tensorflow":
        options = {"max_length": max_length, "precision": precision, "report": report}
        with tempfile.TemporaryDirectory(prefix="keras-bert-") as folder:
            model = f"{folder}/model"
            save_folder(encoder, tokenizer, model)
            options |= {"layers": layers, "tokens": tokens, "encoder": True}
            return export(model=model, output=output, **options)

    def signatures(encoder):
        return encoder_signatures(
            encoder,
            tokenizer,
            layers=layers,
            tokens=tokens,
            max_length=max_length or encoder.default_max_length(ANY_LENGTH),
        )

    return _export(encoder, signatures, output, precision=precision, report=report)


def _check(tokenizer, config, max_length):
    if tokenizer is None:
        raise InputError("The model has no supported tokenizer, so it cannot take text.")
    if max_length is not None:
        check_max_length(max_length, config, tokenizer)


def _is_litert(output):
    return Path(output).suffix == ".tflite"


def _export(model, signatures, output, *, precision, report, about=None):
    """Writes a model; `signatures` is a function from the model in `precision` to them.

    `about` is the text of the file `ABOUT_EXPORT`, if it has one.
    """
    if _is_litert(output):
        return export_litert(model, output, precision=precision, report=report)
    output = Path(output)
    _next_version(output)  # an invalid folder is rejected before any work
    model, error = as_exported(model, precision)
    if report is not None and error:
        report(f"In {precision} the encoder's outputs are {error:.1%} off those in float32.")
    signatures = signatures(model)
    requests = [
        (name, inputs) for name, signature in signatures.items() for inputs in signature.warmup
    ]
    with lock_folder(output):  # two exports at once must not have the same number
        version = output / str(_next_version(output))
        clear_leftovers_in(output)  # of an interrupted export
        with new_folder(version) as temporary:  # hidden: servers look at numbered folders only
            with for_servers():
                write_saved_model(temporary, signatures)
            write_warmup_requests(temporary, requests, model_name=output.resolve().name)
            write_batching(temporary, signatures[_DEFAULT].inputs)
            if about is not None:
                (temporary / ABOUT_EXPORT).write_text(about, encoding="utf-8")
    note = write_server_files(output.resolve().parent)
    if report is not None and note is not None:
        report(note)
    return version


def _next_version(output):
    """The number after the highest; InputError if the folder contains other things."""
    if not output.exists():
        return 1
    if not output.is_dir():
        raise InputError(f"The output {output} is a file. Expected a folder.")
    versions = [0]
    for path in map(output.joinpath, held_names(output)):
        if not is_version(path):
            raise InputError(
                f"The output folder {output} contains something else ({path.name}). Use a new "
                "folder, or one that contains only numbered versions of a SavedModel."
            )
        versions.append(int(path.name))
    return max(versions) + 1


def write_saved_model(folder, signatures):
    """Writes `Signature`s by name, and the variables that they read, into `folder`.

    Not with Keras's ExportArchive, which stores every weight twice: as Keras's variable and as the
    TensorFlow variable inside it.
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
        # Without gradients of `custom_gradient` functions, whose tracing takes time with each
        # layer: computations in chunks have none anyway.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        tf.saved_model.save(served, str(folder), signatures=functions, options=options)


@contextlib.contextmanager
def _temporary_files_beside(folder):
    """Keeps temporary files of the process in a hidden folder beside `folder`, and the log quiet.

    TensorFlow uses AutoGraph when it saves, even with `autograph=False`, and that writes Python
    files, which an interruption would leave in the system's temporary folder for good. In a
    notebook it would also log the hidden folder that it writes to.
    """
    logger, before = logging.getLogger("tensorflow"), tempfile.tempdir
    level = logger.level
    with scratch_folder(folder) as scratch:
        tempfile.tempdir = str(scratch)
        logger.setLevel(max(level, logging.WARNING))
        try:
            yield
        finally:
            logger.setLevel(level)
            tempfile.tempdir = before


def export_litert(model, output, *, precision="float32", report=None):
    """Writes a task or an encoder as the file `output`, atomically.

    The file takes the model's inputs, under the same names and of any batch size and length, and
    returns its outputs in float32. "float16" and "int8" store the weights so; LiteRT computes in
    float32 with the first, and quantizes activations with the second ("dynamic range").

    Args:
        model: a task or an encoder.
        output: the path of a file that does not exist.
        precision: "float32", "float16" or "int8".
        report: a function that receives one line on the cost of a precision.

    Returns the `Path` of the file.

    Raises:
        InputError: the file exists, LiteRT lacks the precision or an operation, or the outputs of
            the file differ too much from the model's.
    """
    output = Path(output)
    if output.exists():
        raise InputError(f"The output {output} exists. Use a new file.")
    if precision == "bfloat16":
        raise InputError.naming("LiteRT has no bfloat16. Use {precision} float16 or int8.")
    with scratch_folder(output) as scratch:
        content = _litert(model, precision, scratch=scratch)
    inputs = some_sequences(inputs_of(model), model.config)
    interpreter = tf.lite.Interpreter(model_content=content)
    outputs = interpreter.get_signature_runner()(**inputs)
    expected = model(inputs, training=False)
    error = max(difference(expected[name], outputs[name], precision=precision) for name in expected)
    if precision == "float32" and error > _ROUNDING:
        raise InputError(f"LiteRT computes something else: its outputs are {error:.1%} off.")
    if precision != "float32" and report is not None:
        report(f"In {precision} the model's outputs are {error:.1%} off those in float32.")
    with new_file(output) as temporary:
        temporary.write_bytes(content)
    return output


def _litert(model, precision, *, scratch):
    """The content of a file for LiteRT."""
    inputs = inputs_of(model)
    specs = [tf.TensorSpec(x.shape, x.dtype, name=name) for name, x in inputs.items()]

    def outputs(*tensors):
        outputs_by_name = model(dict(zip(inputs, tensors, strict=True)), training=False)
        return {name: tf.cast(output, tf.float32) for name, output in outputs_by_name.items()}

    with for_litert():
        write_saved_model(scratch, {_DEFAULT: Signature(outputs, specs)})
    # From files: converted from memory, it would read variables without values.
    converter = tf.lite.TFLiteConverter.from_saved_model(str(scratch))
    if precision != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision == "float16":
        converter.target_spec.supported_types = [tf.float16]
    try:
        return converter.convert()
    except Exception as error:  # its class is not public
        missing = [line for line in str(error).splitlines() if line.startswith("TF Select ops")]
        if not missing:
            raise
        raise InputError(
            f"LiteRT has no operation for a part of this model ({missing[0]})."
        ) from error


def encoder_signatures(encoder, tokenizer, *, layers, tokens, max_length):
    """The signatures of an encoder with its tokenizer; the first is the default one.

    Shapes: B texts, T tokens of the longest text (words or subword tokens), S positions of a
    sequence, D the size of a vector.

    * `serving_default`: `text`, string (B,), which is cut to the maximum length.
    * `examples`: `examples`, string (B,), serialized `tf.Example` with one string under `text`.

    Both return what `embed` does with the same `layers` and `tokens`: `embeddings`, float32
    (B, T, D); `tokens`, string (B, T), as they are in the text; `starts` and `ends`, int32 (B, T),
    their characters; `mask`, int32 (B, T), 0 after a text's tokens; `sentence`, float32 (B, D), the
    mean over [CLS], the text's subword tokens and [SEP]; and `cls`, float32 (B, D). With the tokens
    "none" there are `sentence` and `cls` alone.

    * `ids`: the encoder's inputs, such as `input_ids`, int32 (B, S), for clients that tokenize.
      Returns `embeddings` (B, S, D) at all positions, `sentence` and `cls`.

    Raises `InputError` if the model has too few layers.
    """
    vectors_of = layers_model(encoder, layers)
    width = vectors_of.output.shape[-1]

    @functools.partial(traced_on_ids, encoder=encoder)
    def from_ids(**inputs):
        vectors = in_chunks(
            lambda some: {"vectors": vectors_of(some, training=False)},
            inputs,
            size=chunk_size(inputs["input_ids"]),
            specs={"vectors": tf.TensorSpec([None, None, width])},
        )["vectors"]  # (B, S, D)
        is_token = tf.cast(inputs["input_mask"] > 0, tf.float32)[..., None]  # (B, S, 1)
        sums = tf.reduce_sum(vectors * is_token, axis=1)
        sentence = tf.math.divide_no_nan(sums, tf.reduce_sum(is_token, axis=1))
        return {"embeddings": vectors, "sentence": sentence, "cls": vectors[:, 0]}

    @functools.partial(traced_on_texts, names=["text"])
    def from_text(text):
        tokenized = tokenizer.tokenize_with_offsets(text)
        ids, starts, ends, begins = (
            leading(rows, tokenizer.template.room(max_length))
            for rows in (tokenized.ids, tokenized.starts, tokenized.ends, tokenized.word_starts)
        )
        outputs = from_ids(
            **frame([ids], tokenizer=tokenizer, names=encoder.input_names, max_length=max_length)
        )
        before = tokenizer.template.before(0, texts=1)
        vectors = outputs.pop("embeddings")[:, before:]
        if tokens == "none":
            return outputs
        subwords = tf.RaggedTensor.from_row_splits(
            tf.boolean_mask(vectors, tf.sequence_mask(ids.row_lengths(), tf.shape(vectors)[1])),
            ids.row_splits,
        )
        if tokens == "subwords":
            begins = tf.ones_like(begins)
        starts = select(starts, begins.values)
        ends = select(ends, ends_word(begins.values))
        if tokens == "words-mean":
            word = tf.cumsum(tf.cast(begins.values, tf.int32)) - 1  # of each token
            embedded = tf.math.segment_mean(subwords.values, word)
        else:
            embedded = tf.boolean_mask(subwords.values, begins.values)
        return {
            **outputs,
            "embeddings": tf.ensure_shape(
                starts.with_values(embedded).to_tensor(), [None, None, width]
            ),
            "tokens": cut(text, starts, ends).to_tensor(""),
            "starts": starts.to_tensor(),
            "ends": ends.to_tensor(),
            "mask": tf.ones_like(starts).to_tensor(),
        }

    return {
        "serving_default": Signature(
            from_text,
            [tf.TensorSpec([None], tf.string, name="text")],
            warmup=[{"text": batch} for batch in warmup_texts(max_length)],
        ),
        "ids": ids_signature(from_ids, encoder=encoder, tokenizer=tokenizer),
        "examples": examples_signature(from_text, keys=["text"]),
    }
