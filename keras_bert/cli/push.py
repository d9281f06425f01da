"""Publish a model on the Hugging Face hub, with its model card.

keras-bert push --model runs/spam --to owner/name
keras-bert push --model runs/spam --to owner/name --private --revision epoch-3

Log in once with `hf auth login`. What a run wrote about itself (README.md beside the model) is the
card; edit it before, if you like.
"""

from keras_bert.cli import flags

SUMMARY = "publish a model on the Hugging Face hub"


def add_arguments(parser, argv):
    from keras_bert.checkpoints.settings import PushSettings

    flags.add(parser, PushSettings)


def run(arguments):
    settings = flags.read(arguments)
    from keras_bert.export.push import push

    print(f"Pushed: {push(**settings)}")
    at = f"@{arguments.revision}" if "revision" in settings else ""
    name = settings["to"].removeprefix("hf://")
    print(f"Next: keras-bert embed --model hf://{name}{at} --data FILE --output vectors.npz")
