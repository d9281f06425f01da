"""Batching: requests that wait while others are computed are computed together."""

import asyncio
import collections
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_bert.base.errors import reason_of
from keras_bert.serving.errors import RequestError

# Two, so that one long request does not delay all others.
_SLOTS = 2


@dataclass(frozen=True, eq=False)
class _Request:
    version: Any
    signature: str
    inputs: dict
    size: int
    response: asyncio.Future

    def fits(self, other):
        """Whether the two can be one batch: the same function, inputs of the same shapes."""
        return (
            self.version is other.version
            and self.signature == other.signature
            and self.version.can_be_batched(self.signature)
            and self._shapes() == other._shapes()
        )

    def _shapes(self):
        return {name: array.shape[1:] for name, array in self.inputs.items()}


class Batcher:
    """Computes the requests for one model.

    A request that finds a free worker slot is computed at once. Others wait, and are computed
    together when a slot becomes free: those with the same version, signature and shapes, up to
    `max_examples`. If a batch fails, its requests are computed one by one, so that each gets its
    own error. Outputs may be padded to the longest of the batch.

    To be created, used and closed in one event loop.
    """

    def __init__(self, *, max_examples):
        self._max_examples = max_examples
        self._waiting = collections.deque()
        self._available = asyncio.Semaphore(0)
        self._threads = ThreadPoolExecutor(_SLOTS, thread_name_prefix="batcher")
        self._slots = [asyncio.create_task(self._work()) for _ in range(_SLOTS)]

    async def compute(self, version, signature, inputs):
        """The outputs of a `ModelVersion` for checked inputs, batch first.

        Raises `RequestError`. A request that is cancelled while it waits is not computed.
        """
        size = max((array.shape[0] for array in inputs.values() if array.ndim), default=0)
        response = asyncio.get_running_loop().create_future()
        self._waiting.append(_Request(version, signature, inputs, size, response))
        self._available.release()
        return await response

    async def close(self):
        """Closes the slots. A running computation continues to its end in its thread."""
        for slot in self._slots:
            slot.cancel()
        await asyncio.gather(*self._slots, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _work(self):
        loop = asyncio.get_running_loop()
        while True:
            await self._available.acquire()
            batch = self._next_batch()
            if not batch:
                continue
            outcomes = await loop.run_in_executor(self._threads, _outcomes, batch)
            for request, outcome in zip(batch, outcomes, strict=True):
                if request.response.done():  # cancelled
                    continue
                if isinstance(outcome, Exception):
                    request.response.set_exception(outcome)
                else:
                    request.response.set_result(outcome)

    def _next_batch(self):
        """Takes the first waiting request, and later ones that fit it."""
        batch, rest, size = [], collections.deque(), 0
        for request in self._waiting:
            if request.response.done():
                continue
            if not batch or (size + request.size <= self._max_examples and request.fits(batch[0])):
                batch.append(request)
                size += request.size
            else:
                rest.append(request)
        self._waiting = rest
        return batch


def _outcomes(batch):
    """The outputs, or the exception, of each request of a batch."""
    if len(batch) > 1:
        try:
            return _together(batch)
        except Exception:
            pass  # raised again for the request that caused it, below
    return [_alone(request) for request in batch]


def _alone(request):
    try:
        return request.version.compute(request.signature, request.inputs)
    except RequestError as error:
        return error
    except Exception as error:  # the slot must survive
        return RequestError(f"{type(error).__name__}: {reason_of(error)}.", "INTERNAL")


def _together(batch):
    first = batch[0]
    inputs = {
        name: np.concatenate([request.inputs[name] for request in batch]) for name in first.inputs
    }
    outputs = first.version.compute(first.signature, inputs)
    ends = np.cumsum([request.size for request in batch])
    if any(len(array) != ends[-1] for array in outputs.values()):
        raise ValueError("An output does not have one row per example.")
    parts = {name: np.split(array, ends[:-1]) for name, array in outputs.items()}
    return [{name: parts[name][number] for name in parts} for number in range(len(batch))]
