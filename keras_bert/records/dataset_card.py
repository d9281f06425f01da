"""The dataset card: what the rows of a data folder are, how they were made, and what is in them."""

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping

from keras_bert.base.errors import InputError
from keras_bert.base.files import NotJson, parse_json
from keras_bert.base.formatting import html_table, listed
from keras_bert.base.objectives import PAIRED
from keras_bert.records.masking import Masker, most_predictions
from keras_bert.records.specs import compact, padded
from keras_bert.text.template import BERT_TEMPLATE, Template
from keras_bert.text.vocabulary import BERT_TOKENS, SpecialTokens

FORMAT_VERSION = 1
SPLITS = ("train", "eval")

_REQUIRED = (
    "objective", "masking", "rows", "max_length", "max_predictions", "seed", "lowercase",
    "vocabulary", "settings", "splits",
)  # fmt: skip

# The settings that a card keeps under other keys.
SETTING_OF_KEY = {
    "masked_rate": "mlm_probability",
    "short_rate": "short_seq_prob",
    "item_bytes": "shard_bytes",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CardVocabulary:
    """Which vocabulary made the rows: the hash of its pieces, and how many there are."""

    sha256: str
    size: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class CardSettings:
    """The settings of the job as `make_pretraining_data` takes them; None: the card is silent.

    Three have other names there, see `SETTING_OF_KEY`.
    `replacement_counts` says whose counts the replacements of static masks follow: "vocabulary",
    "text" or None. `reading` are the settings of what of the input is read.
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
    """What a split holds: shards, rows (`instances`; of each shard, `shard_instances`), tokens.

    `counters` has all else that was counted, by name: `predictions`, `random_pairs` or
    `swapped_pairs`, `documents`, `bytes` … What was not counted is 0.
    """

    shards: int
    instances: int
    tokens: int
    shard_instances: tuple[int, ...]
    counters: Counter

    @classmethod
    def from_counts(cls, counts):
        """A split of the flat mapping name -> number that stands in the JSON."""
        counters = dict(counts)
        return cls(
            shards=counters.pop("shards", 0),
            instances=counters.pop("instances", 0),
            tokens=counters.pop("tokens", 0),
            shard_instances=tuple(counters.pop("shard_instances", ())),
            counters=Counter(counters),
        )

    def to_counts(self):
        """The inverse of `from_counts`."""
        return {
            "shards": self.shards,
            "instances": self.instances,
            "tokens": self.tokens,
            "shard_instances": list(self.shard_instances),
            **self.counters,
        }


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class DatasetCard:
    """A dataset card; its fields are those of `dataset_card.json`, in their order there.

    `objective` also says what `next_sentence_labels` tells ("mlm-nsp": whether the second segment
    is random; "mlm-sop": whether the two were swapped). `rows` is the kind of the `FeatureSpec`,
    "compact" or "padded"; `compression` is None or "gzip". `special_tokens` and `template`
    are those of the rows: BERT's, where an older card has none.
    `length_histogram` (S + 1,) counts the train split's rows by their tokens. `unigram_counts`
    (V,) counts the pieces of the train split's text, each text once, and `unigram_entropy` is that
    of its ordinary tokens, in nats a token: the loss of a model that knows nothing else.
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
        """The card of a JSON text (str or bytes) that stood at `path`.

        Raises `InputError` where it is none, of a later format, or not whole.
        """
        try:
            said = parse_json(text)
        except NotJson as error:
            raise InputError(f"{path} is not a readable dataset card: {error}") from None
        if not isinstance(said, dict) or "format_version" not in said:
            raise InputError(f"{path} is not a dataset card: it has no format_version")
        if said["format_version"] != FORMAT_VERSION:
            raise InputError(
                f"{path} has format version {said['format_version']}, and this keras-bert reads "
                f"version {FORMAT_VERSION}: make the data again, or use the keras-bert that made it"
            )
        missing = [name for name in _REQUIRED if name not in said]
        if missing:
            raise InputError(f"{path} is not a whole dataset card: it has no {listed(missing)}")
        try:
            return cls(**_known(cls, said) | _typed(said))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{path} is not a whole dataset card: {error}") from None

    def to_dict(self):
        """What JSON holds of it."""
        said = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            "format_version": FORMAT_VERSION,
            **said,
            "input": list(self.input),
            "vocabulary": dataclasses.asdict(self.vocabulary),
            "special_tokens": self.special_tokens.to_dict(),
            "template": self.template.to_dict(),
            "settings": dataclasses.asdict(self.settings),
            "splits": {name: split.to_counts() for name, split in self.splits.items()},
            "length_histogram": list(self.length_histogram),
            "unigram_counts": list(self.unigram_counts),
        }

    def to_json(self):
        """The text of `dataset_card.json`."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n"

    @property
    def described(self):
        """What the rows are, in a line, as a person reads it."""
        train, held_out = (self.splits[name] for name in SPLITS)
        case = "uncased" if self.lowercase else "cased"
        return (
            f"{train.instances:,} training rows and {held_out.instances:,} held-out rows, "
            f"{self.objective}, {self.masking} masks, up to {self.max_length} tokens, "
            f"{self.vocabulary.size:,} pieces, {case}"
        )

    def __repr__(self):
        return f"DatasetCard({self.described})"

    def _repr_html_(self):
        entropy = self.unigram_entropy
        rows = [
            ("objective", self.objective),
            ("masks", f"{self.masking}, {self.settings.mask_unit}"),
            ("tokens in a row", f"up to {self.max_length}"),
            ("predictions in a row", f"up to {self.max_predictions}"),
            ("vocabulary", f"{self.vocabulary.size:,} pieces"),
            ("case", "uncased" if self.lowercase else "cased"),
            ("unigram entropy", "" if entropy is None else f"{entropy:.3f} nats a token"),
        ]
        for name, split in self.splits.items():
            rows.append((name, f"{split.instances:,} rows, {split.tokens:,} tokens"))
        return html_table(rows, caption=f"Rows of {listed(self.input, most=3)}")

    @property
    def spec(self):
        """The `FeatureSpec` of the rows."""
        if self.rows == "padded":
            return padded(
                objective=self.objective,
                max_length=self.max_length,
                max_predictions=self.max_predictions,
            )
        return compact(objective=self.objective, masking=self.masking)

    @property
    def has_pairs(self):
        """Whether a row has two segments and a label of what the second is to the first."""
        return self.objective in PAIRED

    def most_predictions(self, lengths):
        """How many predictions rows of so many tokens have at most: int (…) -> int64 (…)."""
        return most_predictions(
            lengths, rate=self.settings.masked_rate, max_predictions=self.max_predictions
        )

    def masker(self, vocabulary):
        """The `Masker` that training masks these rows with; None where they are stored masked."""
        if self.masking == "static":
            return None
        by_counts = self.settings.replacement == "unigram"
        return Masker(
            vocabulary=vocabulary,
            unit=self.settings.mask_unit,
            rate=self.settings.masked_rate,
            max_predictions=self.max_predictions,
            unigram_counts=self.unigram_counts if by_counts else None,
        )

    def difference(self, other):
        """What another job's card says otherwise of how the rows were made: a name, or None.

        What was counted, the version that counted it, and the names of the input do not matter.
        """
        counted = {"made_by", "input", "splits", "counters"}
        counted |= {"length_histogram", "unigram_entropy", "unigram_counts"}
        mine, others = self.to_dict(), other.to_dict()
        for kind in ("settings", "reading"):  # each stands in the one above it
            for card in (mine, others):
                card |= card.pop(kind) or {}
        names = (name for name in mine | others if name not in counted)
        return next((name for name in names if mine.get(name) != others.get(name)), None)


def _known(cls, said):
    """What of a mapping are fields of a dataclass: cards of later versions may say more."""
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in said.items() if name in names}


def _typed(said):
    special, template = said.get("special_tokens"), said.get("template")
    return {
        "input": tuple(said.get("input", ())),
        "vocabulary": CardVocabulary(**_known(CardVocabulary, said["vocabulary"])),
        "special_tokens": BERT_TOKENS if special is None else SpecialTokens.from_dict(special),
        "template": BERT_TEMPLATE if template is None else Template.from_dict(template),
        "settings": CardSettings(**_known(CardSettings, said["settings"])),
        "splits": {split: CardSplit.from_counts(said["splits"][split]) for split in SPLITS},
        "length_histogram": tuple(said.get("length_histogram", ())),
        "unigram_counts": tuple(said.get("unigram_counts", ())),
    }
