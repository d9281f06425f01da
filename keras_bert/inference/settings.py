"""The settings of what a trained model is asked."""

import dataclasses
import functools

from keras_bert.base.errors import InputError
from keras_bert.base.settings import Settings, reading, setting, together


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerSettings(Settings):
    """What evaluation and prediction have in common."""

    model: object = setting(
        help="a fine-tuned model folder, the output of finetune, or hf://owner/name",
        unit="FOLDER",
        is_path=True,
    )
    max_length: int | None = setting(
        None,
        help="tokens in a row, [CLS] and [SEP] counted in",
        unit="TOKENS",
        default_help="those of training",
        at_least=3,
    )
    batch_size: int = setting(32, help="rows at a time", unit="ROWS", at_least=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskSettings(Settings):
    """Settings of `keras_bert.fill_mask`."""

    model: object = setting(
        help="a model folder with a masked-LM head, the output of pretrain, or hf://owner/name",
        unit="FOLDER",
        is_path=True,
    )
    text: str = setting(help="a text with [MASK] in it, once or several times", unit="TEXT")
    top_k: int = setting(5, help="candidates for each [MASK]", unit="N", at_least=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateSettings(AnswerSettings):
    """Settings of `keras_bert.evaluate`, beside how the kind of task reads its file."""

    data: object = setting(
        help="the labelled examples; - is standard input", unit="FILE", is_path=True
    )
    show_errors: int = setting(0, help="show the worst mistakes, so many", unit="N", at_least=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateRecordsSettings(Settings):
    """Settings of `keras_bert.evaluate` for a pre-trained model and a data folder."""

    model: object = setting(
        help="a model folder with a masked-LM head, the output of pretrain, or hf://owner/name",
        unit="FOLDER",
        is_path=True,
    )
    data: str = setting(
        help="the folder that keras-bert pretraining-data wrote", unit="FOLDER", is_path=True
    )
    batch_size: int = setting(32, help="rows at a time", unit="ROWS", at_least=1)
    batches: int | None = setting(
        None,
        help="measure on the first batches of the eval split, so many",
        unit="N",
        default_help="on all of it",
        at_least=1,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictSettings(AnswerSettings):
    """Settings of `keras_bert.predict`, beside those of the kind of task (`predict_settings`)."""

    data: object = setting(
        None,
        help="the examples, labelled or not; - is standard input",
        unit="FILE",
        default_help="give the examples themselves",
        is_path=True,
    )


def evaluate_settings(kind):
    """The class of all settings of `evaluate`, of the settings class of a kind of task."""
    return together(reading(kind), EvaluateSettings)


@functools.cache
def predict_settings(kind):
    """The class of all settings of `predict`, of the settings class of a kind of task.

    Among them is a list for each of the kind's EXAMPLE_FIELDS, in place of a file.
    """
    names = " and ".join(f"`{name}`" for name in kind.EXAMPLE_FIELDS)

    def check(self):
        given = [getattr(self, name) for name in kind.EXAMPLE_FIELDS]
        if (self.data is None) == all(texts is None for texts in given):
            both = f"either `data`, a file of examples, or {names}, and not both"
            raise InputError(f"Give {both if names else '`data`, a file of examples'}.")
        if len({len(texts or ()) for texts in given}) > 1:
            raise InputError(f"Give {names} equally often: together they are an example.")

    fields = [
        (
            name,
            list[str] | None,
            setting(
                None,
                help=f"{name.replace('_', ' ')} of an example; may be given several times",
                unit="TEXT",
                default_help="give `data`",
            ),
        )
        for name in kind.EXAMPLE_FIELDS
    ]
    return dataclasses.make_dataclass(
        "PredictSettings",
        fields,
        bases=(together(reading(kind), PredictSettings),),
        namespace={"check": check},
        frozen=True,
        kw_only=True,
    )
