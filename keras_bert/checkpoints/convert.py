"""Conversion between the formats, told by what lies in the folder."""

from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import held_names, reject_input_as_output, same_files, scratch_folder
from keras_bert.base.settings import takes
from keras_bert.checkpoints.folder import find_model_folder, load, load_task
from keras_bert.checkpoints.google import is_google, save_google
from keras_bert.checkpoints.keras_nlp import is_keras_nlp, save_keras_nlp
from keras_bert.checkpoints.kinds import holds_task
from keras_bert.checkpoints.named_models import read_foreign
from keras_bert.checkpoints.pretrained_checkpoint import CONFIG, PretrainedCheckpoint
from keras_bert.checkpoints.saving import head_table, own_tensors, save_folder
from keras_bert.checkpoints.settings import ConvertSettings
from keras_bert.encoders.encoder import Encoder

_DATED = ("metadata.json",)  # keras-nlp writes the time into it


@takes(ConvertSettings)
def convert(input, output, *, report=None, **settings):
    """Reads a model in any format and writes it in another, unless it is there already.

    Args:
        {settings}
        report: a function that is told in one line where nothing had to be written.

    Returns:
        A dictionary that says what was found and written: `found` (the format), `wrote` (the name
        of the architecture), `left_out` (what could not go along: tensors of other heads by
        the start of their names, or a task's architecture).

    Raises:
        InputError: the input is none of these or is broken, or the model cannot be expressed in
            the other format, or the output is in use.
    """
    settings = ConvertSettings.of({"input": input, "output": output, **settings})
    source = Path(settings.input)
    if not is_google(source):
        source = find_model_folder(settings.input)
    reject_input_as_output([source], settings.output)
    is_model = is_google(source) or (source / CONFIG).exists()
    if is_model and source.resolve() in Path(settings.output).resolve().parents:
        raise InputError(
            f"the output {settings.output} is inside the input {source}: give a folder outside of "
            "the model's own"
        )
    to = settings.to
    found, model, tokenizer, left_out = read_model(source)
    if to != "huggingface" and getattr(model, "layer_mix", None) is not None:
        raise InputError(f"{input} has a learned mix of its layers, which {to} has no place for.")
    if to == "keras-nlp" and not isinstance(model, Encoder):
        left_out = [*left_out, model.architecture]
        model = model.encoder
    save = {"huggingface": save_folder, "google": save_google, "keras-nlp": save_keras_nlp}[to]
    if not settings.force and _is_there(save, model, tokenizer, Path(settings.output)):
        if report is not None:
            report(f"{settings.output} is finished already; nothing is done.")
    else:
        save(model, tokenizer, settings.output, overwrite=settings.force)
    return {"found": found, "wrote": _architecture(model), "left_out": left_out}


def _architecture(model):
    if isinstance(model, Encoder):
        return model.tensor_names(model.config).base_class
    return model.architecture


def _is_there(save, model, tokenizer, output):
    """Whether a folder holds what would be written; no format has a place for its settings."""
    if not (output.is_dir() and held_names(output)):
        return False
    with scratch_folder(output) as scratch:
        save(model, tokenizer, scratch / output.name)
        return same_files(scratch / output.name, output, besides=_DATED)


def read_model(source):
    """A model in any format -> (the format's name, model, tokenizer, what is left out).

    Raises InputError where a folder (or the prefix of a checkpoint) holds none.
    """
    if is_google(source) or is_keras_nlp(source) or not (source / CONFIG).exists():
        return *read_foreign(source), []
    opened = PretrainedCheckpoint(source)
    if holds_task(opened.values, opened.names, source=str(source / CONFIG)):
        task = load_task(source)
        return "huggingface", task, task.tokenizer, _other_heads(source, task)
    encoder, tokenizer = load(source)
    return "huggingface", encoder, tokenizer, _other_heads(source, None)


def _other_heads(source, task):
    """The heads in a folder that its task has no use for, by the start of their names."""
    opened = PretrainedCheckpoint(source)
    used = set()
    if task is not None:
        used = {line.theirs for line in head_table(task.heads, opened.class_names)}
        used |= set(own_tensors(task, opened.class_names))
    return sorted(
        {
            ".".join(name.split(".")[:2])
            for name in opened.shapes
            if name.startswith(opened.names.head_prefixes)
            and name not in used
            and name not in opened.names.copies
        }
    )
