"""Measure a fine-tuned model on labelled examples; the result is JSON on standard output.

How the file is read is told by flags of the model's kind of task.
"""

from keras_bert.cli import flags
from keras_bert.cli.kinds import kind_given
from keras_bert.cli.report import report

SUMMARY = "measure a fine-tuned model on labelled examples"


def add_arguments(parser, argv):
    from keras_bert.inference.settings import evaluate_settings
    from keras_bert.tasks import settings_class

    flags.add(parser, evaluate_settings(settings_class(kind_given(argv, flag="--model"))))


def run(arguments):
    import json

    settings = flags.read(arguments)
    from keras_bert.inference.evaluate import evaluate

    measures = evaluate(**settings, report=report)
    mistakes = measures.pop("mistakes", [])
    print(json.dumps(measures, indent=2, ensure_ascii=False, allow_nan=False))
    for mistake in mistakes:
        report(mistake)
    report(f"Next: keras-bert export --model {arguments.model} --output savedmodels/NAME")
