"""TensorFlow's advice on tracing is not for a run that traces each phase on purpose."""

import logging

import pytest
import tensorflow as tf

from keras_bert.training.pretrain import no_retracing_warnings


@pytest.fixture(autouse=True)
def pytest_listens(monkeypatch):
    monkeypatch.setattr(tf.get_logger(), "propagate", True)


def trace_again_and_again(function):
    """TensorFlow counts by the function, and warns of each but a few times."""
    for _ in range(8):
        tf.function(function)(1)


def test_no_retracing_warnings_is_not_warned_of_and_anything_else_is(caplog):
    with caplog.at_level(logging.WARNING), no_retracing_warnings():
        trace_again_and_again(lambda x: x + 1)
        tf.get_logger().warning("something else")
    assert [record.message for record in caplog.records] == ["something else"]


def test_by_itself_tensorflow_warns_in_these_words(caplog):
    with caplog.at_level(logging.WARNING):
        trace_again_and_again(lambda x: x + 2)
    assert "triggered tf.function retracing" in caplog.text
