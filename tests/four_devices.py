"""A pytest plugin (`-p tests.four_devices`): TensorFlow sees four CPU devices."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf


def see_devices(count):
    """Has TensorFlow, which must not have begun, see so many CPU devices."""
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * count
    )


see_devices(4)
