"""The figures of the server, under the names and in the form that TensorFlow Serving gives them.

Names, labels and buckets are those of tensorflow_serving/servables/tensorflow/util.cc, the form is
Prometheus's text format. Python's prometheus_client cannot write them: it adds `_total` to the name
of every counter.
"""

import bisect
import collections
import itertools
import math

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
