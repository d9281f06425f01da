"""Takes a model elsewhere: into another format, or to the Hugging Face hub.

The format of the input is detected from the folder's content.
"""

from pathlib import Path
from typing import Any

from keras_bert.base.errors import InputError
from keras_bert.base.files import read_small, scratch_folder
from keras_bert.base.ownership import held_names, reject_input_as_output, same_files
from keras_bert.base.settings import takes
from keras_bert.checkpoints import (
    VECTOR_FORMATS,
    ConvertSettings,
    PushSettings,
    hub,
    model_card,
    sentence_transformers,
    tensor_files,
    text_embedders,
)
from keras_bert.checkpoints.allennlp import is_allennlp, save_allennlp
from keras_bert.checkpoints.config_json import CONFIG
from keras_bert.checkpoints.google import is_google, save_google
from keras_bert.checkpoints.keras_nlp import is_keras_nlp, save_keras_nlp
from keras_bert.checkpoints.locations import find_model_folder, read_foreign
from keras_bert.checkpoints.model_folder import (
    build_task,
    folders_read,
    save_folder,
    unused_heads,
)
from keras_bert.checkpoints.pretrained_checkpoint import TEXT_EMBEDDING, PretrainedCheckpoint
from keras_bert.checkpoints.word_vectors import (
    convert_word_vectors,
    is_word_vectors,
    save_word_vectors,
)
from keras_bert.encoders.encoder import Encoder
from keras_bert.heads import LAST
from keras_bert.readers import TextFileSettings
from keras_bert.readers.examples import not_reported
from keras_bert.text.vocabulary import TOKENIZER_FILES

_DATED = ("metadata.json",)  # keras-nlp writes the time into it


@takes(ConvertSettings)
def convert(input, output, *, report=None, **settings) -> dict[str, Any]:
    """Reads a model in any format and writes it in another, unless it is there already.

    Args:
        **settings: the fields of `ConvertSettings`.
        report: a function that receives a line if nothing had to be written, and lines on the
            tokens that are kept.

    Returns:
        A dictionary: `found` (the input's format), `wrote` (the name of the architecture),
        `left_out` (what the other format cannot express: tensors of other heads by the start of
        their names, or a task's architecture). With `vocab_from` also `tokens` and `tokens_before`,
        and with `vocab_check` `lost`: how many `texts` and `tokens` it has, and how many
        `dropped_tokens` and `changed_texts` are among them.

    Raises:
        InputError: the format is not supported, the input is broken, the model cannot be expressed
            in the other format, the output is in use, or `vocab_from` has no text.
    """
    settings = ConvertSettings.of({"input": input, "output": output, **settings})
    source, output = Path(settings.input), Path(settings.output)
    if not _is_foreign(source):
        source = find_model_folder(settings.input)
    reject_input_as_output(folders_read(source), settings.output)
    if settings.to in VECTOR_FORMATS:
        return _to_word_vectors(source, settings)
    is_model = is_google(source) or (source / CONFIG).exists()
    if is_model and source.resolve() in output.resolve().parents:
        raise InputError(f"The output {output} is inside the input {source}. Use another folder.")
    to = settings.to
    input_format, model, tokenizer, left_out = read_model(source)
    cut = {}
    if settings.vocab_from is not None:
        model, tokenizer, cut = _with_cut_vocabulary(model, tokenizer, settings, report)
    layers = LAST if isinstance(model, Encoder) else model.reader.layers
    if to != "huggingface" and layers != LAST:
        raise InputError(
            f"{input} reads the layers {layers}, which the format {to} cannot express."
        )
    if to in ("keras-nlp", "allennlp") and not isinstance(model, Encoder):
        left_out = [*left_out, model.architecture]
        model = model.encoder
    save = {
        "huggingface": save_folder,
        "google": save_google,
        "keras-nlp": save_keras_nlp,
        "allennlp": save_allennlp,
        "model2vec": text_embedders.save_model2vec,
    }[to]
    if settings.force or not _is_there(save, model, tokenizer, output):
        save(model, tokenizer, output, overwrite=settings.force)
    elif report is not None:
        report(f"{output} is already complete. Nothing was written.")
    is_task = not isinstance(model, Encoder)
    wrote = model.architecture if is_task else model.tensor_names(model.config).base_class
    return {"found": input_format, "wrote": wrote, "left_out": left_out, **cut}


