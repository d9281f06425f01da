"""The dataset card of a job, from what was counted: a file, and a picture of one page."""

import dataclasses
import functools
from collections import Counter
from importlib.util import find_spec

import apache_beam as beam
import numpy as np

import keras_bert
from data_gen.files import new_file
from data_gen.output_folder import PICTURE
from data_gen.reading import dropped_documents
from data_gen.text_files import skipped_lines
from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent
from keras_bert.records.folder import (
    CARD,
    SETTING_OF_KEY,
    SPLITS,
    CardSettings,
    CardSplit,
    CardVocabulary,
    DatasetCard,
)


class WriteCard(beam.DoFn):
    """Takes the `Statistics` of a whole job, writes the card into its output, yields it."""

    def __init__(self, settings, input):
        super().__init__()
        self._settings = settings
        self._input = input

    def process(self, statistics):
        card = make_card(statistics, settings=self._settings, input=self._input)
        if not card.splits["train"].instances:
            raise InputError(
                f"there is no text in {' '.join(self._input)} to make a row of: "
                f"{_why_nothing_is_left(card.counters)}"
            )
        with new_file(f"{self._settings.output}/{CARD}") as file:
            file.write_text(card.to_json(), encoding="utf-8")
        yield card


def _why_nothing_is_left(counters):
    """What became of a text of which there are no rows."""
    left_out = [
        f"{counted(number, what)} ({reason})"
        for what, found in (
            ("line", skipped_lines(counters)),
            ("document", dropped_documents(counters)),
        )
        for reason, number in found.items()
    ]
    if left_out:
        return f"left out were {', '.join(left_out)}"
    return "nothing but white space, or sentences too short to have a second part"


def make_card(statistics, *, settings, input):
    """The `DatasetCard` of a job. Counters of a split lie under its name."""
    vocabulary = settings.vocabulary
    lengths = statistics.lengths
    unigrams = statistics.unigrams
    if unigrams is None:
        unigrams = np.zeros(len(vocabulary), np.int64)
    if lengths is None:
        lengths = np.zeros(settings.max_length + 1, np.int64)
    counters, counters_of = {}, {split: Counter() for split in SPLITS}
    for name, value in sorted(statistics.counters.items()):
        split, _, counter = name.rpartition("/")
        (counters_of[split] if split else counters)[counter] = int(value)
    return DatasetCard(
        made_by=f"keras-bert-toolkit {keras_bert.__version__}",
        input=tuple(input),
        objective=settings.objective,
        masking=settings.masking,
        rows="padded" if settings.pad else "compact",
        compression=settings.compression,
        max_length=settings.max_length,
        max_predictions=settings.max_predictions,
        seed=settings.seed,
        lowercase=settings.lowercase,
        vocabulary=CardVocabulary(sha256=vocabulary.sha256, size=len(vocabulary)),
        special_tokens=vocabulary.special_tokens,
        template=settings.template,
        settings=_settings(settings),
        splits={split: _split(split, counters_of[split], statistics.shards) for split in SPLITS},
        counters=counters,
        length_histogram=tuple(lengths.tolist()),
        unigram_entropy=unigram_entropy(unigrams, vocabulary.special_ids),
        unigram_counts=tuple(unigrams.tolist()),
    )


def _settings(settings):
    names = {field.name for field in dataclasses.fields(CardSettings)} - {"reading"}
    return CardSettings(
        **{name: getattr(settings, SETTING_OF_KEY.get(name, name)) for name in names},
        reading=dataclasses.asdict(settings.reading),
    )


def _split(split, counters, shards):
    """A split of its counters and of the rows of every (split, index) of a shard."""
    rows = tuple(rows for (of, _), rows in sorted(shards.items()) if of == split)
    return CardSplit.from_counts({**counters, "shard_instances": rows})


def unigram_entropy(counts, special_ids):
    """The entropy of the ordinary tokens in nats a token, from the counts (V,) of all pieces.

    A model that knows how frequent each piece is, and nothing of what stands around it, has this
    loss.
    """
    counts = np.array(counts, np.float64)
    counts[special_ids] = 0
    fractions = counts[counts > 0] / max(counts.sum(), 1)
    return float((fractions * -np.log(fractions)).sum())


_COLOUR = "#2a6f97"
_FREQUENT = 30


