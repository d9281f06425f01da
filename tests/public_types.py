"""The types of the public names: makes `keras_bert/__init__.pyi` (`make types`).

The package brings its names in when they are used, which no type checker or editor can follow; and
the arguments of commands' functions are the fields of their settings.
"""

import inspect
import re
import textwrap
import typing
from pathlib import Path

import keras_bert
from keras_bert import _HOMES

# Their arguments are those of a classifier; another task type has its own.
OF_A_KIND = ("finetune", "sweep", "evaluate", "predict")

STUB = Path(keras_bert.__file__).with_suffix(".pyi")

_HEAD = '''"""Types of the public names. Made by `make types`; a test compares."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

'''


def stub():
    """The text of the file, before `ruff format`."""
    names = {name: getattr(keras_bert, name) for name in sorted(_HOMES)}
    lines = [
        f"from {value.__module__} import {name} as {name}"
        for name, value in names.items()
        if inspect.isclass(value)
    ]
    for line in (
        "from data_gen.vocabulary import LearnedVocabulary",
        "from keras_bert.inference.embed import TextEmbedding",
        "from keras_bert.encoders.encoder import Encoder",
        "from keras_bert.inference.fill_mask import Candidate, FollowingText",
        "from keras_bert.inference.generate import GeneratedText, TextProbability",
        "from keras_bert.inference.nearest import Neighbour",
        "from keras_bert.inference.surprisal import TextSurprisal",
        "from keras_bert.records.folder import DatasetCard",
        "from keras_bert.records.inspection import Instance",
        "from keras_bert.samples.quickstart import QuickstartSizes",
        "from keras_bert.tasks.task import Task",
    ):
        lines.append(line)
    lines += ["", "__version__: str", f"__all__ = {keras_bert.__all__!r}", ""]
    for name, value in names.items():
        if not inspect.isclass(value):
            lines += [f"def {name}{_signature(value)}:", _docstring(value), ""]
    return _HEAD + "\n".join(lines)


def _docstring(function):
    """What `help` shows, which editors and the pages of docs/ then show, too."""
    text = inspect.getdoc(function).replace("\\", "\\\\")
    return textwrap.indent(f'"""{text}\n"""', "    ")


def _signature(function):
    signature = inspect.signature(function)
    given = []
    starred = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            given.append("*")
            starred = True
        assert parameter.annotation is not parameter.empty, (function, parameter)
        text = f"{parameter.name}: {_text(parameter.annotation)}"
        given.append(text + (" = ..." if parameter.default is not parameter.empty else ""))
    if function.__name__ in OF_A_KIND:
        given.append("**of_other_kinds: Any")
    return f"({', '.join(given)}) -> {_text(signature.return_annotation)}"


def _text(annotation):
    if isinstance(annotation, str):
        return annotation
    if typing.get_origin(annotation) is None and inspect.isclass(annotation):
        return annotation.__name__
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", str(annotation))  # names without their modules


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
