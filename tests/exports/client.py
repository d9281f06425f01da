"""Asks exported models with nothing but TensorFlow and TensorFlow Text.

`python client.py MODELS ASKED ANSWERED`: ASKED is a pickle, name of a model -> what is asked -> its
signature and a list of requests, each a dictionary of lists; ANSWERED becomes one with a dictionary
of arrays for each, or the text of the error. Nothing of ours can be found here.
"""

import pickle
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401 registers the tokenizers' operations

OURS = ("keras_bert", "data_gen", "keras_hub", "keras_nlp")


def hide_ours():
    """From here on an import of any of them fails, wherever they are installed."""
    assert not {*OURS} & {*sys.modules}
    sys.modules.update(dict.fromkeys(OURS))


def tensor(content, info):
    """A list of any depth, as the signature wants it; one without any element, too."""
    array = np.array(content, tf.as_dtype(info.dtype).as_numpy_dtype)
    missing = len(info.tensor_shape.dim) - array.ndim
    return array.reshape([*array.shape, *[0] * missing])


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
    hide_ours()
    results = {}
    for name, parts in pickle.loads(asked.read_bytes()).items():
        with tf.compat.v1.Session(graph=tf.Graph()) as session:  # as TensorFlow Serving has it
            model = tf.compat.v1.saved_model.loader.load(
                session, ["serve"], str(models / name / "1")
            )
            answers = {
                part: [ask(session, model.signature_def[signature], one) for one in requests]
                for part, (signature, requests) in parts.items()
            }
        results[name] = {"answers": answers, "operations": operations(model.graph_def)}
    answered.write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main()
