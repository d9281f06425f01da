"""The models behind REST and gRPC, the time limits of requests, and the server's metrics.

The metrics have the names, labels and buckets of TensorFlow Serving
(tensorflow_serving/servables/tensorflow/util.cc) in Prometheus's text format. Python's
prometheus_client cannot write them: it adds `_total` to the name of every counter.
"""

import asyncio
import bisect
import collections
import contextlib
import itertools
import math
import time

from keras_bert.serving.batcher import Batcher
from keras_bert.serving.errors import RequestError
from keras_bert.serving.tensors import check_inputs

# Upper bounds of the buckets in microseconds, up to about half an hour.
_BOUNDS = [10 * 1.8**power for power in range(33)]
_REQUESTS = ":tensorflow:serving:request_count"
_REQUEST_LATENCY = ":tensorflow:serving:request_latency"
_RUNTIME_LATENCY = ":tensorflow:serving:runtime_latency"


class Metrics:
    """Counts of requests and histograms of their latencies, per model."""

    def __init__(self):
        self._requests = collections.Counter()
        self._latencies = {
            _REQUEST_LATENCY: collections.defaultdict(_Histogram),
            _RUNTIME_LATENCY: collections.defaultdict(_Histogram),
        }

    def count_request(self, model, *, status, entrypoint, seconds):
        """Counts a request; `entrypoint` is REST or GRPC, `status` a name of google.rpc.Code."""
        self._requests[_labels(model_name=model, status=status)] += 1
        labels = _labels(model_name=model, API="predict", entrypoint=entrypoint)
        self._latencies[_REQUEST_LATENCY][labels].add(1e6 * seconds)

    def count_computation(self, model, *, seconds):
        labels = _labels(model_name=model, API="Predict", runtime="TF1")
        self._latencies[_RUNTIME_LATENCY][labels].add(1e6 * seconds)

    def text(self):
        """All metrics in Prometheus's text format."""
        lines = [f"# TYPE {_REQUESTS} counter"]
        lines += [f"{_REQUESTS}{{{labels}}} {n}" for labels, n in sorted(self._requests.items())]
        for name, histograms in self._latencies.items():
            lines.append(f"# TYPE {name} histogram")
            for labels, histogram in sorted(histograms.items()):
                lines += histogram.lines(name, labels)
        return "\n".join(lines) + "\n"


class _Histogram:
    def __init__(self):
        self._counts = [0] * (len(_BOUNDS) + 1)
        self._sum = 0.0

    def add(self, value):
        self._counts[bisect.bisect_right(_BOUNDS, value)] += 1
        self._sum += value

    def lines(self, name, labels):
        sums = itertools.accumulate(self._counts)
        for bound, count in zip([*_BOUNDS, math.inf], sums, strict=True):
            le = "+Inf" if bound == math.inf else f"{bound:g}"
            yield f'{name}_bucket{{{labels},le="{le}"}} {count}'
        yield f"{name}_sum{{{labels}}} {self._sum:g}"
        yield f"{name}_count{{{labels}}} {sum(self._counts)}"


def _labels(**labels):
    quoted = (
        (name, value.replace("\\", r"\\").replace('"', r"\"")) for name, value in labels.items()
    )
    return ",".join(f'{name}="{value}"' for name, value in quoted)


class ModelServer:
    """`ServedModel`s by name. To be used in one event loop, between `open` and `close`.

    Attributes: `models`, by name; `metrics`; `max_batch` and `timeout`, see `ServeSettings`;
    `unanswered`, the number of requests that were given up when the server was stopped.
    """

    def __init__(self, models, *, max_batch, timeout):
        self.models = {model.name: model for model in models}
        self.metrics = Metrics()
        self.max_batch = max_batch
        self.timeout = timeout
        self.unanswered = 0
        self._batchers = {}
        self._limits = set()
        self._has_given_up = False

    def open(self):
        """Starts to compute requests, in the running event loop."""
        self._batchers = {name: Batcher(max_examples=self.max_batch) for name in self.models}

    async def close(self):
        """Stops. A running computation continues to its end in its thread."""
        await asyncio.gather(*(batcher.close() for batcher in self._batchers.values()))

    def model(self, name):
        """The `ServedModel` of a name; `RequestError` if there is none."""
        if name not in self.models:
            raise RequestError(f"Servable not found for request: Latest({name})", "NOT_FOUND")
        return self.models[name]

    async def predict(self, name, number, signature, read_inputs):
        """Returns (the `ModelVersion`, output arrays by name). Raises `RequestError`.

        Args:
            name, number: the model and its version; None is the newest.
            signature: the name of the signature; "" is the default one.
            read_inputs: a function from `TensorInfo` by name to input arrays by name.
        """
        version = self.model(name).version(number)
        infos = version.signature_def(signature).inputs
        inputs = await asyncio.to_thread(read_inputs, infos)
        check_inputs(inputs, infos, max_batch=self.max_batch)
        start = time.perf_counter()
        outputs = await self._batchers[name].compute(version, signature, inputs)
        self.metrics.count_computation(name, seconds=time.perf_counter() - start)
        return version, outputs

    def give_up(self):
        """Rejects all waiting requests, because the server stops."""
        self._has_given_up = True
        now = asyncio.get_running_loop().time()
        for limit in self._limits:
            if not limit.expired():
                self.unanswered += 1
                limit.reschedule(now)

    @contextlib.asynccontextmanager
    async def time_limit(self, late):
        """A context that ends after `timeout`, or when the server stops; gives `asyncio.Timeout`.

        Raises `RequestError`, with the message `late` after a time-out.
        """
        try:
            async with asyncio.timeout(self.timeout) as limit:
                self._limits.add(limit)
                try:
                    yield limit
                finally:
                    self._limits.discard(limit)
        except TimeoutError:
            if self._has_given_up:
                message = "The server was stopped before it could answer the request."
                raise RequestError(message, "UNAVAILABLE") from None
            raise RequestError(late, "DEADLINE_EXCEEDED") from None

    @contextlib.asynccontextmanager
    async def request(self, name, *, entrypoint):
        """A context for a prediction request: limits its time (`time_limit`), and counts it."""
        start, status = time.perf_counter(), "CANCELLED"
        try:
            async with self.time_limit(f"There was no response within {self.timeout:g} s."):
                yield
            status = "OK"
        except RequestError as error:
            status = error.code
            raise
        except Exception:  # a bug; cancellation is not an Exception
            status = "INTERNAL"
            raise
        finally:
            if name in self.models:  # unknown names must not fill the memory
                seconds = time.perf_counter() - start
                self.metrics.count_request(
                    name, status=status, entrypoint=entrypoint, seconds=seconds
                )
