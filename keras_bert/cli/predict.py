"""Say what a fine-tuned model makes of examples: one JSON line an example, in order.

keras-bert predict --model runs/spam --data messages.txt
tail -f messages.log | keras-bert predict --model runs/spam --data - --batch-size 1
keras-bert predict --model runs/spam --text "Win cash prizes"
keras-bert predict --model runs/mnli --glue MNLI-mm --data FOLDER > MNLI-mm.tsv

With --glue, the lines are those of the file to hand in.
"""

from keras_bert.cli import flags
from keras_bert.cli.kinds import kind_given
from keras_bert.cli.report import report
from keras_bert.examples.glue import glue_submission

SUMMARY = "answer with a fine-tuned model"


def add_arguments(parser, argv):
    from keras_bert.inference.settings import predict_settings
    from keras_bert.tasks import settings_class

    flags.add(parser, predict_settings(settings_class(kind_given(argv, flag="--model"))))


def run(arguments):
    import json

    settings = flags.read(arguments)
    from keras_bert.inference.predict import predict

    answers = predict(**settings, report=report)
    lines = (json.dumps(answer, ensure_ascii=False, allow_nan=False) for answer in answers)
    if settings.get("glue") is not None:
        lines = glue_submission(settings["glue"], answers)
    for line in lines:
        print(line, flush=True)
    report(f"Next: keras-bert export --model {arguments.model} --output savedmodels/NAME")
