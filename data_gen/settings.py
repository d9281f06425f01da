"""The settings of the data jobs: what `pretraining-data` and `vocab` take."""

import dataclasses
import functools
import os

from data_gen.reading import Reading, bad_lines, text_field
from keras_bert.base.errors import InputError
from keras_bert.base.objectives import MASKINGS, OBJECTIVES, PAIRED
from keras_bert.base.settings import Settings, setting

MAX_PREDICTIONS = 20
_LONGEST = 1 << 16
_CASED = "keep capitals and accents; a folder with a vocabulary says itself what it is"


@dataclasses.dataclass(frozen=True, kw_only=True)
class _JobSettings(Settings):
    """What both jobs have in common."""

    input: list[str] = setting(
        help="text files, gzip too (books, one sentence a line, JSON Lines with a text field), "
        "Parquet files, or tfds:NAME/CONFIG:SPLIT of a prepared dataset",
        unit="GLOB",
    )

    @classmethod
    def of(cls, values):
        """As `Settings.of`; `input` may also be one path or glob, and any sequence of them."""
        if "input" in values:
            given = values["input"]
            one = isinstance(given, str | os.PathLike)
            values = {**values, "input": [str(each) for each in ([given] if one else given)]}
        return super().of(values)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _RowSettings(_JobSettings):
    """What is read, what is made of it, and where it goes."""

    vocab: str = setting(
        help="the vocabulary: a vocab.txt, or a folder with a vocabulary (byte-pair encoding: "
        "vocab.json and merges.txt)",
        unit="PATH",
        is_path=True,
    )
    output: str = setting(help="the folder to make", unit="DIR", is_path=True, recorded=False)
    input_format: str | None = setting(
        None,
        help="the format of text files: a book a file, a sentence a line with blank lines between "
        "documents, or JSON Lines",
        choices=("book", "lines", "jsonl"),
        default_help="told from each file",
    )
    objective: str = setting(
        "mlm-nsp",
        help="masked tokens and next sentence (BERT), masked tokens and the order of two "
        "consecutive segments (ALBERT), masked tokens alone in one segment of whole sentences, or "
        "masked spans of words with their boundaries (SpanBERT)",
        choices=OBJECTIVES,
    )
    masking: str = setting(
        "static",
        help="mask now, or in training, anew in each epoch",
        choices=MASKINGS,
    )
    mask_unit: str | None = setting(
        None,
        help="what is masked as one for mlm-nsp, mlm-sop and mlm",
        choices=("token", "whole-word", "span"),
        default_help='token; span for the objective "span", and only there',
    )
    replacement: str = setting(
        "uniform",
        help="how the pieces are drawn that replace a tenth of the masked ones: all alike, or as "
        "frequent as they are in the text: as vocab.counts.tsv beside the vocabulary says, or, "
        "where there is none, as a first pass over the text counts (with dynamic masks: as the "
        "dataset card says)",
        choices=("uniform", "unigram"),
    )
    max_length: int = setting(
        128,
        help="tokens in a row, [CLS] and [SEP] counted in",
        unit="TOKENS",
        at_least=8,
        at_most=_LONGEST,
    )
    max_predictions: int | None = setting(
        None,
        help="masked tokens in a row, at most",
        unit="N",
        default_help=f"{MAX_PREDICTIONS}, or the length of shorter rows",
        at_least=1,
    )
    mlm_probability: float = setting(
        0.15, help="share of the tokens to mask", unit="SHARE", at_least=0.001, at_most=1
    )
    short_seq_prob: float | None = setting(
        None,
        help="share of rows of a random shorter length",
        unit="SHARE",
        default_help="0.1 for mlm-nsp and mlm-sop, else 0",
        at_least=0,
        at_most=1,
    )
    dupe_factor: int | None = setting(
        None,
        help="go through the text so many times, with other segments and masks each time; the "
        "eval split has one copy",
        unit="N",
        default_help="5 for static masks, 1 for dynamic ones",
        at_least=1,
        at_most=1000,
    )
    eval_fraction: float = setting(
        0.02,
        help="share of the documents to hold out; which depends on the documents, not on the seed",
        unit="SHARE",
        at_least=0,
        at_most=0.9,
    )
    seed: int = setting(
        0,
        help="same seed, same text, same settings: the same bytes in the same shards",
        at_least=0,
        at_most=2**63 - 1,
    )
    cased: bool = setting(False, help=_CASED)
    pad: bool = setting(
        False,
        help="write rows of a fixed length, with the features that google-research/bert reads "
        "(static masks only)",
    )
    compression: str | None = setting(
        None, help="compress the shards", choices=("gzip",), default_help="none"
    )
    shard_bytes: int = setting(
        2 << 20,
        help="bytes of text that make one shard, before copies",
        unit="BYTES",
        at_least=1,
        at_most=1 << 30,
    )
    force: bool = setting(False, help="replace finished data in the output folder", recorded=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataSettings(Reading, _RowSettings):
    """Settings of `make_pretraining_data`. What is None stands for what `filled` puts there."""

    def filled(self):
        """A copy in which no setting is left open whose default follows from others."""
        is_span = self.objective == "span"
        defaults = {
            "mask_unit": "span" if is_span else "token",
            "max_predictions": min(MAX_PREDICTIONS, self.max_length),
            "short_seq_prob": 0.1 if self.objective in PAIRED else 0.0,
            "dupe_factor": 5 if self.masking == "static" else 1,
        }
        left_open = {n: v for n, v in defaults.items() if getattr(self, n) is None}
        return dataclasses.replace(self, **left_open)

    @functools.cached_property
    def reading(self):
        """How documents are read."""
        return Reading(**self.part(Reading))

    def check(self):
        if self.mask_unit is not None and (self.mask_unit == "span") != (self.objective == "span"):
            allowed = "span" if self.objective == "span" else "token or whole-word"
            raise InputError(
                f"`mask_unit` is {self.mask_unit!r}; with the `objective` {self.objective} it "
                f"should be {allowed}."
            )
        if self.max_predictions is not None and self.max_predictions > self.max_length:
            raise InputError(
                f"`max_predictions` is {self.max_predictions}; it must be at most `max_length`, "
                f"{self.max_length}."
            )
        if self.max_characters is not None and self.max_characters < self.min_characters:
            raise InputError(
                f"`max_characters` is {self.max_characters}; it must be at least "
                f"`min_characters`, {self.min_characters}."
            )
        if self.pad and self.masking == "dynamic":
            raise InputError(
                "`pad` needs static masks: what reads padded rows wants the masks in them; take "
                '`masking="static"`, or leave `pad` out.'
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularySettings(_JobSettings):
    """Settings of `learn_vocabulary`."""

    output: str = setting(
        help="where to write the vocabulary: vocab.txt (and beside it vocab.counts.tsv, how often "
        "each piece stands in the text), or for bpe a folder",
        unit="PATH",
        is_path=True,
        recorded=False,
    )
    size: int = setting(
        help="how many pieces to learn, the special ones counted in", unit="PIECES", at_least=1
    )
    algorithm: str = setting(
        "wordpiece",
        help="wordpiece, as BERT has, or byte-pair encoding (of characters: byte-level BPE, as "
        "GPT-2 and RoBERTa have, is not offered)",
        choices=("wordpiece", "bpe"),
    )
    cased: bool = setting(False, help="keep capitals and accents")
    min_frequency: int = setting(
        1, help="make no piece of what stands in the text less often", unit="N", at_least=1
    )
    alphabet_limit: int = setting(
        1000,
        help="keep so many different characters, the most frequent ones",
        unit="CHARACTERS",
        at_least=1,
    )
    unused: int = setting(
        0, help="slots to leave for pieces that you add later, [unused0] …", unit="N", at_least=0
    )
    max_words: int = setting(
        1_000_000,
        help="how many different words are held in memory, by a worker that counts and by the "
        "learner: the most frequent ones, ties by code points",
        unit="N",
        at_least=1,
    )
    bad_lines: str = bad_lines()
    text_field: str = text_field()
    force: bool = setting(False, help="replace the output if there is one", recorded=False)
