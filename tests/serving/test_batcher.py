"""Waiting requests are computed together, without an effect on each other."""

import asyncio
import threading

import numpy as np
import pytest

from keras_bert.serving.batcher import Batcher
from keras_bert.serving.errors import RequestError


class Slow:
    """In place of a `ModelVersion`: doubles `x` once it may; refuses numbers below 0."""

    def __init__(self):
        self.batches = []
        self.may = threading.Event()

    def can_be_batched(self, signature):
        return signature != "alone"

    def compute(self, signature, inputs):
        self.may.wait(10)
        self.batches.append(len(inputs["x"]))
        if (inputs["x"] < 0).any():
            raise RequestError("below 0")
        return {"y": 2 * inputs["x"]}


def asked(rows_of_requests, *, signature="", max_examples=8, leaves=()):
    """The answers, or errors, of requests that all come while two others are computed."""
    version = Slow()

    async def run():
        batcher = Batcher(max_examples=max_examples)
        busy = []
        for _ in range(2):
            inputs = {"x": np.array([100])}
            busy.append(asyncio.create_task(batcher.compute(version, "", inputs)))
            await asyncio.sleep(0.02)
        tasks = [
            asyncio.create_task(batcher.compute(version, signature, {"x": np.array(rows)}))
            for rows in rows_of_requests
        ]
        await asyncio.sleep(0.02)
        for number in leaves:
            tasks[number].cancel()
        version.may.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*busy)
        await batcher.close()
        return found

    found, batches = asyncio.run(run()), sorted(version.batches)
    del batches[batches.index(1) : batches.index(1) + 2]  # of the two that kept it busy
    return found, batches


def test_waiting_requests_are_one_batch_up_to_the_limit():
    requests = [[number] * (number % 3 + 1) for number in range(6)]  # 12 rows in all
    found, batches = asked(requests)
    assert sum(batches) == 12 and max(batches) <= 8 and len(batches) < 6
    for rows, answer in zip(requests, found, strict=True):
        assert answer["y"].tolist() == [2 * row for row in rows]


@pytest.mark.parametrize("requests", [[[1], [-1], [2]], [[-1], [-2]], [[]], [[], [3], []]])
def test_an_error_is_only_for_the_request_that_caused_it(requests):
    found, _ = asked(requests)
    for rows, answer in zip(requests, found, strict=True):
        if rows and min(rows) < 0:
            assert isinstance(answer, RequestError)
        else:
            assert answer["y"].tolist() == [2 * row for row in rows]


def test_other_shapes_and_unbatched_outputs_are_not_batched():
    found, batches = asked([[[1, 2]], [[3, 4, 5]], [[6, 7]]])
    assert sorted(batches) == [1, 2]
    assert found[1]["y"].tolist() == [[6, 8, 10]]
    assert asked([[1], [2], [3]], signature="alone")[1] == [1, 1, 1]


def test_a_cancelled_request_is_not_computed():
    found, batches = asked([[1, 1], [2, 2, 2], [3]], leaves=[1])
    assert isinstance(found[1], asyncio.CancelledError)
    assert sum(batches) == 3 and found[2]["y"].tolist() == [6]


def test_a_request_over_the_limit_is_computed_alone():
    assert asked([[1] * 20, [2]])[1] == [1, 20]
