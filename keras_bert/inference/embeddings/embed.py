"""The embeddings of texts, one after another."""

from collections.abc import Callable, Iterator

from keras_bert.base.errors import InputError
from keras_bert.base.settings import takes
from keras_bert.checkpoints import find_model_folder, load
from keras_bert.inference.embeddings.embedder import Embedder
from keras_bert.inference.embeddings.settings import EmbedderSettings, EmbedSettings
from keras_bert.inference.embeddings.text_embedding import TextEmbedding
from keras_bert.readers.labelled_texts import open_labelled_texts


@takes(EmbedSettings)
def embed(*, report: Callable[[str], None] | None = None, **settings) -> Iterator[TextEmbedding]:
    """Yields one `TextEmbedding` a text, in order, in memory that does not grow with their number.

        for found in kb.embed(model="folder", text=["The bank of the river."], layers="last"):
            found.tokens, found.vectors, found.cls, found.mean

    Args:
        {settings}
        report: a function that is told in one line how the file was read.

    `model` may also be a pair of an encoder and its tokenizer, and `text` a single string.

    Raises:
        InputError: on bad input, at the latest when its line is reached.
    """
    text = settings.get("text")
    if text is not None:
        settings["text"] = [text] if isinstance(text, str) else list(text)
    settings = EmbedSettings.of(settings)
    data = settings.text if settings.data is None else settings.data
    texts = open_texts(data, settings, report=report)
    return open_embedder(settings.model, **settings.part(EmbedderSettings))(texts)


def open_embedder(model, **settings):
    """The `Embedder` of a folder or of a pair (encoder, tokenizer)."""
    return Embedder(*open_model(model), EmbedderSettings.of(settings))


def open_model(model):
    """The encoder and tokenizer of a folder, or of a pair of them.

    Raises InputError where the folder has no tokenizer.
    """
    encoder, tokenizer = model if isinstance(model, tuple) else load(find_model_folder(model))
    if tokenizer is None:
        raise InputError(f"{model} has no tokenizer of ours, so no text can be given to it.")
    return encoder, tokenizer


def open_texts(data, settings, *, report=None):
    """The examples of a file or of a sequence of texts; `settings` say how a file is read."""
    examples = open_labelled_texts(
        data, text_column=settings.text_column, header=settings.header, need_labels=False
    )
    if report is not None and examples.description:
        report(examples.description)
    return examples
