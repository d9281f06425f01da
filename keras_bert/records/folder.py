"""The folder that a data job writes: shards, a dataset card, and COMPLETED, written last."""

import dataclasses
import json
import os
import reprlib
import typing
from collections import Counter
from collections.abc import Mapping

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, check_regular, parse_json
from keras_bert.base.formatting import counted, html_table, listed
from keras_bert.base.terminal import escaped
from keras_bert.records import MASKINGS, OBJECTIVES, PAIRED
from keras_bert.records.masking import UNITS, Masker, most_predictions
from keras_bert.records.specs import compact, padded
from keras_bert.text.template import BERT_TEMPLATE, Template
from keras_bert.text.vocabulary import BERT_TOKENS, SpecialTokens
from keras_bert.text.vocabulary_files import VOCABULARY_FILES, parse_vocabulary

NAME = "pretraining_data"
CARD = "dataset_card.json"
COMPLETED = "COMPLETED"
FORMAT_VERSION = 1
SPLITS = ("train", "eval")

# Key in the card -> name of the setting, if the two differ.
SETTING_OF_KEY = {
    "masked_rate": "mlm_probability",
    "short_rate": "short_seq_prob",
    "item_bytes": "shard_bytes",
}
# What a card counts, and what does not change how the examples are made.
_COUNTED = {
    *("made_by", "input", "splits", "counters"),
    *("length_histogram", "unigram_entropy", "unigram_counts"),
}
# The values that a key of the card, or of its settings, may have, if not any of its type.
_CHOICES = {
    "objective": OBJECTIVES,
    "masking": MASKINGS,
    "rows": ("compact", "padded"),
    "compression": (None, "gzip"),
    "mask_unit": UNITS,
}
_LARGEST = 2**63  # of a number
_AGAIN = "Run keras-bert pretraining-data again."


