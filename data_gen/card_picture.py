"""The dataset card on one page, as a picture."""

import os
import tempfile
from importlib.util import find_spec

import numpy as np

from data_gen.output_folder import PICTURE
from data_gen.shards import put

_COLOUR = "#2a6f97"
_FREQUENT = 30


def draw_card(card, vocabulary, folder):
    """Draws `dataset_card.png` into an `OutputFolder`, where matplotlib is installed.

    Shows the lengths of the rows, how full they are, the masked tokens a row, the most frequent
    pieces and the share of [UNK]. Returns whether it was drawn.
    """
    if find_spec("matplotlib") is None:
        return False
    # Not pyplot: it holds figures for the whole process, and looks for a screen.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    lengths, pieces = figure.subplots(2, 1)
    _draw_lengths(lengths, card)
    _draw_pieces(pieces, card, vocabulary)
    figure.suptitle("\n".join(_facts(card)), fontsize=9, x=0.01, ha="left")
    with tempfile.TemporaryDirectory(prefix="keras_bert_") as place:
        local = os.path.join(place, PICTURE)
        figure.savefig(local, dpi=120, metadata={"Software": None})
        put(local, folder.file(PICTURE))
    return True


def _facts(card):
    train = card["splits"]["train"]
    rows = max(1, train["instances"])
    fill = train["tokens"] / (rows * card["max_length"])
    yield (
        f"{card['objective']}, {card['masking']} masks ({card['settings']['mask_unit']}), "
        f"rows of at most {card['max_length']} tokens"
    )
    for split, counts in card["splits"].items():
        yield (
            f"{split}: {counts['instances']:,} rows, {counts['tokens']:,} tokens, "
            f"shards: {counts['shards']:,}"
        )
    facts = [f"rows are {fill:.1%} full"]
    if "predictions" in train:
        facts.append(f"{train['predictions'] / rows:.1f} masked tokens a row")
    if "random_pairs" in train:
        facts.append(f"{train['random_pairs'] / rows:.1%} random second segments")
    unknown = train.get("unknown_tokens", 0) / max(1, train.get("tokens_of_text", 0))
    facts.append(f"[UNK] {unknown:.3%} of the tokens")
    facts.append(f"unigram entropy {card['unigram_entropy']:.3f} nats a token")
    yield ", ".join(facts)


def _draw_lengths(axes, card):
    counts = np.array(card["length_histogram"])
    axes.bar(np.arange(len(counts)), counts, width=1.0, color=_COLOUR)
    axes.set_xlim(0, len(counts))
    axes.set_xlabel("tokens in a row (train)")
    axes.set_ylabel("rows")
    axes.set_yscale("symlog")  # nearly all rows are full


def _draw_pieces(axes, card, vocabulary):
    counts = np.array(card["unigram_counts"], np.float64)
    counts[vocabulary.special_ids] = 0
    shares = counts / max(1.0, counts.sum())
    frequent = np.argsort(-shares, kind="stable")[:_FREQUENT]
    frequent = frequent[shares[frequent] > 0]
    axes.bar(np.arange(len(frequent)), 100 * shares[frequent], color=_COLOUR)
    # "$" would begin a formula.
    names = [vocabulary.piece_name(int(token)).replace("$", r"\$") for token in frequent]
    axes.set_xticks(np.arange(len(frequent)), names, rotation=60, ha="right")
    axes.set_xlabel("the most frequent pieces")
    axes.set_ylabel("% of the tokens")