def load_matplotlib():
    """Imports what `draw_card` needs, where it is installed: half the time that drawing takes."""
    if find_spec("matplotlib") is not None:
        import matplotlib.backends.backend_agg
        import matplotlib.figure  # noqa: F401


def draw_card(card, vocabulary, folder):
    """Draws `dataset_card.png` into an `OutputFolder`, where matplotlib is installed.

    Shows the lengths of the rows, how full they are, the masked tokens a row, the most frequent
    pieces and the share of [UNK]. Returns whether it was drawn.
    """
    if find_spec("matplotlib") is None:
        return False
    # Not pyplot: it holds figures for the whole process, and looks for a screen.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7.5), layout="constrained")
    lengths, tokens = figure.subplots(2, 1)
    _draw_lengths(lengths, card)
    _draw_tokens(tokens, card, vocabulary)
    heading, *facts = _facts(card)
    figure.suptitle(heading, fontsize=13, fontweight="bold", x=0.01, ha="left")
    lengths.set_title("\n".join(facts), fontsize=10, loc="left")
    with new_file(folder.file(PICTURE)) as file:
        figure.savefig(file, dpi=120, metadata={"Software": None})
    return True


def _facts(card):
    train = card.splits["train"]
    rows = max(1, train.instances)
    fill = train.tokens / (rows * card.max_length)
    yield (
        f"{card.objective}: {card.masking} masks by {card.settings.mask_unit}, "
        f"rows of at most {card.max_length} tokens"
    )
    for name, split in card.splits.items():
        yield (
            f"{name}: {counted(split.instances, 'row')}, {counted(split.tokens, 'token')}, "
            f"{counted(split.shards, 'shard')}"
        )
    facts = [f"rows are {percent(fill)} full"]
    if "predictions" in train.counters:
        facts.append(f"{train.counters['predictions'] / rows:.1f} masked tokens a row")
    if "random_pairs" in train.counters:
        facts.append(f"{percent(train.counters['random_pairs'] / rows)} random second segments")
    yield ", ".join(facts)
    unknown = train.counters["unknown_tokens"] / max(1, train.counters["tokens_of_text"])
    yield (
        f"[UNK] {percent(unknown, decimals=3)} of the tokens, unigram entropy "
        f"{card.unigram_entropy:.3f} nats a token"
    )


def _draw_lengths(axes, card):
    counts = np.array(card.length_histogram)
    # One shape: a bar for each of 512 lengths takes half a second to draw.
    axes.stairs(counts, np.arange(len(counts) + 1) - 0.5, fill=True, color=_COLOUR)
    axes.set_xlim(0, len(counts))
    axes.set_xlabel("tokens in a row (train)")
    axes.set_ylabel("rows (logarithmic)")
    axes.set_yscale("symlog")  # nearly all rows are full
    axes.set_ylim(0, 3 * max(1, counts.max()))  # so that the end of the highest bar is seen
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)


def _draw_tokens(axes, card, vocabulary):
    counts = np.array(card.unigram_counts, np.float64)
    counts[vocabulary.special_ids] = 0
    fractions = counts / max(1.0, counts.sum())
    frequent = np.argsort(-fractions, kind="stable")[:_FREQUENT]
    frequent = frequent[fractions[frequent] > 0]
    axes.bar(np.arange(len(frequent)), 100 * fractions[frequent], color=_COLOUR)
    names = [_label(vocabulary.token_name(int(token))) for token in frequent]
    axes.set_xticks(np.arange(len(frequent)), names, rotation=60, ha="right")
    for label in axes.get_xticklabels():
        if not any(map(str.isalnum, label.get_text())):  # a comma is hard to tell from a speck
            label.set(fontsize=16, fontweight="bold", rotation=0, ha="center")
    axes.set_xlabel("the most frequent pieces (train)")
    axes.set_ylabel("% of the tokens")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)


def _label(token):
    """A piece as it can be drawn: characters that the font lacks by their code points."""
    known = _characters_of_the_font()
    shown = "".join(c if ord(c) in known else f"U+{ord(c):04X}" for c in token)
    return shown.replace("$", r"\$")  # which would begin a formula


@functools.cache
def _characters_of_the_font():
    from matplotlib import font_manager, ft2font

    path = font_manager.findfont(font_manager.FontProperties())
    return frozenset(ft2font.FT2Font(path).get_charmap())
