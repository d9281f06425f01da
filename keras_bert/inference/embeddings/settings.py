"""What can be said of embeddings: how vectors are made, of which texts, into which file."""

import dataclasses

from keras_bert.base.errors import InputError
from keras_bert.base.settings import Settings, setting
from keras_bert.inference.embeddings.choices import LAYERS, TOKENS
from keras_bert.readers.settings import TextFileSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedderSettings(Settings):
    """How a text becomes vectors."""

    layers: str = setting(
        "last",
        help='the layers that make a vector; "first" is the embeddings below all blocks, "sum-all" '
        "the sum of all blocks",
        choices=LAYERS,
    )
    tokens: str = setting(
        "words-mean",
        help="what has a vector beside the text itself: words, as the mean of their pieces or by "
        "their first piece; pieces; or nothing",
        choices=TOKENS,
    )
    max_length: int | None = setting(
        None,
        help="tokens in a row, [CLS] and [SEP] counted in; a longer text is read in rows that "
        "overlap",
        unit="TOKENS",
        default_help="as many as the model has positions",
        at_least=3,
    )
    batch_size: int = setting(32, help="rows in a step, at most", unit="ROWS", at_least=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextsSettings(TextFileSettings):
    """Which texts, and for which model."""

    model: object = setting(
        help="a model folder, the output of a run, or hf://owner/name",
        unit="FOLDER",
        is_path=True,
    )
    data: object = setting(
        help="one text a line, TSV or JSON Lines, told by content; - is standard input",
        unit="FILE",
        is_path=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedSettings(EmbedderSettings, TextsSettings):
    """Settings of `keras_bert.embed`."""

    data: object = setting(
        None,
        help="a file: one text a line, TSV or JSON Lines, told by content; - is standard input",
        default_help="give `text`",
        is_path=True,
    )
    text: list[str] | None = setting(None, help="the texts", default_help="give `data`")

    def check(self):
        if (self.data is None) == (self.text is None):
            raise InputError("Give either `data`, a file of texts, or `text`, and not both.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedToFileSettings(EmbedderSettings, TextsSettings):
    """Settings of `keras_bert.embed_to_file`."""

    output: object = setting(
        help="NAME.parquet or NAME.npz, which says the format", unit="FILE", is_path=True
    )
    force: bool = setting(
        False, help="replace an output that this command wrote before", recorded=False
    )
