"""Settings of embedding, of the senses of words, and of neighbours; without Keras."""

from collections.abc import Sequence
from dataclasses import InitVar

from keras_bert.base.errors import InputError, arguments
from keras_bert.base.settings import (
    PathText,
    Report,
    Settings,
    checkpoint_setting,
    data_setting,
    model_setting,
    optimisation_setting,
    required,
    setting,
)
from keras_bert.heads import LAYERS, check_layers
from keras_bert.inference.settings import (
    ANY_RUN,
    TextsOrFileSettings,
    TextsSettings,
    max_length_setting,
)
from keras_bert.readers import TextFileSettings, column_setting

TOKENS = ("words-mean", "words-first", "subwords", "none")


class EmbedderSettings(Settings):
    """How a text becomes vectors."""

    layers: str = model_setting(
        "last",
        help=f"the layers that make a vector: {', '.join(LAYERS)} or layer-K; first is the "
        "embedding layer, sum-all the sum of all layers above it",
        unit="LAYERS",
        common=True,
    )
    tokens: str = setting(
        "words-mean",
        help="what has a vector in addition to the whole text: words, as the mean of their subword "
        "tokens or by the first one; subword tokens; or nothing",
        choices=TOKENS,
        common=True,
    )
    max_length: int | None = max_length_setting(
        "all positions of the model", more="; a longer text is split into overlapping windows"
    )
    batch_size: int = optimisation_setting(
        32, help="maximum number of sequences per batch", unit="SEQUENCES", at_least=1, common=True
    )

    def check(self):
        super().check()
        check_layers(self.layers)


class EmbedSettings(EmbedderSettings, TextsOrFileSettings):
    """Settings of `keras_bert.embed`."""


class EmbedToFileSettings(EmbedderSettings, TextsSettings):
    """Settings of `keras_bert.embed_to_file`."""

    progress: InitVar[bool] = False

    REMOVED = {
        "text": "Use {data}: it takes a file, and in Python also a list of texts.",
        "task": "To train a task's head alone, use {freeze_encoder} of `finetune`.",
    }

    output: object = required(
        help="the file to write, NAME.parquet, or of a text embedder also NAME.npy",
        unit="FILE",
        recorded=False,
    )
    force: bool = checkpoint_setting(
        False, help="replace an output that this command wrote before", recorded=False
    )


class EmbedCommandSettings(EmbedToFileSettings):
    """Settings of the command `embed`."""

    picture: PathText | None = setting(
        None,
        help="draw the vectors of the texts as points of a plane (principal components), NAME.png",
        unit="FILE",
        default_help="no picture",
        recorded=False,
        common=True,
    )
    colour_by: str | None = setting(
        None,
        help="the column that colours the points of the picture, such as a label",
        unit="NAME",
        default_help="one colour",
        recorded=False,
        common=True,
    )

    def check(self):
        super().check()
        if self.picture is not None and not str(self.picture).endswith(".png"):
            raise InputError.naming("{picture} must end in .png. Received: {}.", self.picture)
        if self.colour_by is not None and self.picture is None:
            raise InputError.naming("{colour_by} is for {picture}. Give both, or leave it out.")
        if self.colour_by is not None and str(self.output).endswith(".npy"):
            raise InputError.naming(
                "{colour_by} is a column, which a NumPy file has not. Give {output} a name that "
                "ends in .parquet."
            )


class SensesSettings(TextFileSettings):
    """Settings of `keras_bert.senses`."""

    report: InitVar[Report] = None

    model: object = required(help=ANY_RUN, unit="FOLDER")
    train: object = required(
        help="texts with a marked word, as in the **bank** of the river, and its sense: a TSV, CSV "
        "or JSON Lines",
        unit="FILE",
    )
    dev: object = setting(
        None,
        help="more of them, which the accuracy is measured on",
        unit="FILE",
        default_help="each of `train`, without its own vector",
        common=True,
    )
    layers: str | Sequence[str] | None = model_setting(
        None,
        help="the layers that make a vector, or several of these to compare, as in `embed`",
        unit="LAYERS",
        default_help="compare all layers",
        several=True,
        common=True,
    )
    output: object = setting(
        None,
        help="NAME.safetensors, which gets the sense vectors of the most accurate layers",
        unit="FILE",
        default_help="not saved",
        recorded=False,
        common=True,
    )
    label_column: str | None = column_setting("sense")

    def check(self):
        super().check()
        for layers in self.all_layers or ():
            check_layers(layers)

    @property
    def all_layers(self):
        """`layers` as a list; None if all are compared."""
        return [self.layers] if isinstance(self.layers, str) else self.layers


