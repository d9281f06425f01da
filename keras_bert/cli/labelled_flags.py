"""Flags of the commands that read labelled texts, and how those commands talk to the user."""

import sys


def report(line):
    """Tells the user something beside the result, which has standard output to itself."""
    print(line, file=sys.stderr, flush=True)


def model(parser):
    parser.add_argument(
        "--model",
        required=True,
        metavar="FOLDER",
        help="a fine-tuned model folder, or the output of finetune",
    )


def file(parser, name, what, required):
    parser.add_argument(
        name,
        required=required,
        metavar="FILE",
        help=f"{what}: TSV or JSON Lines, told by content; - is standard input",
    )


def text_column(parser):
    _column(parser, "--text-column", "text")
    parser.add_argument(
        "--header",
        choices=("yes", "no"),
        help="whether the first line of a TSV names its columns (default: told by content)",
    )


def header(arguments):
    """What `--header`, or a settings file, says: True, False, or None where neither does."""
    return {"yes": True, "no": False}.get(arguments.header, arguments.header)


def columns(parser):
    text_column(parser)
    _column(parser, "--label-column", "label")


def max_length_of_training(parser):
    parser.add_argument(
        "--max-length",
        type=int,
        metavar="TOKENS",
        help="tokens that a text is cut to (default: those of training)",
    )


def _column(parser, flag, what):
    parser.add_argument(
        flag,
        metavar="NAME|NUMBER",
        help=f"the column (from 1) or key of the {what} (default: told by names and content)",
    )
