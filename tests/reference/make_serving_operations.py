"""Makes tests/exports/serving_operations.txt: the operations that TensorFlow Serving 2.17 has.

Run by hand where tensorflow-cpu 2.17.1 and tensorflow-text 2.17.0 are installed (they are not among
our versions): `python make_serving_operations.py > ../export/serving_operations.txt`. A server has
the operations of TensorFlow, and of TensorFlow Text those that its BUILD file names
(tensorflow_serving/model_servers/BUILD, SUPPORTED_TENSORFLOW_OPS, `//tensorflow_text:ops_lib`),
which is all of them but what later releases added. Its workspace.bzl has TensorFlow Text 2.12.1
from the server's release 2.16.1 to 2.19.1, and 2.20.0 in 2.20.0. Both register those below.
"""

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

core = {name for name in dir(tf.raw_ops) if name[0].isupper()}
import tensorflow_text  # noqa: E402

del tensorflow_text
text = """
FastBertNormalize FastSentencepieceTokenize FastSentencepieceDetokenize
FastWordpieceDetokenize FastWordpieceTokenizeWithOffsets FindSourceOffsets NormalizeUTF8
NormalizeUTF8WithOffsetsMap SentencepieceOp SentencepieceTokenizeOp
SentencepieceTokenizeWithOffsetsOp WordpieceTokenizeWithOffsets TFText>FastWordpieceDetokenize
TFText>FastBertNormalize TFText>FastWordpieceTokenizeWithOffsets
""".split()
text = {name for name in text if op_def_registry.get(name) is not None}
print(f"# Made by tests/reference/make_serving_operations.py with TensorFlow {tf.__version__}.")
print("\n".join(sorted(core | text)))
