"""Say what a fine-tuned model makes of examples: one JSON line an example, in order.

keras-bert predict --model runs/spam --data messages.txt
tail -f messages.log | keras-bert predict --model runs/spam --data - --batch-size 1
keras-bert predict --model runs/spam --text "Win cash prizes"
keras-bert predict --model runs/mnli --glue MNLI-mm --data glue/ --output submission/

With --glue, the lines are those of the file to hand in; with --output, they are written there.
"""

import shlex

from keras_bert.base.errors import InputError
from keras_bert.cli import flags
from keras_bert.cli.kinds import kind_given
from keras_bert.cli.report import report
from keras_bert.readers.glue import glue_submission, write_submission

SUMMARY = "answer with a fine-tuned model"


def add_arguments(parser, argv):
    from keras_bert.inference.settings import predict_settings
    from keras_bert.tasks import settings_class

    flags.add(parser, predict_settings(settings_class(kind_given(argv, flag="--model"))))
    parser.add_argument(
        "--output",
        metavar="FOLDER",
        help="with --glue: the folder to write the file to hand in to, under the name that GLUE "
        "wants (default: standard output)",
    )


def run(arguments):
    import json

    settings = flags.read(arguments)
    glue = settings.get("glue")
    if arguments.output is not None and glue is None:
        raise InputError(
            "--output is for the file that is handed in to GLUE and goes with --glue; other "
            "answers are written to standard output: end the command with > FILE."
        )
    from keras_bert.inference.predict import predict

    answers = predict(**settings, report=report)
    if arguments.output is not None:
        print(f"Written: {write_submission(glue, answers, arguments.output)}")
        report("Next: the same for GLUE's other tasks; it takes a zip of all eleven files.")
        return
    lines = (json.dumps(answer, ensure_ascii=False, allow_nan=False) for answer in answers)
    if glue is not None:
        lines = glue_submission(glue, answers)
    for line in lines:
        print(line, flush=True)
    model = shlex.quote(arguments.model)
    report(f"Next: keras-bert export --model {model} --output savedmodels/NAME")
