"""A function of this library in a process of its own, under TensorFlow and on the CPU.

On JAX, what needs TensorFlow's graphs is done there: SavedModels, and what their functions compute.
"""

import functools
import importlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import keras

from keras_bert.base.errors import InputError

Result = TypeVar("Result")

_RESULT, _ITEM, _CALL, _ERROR = "result", "item", "call", "error"


class _Callable:
    """The place of an argument that the other process calls, in this one, by its name."""


def under_tensorflow_only(function: Callable[..., Result]) -> Callable[..., Result]:
    """A function of `model` and other arguments, which on another backend runs under TensorFlow.

    A model that is not a folder is saved for it.
    """

    @functools.wraps(function)
    def call(**arguments: Any) -> Result:
        if keras.backend.backend() == "tensorflow":
            return function(**arguments)
        name = f"{function.__module__}:{function.__name__}"
        with tempfile.TemporaryDirectory(prefix="keras-bert-") as folder:
            if hasattr(arguments.get("model"), "save"):
                arguments["model"].save(f"{folder}/model")
                arguments = {**arguments, "model": f"{folder}/model"}
            result = under_tensorflow(name, **arguments)
        return result

    return call


def under_tensorflow(function, /, **arguments):
    """The result of a function of ours, as TensorFlow computes it.

    Args:
        function: "module:name".
        **arguments: what can be pickled. Functions among them are called in this process, and what
            they return is lost.

    Raises InputError: as the function does, or its process has ended.
    """
    given = {n: _Callable() if callable(x) else x for n, x in arguments.items()}
    (to_read, to_write), (answers, to_answer) = os.pipe(), os.pipe()
    with open(to_write, "wb") as asked, open(answers, "rb") as answered:
        command = [sys.executable, "-m", __name__, function, str(to_read), str(to_answer)]
        environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1"}
        process = subprocess.Popen(command, env=environment, pass_fds=(to_read, to_answer))
        os.close(to_read)
        os.close(to_answer)
        try:
            pickle.dump(given, asked)
            asked.close()
            result = _received(answered, arguments)
        except BaseException:
            process.terminate()
            raise
        finally:
            process.wait()
    return result


def _received(answered, arguments):
    """The result that the other process sends, once it has called what it was given."""
    items = []
    while True:
        try:
            kind, *content = pickle.load(answered)
        except EOFError:
            raise InputError("The process with TensorFlow has ended before its work.") from None
        if kind == _CALL:
            name, given = content
            arguments[name](*given)
        elif kind == _ITEM:
            items += content
        elif kind == _ERROR:
            raise content[0]
        else:
            return iter(items) if content[0] is Iterator else content[0]


def _answer(function, asked, answers):
    """The other process's part: calls the function, and sends what comes of it."""
    with open(asked, "rb") as file:
        given = pickle.load(file)
    with open(answers, "wb") as file:

        def send(*message):
            pickle.dump(message, file)
            file.flush()

        def calling(name):
            return lambda *arguments: send(_CALL, name, arguments)

        arguments = {n: calling(n) if isinstance(x, _Callable) else x for n, x in given.items()}
        module, _, name = function.partition(":")
        try:
            result = getattr(importlib.import_module(module), name)(**arguments)
            if isinstance(result, Iterator):
                for item in result:
                    send(_ITEM, item)
                result = Iterator
            send(_RESULT, result)
        except InputError as error:
            send(_ERROR, error)


if __name__ == "__main__":
    # As the module that was imported, whose classes are the ones that are pickled.
    from keras_bert.programs import process

    process._answer(sys.argv[1], *map(int, sys.argv[2:]))
