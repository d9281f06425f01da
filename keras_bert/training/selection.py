"""Which record of a run is the best one, and which run: rules over records, without Keras.

A record is one of `keras_bert.training.logs.History`, or what metrics.json has of it.
"""

import math

from keras_bert.base.errors import InputError


def best_record(records, metric):
    """The first of a run's records with the highest `quality`, or None.

    One if the metric was NaN is best only if it was NaN in all.
    """
    return max(evaluated(records), key=lambda record: quality(record["eval"], metric), default=None)


def quality(metrics, metric):
    """The sort key of the held-out metrics of an epoch: higher is better.

    It is the `metric`, and of equal ones the loss, of which lower is better.
    """
    loss = _number(metrics, "loss")
    return rank(_number(metrics, metric)), rank(None if loss is None else -loss)


def best_metric_value(metrics):
    """The `best_metric` on the dev data of the model that a run kept; None if it was NaN."""
    return value_of(*_kept_record(metrics))


def quality_of_run(metrics):
    """The `quality` of the model that a run kept, from its metrics.json.

    Raises `InputError` if the file has no record of it.
    """
    record, metric = _kept_record(metrics)
    return quality(record.get("eval", {}), metric)


def _kept_record(metrics):
    """The record of the kept model, and the name of the metric that selected it."""
    try:
        (record,) = (e for e in metrics["history"] if e["step"] == metrics["kept"]["step"])
        return {**record}, metrics["best_metric"]
    except (KeyError, TypeError, ValueError):
        raise InputError("The metrics.json of a run has no record of the kept model.") from None


def value_of(record, metric):
    """The held-out `metric` of a record; None if it was NaN, or there was no evaluation."""
    return _number(record.get("eval", {}), metric)


def _number(metrics, name):
    value = metrics.get(name)  # metrics.json has None in place of NaN
    return None if value is None or math.isnan(value) else value


def rank(value):
    """The sort key of a `value_of`: comparisons with NaN would all be false."""
    return -math.inf if value is None else value


def evaluated(records):
    """The records with an evaluation on held-out data."""
    return [record for record in records if "eval" in record]
