"""Give every word and every text of a file its vector in context.

keras-bert embed --model FOLDER --text texts.txt --output embeddings.parquet
keras-bert embed --model FOLDER --text texts.txt --output vectors.npz --layers concat-last-4

For each text: its tokens with their places (characters of the text) and vectors, the vector of
[CLS], and the mean over the text. Texts of any length are read whole.
"""

from keras_bert.cli import flags, labelled_flags

SUMMARY = "write contextual embeddings of words and texts"


def add_arguments(parser, argv):
    from keras_bert.embeddings.choices import LAYERS, TOKENS

    parser.add_argument(
        "--model", required=True, metavar="FOLDER", help="a model folder, or the output of a run"
    )
    parser.add_argument(
        "--text",
        required=True,
        metavar="FILE",
        help="one text a line, TSV or JSON Lines, told by content; - is standard input",
    )
    labelled_flags.text_column(parser)
    parser.add_argument(
        "--output", required=True, metavar="FILE", help="NAME.parquet or NAME.npz: says the format"
    )
    parser.add_argument(
        "--layers",
        choices=LAYERS,
        default="last",
        help='the layers that make a vector; "first" is the embeddings below all blocks, "sum-all" '
        "the sum of all blocks (default: %(default)s)",
    )
    parser.add_argument(
        "--tokens",
        choices=TOKENS,
        default="words-mean",
        help="what has a vector beside the text itself: words, as the mean of their pieces or by "
        "their first piece; pieces; or nothing (default: %(default)s)",
    )
    parser.add_argument(
        "--max-length",
        type=int,
        metavar="TOKENS",
        help="tokens in a row, [CLS] and [SEP] counted in; a longer text is read in rows that "
        "overlap (default: as many as the model has positions)",
    )
    flags.batch_size(parser, default=32)
    flags.force(parser, help="replace an output that this command wrote before")


def run(arguments):
    from keras_bert.embeddings.embed_to_file import embed_to_file

    counts = embed_to_file(
        model=arguments.model,
        data=arguments.text,
        output=arguments.output,
        layers=arguments.layers,
        tokens=arguments.tokens,
        max_length=arguments.max_length,
        batch_size=arguments.batch_size,
        text_column=arguments.text_column,
        header=labelled_flags.header(arguments),
        force=arguments.force,
        progress=True,
        report=labelled_flags.report,
    )
    print(
        f"{arguments.output}: {counts['texts']:,} texts, {counts['tokens']:,} tokens, vectors of "
        f"{counts['width']} numbers."
    )
    read = f'numpy; print(numpy.load("{arguments.output}")["vectors"])'
    if arguments.output.endswith(".parquet"):
        read = f'pyarrow.parquet as p; print(p.read_table("{arguments.output}").slice(0, 1))'
    print(f"Next: python -c 'import {read}'")
