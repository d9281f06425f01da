"""One label per word, and the roles of a predicate's arguments; the settings of the tasks."""

import typing

from keras_bert.base.errors import InputError, argument
from keras_bert.base.settings import setting
from keras_bert.readers import (
    RowSettings,
    column_setting,
    invalid_tags_setting,
    unknown_labels_setting,
)
from keras_bert.tasks import TaskSettings

# The tokens of a word that are trained on its label, and those that it is predicted from.
FIRST, LAST, ALL, MEAN, PRODUCT = "first", "last", "all", "mean", "product"


def crf_setting():
    """The setting for a conditional random field."""
    return setting(
        False,
        help="add a conditional random field over the words, which learns the transitions between "
        "tags and allows only those of the scheme",
        stored=True,
        common=True,
    )


class TaggerSettings(RowSettings, TaskSettings):
    word_column: str | None = column_setting("word")
    tag_column: str | None = column_setting("tag")
    sentence_column: str | None = column_setting(
        "number of its sentence, with one word per row", common=False
    )
    pretokenized: bool = setting(
        False,
        help="split plain lines and given texts into words at spaces only; otherwise the tokenizer "
        "splits them at spaces, punctuation and CJK characters",
        reads=True,
    )
    scheme: str | None = setting(
        None,
        help="train on tags of this scheme, whatever that of the file",
        choices=("bio", "bioes", "bilou", "bmes", "bmewo"),
        default_help="the file's; bio for IOB1, IOE1 and IOE2",
        reads=True,
    )
    invalid_tags: str = invalid_tags_setting()
    unknown_labels: str = unknown_labels_setting()
    label_subwords: str | None = setting(
        None,
        help="which subword tokens of a word are trained on its tag",
        choices=(FIRST, LAST, ALL),
        default_help="first; last for a causal model, whose last token sees the whole word",
        stored=True,
    )
    aggregation: str | None = setting(
        None,
        help="what a word's tag is predicted from: its first or last token, or the mean or product "
        "of the distributions of all its tokens",
        choices=(FIRST, LAST, MEAN, PRODUCT),
        default_help="the token that is trained; if all are, first, or last for a causal model",
        stored=True,
    )
    document_context: bool = setting(
        False,
        help="fill each sequence with the sentences before and after it in the document; their "
        "tags do not count there",
        stored=True,
    )
    crf: bool = crf_setting()

    def check(self):
        super().check()
        if self.crf:
            for name in ("label_subwords", "aggregation"):
                if getattr(self, name) not in (None, FIRST, LAST):
                    raise InputError.naming(
                        "{} must be {} or {} with {crf}, whose transitions are between single "
                        "tokens of words. Received: {}.",
                        argument(name),
                        FIRST,
                        LAST,
                        getattr(self, name),
                    )


class SemanticRoleSettings(RowSettings, TaskSettings):
    EXAMPLE_FIELDS: typing.ClassVar[tuple] = ()
    # The defaults of a tagger, which have no choice here.
    label_subwords: typing.ClassVar[None] = None
    aggregation: typing.ClassVar[None] = None
    document_context: typing.ClassVar[bool] = False

    invalid_tags: str = invalid_tags_setting()
    unknown_labels: str = unknown_labels_setting()
    crf: bool = crf_setting()
