"""The whole way on the samples that come with the package, in a few minutes.

Python's own manual and docstrings become a vocabulary and pre-training records, on which a small
BERT is pre-trained. Taggers show what that is worth: they are fine-tuned on a few tagged sentences,
from it and from random weights. A spam filter is fine-tuned, exported, and asked. Each step shows
the command that does the same on your own text.
"""

import shlex

from keras_bert.base.formatting import percent
from keras_bert.cli import flags
from keras_bert.cli.report import console

SUMMARY = "go the whole way on the samples that come with the package"


def add_arguments(parser, argv):
    from keras_bert.samples.quickstart import QuickstartSettings

    flags.add(parser, QuickstartSettings)


def run(arguments):
    settings = flags.read(arguments)
    from keras_bert.samples.quickstart import quickstart

    terminal = console()

    def report(line):
        command = line.lstrip().startswith("$ ")
        terminal.print(line, style="dim" if command else None, soft_wrap=True)

    results = quickstart(**settings, report=report)
    terminal.print(_table(results))
    ask = shlex.quote(f"{arguments.output}/ask.py")
    print(f'Next: python {ask} {shlex.quote(str(results["savedmodel"]))} "your own message"')


def _table(results):
    from rich.table import Table

    loss, spam = results["masked_lm"], results["spam"]
    table = Table(title="Quickstart", title_justify="left")
    table.add_column("what")
    table.add_column("metric", justify="right")
    table.add_row("masked-token loss on held-out text, at start (nats)", f"{loss['start']:.2f}")
    table.add_row("… of a model that knows word frequencies only", f"{loss['unigram_entropy']:.2f}")
    table.add_row("… at the end", f"{loss['end']:.2f}")
    table.add_row("… at the end, on the text trained on", f"{loss['end_on_train']:.2f}")
    for tags in results["tags"]:
        table.add_section()
        table.add_row(
            f"words tagged right, after {tags['sentences']} sentences, pre-trained",
            percent(tags["pretrained"]),
        )
        table.add_row("… from random weights", percent(tags["random"]))
    table.add_section()
    table.add_row(f"spam or not, of {spam['examples']} unseen messages", percent(spam["accuracy"]))
    for answer in results["answers"]:
        table.add_row(f"… {answer['text']}", f"{answer['label']} ({answer['score']:.2f})")
    table.add_section()
    for step, seconds in results["seconds"].items():
        table.add_row(step, f"{seconds:.1f} s")
    table.add_row("all together", f"{results['total_seconds']:.1f} s")
    return table
