"""The embeddings of texts, one after another or as a file."""

from keras_bert.checkpoints import find_model_folder, load
from keras_bert.embeddings.embedder import Embedder
from keras_bert.errors import InputError
from keras_bert.examples.labelled_texts import open_labelled_texts


def embed(*, model, data=None, text=None, text_column=None, header=None, report=None, **options):
    """Yields one `TextEmbedding` a text, in order, in memory that does not grow with their number.

        for found in kb.embed(model="folder", text=["The bank of the river."], layers="last"):
            found.tokens, found.vectors, found.cls, found.mean

    Args:
        model: a model folder (or the folder of the run that made it), or a pair of an encoder and
            its tokenizer.
        data: a file of texts (one a line, TSV, JSON Lines), or `-` for standard input.
        text: a text, or a list of texts, instead of a file.
        text_column, header: see `LabelledTexts`.
        report: a function that is told in one line how the file was read.
        **options: `layers`, `tokens`, `max_length`, `batch_size`: see `Embedder`.

    Raises:
        InputError: on bad input, at the latest when its line is reached.
    """
    examples = open_texts(data, text, text_column=text_column, header=header, report=report)
    return open_embedder(model, **options)(examples)


def open_embedder(model, **options):
    """The `Embedder` of a folder or of a pair (encoder, tokenizer)."""
    return Embedder(*open_model(model), **options)


def open_model(model):
    """The encoder and tokenizer of a folder, or of a pair of them.

    Raises InputError where the folder has no tokenizer.
    """
    encoder, tokenizer = model if isinstance(model, tuple) else load(find_model_folder(model))
    if tokenizer is None:
        raise InputError(f"{model} has no tokenizer of ours, so no text can be given to it.")
    return encoder, tokenizer


def open_texts(data, text, *, text_column=None, header=None, report=None):
    """The examples of a file, or of one or several texts given."""
    if (data is None) == (text is None):
        raise InputError("Give either a file of texts or a text, and not both.")
    if data is None:
        texts = [text] if isinstance(text, str) else list(text)
        return open_labelled_texts(texts, need_labels=False)
    examples = open_labelled_texts(data, text_column=text_column, header=header, need_labels=False)
    if report is not None:
        report(examples.description)
    return examples
