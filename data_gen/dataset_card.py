"""The dataset card of a job, from what was counted: a file, and a picture of one page."""

import dataclasses
import functools
from collections import Counter
from importlib.util import find_spec

import apache_beam as beam
import numpy as np

from data_gen.data_folder import PICTURE
from data_gen.files import new_file
from data_gen.output_folder import check_owner, owner_of
from data_gen.settings import dropped_documents
from data_gen.text_files import skipped_lines
from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent
from keras_bert.base.version import __version__
from keras_bert.records.folder import (
    CARD,
    SETTING_OF_KEY,
    SPLITS,
    CardSettings,
    CardSplit,
    CardVocabulary,
    DatasetCard,
)


@dataclasses.dataclass
class Statistics:
    """Counts of what a part of a job has read and written.

    `counters` maps names to numbers; those of a split are `SPLIT/NAME`. `lengths` (S + 1,) counts
    the train split's examples by their tokens; `unigrams` (V,) the tokens of its text, each text
    once; both are None if there are none. `shards` maps (split, index) to the number of examples
    in a shard.
    """

    counters: Counter = dataclasses.field(default_factory=Counter)
    lengths: np.ndarray | None = None
    unigrams: np.ndarray | None = None
    shards: dict = dataclasses.field(default_factory=dict)

    def add(self, other):
        """Adds another part."""
        self.counters.update(other.counters)
        for name in ("lengths", "unigrams"):
            mine, others = getattr(self, name), getattr(other, name)
            if others is not None:
                setattr(self, name, others if mine is None else mine + others)
        self.shards |= other.shards


def add_statistics(parts):
    """The sum of `Statistics`."""
    total = Statistics()
    for part in parts:
        total.add(part)
    return total


class WriteCard(beam.DoFn):
    """Takes the `Statistics` of a whole job, writes the card into its output, yields it."""

    def __init__(self, job):
        super().__init__()
        self._job = job
        self._owner = owner_of(job.output)

    def process(self, statistics):
        card = make_card(statistics, job=self._job)
        if not card.splits["train"].instances:
            raise InputError(
                f"{' '.join(self._job.input)} has no text for an example. "
                f"{_why_nothing_is_left(card.counters)}"
            )
        with new_file(f"{self._job.output}/{CARD}") as file:
            file.write_text(card.to_json(), encoding="utf-8")
            check_owner(self._job.output, self._owner)
        yield card


def _why_nothing_is_left(counters):
    left_out = [
        f"{counted(number, noun)} ({reason})"
        for noun, numbers in (
            ("line", skipped_lines(counters)),
            ("document", dropped_documents(counters)),
        )
        for reason, number in numbers.items()
    ]
    if left_out:
        return f"Left out: {', '.join(left_out)}."
    return "Found only white space, or sentences that are too short for a second part."


def make_card(statistics, *, job):
    """The `DatasetCard` of a job and its `Statistics`."""
    vocabulary, lengths, unigrams = job.vocabulary, statistics.lengths, statistics.unigrams
    if unigrams is None:
        unigrams = np.zeros(len(vocabulary), np.int64)
    if lengths is None:
        lengths = np.zeros(job.max_length + 1, np.int64)
    counters, splits = {}, {split: Counter() for split in SPLITS}
    for name, value in sorted(statistics.counters.items()):
        split, _, counter = name.rpartition("/")
        (splits[split] if split else counters)[counter] = int(value)
    for (split, _), number in sorted(statistics.shards.items()):
        splits[split].setdefault("shard_instances", []).append(number)
    settings = {field.name for field in dataclasses.fields(CardSettings)} - {"reading"}
    same = ("objective", "masking", "compression", "max_length", "max_predictions", "seed")
    return DatasetCard(
        made_by=f"keras-bert-toolkit {__version__}",
        input=tuple(job.input),
        **{name: getattr(job, name) for name in (*same, "lowercase", "template")},
        rows="padded" if job.pad else "compact",
        vocabulary=CardVocabulary(sha256=vocabulary.sha256, size=len(vocabulary)),
        special_tokens=vocabulary.special_tokens,
        settings=CardSettings(
            **{name: getattr(job, SETTING_OF_KEY.get(name, name)) for name in settings},
            reading=dataclasses.asdict(job.reading),
        ),
        splits={split: CardSplit.from_counts(counts) for split, counts in splits.items()},
        counters=counters,
        length_histogram=tuple(lengths.tolist()),
        unigram_entropy=unigram_entropy(unigrams, vocabulary.special_ids),
        unigram_counts=tuple(unigrams.tolist()),
    )


