"""What Python, TensorFlow and Beam do again and again, done once or not at all.

Nothing that is computed depends on it.
"""

import contextlib
import copy
import functools
import inspect
import os
import sys
import types
import typing
import weakref

import pytest


@contextlib.contextmanager
def quick_libraries(*, datasets_as_written):
    """Within it, what is loaded of them is quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)  # the machine is not switched off here
        _inspect_functions_once(patch)
        _collect_protocols_once(patch)
        if sys.modules.get("tensorflow") is not None:  # on JAX it is None: it cannot be imported
            _note_one_stack(patch)
            _keep_kernels(patch)
            _make_variables_by_one_kernel(patch)
            if datasets_as_written:
                _leave_datasets_as_written(patch)
        if "apache_beam" in sys.modules:
            _infer_types_once(patch)
        yield


def _note_one_stack(patch):
    """TensorFlow notes the stack of Python of each operation of a graph, for its own errors.

    Pytest's stacks are deep. So all operations have the same.
    """
    from tensorflow.python.util import tf_stack

    stack = tf_stack.extract_stack()
    patch.setattr(tf_stack, "extract_stack", lambda stacklevel=1: stack)


def _keep_kernels(patch):
    """A new global seed makes TensorFlow forget the kernels of all operations that ran eagerly.

    That is for operations with random numbers of their own; Keras's are given theirs.
    """
    from tensorflow.python.eager import context

    seed = context.Context._set_global_seed

    def seed_and_keep(self, number):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(context.pywrap_tfe, "TFE_ContextClearCaches", lambda handle: None)
            seed(self, number)

    patch.setattr(context.Context, "_set_global_seed", seed_and_keep)


def _make_variables_by_one_kernel(patch):
    """Outside of graphs a variable's handle has a kernel for its name, which only errors show."""
    from tensorflow.python.eager import context
    from tensorflow.python.ops import gen_resource_variable_ops as ops

    handle = ops.var_handle_op

    def handle_without_name(*arguments, **options):
        if context.executing_eagerly():
            options.pop("debug_name", None)
        return handle(*arguments, **options)

    patch.setattr(ops, "var_handle_op", handle_without_name)


def _leave_datasets_as_written(patch):
    """For each iterator tf.data rewrites the graph of its dataset, to fuse what is in it."""
    import tensorflow as tf
    from tensorflow.python.data.ops.iterator_ops import OwnedIterator

    options, create = tf.data.Options(), OwnedIterator._create_iterator
    options.experimental_optimization.apply_default_optimizations = False

    def create_as_written(self, dataset):
        create(self, dataset.with_options(options))

    patch.setattr(OwnedIterator, "_create_iterator", create_as_written)


def _once_per_function(function):
    """`function` of a plain function, or of a method of one; of anything else it is called anew.

    What is decorated has attributes, which may change.
    """
    of_functions, of_methods = weakref.WeakKeyDictionary(), weakref.WeakKeyDictionary()

    @functools.wraps(function)
    def once(asked, **options):
        plain = asked.__func__ if type(asked) is types.MethodType else asked
        if options or type(plain) is not types.FunctionType or plain.__dict__:
            return function(asked, **options)
        results = of_functions if plain is asked else of_methods
        if plain not in results:
            results[plain] = function(asked)
        return results[plain]

    return once


def _inspect_functions_once(patch):
    """Keras asks for the signatures of a layer's methods whenever one is made."""
    specs = _once_per_function(inspect.getfullargspec)
    patch.setattr(inspect, "signature", _once_per_function(inspect.signature))
    patch.setattr(  # its lists are the caller's
        inspect,
        "getfullargspec",
        lambda function: inspect.FullArgSpec(*map(copy.copy, specs(function))),
    )


def _collect_protocols_once(patch):
    """As Python 3.12 does: TensorFlow asks of every argument whether it has a tracing type."""
    for name in ("_get_protocol_attrs", "_is_callable_members_only"):
        patch.setattr(typing, name, functools.cache(getattr(typing, name)))


def _infer_types_once(patch):
    """Beam asks for the signatures of all methods of every step, several times."""
    from apache_beam.transforms import core

    patch.setattr(core, "get_signature", _once_per_function(core.get_signature))
