"""What a job of rows carries to every worker."""

import dataclasses

from data_gen.settings import DataSettings
from keras_bert.base.errors import InputError
from keras_bert.base.objectives import PAIRED
from keras_bert.records import compact, padded
from keras_bert.records.masking import Masker
from keras_bert.text.template import Template
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.vocabulary_files import open_vocabulary, read_counts


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job(DataSettings):
    """Settings with nothing left open, vocabulary and template. Made by `Job.of_settings`."""

    vocabulary: Vocabulary
    lowercase: bool
    template: Template

    def __post_init__(self):
        """They were checked when they were given."""

    @classmethod
    def of_settings(cls, settings, *, vocabulary=None, lowercase=None):
        """Opens the vocabulary and fills in what follows from other settings.

        Args:
            settings: `DataSettings`.
            vocabulary: a `Vocabulary` in place of the one that `settings.vocab` names.
            lowercase: True or False where it is said in this way and not by `settings.cased`.

        Raises:
            InputError: the vocabulary cannot be read, or is of another case.
        """
        if settings.cased:
            if lowercase:
                raise InputError("`cased` and `lowercase` contradict each other; leave one out.")
            lowercase = False
        given = settings.vocab if vocabulary is None else vocabulary
        opened, lowercase, template = open_vocabulary(given, lowercase=lowercase)
        texts = 2 if settings.objective in PAIRED else 1
        if settings.pad and template.segments(texts) != tuple(range(texts)):
            raise InputError(
                "Padded rows tell their texts apart by the segment ids 0 and 1, which the template "
                f"{template} of the vocabulary does not have; leave `pad` out."
            )
        if settings.replacement == "unigram" and vocabulary is None:
            opened.counts = read_counts(settings.vocab, opened)
        values = settings.filled().part(DataSettings)
        values["output"] = values["output"].rstrip("/")
        return cls(**values, vocabulary=opened, lowercase=lowercase, template=template)

    @property
    def max_tokens(self):
        """Tokens of text in a row: what the special tokens leave."""
        return self.template.room(self.max_length, texts=2 if self.objective in PAIRED else 1)

    @property
    def spec(self):
        """The `FeatureSpec` of the rows."""
        if self.pad:
            return padded(
                objective=self.objective,
                max_length=self.max_length,
                max_predictions=self.max_predictions,
            )
        return compact(objective=self.objective, masking=self.masking)

    @property
    def replacement_counts(self):
        """Whose counts the replacements of static masks follow: "vocabulary", "text", or None."""
        if self.masking == "dynamic" or self.replacement != "unigram":
            return None
        return "text" if self.vocabulary.counts is None else "vocabulary"

    @property
    def needs_unigrams(self):
        """Whether the pieces of the whole corpus have to be counted before masks are made."""
        return self.replacement_counts == "text"

    def masker(self, unigrams=None):
        """The `Masker` of static masks, or None where training masks (dynamic).

        `unigrams` (V,) are the counts of the pieces where `needs_unigrams`.
        """
        if self.masking == "dynamic":
            return None
        if self.replacement_counts == "vocabulary":
            unigrams = self.vocabulary.counts
        return Masker(
            vocabulary=self.vocabulary,
            unit=self.mask_unit,
            rate=self.mlm_probability,
            max_predictions=self.max_predictions,
            unigram_counts=unigrams,
        )
