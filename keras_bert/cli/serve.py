"""Serve exported models over TensorFlow Serving's REST and gRPC, for development.

keras-bert serve --models savedmodels/spam
keras-bert serve --models savedmodels --attention runs/pretrain --rest-port 8080

One process on this machine alone, unless --host says otherwise; production is TensorFlow Serving's,
which takes the same folders. A new version folder answers as soon as it is there. On the address of
REST there is also a page to try the models.
"""

from keras_bert.cli import flags

SUMMARY = "serve exported models for development, with a page to try them"


def add_arguments(parser, argv):
    from keras_bert.serving.settings import ServeSettings

    flags.add(parser, ServeSettings)


def run(arguments):
    settings = flags.read(arguments)
    from keras_bert.serving.serve import lay_kernels_out_once, serve

    lay_kernels_out_once(settings["models"])
    serve(**settings, report=_say)


def _say(line):
    print(line, flush=True)
