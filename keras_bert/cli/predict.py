"""Say what a fine-tuned model makes of texts: one JSON line a text, in order.

keras-bert predict --model runs/spam --data messages.txt
tail -f messages.log | keras-bert predict --model runs/spam --data - --batch-size 1
keras-bert predict --model runs/spam --text "Win cash prizes"
"""

from keras_bert.cli import flags, labelled_flags

SUMMARY = "label texts with a fine-tuned model"


def add_arguments(parser):
    labelled_flags.model(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--data",
        metavar="FILE",
        help="one text a line, TSV or JSON Lines, told by content; - is standard input",
    )
    source.add_argument(
        "--text", action="append", metavar="TEXT", help="a text; may be given several times"
    )
    labelled_flags.text_column(parser)
    flags.batch_size(parser, default=32)
    labelled_flags.max_length_of_training(parser)


def run(arguments):
    import json

    from keras_bert.train.predict import predict

    answers = predict(
        model=arguments.model,
        data=arguments.data,
        text=arguments.text,
        max_length=arguments.max_length,
        batch_size=arguments.batch_size,
        text_column=arguments.text_column,
        header=labelled_flags.header(arguments),
        report=labelled_flags.report,
    )
    for answer in answers:
        print(json.dumps(answer, ensure_ascii=False), flush=True)
    labelled_flags.report(
        f"Next: keras-bert export --model {arguments.model} --output savedmodels/NAME"
    )
