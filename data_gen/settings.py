"""Everything that decides what a data job writes, but for the text itself."""

import dataclasses

from data_gen.reading import Reading
from keras_bert.errors import InputError
from keras_bert.masking import UNITS, Masker
from keras_bert.records import compact, padded
from keras_bert.records.specs import MASKINGS, OBJECTIVES
from keras_bert.text.vocabulary import Vocabulary

REPLACEMENTS = ("uniform", "unigram")
COMPRESSIONS = (None, "gzip")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a job, made by `make_pretraining_data`, which says what each means.

    Small enough to go to every worker.
    """

    vocabulary: Vocabulary
    lowercase: bool
    objective: str
    masking: str
    mask_unit: str
    replacement: str
    max_length: int
    max_predictions: int
    masked_rate: float
    short_rate: float
    dupe_factor: int
    eval_fraction: float
    pad: bool
    compression: str | None
    seed: int
    item_bytes: int
    reading: Reading
    output: str

    @property
    def max_tokens(self):
        """Tokens of text in a row: what [CLS] and one or two [SEP] leave."""
        return self.max_length - (3 if self.objective == "mlm-nsp" else 2)

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
            rate=self.masked_rate,
            max_predictions=self.max_predictions,
            unigram_counts=unigrams,
        )

    def check(self):
        """Raises `InputError` for the first setting that cannot be."""
        units = [unit for unit in UNITS if (unit == "span") == (self.objective == "span")]
        for flag, value, allowed in (
            ("objective", self.objective, OBJECTIVES),
            ("masking", self.masking, MASKINGS),
            ("mask-unit", self.mask_unit, units),
            ("replacement", self.replacement, REPLACEMENTS),
            ("compression", self.compression, COMPRESSIONS),
            ("bad-lines", self.reading.bad_lines, ("error", "skip")),
        ):
            if value not in allowed:
                choices = ", ".join(map(str, allowed))
                raise InputError(f"--{flag} is {value!r}: it must be one of {choices}")
        most = self.reading.max_characters
        for flag, value, low, high in (
            ("max-length", self.max_length, 8, 1 << 16),
            ("max-predictions", self.max_predictions, 1, self.max_length),
            ("masked-rate", self.masked_rate, 0.001, 1),
            ("short-rate", self.short_rate, 0, 1),
            ("dupe-factor", self.dupe_factor, 1, 1000),
            ("eval-fraction", self.eval_fraction, 0, 0.9),
            ("seed", self.seed, 0, 2**63 - 1),
            ("item-bytes", self.item_bytes, 1, 1 << 30),
            ("min-characters", self.reading.min_characters, 0, 1 << 30),
            ("max-characters", most, self.reading.min_characters, float("inf")),
            ("min-letters", self.reading.min_letters, 0, 1),
            ("max-repeated-lines", self.reading.max_repeated_lines, 0, 1),
        ):
            if value is not None and not low <= value <= high:
                raise InputError(f"--{flag} is {value}: it must be from {low} to {high}")
        if self.pad and self.masking == "dynamic":
            raise InputError(
                "--pad needs static masks: what reads padded rows wants the masks in them; take "
                "--masking static, or leave --pad out"
            )
