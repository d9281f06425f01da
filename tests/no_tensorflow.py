"""A pytest plugin (`-p tests.no_tensorflow`): as if TensorFlow were not installed."""

import sys

for name in ("tensorflow", "tensorflow_text", "keras_nlp", "keras_hub"):
    sys.modules[name] = None
