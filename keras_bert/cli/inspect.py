"""Shows rows of pre-training data as text.

Pieces are joined to words. What was masked stands in brackets behind what the model sees:
[MASK]{cat}, cat{cat} where the token was left as it is, dog{cat} where another was put in its
place. A span stands between < and >, and the tokens just outside, its boundaries, are underlined.
"""

import dataclasses

from keras_bert.base.formatting import counted, percent
from keras_bert.base.settings import Settings, setting
from keras_bert.cli import flags
from keras_bert.cli.report import console

SUMMARY = "show rows of pre-training data as text"

_COLOURS = ("cyan", "yellow")
_OUTCOMES = ("masked", "kept", "replaced")


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectSettings(Settings):
    path: str = setting(
        help="a folder that keras-bert pretraining-data made, or a shard in one",
        unit="PATH",
        positional=True,
    )
    split: str = setting("train", help="which rows to show", choices=("train", "eval"))
    count: int = setting(5, help="how many rows to show", unit="ROWS", at_least=0)
    verify: bool = setting(
        False, help="check every row of the folder against the laws that rows obey instead"
    )


def add_arguments(parser, argv):
    flags.add(parser, InspectSettings)


def run(arguments):
    settings = InspectSettings.of(flags.read(arguments))
    import shlex
    from pathlib import Path

    from keras_bert.records import DataFolder
    from keras_bert.records.inspection import SEGMENT_LABELS, read_instances

    path = Path(settings.path)
    folder = DataFolder.open(path.parent if path.is_file() else path)
    if settings.verify:
        _verify(folder)
    else:
        terminal = console()
        shards = [str(path)] if path.is_file() else folder.shards(settings.split)
        for instance in read_instances(folder, shards, count=settings.count):
            text = _as_text(instance, SEGMENT_LABELS.get(folder.card.objective))
            terminal.print(text, soft_wrap=not terminal.is_terminal)
            terminal.print()
    given = shlex.quote(folder.path)
    following = f"pretrain --data {given} --vocab {given} --architecture tiny --steps 10000"
    print(f"Next: keras-bert {following} --output pretrained")


def _as_text(instance, labels):
    """`labels` are the words for a second segment that is next, and for one that is not."""
    from rich.text import Text

    text = Text()  # without a style of its own, which all that follows would have
    text.append(f"{instance.number}", style="bold")
    if instance.is_next is not None:
        text.append(f"  {labels[0] if instance.is_next else labels[1]}", style="bold")
    text.append("\n")
    tokens = instance.tokens
    for number, token in enumerate(tokens):
        if number and token.word_start:
            text.append(" ")
        if token.span and tokens[number - 1].span != token.span:
            text.append("<", style="bold")
        style = "dim" if token.segment is None else _COLOURS[token.segment]
        if token.boundary:
            style += " underline"
        if token.original is None:
            text.append(token.text, style=style)
        else:
            text.append(f"{token.text}{{{token.original}}}", style=f"bold reverse {style}")
        # A span never ends a row: there is a [SEP].
        if token.span and tokens[number + 1].span != token.span:
            text.append(">", style="bold")
    return text


def _verify(folder):
    from keras_bert.records.inspection import SEGMENT_LABELS
    from keras_bert.records.verification import verify

    for split, counts in verify(folder).items():
        line = f"{split}: {counted(counts['rows'], 'row')}, {counted(counts['tokens'], 'token')}"
        if counts["predictions"]:
            fractions = {name: counts[name] / counts["predictions"] for name in _OUTCOMES}
            outcomes = (
                f"{name} {percent(fraction, decimals=2)}" for name, fraction in fractions.items()
            )
            line += f", {counts['predictions']:,} to predict ({', '.join(outcomes)})"
        if folder.card.has_pairs and counts["rows"]:
            not_next = SEGMENT_LABELS[folder.card.objective][1]
            fraction = percent(counts[not_next] / counts["rows"], decimals=2)
            line += f", second segment {not_next} in {fraction}"
        print(line)
    print("Every row obeys every law, and the counts are those of the dataset card.")
