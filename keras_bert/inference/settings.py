"""The settings of what a trained model is asked."""

import dataclasses

from keras_bert.errors import InputError
from keras_bert.settings import Settings, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerSettings(Settings):
    """What evaluation and prediction have in common."""

    model: object = setting(
        help="a fine-tuned model folder, or the output of finetune", unit="FOLDER", is_path=True
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
        help="a model folder with a masked-LM head, or the output of pretrain",
        unit="FOLDER",
        is_path=True,
    )
    text: str = setting(help="a text with [MASK] in it, once or several times", unit="TEXT")
    top: int = setting(5, help="candidates for each [MASK]", unit="N", at_least=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateSettings(AnswerSettings):
    """Settings of `keras_bert.evaluate`, beside how the kind of task reads its file."""

    data: object = setting(
        help="the labelled examples; - is standard input", unit="FILE", is_path=True
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictSettings(AnswerSettings):
    """Settings of `keras_bert.predict`, beside how the kind of task reads its file."""

    data: object = setting(
        None,
        help="the examples, labelled or not; - is standard input",
        unit="FILE",
        default_help="give `text`",
        is_path=True,
    )
    text: list[str] | None = setting(
        None,
        help="a text; may be given several times",
        unit="TEXT",
        default_help="give `data`",
    )

    def check(self):
        if (self.data is None) == (self.text is None):
            raise InputError("Give either `data`, a file of examples, or `text`, and not both.")