class SensesCommandSettings(SensesSettings):
    """Settings of the command `senses`."""

    train: object = setting(
        None,
        help="texts with a marked word, as in the **bank** of the river, and its sense: a TSV, CSV "
        "or JSON Lines",
        unit="FILE",
        default_help="pass `predict` or `pairs`",
        common=True,
    )
    predict: PathText | None = setting(
        None,
        help="predict senses with this `output` of an earlier run",
        unit="FILE",
        default_help="no prediction",
    )
    data: PathText | None = data_setting(
        None,
        help="with `predict`: texts with a marked word; - is standard input",
        unit="FILE",
        default_help="pass `text`",
        common=True,
    )
    text: Sequence[str] | None = data_setting(
        None,
        help="with `predict`: a text with a marked word",
        default_help="pass `data`",
        common=True,
    )
    pairs: PathText | None = setting(
        None,
        help="compare two words in context with their rated similarity, in the layout of CoSimLex "
        "or WiC, or as two texts and a score",
        unit="FILE",
        default_help="no comparison",
        common=True,
    )

    def check(self):
        super().check()
        names = ("train", "predict", "pairs")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError.naming(
                "Pass one of {train}, {predict} and {pairs}. Received: {}.",
                arguments(given, " and ") if given else "none",
            )
        if (self.predict is not None) != (self.data is not None or self.text is not None):
            raise InputError.naming("Pass {data} or {text} with {predict}, and not without it.")
        if self.data is not None and self.text is not None:
            raise InputError.naming("Pass either {data} or {text}, not both.")
        if self.train is None and (self.dev is not None or self.output is not None):
            raise InputError.naming("{dev} and {output} are for {train}. Leave them out.")


class WordSimilaritySettings(Settings):
    """Settings of `keras_bert.word_similarity`."""

    report: InitVar[Report] = None

    model: object = required(help=ANY_RUN, unit="FOLDER")
    pairs: object = required(
        help="a file of rated pairs, in the layout of CoSimLex or WiC, or with two texts and a "
        "score; or a list of two texts each. A word is marked in each text",
        unit="FILE",
    )
    layers: str = model_setting(
        "last", help="the layers that make a vector, as in `embed`", unit="LAYERS", common=True
    )

    def check(self):
        super().check()
        check_layers(self.layers)


class NearestSettings(Settings):
    """Settings of `keras_bert.nearest`."""

    model: object = required(
        help="a model folder, such as one of static vectors, or a file of word vectors",
        unit="FOLDER",
    )
    word: str | None = setting(
        None,
        help="the word whose neighbours are wanted",
        unit="WORD",
        default_help="none",
        common=True,
    )
    analogy: str | Sequence[str] | None = setting(
        None,
        help="three words a b c: the words nearest to a - b + c, as king man woman",
        unit="WORD",
        default_help="none",
        several=True,
        common=True,
    )
    top_k: int = setting(10, help="number of words", unit="N", at_least=1, common=True)
    analogies: PathText | None = setting(
        None,
        help="the accuracy on a file of analogies, four words per line, the last one to be found",
        unit="FILE",
        default_help="none",
        common=True,
    )
    pairs: PathText | None = setting(
        None,
        help="the rank correlation with a file of rated pairs, two words and a number per line",
        unit="FILE",
        default_help="none",
        common=True,
    )

    def check(self):
        names = ("word", "analogy", "analogies", "pairs")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError.naming(
                "Give one of {}. Received: {}.",
                arguments(names),
                arguments(given, " and ") if given else "none",
            )
        if self.analogy is not None:
            count = len(self.analogy) if isinstance(self.analogy, list) else 1
            if count != 3:
                raise InputError.naming(
                    "{analogy} needs three words, as king man woman. Received: {}.", count
                )
