"""How often oneDNN lays a model's kernels out for the products of a processor."""

import contextlib
import os

from keras_bert.base.errors import InputError
from keras_bert.serving.model_folders import check_files, model_folders, version_folders


def lay_kernels_out_once(folders):
    """Has it done once and not for each request, where all models are in bfloat16.

    A processor multiplies bfloat16s in pairs, and kernels have to lie in memory so. TensorFlow does
    not know that a variable stays what it is, and lays it out for each product anew, which with few
    rows takes as long as the product. It can be told so of all variables of the process; hence only
    where the process serves and nothing else, and before its first product. What the user's
    environment says of it stays so.

    In float32 the layout depends on the number of rows: that of the first request would stay, and
    slow down requests of other lengths.

    `folders` are those that `serve` is given. What is wrong with them is for the server to say.
    """
    with contextlib.suppress(InputError):
        newest = [version_folders(folder)[-1] for folder in model_folders(folders).values()]
        if all(map(_is_in_bfloat16, newest)):
            os.environ.setdefault("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "true")


def _is_in_bfloat16(version):
    import tensorflow as tf

    try:
        check_files(version)
        stored = tf.train.load_checkpoint(str(version / "variables" / "variables"))
    except (OSError, tf.errors.OpError, ValueError):
        return False
    return tf.bfloat16 in stored.get_variable_to_dtype_map().values()
