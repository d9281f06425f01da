"""Ask a model that is served, over REST or gRPC: one JSON line an example, in order.

keras-bert ask http://127.0.0.1:8501 --model spam --text "Win cash prizes"
keras-bert ask grpc://127.0.0.1:8500 --model qa --data questions.jsonl
keras-bert ask http://127.0.0.1:8501 --model spam --metadata

The server is TensorFlow Serving or keras-bert serve.
"""

from keras_bert.base.errors import InputError
from keras_bert.cli import flags

SUMMARY = "ask a model that is served"


def add_arguments(parser, argv):
    from keras_bert.serving.settings import ask_settings

    flags.add(parser, ask_settings())


def run(arguments):
    import json

    settings = flags.read(arguments)
    from keras_bert.serving.ask import ask

    for answer in ask(**settings):
        try:
            line = json.dumps(answer, ensure_ascii=False)
        except RecursionError:
            raise InputError("The answer of the server is nested too deep to be printed.") from None
        # Half of a surrogate pair has no UTF-8; in JSON it is written as \ud800.
        print(line.encode("utf-8", "backslashreplace").decode("utf-8"), flush=True)
