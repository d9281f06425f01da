"""Convert a model between Hugging Face's folder, Google's checkpoints and keras-nlp's presets.

keras-bert convert --input uncased_L-12_H-768_A-12 --output bert-base
keras-bert convert --input bert-base --output for-google --to google

The input's format is told by what lies in it. The same weights come out under the other format's
names; what it has no place for is said.
"""

import shlex

from keras_bert.cli import flags
from keras_bert.cli.report import one_liner, report

SUMMARY = "convert a model's format"


def add_arguments(parser, argv):
    from keras_bert.checkpoints.settings import ConvertSettings

    flags.add(parser, ConvertSettings)


def run(arguments):
    import warnings

    settings = flags.read(arguments)
    from keras_bert.checkpoints.convert import convert

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        done = convert(**settings, report=report)
    notes = [str(each.message) for each in caught if issubclass(each.category, UserWarning)]
    for note in dict.fromkeys(notes):
        print(f"Note: {note}")
    for name in done["left_out"]:
        print(f"Note: {name} has no place there and was left out.")
    output = arguments.output
    print(f"{output}: {done['wrote']}, from a model in the format {done['found']}.")
    to = settings.get("to", "huggingface")
    if to == "huggingface":
        model = shlex.quote(output)
        print(f"Next: keras-bert embed --model {model} --data FILE --output vectors.npz")
    elif to == "google":
        checkpoint = shlex.quote(f"{output}/bert_model.ckpt")
        print(f"Next: --init_checkpoint={checkpoint}, in google-research/bert")
    else:
        loads = one_liner(
            "import keras_nlp; keras_nlp.models.BertBackbone.from_preset({}).summary()", output
        )
        print(f"Next: {loads}")
