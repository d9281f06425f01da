"""What TensorFlow and Beam find out again and again, found out once.

It is 8 % of the time of a run, and a part of that of a small job. Nothing that they compute depends
on it.
"""

import contextlib
import sys

import pytest


@contextlib.contextmanager
def quick_libraries():
    """Within it, what is loaded of the two is quick."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.modules.get("tensorflow") is not None:  # on JAX it is None: it cannot be imported
            _note_one_stack(patch)
        if "apache_beam" in sys.modules:
            _inspect_functions_once(patch)
        yield


def _note_one_stack(patch):
    """TensorFlow notes the stack of Python of each operation of a graph, for its own errors.

    Pytest's stacks are deep. So all operations have the same.
    """
    from tensorflow.python.util import tf_stack

    stack = tf_stack.extract_stack()
    patch.setattr(tf_stack, "extract_stack", lambda stacklevel=1: stack)


def _inspect_functions_once(patch):
    """Beam asks for the signatures of all methods of every step, several times."""
    from apache_beam.transforms import core

    signature_of, signatures = core.get_signature, {}

    def get_signature(function):
        if not hasattr(function, "__func__"):
            return signature_of(function)
        if function.__func__ not in signatures:
            signatures[function.__func__] = signature_of(function)
        return signatures[function.__func__]

    patch.setattr(core, "get_signature", get_signature)
