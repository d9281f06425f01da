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


def tensor(values, spec):
    """A list of any depth, as the signature wants it; one without any element, too."""
    if not len(values):
        return tf.zeros([0] * len(spec.shape), spec.dtype)
    return tf.constant(values, spec.dtype)


def ask(signature, request):
    _, specs = signature.structured_input_signature
    try:
        found = signature(**{name: tensor(request[name], spec) for name, spec in specs.items()})
    except tf.errors.InvalidArgumentError as error:
        return str(error)
    return {name: np.asarray(values) for name, values in found.items()}


def operations(model):
    """The names of all operations in the graphs of a model's signatures."""
    graphs = [signature.graph.as_graph_def() for signature in model.signatures.values()]
    nodes = [node for graph in graphs for node in graph.node]
    functions = [function for graph in graphs for function in graph.library.function]
    nodes += [node for function in functions for node in function.node_def]
    return {node.op for node in nodes} - {function.signature.name for function in functions}


def main():
    models, asked, answered = map(Path, sys.argv[1:])
    found = {}
    for name, signatures in pickle.loads(asked.read_bytes()).items():
        model = tf.saved_model.load(str(models / name / "1"))
        answers = {
            signature: [ask(model.signatures[signature], request) for request in requests]
            for signature, requests in signatures.items()
        }
        found[name] = {"answers": answers, "operations": operations(model)}
    loaded = {name.split(".")[0] for name in sys.modules}
    answered.write_bytes(pickle.dumps((found, loaded, tf.__version__)))


if __name__ == "__main__":
    main()