def _with_cut_vocabulary(model, tokenizer, settings, report):
    """-> (the model with the tokens of `vocab_from`, its tokenizer, what `convert` returns)."""
    from keras_bert.checkpoints.cut_vocabulary import CutVocabulary, describe_lost, texts_of

    report = report or not_reported
    schema = getattr(model, "columns", None)
    reading = {"columns": settings.part(TextFileSettings), "schema": schema, "report": report}
    cut = CutVocabulary(model, tokenizer, texts_of(settings.vocab_from, **reading))
    before = len(tokenizer)
    model, tokenizer = cut.apply()
    report(cut.describe())
    result = {"tokens": len(tokenizer), "tokens_before": before}
    if settings.vocab_check is not None:
        result["lost"] = cut.lost(tokenizer, texts_of(settings.vocab_check, **reading))
        report(describe_lost(result["lost"], "the texts of `vocab_check` (--vocab-check)"))
    return model, tokenizer, result


def _is_foreign(source):
    """Whether a path is a model in another format than Hugging Face's, or has one, too."""
    foreign = (is_google, is_keras_nlp, is_allennlp, is_word_vectors)
    foreign = (*foreign, sentence_transformers.is_foreign_embedder)
    return any(is_format(source) for is_format in foreign)


def _to_word_vectors(source, settings):
    """`convert` to a file of word vectors; from one, without a model in memory."""
    given = {"format": settings.to, "overwrite": settings.force}
    left_out = []
    if is_word_vectors(source):
        input_format = convert_word_vectors(source, settings.output, **given)
    else:
        input_format, model, tokenizer, left_out = read_model(source)
        save_word_vectors(model, tokenizer, settings.output, **given)
        if not isinstance(model, Encoder):
            left_out = [*left_out, *model.heads]
    return {"found": input_format, "wrote": "word vectors", "left_out": left_out}


def _is_there(save, model, tokenizer, output):
    """Whether the output already contains what would be written."""
    if not (output.is_dir() and held_names(output)):
        return False
    with scratch_folder(output) as scratch:
        save(model, tokenizer, scratch / output.name)
        return same_files(scratch / output.name, output, besides=_DATED)


def read_model(source):
    """A model in any format -> (the format's name, model, tokenizer, what is left out)."""
    if _is_foreign(source) or not (source / CONFIG).exists():
        return *read_foreign(source), []
    checkpoint = PretrainedCheckpoint(source)
    task = build_task(checkpoint) if checkpoint.holds(TEXT_EMBEDDING) else None
    model = checkpoint.encoder() if task is None else task
    heads = () if task is None else task.heads
    left_out = unused_heads(checkpoint, task, checkpoint.class_names, heads=heads)
    return "huggingface", model, checkpoint.tokenizer, left_out


_FILES = {"config.json", tensor_files.FILE, *TOKENIZER_FILES, model_card.FILE}


@takes(PushSettings)
def push(**settings) -> str:
    """Publishes a model folder under a name on the hub, in one commit, with its model card.

    The folder is opened first, with every check of loading it. Its config, weights, tokenizer,
    pooling and README.md are pushed, with the name on the hub put into the README.md. Without a
    README.md, a card is made from the config. Other files are not pushed, and other files on the
    hub are kept.

    Args:
        **settings: the fields of `PushSettings`.

    Returns:
        The address of the commit.

    Raises:
        InputError: the folder is not a model folder, or one of its files is a link to a file
            outside; the name is invalid, is not yours to write, or is that of a public repository
            although `private` is asked for; or the hub cannot be reached.
    """
    settings = PushSettings.of(settings)
    repo, revision = hub.parsed(f"{hub.SCHEME}{settings.to.removeprefix(hub.SCHEME)}")
    if revision is not None:
        raise InputError.naming("Give the branch as {revision}, not in the name.")
    folder = find_model_folder(settings.model)
    checkpoint = PretrainedCheckpoint(folder)
    if not (folder / tensor_files.FILE).is_file():
        raise InputError(
            f"{folder} has its weights in another form than {tensor_files.FILE}, which is the only "
            "one that is pushed. Write it with keras-bert convert."
        )
    names = [name for name in held_names(folder) if name in _FILES]
    names += sentence_transformers.files_in(folder)
    link = hub.link_outside(folder, names)
    if link is not None:
        raise InputError(
            f"{folder / link[0]} is a link to {link[1]}, outside the model folder. Replace it with "
            "a copy of the file if you want to publish it."
        )
    card = folder / model_card.FILE
    text = (
        read_small(card).decode("utf-8", errors="replace")
        if card.is_file()
        else model_card.model_card(
            checkpoint.config_json,
            name=repo.partition("/")[2],
            opens_there=(folder / sentence_transformers.MODULES).exists(),
        )
    )
    files = {name: str(folder / name) for name in names}
    files[model_card.FILE] = text.replace(model_card.NAME, repo).encode()
    return hub.upload(
        repo,
        files,
        private=settings.private,
        revision=settings.revision,
        message=settings.message,
    )
