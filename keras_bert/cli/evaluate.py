"""Measure a fine-tuned model on labelled texts; the result is JSON on standard output."""

from keras_bert.cli import flags, labelled_flags

SUMMARY = "measure a fine-tuned model on labelled texts"


def add_arguments(parser):
    labelled_flags.model(parser)
    labelled_flags.file(parser, "--data", "the labelled texts", required=True)
    labelled_flags.columns(parser)
    flags.batch_size(parser, default=32)
    labelled_flags.max_length_of_training(parser)


def run(arguments):
    import json

    from keras_bert.train.evaluate import evaluate

    measures = evaluate(
        model=arguments.model,
        data=arguments.data,
        max_length=arguments.max_length,
        batch_size=arguments.batch_size,
        text_column=arguments.text_column,
        label_column=arguments.label_column,
        header=labelled_flags.header(arguments),
        report=labelled_flags.report,
    )
    print(json.dumps(measures, indent=2, ensure_ascii=False))
    labelled_flags.report(
        f"Next: keras-bert export --model {arguments.model} --output savedmodels/NAME"
    )