def unigram_entropy(counts, special_ids):
    """The entropy of the ordinary tokens in nats/token, from the counts (V,) of all tokens.

    It is the loss of the unigram baseline, which predicts every token by its frequency.
    """
    counts = np.array(counts, np.float64)
    counts[special_ids] = 0
    fractions = counts[counts > 0] / max(counts.sum(), 1)
    return float((fractions * -np.log(fractions)).sum())


_COLOUR = "#0072b2"
_MOST_TOKENS = 30


def load_matplotlib():
    """Imports what `draw_card` needs, if it is installed: half the time that drawing takes."""
    if find_spec("matplotlib") is not None:
        import matplotlib.backends.backend_agg
        import matplotlib.figure  # noqa: F401


def draw_card(card, vocabulary, folder):
    """Draws `dataset_card.png` into an `OutputFolder`, if matplotlib is installed.

    Shows the lengths of the examples, how full they are, the masked tokens per example, the most
    frequent tokens and the fraction of [UNK]. Returns whether it was drawn.
    """
    if find_spec("matplotlib") is None:
        return False
    # Not pyplot: it keeps figures for the whole process, and needs a display.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7.5), layout="constrained")
    lengths, tokens = figure.subplots(2, 1)
    _draw_lengths(lengths, card)
    _draw_tokens(tokens, card, vocabulary)
    for axes in (lengths, tokens):
        # As keras_bert.pictures, which a job does not import.
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e5e7eb", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(length=0, labelsize=9)
    heading, *facts = _facts(card)
    figure.suptitle(heading, fontsize=11, x=0.01, ha="left")
    lengths.set_title("\n".join(facts), fontsize=9, loc="left")
    with new_file(folder.file(PICTURE)) as file:
        figure.savefig(file, dpi=120, metadata={"Software": None})
    return True


def _facts(card):
    train = card.splits["train"]
    examples = max(1, train.instances)
    yield (
        f"{card.objective}: {card.masking} masks by {card.settings.mask_unit}, "
        f"up to {card.max_length} tokens per example"
    )
    for name, split in card.splits.items():
        yield (
            f"{name}: {counted(split.instances, 'example')}, {counted(split.tokens, 'token')}, "
            f"{counted(split.shards, 'shard')}"
        )
    facts = [f"examples are {percent(train.tokens / (examples * card.max_length))} full"]
    if "predictions" in train.counters:
        masked = train.counters["predictions"] / examples
        facts.append(f"{masked:.1f} masked tokens per example")
    if "random_pairs" in train.counters:
        random = train.counters["random_pairs"] / examples
        facts.append(f"{percent(random)} random second segments")
    yield ", ".join(facts)
    unknown = train.counters["unknown_tokens"] / max(1, train.counters["tokens_of_text"])
    yield (
        f"[UNK] {percent(unknown, decimals=3)} of the tokens, unigram entropy "
        f"{card.unigram_entropy:.3f} nats/token"
    )


def _draw_lengths(axes, card):
    counts = np.array(card.length_histogram)
    # One shape: a bar for each of 512 lengths takes half a second to draw.
    axes.stairs(counts, np.arange(len(counts) + 1) - 0.5, fill=True, color=_COLOUR)
    axes.set_xlim(0, len(counts))
    axes.set_xlabel("tokens per example (train)")
    axes.set_ylabel("examples (logarithmic)")
    axes.set_yscale("symlog")  # nearly all examples are full
    axes.set_ylim(0, 3 * max(1, counts.max()))  # shows the top of the highest bar


def _draw_tokens(axes, card, vocabulary):
    counts = np.array(card.unigram_counts, np.float64)
    counts[vocabulary.special_ids] = 0
    fractions = counts / max(1.0, counts.sum())
    frequent = np.argsort(-fractions, kind="stable")[:_MOST_TOKENS]
    frequent = frequent[fractions[frequent] > 0]
    axes.bar(np.arange(len(frequent)), 100 * fractions[frequent], color=_COLOUR)
    names = [_label(vocabulary.token_name(int(token))) for token in frequent]
    axes.set_xticks(np.arange(len(frequent)), names, rotation=60, ha="right")
    for label in axes.get_xticklabels():
        if not any(map(str.isalnum, label.get_text())):  # a small comma is hard to see
            label.set(fontsize=14, rotation=0, ha="center")
    axes.set_xlabel("most frequent tokens (train)")
    axes.set_ylabel("% of the tokens")


def _label(token):
    """A token as it can be drawn: characters that the font lacks by their code points."""
    drawable = _font_characters()
    shown = "".join(c if ord(c) in drawable else f"U+{ord(c):04X}" for c in token)
    return shown.replace("$", r"\$")  # which would begin a formula


@functools.cache
def _font_characters():
    from matplotlib import font_manager, ft2font

    path = font_manager.findfont(font_manager.FontProperties())
    return frozenset(ft2font.FT2Font(path).get_charmap())
