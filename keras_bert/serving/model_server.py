"""What the server's two doors, REST and gRPC, have behind them: models, and who waits for them.

The figures of the server have the names and the form that TensorFlow Serving gives them. Names,
labels and buckets are those of tensorflow_serving/servables/tensorflow/util.cc, the form is
Prometheus's text format. Python's prometheus_client cannot write them: it adds `_total` to the name
of every counter.
"""

import asyncio
import bisect
import collections
import contextlib
import itertools
import math
import time

from keras_bert.serving.batcher import Batcher
from keras_bert.serving.inputs import check_inputs
from keras_bert.serving.request_error import RequestError

# In microseconds, up to about half an hour.
_LIMITS = [10 * 1.8**power for power in range(33)]
_REQUESTS = ":tensorflow:serving:request_count"
_REQUEST_LATENCY = ":tensorflow:serving:request_latency"
_RUNTIME_LATENCY = ":tensorflow:serving:runtime_latency"


class Metrics:
    """Counts of requests and histograms of how long they took, by model."""

    def __init__(self):
        self._requests = collections.Counter()
        self._latencies = {
            _REQUEST_LATENCY: collections.defaultdict(_Histogram),
            _RUNTIME_LATENCY: collections.defaultdict(_Histogram),
        }

    def count_request(self, model, *, status, entrypoint, seconds):
        """A request is over; `entrypoint` is REST or GRPC, `status` a name of google.rpc.Code."""
        self._requests[_labels(model_name=model, status=status)] += 1
        labels = _labels(model_name=model, API="predict", entrypoint=entrypoint)
        self._latencies[_REQUEST_LATENCY][labels].add(1e6 * seconds)

    def count_computation(self, model, *, seconds):
        """The model has computed what it was asked."""
        labels = _labels(model_name=model, API="Predict", runtime="TF1")
        self._latencies[_RUNTIME_LATENCY][labels].add(1e6 * seconds)

    def text(self):
        """All of them, as Prometheus reads them."""
        lines = [f"# TYPE {_REQUESTS} counter"]
        lines += [f"{_REQUESTS}{{{labels}}} {n}" for labels, n in sorted(self._requests.items())]
        for name, histograms in self._latencies.items():
            lines.append(f"# TYPE {name} histogram")
            for labels, histogram in sorted(histograms.items()):
                lines += histogram.lines(name, labels)
        return "\n".join(lines) + "\n"


class _Histogram:
    def __init__(self):
        self._counts = [0] * (len(_LIMITS) + 1)
        self._sum = 0.0

    def add(self, value):
        self._counts[bisect.bisect_right(_LIMITS, value)] += 1
        self._sum += value

    def lines(self, name, labels):
        sums = itertools.accumulate(self._counts)
        for limit, count in zip([*_LIMITS, math.inf], sums, strict=True):
            le = "+Inf" if limit == math.inf else f"{limit:g}"
            yield f'{name}_bucket{{{labels},le="{le}"}} {count}'
        yield f"{name}_sum{{{labels}}} {self._sum:g}"
        yield f"{name}_count{{{labels}}} {sum(self._counts)}"


def _labels(**labels):
    quoted = (
        (name, value.replace("\\", r"\\").replace('"', r"\"")) for name, value in labels.items()
    )
    return ",".join(f'{name}="{value}"' for name, value in quoted)


class ModelServer:
    """Some `ServedModel`s, asked by name. To be used in one event loop, between `open` and `close`.

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
        """Begins to take requests, in the event loop that runs."""
        self._batchers = {name: Batcher(max_rows=self.max_batch) for name in self.models}

    async def close(self):
        """Ends. What nobody waits for any more is still computed to its end, in its thread."""
        await asyncio.gather(*(batcher.close() for batcher in self._batchers.values()))

    def model(self, name):
        """The `ServedModel` of a name; `RequestError` where there is none."""
        if name not in self.models:
            raise RequestError("NOT_FOUND", f"Servable not found for request: Latest({name})")
        return self.models[name]

    async def predict(self, name, number, signature, read_inputs):
        """What a version of a model answers: (the `ModelVersion`, output arrays by name).

        Args:
            name, number: the model and its version; None is the newest.
            signature: the name of the signature; "" is the default one.
            read_inputs: the function of `TensorInfo` by name to input arrays by name.

        Raises `RequestError`.
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
        """Refuses all requests that are waited for: the server ends."""
        self._has_given_up = True
        now = asyncio.get_running_loop().time()
        for limit in self._limits:
            if not limit.expired():
                self.unanswered += 1
                limit.reschedule(now)

    @contextlib.asynccontextmanager
    async def time_limit(self, late):
        """Around what a request waits for: bounds its time, and ends when the server does.

        Gives the `asyncio.Timeout`. Raises `RequestError`, with the sentence `late` at a time-out.
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
                raise RequestError("UNAVAILABLE", message) from None
            raise RequestError("DEADLINE_EXCEEDED", late) from None

    @contextlib.asynccontextmanager
    async def request(self, name, *, entrypoint):
        """Around a request for a prediction: bounds its time (`time_limit`), and counts it."""
        start, status = time.perf_counter(), "CANCELLED"
        try:
            async with self.time_limit(f"There was no answer within {self.timeout:g} s."):
                yield
            status = "OK"
        except RequestError as request_error:
            status = request_error.code
            raise
        except Exception:  # a failure of ours, which is nobody's leaving
            status = "INTERNAL"
            raise
        finally:
            if name in self.models:  # the asker's words must not fill the memory
                seconds = time.perf_counter() - start
                self.metrics.count_request(
                    name, status=status, entrypoint=entrypoint, seconds=seconds
                )
