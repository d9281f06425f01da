"""Settings of evaluation, prediction, questions to a pre-trained model, and embedding."""

import dataclasses
import functools

from keras_bert.base.errors import InputError
from keras_bert.base.settings import Settings, reading, setting, together
from keras_bert.readers.settings import TextFileSettings

# Name -> (number of layers from the end, how they are combined). The six choices of the BERT
# paper's feature-based approach (Devlin et al. 2018, section 5.3 and table 7; there the two sums
# are weighted: `ScalarMix` learns such weights) and the mean of four layers.
LAYERS = {
    "last": (1, "sum"),
    "second-to-last": (2, "lowest"),
    "sum-last-4": (4, "sum"),
    "concat-last-4": (4, "concat"),
    "sum-all": (None, "sum"),
    "mean-last-4": (4, "mean"),
    "first": (0, "embeddings"),
}
TOKENS = ("words-mean", "words-first", "subwords", "none")


def _model_setting(what):
    return setting(help=f"{what}, or hf://owner/name", unit="FOLDER", is_path=True)


def _masked_lm_setting():
    return _model_setting("a model folder with a masked-LM head, the output of pretrain")


def _max_length_setting(default_help, more=""):
    return setting(
        None,
        help=f"maximum sequence length, including [CLS] and [SEP]{more}",
        unit="TOKENS",
        default_help=default_help,
        at_least=3,
    )


