"""Learns a vocabulary from text files, and writes it: WordPiece as the file vocab.txt, byte-pair
encoding (--algorithm bpe) as a folder.

Any option of Apache Beam may follow, such as --direct_num_workers=4 to count words in four
processes, or --runner.
"""

import shlex

from keras_bert.base.formatting import counted, percent
from keras_bert.cli import flags
from keras_bert.cli.report import console, report

SUMMARY = "learn a vocabulary from text"
BEAM_OPTIONS = True


def add_arguments(parser, argv):
    from data_gen.settings import VocabularySettings

    flags.add(parser, VocabularySettings)


def run(arguments):
    flags.reject_unknown(arguments.beam_options)
    settings = flags.read(arguments)
    from data_gen.vocabulary import learn_vocabulary

    with console(stderr=True).status("Counting words and learning pieces …"):
        learned = learn_vocabulary(**settings, beam_options=arguments.beam_options, report=report)
    for reason, number in learned.skipped_lines.items():
        print(f"Skipped {counted(number, 'line')}: {reason}.")
    counts = learned.vocabulary.counts
    print(
        f"{counted(len(learned.vocabulary), 'piece')} from {counted(learned.words, 'word')} "
        f"({learned.distinct_words:,} different ones): "
        f"{counts.sum() / learned.words:.3f} pieces a word."
    )
    if unknown := counts[learned.vocabulary.unk_id]:
        print(
            f"{percent(unknown / counts.sum(), decimals=2)} of them are [UNK], for characters that "
            "have no piece: a higher --alphabet-limit gives pieces to more of them."
        )
    if len(learned.vocabulary) < settings["size"]:
        least = settings.get("min_frequency", 1)
        asked = f"{settings['size']:,} were asked for"
        if least > 1:
            print(
                f"No other piece is in the text {least:,} times, and {asked}. A lower "
                "--min-frequency gives more pieces, and so does more text."
            )
        else:
            print(f"The text gives no more than these: {asked}. More text gives more pieces.")
    words = ["--input", *settings["input"], "--vocab", settings["output"], "--output", "data"]
    if "text_field" in settings:
        words += ["--text-field", settings["text_field"]]
    words += ["--cased"] * bool(settings.get("cased"))
    print(f"Next: keras-bert pretraining-data {shlex.join(words)}")
