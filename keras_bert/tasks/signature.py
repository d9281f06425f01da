"""One entry point of an exported model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Signature:
    """A function of tensors -> a dictionary of dense tensors, batch first.

    `inputs` are the `tf.TensorSpec` of its arguments, each with the name that clients use;
    `warmup` are dictionaries of inputs that a server should run before it answers anybody.
    """

    function: Callable
    inputs: Sequence[Any]
    warmup: Sequence[dict] = ()