def _batch_size_setting():
    return setting(32, help="sequences per batch", unit="SEQUENCES", at_least=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class InferenceSettings(Settings):
    """What evaluation and prediction have in common."""

    model: object = _model_setting("a fine-tuned model folder, the output of finetune")
    max_length: int | None = _max_length_setting("as in training")
    batch_size: int = _batch_size_setting()


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskSettings(Settings):
    """Settings of `keras_bert.fill_mask`."""

    model: object = _masked_lm_setting()
    text: str = setting(help="a text with one or more [MASK]", unit="TEXT")
    top_k: int = setting(5, help="candidates per [MASK]", unit="N", at_least=1)
    head: str = setting(
        "masked-lm",
        help="the head that predicts: from the vector of each [MASK], or, of a model that was "
        "pre-trained on spans, from the tokens next to each run of [MASK]",
        choices=("masked-lm", "span-boundary"),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FollowsSettings(Settings):
    """Settings of `keras_bert.follows`."""

    model: object = _model_setting(
        "a model folder with a next-sentence or sentence-order head, the output of pretrain"
    )
    text_a: list[str] = setting(help="the first text, or several", unit="TEXT")
    text_b: list[str] = setting(help="the second text, or as many as first ones", unit="TEXT")

    def check(self):
        if len(self.text_a) != len(self.text_b):
            raise InputError(
                "`text_a` and `text_b` must have the same length. Received: "
                f"{len(self.text_a)} and {len(self.text_b)}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateSettings(InferenceSettings):
    """Settings of `keras_bert.evaluate`; `evaluate_settings` adds how the task reads its file."""

    data: object = setting(
        help="the labelled examples; - is standard input", unit="FILE", is_path=True
    )
    show_errors: int = setting(
        0, help="show this many errors, the most confident first", unit="N", at_least=0
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateRecordsSettings(Settings):
    """Settings of `keras_bert.evaluate` for a pre-trained model and a data folder."""

    model: object = _masked_lm_setting()
    data: str = setting(help="the output of pretraining-data", unit="FOLDER", is_path=True)
    batch_size: int = _batch_size_setting()
    batches: int | None = setting(
        None,
        help="evaluate only this many batches of the eval split",
        unit="N",
        default_help="all of them",
        at_least=1,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictSettings(InferenceSettings):
    """Settings of `keras_bert.predict`; `predict_settings` adds those of the task."""

    data: object = setting(
        None,
        help="the examples, with or without labels; - is standard input",
        unit="FILE",
        default_help="pass the examples themselves",
        is_path=True,
    )


def evaluate_settings(task_settings):
    """The class of all settings of `evaluate`, for the settings class of a task."""
    return together(reading(task_settings), EvaluateSettings)


@functools.cache
def predict_settings(task_settings):
    """The class of all settings of `predict`, for the settings class of a task.

    It has one list of texts per name in the task's EXAMPLE_FIELDS, as an alternative to `data`.
    """
    names = " and ".join(f"`{name}`" for name in task_settings.EXAMPLE_FIELDS)

    def check(self):
        texts = [getattr(self, name) for name in task_settings.EXAMPLE_FIELDS]
        if (self.data is None) == all(each is None for each in texts):
            either = f"Pass either `data`, a file of examples, or {names}, not both."
            raise InputError(either if names else "Pass `data`, a file of examples.")
        lengths = [len(each or ()) for each in texts]
        if len(set(lengths)) > 1:
            received = " and ".join(map(str, lengths))
            raise InputError(f"{names} must have the same length. Received: {received}.")

    fields = [
        (
            name,
            list[str] | None,
            setting(
                None,
                help=f"{name.replace('_', ' ')} of an example; repeat it for several examples",
                unit="TEXT",
                default_help="pass `data`",
            ),
        )
        for name in task_settings.EXAMPLE_FIELDS
    ]
    return dataclasses.make_dataclass(
        "PredictSettings",
        fields,
        bases=(together(reading(task_settings), PredictSettings),),
        namespace={"check": check},
        frozen=True,
        kw_only=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedderSettings(Settings):
    """How a text becomes vectors."""

    layers: str = setting(
        "last",
        help='the layers that make a vector; "first" is the embedding layer, "sum-all" the sum of '
        "all layers above it",
        choices=tuple(LAYERS),
    )
    tokens: str = setting(
        "words-mean",
        help="what has a vector in addition to the whole text: words, as the mean of their subword "
        "tokens or by the first one; subword tokens; or nothing",
        choices=TOKENS,
    )
    max_length: int | None = _max_length_setting(
        "all positions of the model", more="; a longer text is split into overlapping windows"
    )
    batch_size: int = setting(
        32, help="maximum number of sequences per batch", unit="SEQUENCES", at_least=1
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextsSettings(TextFileSettings):
    """Which texts, and for which model."""

    model: object = _model_setting("a model folder, the output of a run")
    data: object = setting(
        help="one text per line, TSV or JSON Lines, detected from the content; - is standard input",
        unit="FILE",
        is_path=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextsOrFileSettings(TextsSettings):
    """Texts, either of a file or given themselves."""

    data: object = setting(
        None,
        help="a file: one text per line, TSV or JSON Lines, detected from the content; - is "
        "standard input",
        default_help="pass `text`",
        is_path=True,
    )
    text: list[str] | None = setting(None, help="the texts", default_help="pass `data`")

    def check(self):
        if (self.data is None) == (self.text is None):
            raise InputError("Pass either `data`, a file of texts, or `text`, not both.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedSettings(EmbedderSettings, TextsOrFileSettings):
    """Settings of `keras_bert.embed`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SurprisalSettings(TextsOrFileSettings):
    """Settings of `keras_bert.surprisal`."""

    model: object = _masked_lm_setting()
    within_word_l2r: bool = setting(
        False,
        help="also mask the tokens that follow in the same word, so that the end of a rare word "
        "does not give away its beginning (Kauf and Ivanova 2023)",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SurprisalCommandSettings(SurprisalSettings):
    """Settings of the command `surprisal`."""

    picture: str | None = setting(
        None,
        help="draw the surprisal of each token of a text as a bar",
        unit="FILE.png",
        default_help="no picture",
        is_path=True,
    )

    def check(self):
        super().check()
        if self.picture is not None and (self.text is None or len(self.text) > 1):
            raise InputError("`picture` is for a single text. Pass one `text`.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedToFileSettings(EmbedderSettings, TextsSettings):
    """Settings of `keras_bert.embed_to_file`."""

    output: object = setting(
        help="NAME.parquet or NAME.npz; the ending selects the format", unit="FILE", is_path=True
    )
    force: bool = setting(
        False, help="replace an output that this command wrote before", recorded=False
    )
