"""The settings of the data jobs `pretraining-data` and `vocab`, and what they read of the input."""

import dataclasses
import functools
import re
from collections.abc import Sequence
from dataclasses import InitVar

from keras_bert.base.errors import InputError
from keras_bert.base.settings import (
    Paths,
    PathText,
    Report,
    Settings,
    advanced_setting,
    checkpoint_setting,
    data_setting,
    model_setting,
    optimisation_setting,
    required,
    setting,
)
from keras_bert.records import MASKINGS, OBJECTIVES, PAIRED

MAX_PREDICTIONS = 20
_MAX_LENGTH = 1 << 16
_LETTERS = re.compile(r"[^\W\d_]+")


def _bad_lines():
    return advanced_setting(
        "error",
        help='lines that are not UTF-8, contain a NUL or are invalid JSON: "error" ends the job '
        'with file and line number, "skip" leaves them out and counts them',
        choices=("error", "skip"),
    )


def _text_field():
    return data_setting(
        "text",
        help="the field (JSON Lines), column (Parquet) or feature (tfds) of the text",
        unit="NAME",
    )


class Reading(Settings):
    """The settings of what is read of the input. What is left out is counted by its reason."""

    bad_lines: str = _bad_lines()
    text_field: str = _text_field()
    min_characters: int = setting(
        0, help="leave out documents that are shorter", unit="N", at_least=0, at_most=1 << 30
    )
    max_characters: int | None = setting(
        None, help="leave out documents that are longer", unit="N", default_help="none"
    )
    min_letters: float = setting(
        0.0,
        help="leave out documents with a smaller fraction of letters (white space not counted)",
        unit="FRACTION",
        at_least=0,
        at_most=1,
    )
    max_repeated_lines: float = setting(
        1.0,
        help="leave out documents with a greater fraction of lines that repeat an earlier one",
        unit="FRACTION",
        at_least=0,
        at_most=1,
    )
    drop_duplicates: bool = setting(False, help="read only one of identical documents")

    def reason_to_drop(self, document):
        """Why a `Document` is left out, as the name of a counter; None if it is read."""
        length = len(document.content)
        if length < self.min_characters:
            return "dropped_too_short"
        if self.max_characters is not None and length > self.max_characters:
            return "dropped_too_long"
        if self.min_letters and fraction_of_letters(document.content) < self.min_letters:
            return "dropped_few_letters"
        if self.max_repeated_lines < 1:
            if fraction_of_repeated_lines(document.text) > self.max_repeated_lines:
                return "dropped_repeated_lines"
        return None


def dropped_documents(counters):
    """The numbers of documents that were left out, by reason, from a job's counters."""
    return {
        name.removeprefix("dropped_").replace("_", " "): number
        for name, number in counters.items()
        if name.startswith("dropped_")
    }


def fraction_of_letters(text):
    """The fraction of letters, of any script, among the characters that are not white space."""
    characters = sum(map(len, text.split()))
    return sum(map(len, _LETTERS.findall(text))) / max(1, characters)


def fraction_of_repeated_lines(text):
    """The fraction of non-empty lines that repeat an earlier line of the text."""
    lines = [line for line in text.split("\n") if line.strip()]
    return (len(lines) - len(set(lines))) / max(1, len(lines))


class _JobSettings(Settings):
    """The settings that both jobs have in common."""

    lowercase: InitVar[bool | None] = None
    beam_options: InitVar[Sequence[str]] = ()
    report: InitVar[Report] = None

    input: Paths = required(
        help="text files, gzip too (books, one sentence per line, JSON Lines with a text field), "
        "Parquet files, or tfds:NAME/CONFIG:SPLIT of a prepared dataset",
        unit="GLOB",
        is_path=False,
    )

    def check_case(self, lowercase):
        """The argument `lowercase`, or False for `cased`; `InputError` if they contradict."""
        if self.cased and lowercase:
            raise InputError.naming("{cased} and `lowercase` contradict each other. Leave one out.")
        return False if self.cased else lowercase