def shard_name(split, index, count, compression=None):
    """The file name of shard `index` (from 0) of `count`."""
    ending = ".gz" if compression == "gzip" else ""
    return f"{NAME}-{split}.tfrecord-{index:05d}-of-{count:05d}{ending}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class CardVocabulary:
    """The vocabulary of the examples: a hash of its tokens, and their number."""

    sha256: str
    size: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class CardSettings:
    """The settings of `pretraining_data`; None if the card has none.

    Names differ as `SETTING_OF_KEY` has them. `replacement_counts` is the source of the counts that
    static replacements are drawn by, "vocabulary" or "text". `reading` has the `Reading` settings.
    """

    mask_unit: str
    replacement: str = "uniform"
    replacement_counts: str | None = None
    masked_rate: float
    short_rate: float | None = None
    dupe_factor: int | None = None
    eval_fraction: float | None = None
    item_bytes: int | None = None
    reading: Mapping | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class CardSplit:
    """The numbers of shards, examples (`instances`; `shard_instances` per shard) and tokens.

    `counters` has all other counts by name: `predictions`, `random_pairs` or `swapped_pairs`,
    `documents`, `bytes` … What was not counted is 0.
    """

    shards: int
    instances: int
    tokens: int
    shard_instances: tuple[int, ...]
    counters: Counter

    @classmethod
    def from_counts(cls, counts):
        """A split from the flat mapping name -> number in the JSON."""
        counters = dict(counts)
        numbers = {name: counters.pop(name, 0) for name in ("shards", "instances", "tokens")}
        shard_instances = tuple(counters.pop("shard_instances", ()))
        split = {**numbers, "shard_instances": shard_instances, "counters": Counter(counters)}
        return cls(**_checked(cls, split))

    def to_counts(self):
        """The inverse of `from_counts`."""
        counts = {**vars(self), "shard_instances": list(self.shard_instances)}
        return counts | dict(counts.pop("counters"))


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class DatasetCard:
    """A dataset card: what the examples of a data folder are, and how they were made.

    The fields are those of `dataset_card.json`, in the same order. `rows` is the kind of the
    `FeatureSpec`, "compact" or "padded"; `compression` is None or "gzip". `special_tokens` and
    `template` are BERT's if an older card has none. `length_histogram` (S + 1,) counts the train
    split's examples by their tokens. `unigram_counts` (V,) counts the tokens of the train split's
    text, each text once, and `unigram_entropy` is the entropy of its ordinary tokens in nats/token:
    the loss of the unigram baseline.
    """

    made_by: str = ""
    input: tuple[str, ...] = ()
    objective: str
    masking: str
    rows: str
    compression: str | None = None
    max_length: int
    max_predictions: int
    seed: int
    lowercase: bool
    vocabulary: CardVocabulary
    special_tokens: SpecialTokens = BERT_TOKENS
    template: Template = BERT_TEMPLATE
    settings: CardSettings
    splits: Mapping[str, CardSplit]
    counters: Mapping[str, int] = dataclasses.field(default_factory=dict)
    length_histogram: tuple[int, ...] = ()
    unigram_entropy: float | None = None
    unigram_counts: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text, path):
        """The card of a JSON text (str or bytes) that was read from `path`.

        Raises `InputError` for a text that is not a complete card of this format version.
        """
        try:
            card = parse_json(text)
        except NotJson as error:
            raise InputError(f"Could not read the dataset card {path}: {error}.") from None
        if not isinstance(card, dict) or "format_version" not in card:
            raise InputError(f"{path} is not a dataset card: it has no format_version.")
        if card["format_version"] != FORMAT_VERSION:
            raise InputError(
                f"{path} has format version {card['format_version']}, but this version of "
                f"keras-bert reads {FORMAT_VERSION}. Make the data again, or use the version of "
                "keras-bert that made it."
            )
        missing = [
            field.name
            for field in dataclasses.fields(cls)
            if dataclasses.MISSING is field.default is field.default_factory
            and field.name not in card
        ]
        if missing:
            raise InputError(f"{path} is an incomplete dataset card: it has no {listed(missing)}.")
        try:
            return cls(**_checked(cls, _entries_of(cls, card) | _typed(card)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = str(error).rstrip(".")
            raise InputError(f"{path} is an incomplete dataset card: {reason}.") from None

    def to_dict(self):
        """The card as JSON values."""
        return {
            "format_version": FORMAT_VERSION,
            **vars(self),
            "input": list(self.input),
            "vocabulary": vars(self.vocabulary),
            "special_tokens": self.special_tokens.to_dict(),
            "template": self.template.to_dict(),
            "settings": dict(vars(self.settings)),
            "splits": {name: split.to_counts() for name, split in self.splits.items()},
            "length_histogram": list(self.length_histogram),
            "unigram_counts": list(self.unigram_counts),
        }

    def to_json(self):
        """The text of `dataset_card.json`."""
        return escaped(json.dumps(self.to_dict(), ensure_ascii=False, indent=1)) + "\n"

    @property
    def described(self):
        """The examples in one line."""
        train, held_out = (self.splits[name] for name in SPLITS)
        return (
            f"{train.instances:,} training examples and {held_out.instances:,} held-out examples, "
            f"{self.objective}, {self.masking} masks, up to {self.max_length} tokens, "
            f"vocabulary of {self.vocabulary.size:,} tokens, {self._case}"
        )

    @property
    def _case(self):
        return "uncased" if self.lowercase else "cased"

    def __repr__(self):
        return f"DatasetCard({self.described})"

    def _repr_html_(self):
        entropy = self.unigram_entropy
        rows = [
            ("objective", self.objective),
            ("masks", f"{self.masking}, {self.settings.mask_unit}"),
            ("tokens per example", f"up to {self.max_length}"),
            ("predictions per example", f"up to {self.max_predictions}"),
            ("vocabulary", f"{self.vocabulary.size:,} tokens"),
            ("case", self._case),
            ("unigram entropy", "" if entropy is None else f"{entropy:.3f} nats/token"),
        ]
        for name, split in self.splits.items():
            rows.append((name, f"{counted(split.instances, 'example')}, {split.tokens:,} tokens"))
        return html_table(rows, caption=f"Examples from {listed(self.input, most=3)}")

    @property
    def spec(self):
        """The `FeatureSpec` of the examples."""
        if self.rows == "padded":
            return padded(
                objective=self.objective,
                max_length=self.max_length,
                max_predictions=self.max_predictions,
            )
        return compact(objective=self.objective, masking=self.masking)

    @property
    def has_pairs(self):
        """Whether an example has two segments, and a label of how they belong together."""
        return self.objective in PAIRED

    def most_predictions(self, lengths):
        """The maximum number of predictions by number of tokens: int (…) -> int64 (…)."""
        return most_predictions(
            lengths, rate=self.settings.masked_rate, max_predictions=self.max_predictions
        )

    def masker(self, vocabulary):
        """The `Masker` that training masks the examples with; None if they are stored masked."""
        if self.masking == "static":
            return None
        by_counts = self.settings.replacement == "unigram"
        if by_counts and len(self.unigram_counts) != len(vocabulary):
            raise InputError(
                f"The dataset card has the counts of {len(self.unigram_counts):,} tokens, and the "
                f"vocabulary has {len(vocabulary):,}. {_AGAIN}"
            )
        try:
            return Masker(
                vocabulary=vocabulary,
                unit=self.settings.mask_unit,
                rate=self.settings.masked_rate,
                max_predictions=self.max_predictions,
                unigram_counts=self.unigram_counts if by_counts else None,
            )
        except ValueError as error:
            raise InputError(f"The dataset card has no valid masks: {error}") from None

    def difference(self, other):
        """The first key that another job's card has a different value for, or None.

        Counts, the version of keras-bert and the names of the input do not matter.
        """
        mine, others = self.to_dict(), other.to_dict()
        for key in ("settings", "reading"):  # each is nested in the one above it
            for card in (mine, others):
                card |= card.pop(key) or {}
        names = (name for name in mine | others if name not in _COUNTED)
        return next((name for name in names if mine.get(name) != others.get(name)), None)


def _entries_of(cls, entries):
    """The entries for fields of a dataclass: cards of later versions may have more."""
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in entries.items() if name in names}


def _checked(cls, entries):
    """The entries for a dataclass; ValueError if one is not of its field's type, or no choice."""
    for name, hint in typing.get_type_hints(cls).items():
        value = entries.get(name)
        if name in entries and not (_is_of(value, hint) and value in _CHOICES.get(name, [value])):
            raise ValueError(f"The value of {name} is {reprlib.repr(value)}.")
    return entries


def _is_of(value, hint):
    """Whether a value is of the type of a field; numbers are finite and not negative."""
    parts = typing.get_args(hint)
    base = typing.get_origin(hint) or hint
    if base is tuple:
        return isinstance(value, tuple) and all(_is_of(part, parts[0]) for part in value)
    if parts and base is not Mapping:
        return any(_is_of(value, part) for part in parts)
    if base in (int, float):
        types = (int, float) if base is float else (int,)
        return type(value) in types and 0 <= value < _LARGEST
    if base in (Mapping, Counter) and isinstance(value, Mapping):
        inner = int if base is Counter else (parts or (str, object))[1]
        return inner is object or all(_is_of(one, inner) for one in value.values())
    return isinstance(value, base)


def _typed(card):
    special, template = card.get("special_tokens"), card.get("template")
    return {
        "input": tuple(card.get("input", ())),
        "vocabulary": _part(CardVocabulary, card["vocabulary"]),
        "special_tokens": BERT_TOKENS if special is None else SpecialTokens.from_dict(special),
        "template": BERT_TEMPLATE if template is None else Template.from_dict(template),
        "settings": _part(CardSettings, card["settings"]),
        "splits": {split: CardSplit.from_counts(card["splits"][split]) for split in SPLITS},
        "length_histogram": tuple(card.get("length_histogram", ())),
        "unigram_counts": tuple(card.get("unigram_counts", ())),
    }


def _part(cls, entries):
    return cls(**_checked(cls, _entries_of(cls, entries)))


class DataFolder:
    """A finished folder of pre-training examples; use `DataFolder.open`.

    Attributes:
        path: the folder.
        card: its `DatasetCard`.
        spec: the `FeatureSpec` of the examples.
    """

    def __init__(self, *, path, card):
        self.path = path
        self.card = card
        self.spec = card.spec

    def __repr__(self):
        return f"DataFolder({self.path}: {self.card.described})"

    def _repr_html_(self):
        return self.card._repr_html_()

    @classmethod
    def open(cls, path):
        """Opens the folder `path` (local or of any file system that `tf.io.gfile` reads).

        Raises `InputError` if there is no folder, no COMPLETED in it (the job did not finish),
        no card that can be read, or a card of a later format.
        """
        path = str(path)
        if not _gfile().isdir(path):
            raise InputError(
                f"There is no data folder {path}. Make one with keras-bert pretraining-data."
            )
        if not _gfile().exists(_join(path, COMPLETED)):
            raise InputError(
                f"{path} has no file {COMPLETED}: its job did not finish, or it is not a folder "
                f"that keras-bert pretraining-data wrote. {_AGAIN}"
            )
        card = _join(path, CARD)
        return cls(path=path, card=DatasetCard.parse(_read(card), card))

    @property
    def compression(self):
        """The `compression_type` for `tf.data.TFRecordDataset`: "" or "GZIP"."""
        return "GZIP" if self.card.compression == "gzip" else ""

    def shards(self, split):
        """The paths of a split's shards ("train" or "eval") in order.

        Raises `InputError` if a shard of the card is missing, or is a pipe or a device.
        """
        if split not in SPLITS:
            raise ValueError(f"`split` must be one of {SPLITS}. Received: {split!r}.")
        count, paths = self.card.splits[split].shards, []
        for index in range(count):
            name = shard_name(split, index, count, self.card.compression)
            paths.append(_join(self.path, name))
            if not _gfile().exists(paths[-1]):
                raise InputError(
                    f"{paths[-1]} is missing: {_join(self.path, CARD)} counts {count} shards of "
                    f"the {split} split. {_AGAIN}"
                )
            _check_file(paths[-1])
        return paths

    def vocabulary(self):
        """The `Vocabulary` that made the examples: the folder has a copy."""
        contents = {
            name: _read(_join(self.path, name))
            for name in VOCABULARY_FILES
            if _gfile().exists(_join(self.path, name))
        }
        if not contents:
            raise InputError(f"{self.path} has no vocabulary. {_AGAIN}")
        return parse_vocabulary(contents, folder=self.path, special_tokens=self.card.special_tokens)

    def check_vocabulary(self, vocabulary):
        """Raises `InputError` unless the examples were made with this vocabulary."""
        expected = self.card.vocabulary
        if expected.sha256 != vocabulary.sha256:
            raise InputError(
                f"The examples of {self.path} were made with another vocabulary ({expected.size} "
                f"tokens, sha256 {expected.sha256[:12]}…) than the one received "
                f"({len(vocabulary)} tokens, sha256 {vocabulary.sha256[:12]}…). Use the vocabulary "
                "that made the examples, or make them again with this one."
            )


def _read(path):
    if not _gfile().exists(path):
        raise InputError(f"There is no {path}. {_AGAIN}")
    _check_file(path)
    with _gfile().GFile(path, "rb") as file:
        return file.read()


def _check_file(path):
    check_regular(path)
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder. A file was expected.")


def _gfile():
    # The jobs name the files of a folder without loading TensorFlow, which reads them.
    import tensorflow as tf

    return tf.io.gfile


def _join(folder, name):
    # os.path.join would put a backslash into gs:// paths on Windows.
    return f"{folder.rstrip('/')}/{name}"
