"""What a tagger is made with, and how its files are read."""

import dataclasses

from keras_bert.base.errors import InputError
from keras_bert.base.settings import setting
from keras_bert.readers.settings import ERROR, column_setting, invalid_tags_setting
from keras_bert.tasks.settings import TaskSettings

COUNT = "count"
FIRST, LAST, ALL, MEAN, PRODUCT = "first", "last", "all", "mean", "product"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggerSettings(TaskSettings):
    word_column: str | None = column_setting("word")
    tag_column: str | None = column_setting("tag")
    pretokenized: bool = setting(
        False,
        help="the words of plain lines and of given texts are parted by spaces; else the tokenizer "
        "splits them at spaces, punctuation and CJK characters",
        reads=True,
    )
    scheme: str | None = setting(
        None,
        help="train on tags of this scheme, whichever the file's is",
        choices=("bio", "bioes", "bilou", "bmes", "bmewo"),
        default_help="the file's; bio for IOB1",
        reads=True,
    )
    invalid_tags: str = invalid_tags_setting()
    unknown_tags: str = setting(
        ERROR,
        help="what to do with a tag that the model is not trained with: raise an error, or count "
        "its words as mistakes",
        choices=(ERROR, COUNT),
        reads=True,
    )
    label_subwords: str | None = setting(
        None,
        help="which pieces of a word are trained to have its tag",
        choices=(FIRST, LAST, ALL),
        default_help="first; last for a causal model, which sees the whole word only there",
        stored=True,
    )
    aggregation: str | None = setting(
        None,
        help="what a word's tag is taken from: its first or last piece, or the mean or product of "
        "the distributions of all its pieces",
        choices=(FIRST, LAST, MEAN, PRODUCT),
        default_help="the piece that is trained; where all are, first, or last for a causal model",
        stored=True,
    )
    document_context: bool = setting(
        False,
        help="fill each row with the sentences before and after it in the document; their tags do "
        "not count there",
        stored=True,
    )
    crf: bool = setting(
        False,
        help="a conditional random field over the words learns which tag follows which and keeps "
        "to the scheme",
        stored=True,
    )

    def check(self):
        super().check()
        if self.crf:
            for name in ("label_subwords", "aggregation"):
                if getattr(self, name) not in (None, FIRST, LAST):
                    raise InputError(
                        f"`{name}` must be {FIRST} or {LAST} with `crf`: transitions are from one "
                        "piece of a word to that of the next."
                    )
