"""Give every word and every text of a file its vector in context.

keras-bert embed --model FOLDER --data texts.txt --output embeddings.parquet
keras-bert embed --model FOLDER --data texts.txt --output vectors.npz --layers concat-last-4

For each text: its tokens with their places (characters of the text) and vectors, the vector of
[CLS], and the mean over the text. Texts of any length are read whole.
"""

import argparse

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.cli import flags
from keras_bert.cli.report import one_liner, report

SUMMARY = "write contextual embeddings of words and texts"


def add_arguments(parser, argv):
    from keras_bert.inference.settings import EmbedToFileSettings

    flags.add(parser, EmbedToFileSettings)
    parser.add_argument("--text", dest="former_text", help=argparse.SUPPRESS)


def run(arguments):
    if arguments.former_text is not None:
        raise InputError("--text is called --data now: a file of texts.")
    settings = flags.read(arguments)
    from keras_bert.inference.embed_to_file import embed_to_file

    counts = embed_to_file(**settings, progress=True, report=report)
    output = settings["output"]
    print(
        f"{output}: {counted(counts['texts'], 'text')}, {counted(counts['tokens'], 'token')}, "
        f"vectors of {counts['width']} numbers."
    )
    program = 'import numpy; print(numpy.load({})["vectors"])'
    if output.endswith(".parquet"):
        program = "import pyarrow.parquet as p; print(p.read_table({}).slice(0, 1))"
    print(f"Next: {one_liner(program, output)}")
