"""Measure a model; the result is JSON on standard output.

A fine-tuned model is measured on labelled examples; how the file is read is told by flags of the
model's kind of task. A pre-trained one is measured on the held-out rows of a data folder, which has
the flags --batch-size and --batches alone.

keras-bert evaluate --model runs/spam --data dev.tsv
keras-bert evaluate --model runs/mnli --glue MNLI-mm --data glue/
keras-bert evaluate --model runs/pretrained --data data/
"""

import re
import shlex

from keras_bert.cli import flags
from keras_bert.cli.kinds import kind_given, rows_given
from keras_bert.cli.report import report

SUMMARY = "measure a model on labelled examples, or on the rows of a data folder"
# Of a table, which JSON writes a number a line. No string holds the end of a line as it stands.
_ROW_OF_NUMBERS = re.compile(r"(?<=\[)\n[-+.,\d\seE]+(?=\])")


def add_arguments(parser, argv):
    from keras_bert.inference.settings import EvaluateRecordsSettings, evaluate_settings
    from keras_bert.tasks import settings_class

    if rows_given(argv):
        flags.add(parser, EvaluateRecordsSettings)
        return
    flags.add(parser, evaluate_settings(settings_class(kind_given(argv, flag="--model"))))


def run(arguments):
    import json

    settings = flags.read(arguments)
    from keras_bert.inference.evaluate import evaluate

    measures = evaluate(**settings, report=report)
    errors = measures.pop("errors", [])
    text = json.dumps(measures, indent=2, ensure_ascii=False, allow_nan=False)
    print(_ROW_OF_NUMBERS.sub(lambda found: " ".join(found[0].split()), text))
    for mistake in errors:
        report(mistake)
    model = shlex.quote(arguments.model)
    following = f"export --model {model} --output savedmodels/NAME"
    if getattr(arguments, "glue", None) is None and rows_given(["--data", arguments.data]):
        following = (
            f"finetune --task classifier --model {model} --train FILE --dev FILE --output DIR"
        )
    report(f"Next: keras-bert {following}")
