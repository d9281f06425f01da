"""Requests that wait while others are computed are computed together."""

import asyncio
import collections
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_bert.serving.request_error import RequestError

# One long request must not keep all others waiting.
_SLOTS = 2


@dataclass(frozen=True, eq=False)
class _Request:
    version: Any
    signature: str
    inputs: dict
    rows: int
    answer: asyncio.Future

    def joins(self, other):
        """Whether the two can be one batch: the same function, of inputs that differ in rows."""
        return (
            self.version is other.version
            and self.signature == other.signature
            and self.version.may_be_joined(self.signature)
            and _row_shapes(self.inputs) == _row_shapes(other.inputs)
        )


class Batcher:
    """Computes what one model is asked.

    A request that finds a free lane is computed at once, so that nobody waits for company; those
    that find none wait, and go together when a lane becomes free: whatever has the same version,
    signature and shapes, up to `max_rows`. Where a batch fails, each of its requests is computed
    by itself: nobody has somebody else's error. Answers may be padded as wide as the batch needed.

    To be made, used and closed in one event loop.
    """

    def __init__(self, *, max_rows):
        self._max_rows = max_rows
        self._waiting = collections.deque()
        self._there = asyncio.Semaphore(0)
        self._threads = ThreadPoolExecutor(_SLOTS, thread_name_prefix="batcher")
        self._slots = [asyncio.create_task(self._work()) for _ in range(_SLOTS)]

    async def compute(self, version, signature, inputs):
        """The outputs of a `ModelVersion`, whose inputs have been checked, rows first.

        Raises `RequestError`. Who is cancelled while waiting is not computed.
        """
        rows = max((array.shape[0] for array in inputs.values() if array.ndim), default=0)
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append(_Request(version, signature, inputs, rows, answer))
        self._there.release()
        return await answer

    async def close(self):
        """Ends the lanes. A computation that has begun runs to its end in its thread."""
        for slot in self._slots:
            slot.cancel()
        await asyncio.gather(*self._slots, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _work(self):
        loop = asyncio.get_running_loop()
        while True:
            await self._there.acquire()
            batch = self._next_batch()
            if not batch:
                continue
            found = await loop.run_in_executor(self._threads, _outcomes, batch)
            for request, outcome in zip(batch, found, strict=True):
                if request.answer.done():  # the asker has left
                    continue
                if isinstance(outcome, Exception):
                    request.answer.set_exception(outcome)
                else:
                    request.answer.set_result(outcome)

    def _next_batch(self):
        """Takes the first request that waits, and those after it that may join it."""
        batch, rest, rows = [], collections.deque(), 0
        for request in self._waiting:
            if request.answer.done():
                continue
            fits = not batch or (rows + request.rows <= self._max_rows and request.joins(batch[0]))
            if fits:
                batch.append(request)
                rows += request.rows
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
            pass  # told to the one who caused it, below
    return [_alone(request) for request in batch]


def _alone(request):
    try:
        return request.version.compute(request.signature, request.inputs)
    except RequestError as request_error:
        return request_error
    except Exception as error:  # a request must not take the lane down
        return RequestError("INTERNAL", f"{type(error).__name__}: {error}")


def _together(batch):
    first = batch[0]
    inputs = {
        name: np.concatenate([request.inputs[name] for request in batch]) for name in first.inputs
    }
    outputs = first.version.compute(first.signature, inputs)
    ends = np.cumsum([request.rows for request in batch])
    if any(len(array) != ends[-1] for array in outputs.values()):
        raise ValueError("an output has not a row for each example")
    parts = {name: np.split(array, ends[:-1]) for name, array in outputs.items()}
    return [{name: parts[name][place] for name in parts} for place in range(len(batch))]


def _row_shapes(inputs):
    return {name: array.shape[1:] for name, array in inputs.items()}