class _ExampleSettings(_JobSettings):
    """The settings of what is made of the text, and where it is written."""

    vocab: PathText = required(
        help="the vocabulary: a vocab.txt, or a folder with a vocabulary (byte-pair encoding: "
        "vocab.json and merges.txt)",
        unit="PATH",
    )
    output: PathText = required(help="the folder to make", unit="DIR", recorded=False)
    input_format: str | None = data_setting(
        None,
        help="the format of text files: one book per file, one sentence per line with blank lines "
        "between documents, or JSON Lines",
        choices=("book", "lines", "jsonl"),
        default_help="detected from the content of each file",
    )
    objective: str = setting(
        "mlm-nsp",
        help="masked tokens and next sentence (BERT), masked tokens and the order of two "
        "consecutive segments (ALBERT), masked tokens alone in one segment of whole sentences, or "
        "masked spans of words with their boundaries (SpanBERT)",
        choices=OBJECTIVES,
        common=True,
    )
    masking: str = setting(
        "static",
        help="mask now, or in training, afresh in each epoch",
        choices=MASKINGS,
        common=True,
    )
    mask_unit: str | None = setting(
        None,
        help="what is masked as a unit for mlm-nsp, mlm-sop and mlm",
        choices=("token", "whole-word", "span"),
        default_help='token; span for the objective "span", and only there',
    )
    replacement: str = advanced_setting(
        "uniform",
        help="how random replacements of masked tokens are drawn: uniformly, or by their frequency "
        "in the text, from vocab.counts.tsv next to the vocabulary or, without that file, from a "
        "first pass over the text (with dynamic masks: from the dataset card)",
        choices=("uniform", "unigram"),
    )
    max_length: int = model_setting(
        128,
        help="maximum tokens per example, [CLS] and [SEP] included",
        unit="TOKENS",
        at_least=8,
        at_most=_MAX_LENGTH,
        common=True,
    )
    max_predictions: int | None = setting(
        None,
        help="maximum masked tokens per example",
        unit="N",
        default_help=f"{MAX_PREDICTIONS}, or the length of shorter examples",
        at_least=1,
    )
    mlm_probability: float = setting(
        0.15, help="fraction of the tokens to mask", unit="FRACTION", at_least=0.001, at_most=1
    )
    short_seq_prob: float | None = setting(
        None,
        help="fraction of examples of a random shorter length",
        unit="FRACTION",
        default_help="0.1 for mlm-nsp and mlm-sop, else 0",
        at_least=0,
        at_most=1,
    )
    dupe_factor: int | None = setting(
        None,
        help="number of passes over the text, each with other segments and masks; the eval split "
        "has one",
        unit="N",
        default_help="5 for static masks, 1 for dynamic ones",
        at_least=1,
        at_most=1000,
    )
    eval_fraction: float = data_setting(
        0.02,
        help="fraction of the documents to hold out, chosen by their content and not by the seed",
        unit="FRACTION",
        at_least=0,
        at_most=0.9,
    )
    seed: int = optimisation_setting(
        0,
        help="the same seed, text and settings give the same bytes in the same shards",
        at_least=0,
        at_most=2**63 - 1,
        common=True,
    )
    cased: bool = data_setting(
        False, help="keep capitals and accents; a folder with a vocabulary has its own case"
    )
    pad: bool = setting(
        False,
        help="write examples of a fixed length, with the features that google-research/bert reads "
        "(static masks only)",
    )
    compression: str | None = advanced_setting(
        None, help="compress the shards", choices=("gzip",), default_help="none"
    )
    shard_bytes: int = advanced_setting(
        2 << 20,
        help="bytes of text per shard, before copies",
        unit="BYTES",
        at_least=1,
        at_most=1 << 30,
    )
    force: bool = checkpoint_setting(
        False, help="replace finished data in the output folder", recorded=False
    )


class DataSettings(Reading, _ExampleSettings):
    """Settings of `keras_bert.pretraining_data`; `filled` replaces None."""

    def filled(self):
        """A copy with the defaults that depend on other settings."""
        is_span = self.objective == "span"
        defaults = {
            "mask_unit": "span" if is_span else "token",
            "max_predictions": min(MAX_PREDICTIONS, self.max_length),
            "short_seq_prob": 0.1 if self.objective in PAIRED else 0.0,
            "dupe_factor": 5 if self.masking == "static" else 1,
        }
        missing = {name: defaults[name] for name in defaults if getattr(self, name) is None}
        return dataclasses.replace(self, **missing)

    @functools.cached_property
    def reading(self):
        """The `Reading` part of the settings."""
        return Reading(**self.part(Reading))

    def check(self):
        if self.mask_unit is not None and (self.mask_unit == "span") != (self.objective == "span"):
            allowed = "span" if self.objective == "span" else "token or whole-word"
            raise InputError.naming(
                "{mask_unit} is {!r}. With the {objective} {} it must be {}.",
                self.mask_unit,
                self.objective,
                allowed,
            )
        if self.max_predictions is not None and self.max_predictions > self.max_length:
            raise InputError.naming(
                "{max_predictions} is {}. It must be at most {max_length}, {}.",
                self.max_predictions,
                self.max_length,
            )
        if self.max_characters is not None and self.max_characters < self.min_characters:
            raise InputError.naming(
                "{max_characters} is {}. It must be at least {min_characters}, {}.",
                self.max_characters,
                self.min_characters,
            )
        if self.pad and self.masking == "dynamic":
            raise InputError.naming(
                "{pad} needs static masks, which readers of padded examples expect in them. Use "
                '{masking="static"}, or leave {pad} out.'
            )


class VocabularySettings(_JobSettings):
    """Settings of `learn_vocabulary`."""

    output: PathText = required(
        help="where to write the vocabulary: vocab.txt (and vocab.counts.tsv, the counts of its "
        "tokens in the text), or for byte-pair encoding and unigram a folder",
        unit="PATH",
        recorded=False,
    )
    size: int = required(
        help="number of tokens to learn, special tokens included", unit="TOKENS", at_least=1
    )
    algorithm: str = setting(
        "wordpiece",
        help="wordpiece, as in BERT, byte-pair encoding of characters (bpe) or of bytes (always "
        "cased), as in GPT-2 and RoBERTa, unigram, as SentencePiece and XLM-R, or whole words, for "
        "static vectors",
        choices=("wordpiece", "bpe", "byte-level-bpe", "unigram", "words"),
        common=True,
    )
    cased: bool = data_setting(False, help="keep capitals and accents")
    min_frequency: int = setting(
        1, help="minimum count of a token in the text", unit="N", at_least=1
    )
    alphabet_limit: int = setting(
        1000,
        help="number of different characters to keep, the most frequent ones; byte-level BPE has "
        "all 256 bytes",
        unit="CHARACTERS",
        at_least=1,
    )
    unused: int = setting(
        0, help="slots for tokens that you add later, [unused0] …", unit="N", at_least=0
    )
    max_words: int = setting(
        1_000_000,
        help="number of different words in the memory of a worker and of the learner: the most "
        "frequent ones, ties by code points",
        unit="N",
        at_least=1,
    )
    bad_lines: str = _bad_lines()
    text_field: str = _text_field()
    force: bool = checkpoint_setting(
        False, help="replace the output if there is one", recorded=False
    )
