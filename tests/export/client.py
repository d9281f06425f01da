"""Asks exported models with nothing but TensorFlow and TensorFlow Text.

`python client.py MODELS ASKED ANSWERED`: ASKED is a pickle, name of a model -> signature -> list of
requests, each a dictionary of lists; ANSWERED becomes one with a dictionary of arrays for each, or
the text of the error. It is run where keras_bert cannot be found.
"""

import pickle
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401 registers the tokenizers' operations


def tensor(values, info):
    """A list of any depth, as the signature wants it; one without any element, too."""
    kind = tf.as_dtype(info.dtype).as_numpy_dtype
    if not len(values):
        return np.zeros([0] * len(info.tensor_shape.dim), kind)
    return np.array(values, kind)


def ask(session, signature, request):
    fetches = {name: info.name for name, info in signature.outputs.items()}
    feeds = {info.name: tensor(request[name], info) for name, info in signature.inputs.items()}
    try:
        return session.run(fetches, feeds)
    except (ValueError, tf.errors.InvalidArgumentError) as error:
        return str(error)


def operations(graph):
    """The names of all operations in a graph and its functions."""
    functions = graph.library.function
    nodes = [*graph.node, *(node for function in functions for node in function.node_def)]
    return {node.op for node in nodes} - {function.signature.name for function in functions}


def main():
    models, asked, answered = map(Path, sys.argv[1:])
    found = {}
    for name, signatures in pickle.loads(asked.read_bytes()).items():
        with tf.compat.v1.Session(graph=tf.Graph()) as session:  # as TensorFlow Serving has it
            model = tf.compat.v1.saved_model.loader.load(
                session, ["serve"], str(models / name / "1")
            )
            answers = {
                signature: [ask(session, model.signature_def[signature], one) for one in requests]
                for signature, requests in signatures.items()
            }
        found[name] = {"answers": answers, "operations": operations(model.graph_def)}
    loaded = {name.split(".")[0] for name in sys.modules}
    answered.write_bytes(pickle.dumps((found, loaded, tf.__version__)))


if __name__ == "__main__":
    main()
