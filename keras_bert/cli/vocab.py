"""Learns a vocabulary from text files, and writes it: WordPiece as the file vocab.txt, byte-pair
encoding (--algorithm bpe) as a folder.

Any option of Apache Beam may follow, such as --direct_num_workers=4
--direct_running_mode=multi_processing to count words in four processes, or --runner.
"""

from keras_bert.cli import flags

SUMMARY = "learn a vocabulary from text"
BEAM_OPTIONS = True


def add_arguments(parser, argv):
    parser.add_argument(
        "--input",
        required=True,
        nargs="+",
        metavar="GLOB",
        help="text files, gzip too: books, one sentence a line, or JSON Lines with a text field",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="PATH",
        help="where to write the vocabulary: vocab.txt (and beside it vocab.counts.tsv, how often "
        "each piece stands in the text), or for bpe a folder",
    )
    parser.add_argument(
        "--size",
        required=True,
        type=int,
        metavar="PIECES",
        help="how many pieces to learn, the special ones counted in",
    )
    parser.add_argument(
        "--algorithm",
        choices=("wordpiece", "bpe"),
        default="wordpiece",
        help="wordpiece, as BERT has, or byte-pair encoding (default: %(default)s)",
    )
    flags.cased(parser)
    parser.add_argument(
        "--min-frequency",
        type=int,
        default=1,
        metavar="N",
        help="make no piece of what stands in the text less often (default: %(default)s)",
    )
    parser.add_argument(
        "--alphabet-limit",
        type=int,
        default=1000,
        metavar="CHARACTERS",
        help="keep so many different characters, the most frequent ones (default: %(default)s)",
    )
    parser.add_argument(
        "--unused",
        type=int,
        default=0,
        metavar="N",
        help="slots to leave for pieces that you add later, [unused0] … (default: %(default)s)",
    )
    parser.add_argument(
        "--max-words",
        type=int,
        default=1_000_000,
        metavar="N",
        help="hold so many different words in memory (default: %(default)s)",
    )
    parser.add_argument(
        "--bad-lines",
        choices=("error", "skip"),
        default="error",
        help="what to do with a line that is not UTF-8 or holds a NUL (default: %(default)s)",
    )
    flags.force(parser, help="replace the output if there is one")


def run(arguments):
    import shlex

    from rich.console import Console

    from data_gen.vocabulary import learn_vocabulary

    console = Console(highlight=False, soft_wrap=True)
    with Console(stderr=True).status("Counting words and learning pieces …"):
        learned = learn_vocabulary(
            input=arguments.input,
            output=arguments.output,
            size=arguments.size,
            algorithm=arguments.algorithm,
            lowercase=not arguments.cased,
            min_frequency=arguments.min_frequency,
            alphabet_limit=arguments.alphabet_limit,
            unused=arguments.unused,
            max_words=arguments.max_words,
            bad_lines=arguments.bad_lines,
            force=arguments.force,
            beam_options=arguments.beam_options,
        )
    for reason, number in learned.skipped_lines.items():
        console.print(f"Skipped {number:,} line{'' if number == 1 else 's'}: {reason}.")
    counts = learned.vocabulary.counts
    console.print(
        f"{len(learned.vocabulary):,} pieces from {learned.words:,} words "
        f"({learned.distinct_words:,} different ones): "
        f"{counts.sum() / learned.words:.3f} pieces a word."
    )
    if len(learned.vocabulary) < arguments.size:
        console.print(
            f"The text gives no more than these: {arguments.size:,} were asked for. "
            "More text gives more pieces."
        )
    inputs = " ".join(map(shlex.quote, arguments.input))
    console.print(
        f"Next: keras-bert pretraining-data --input {inputs} --vocab "
        f"{shlex.quote(arguments.output)} --output data{' --cased' if arguments.cased else ''}"
    )
