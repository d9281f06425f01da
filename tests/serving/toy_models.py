"""SavedModels of a few operations, whose answers tell who asked and which version answered."""

import shutil

import tensorflow as tf


class Echo(tf.Module):
    """`text` (B,) -> `label`, "VERSION:TEXT"; `score` and `probabilities` of its length.

    Refuses a batch with a text "boom" in it, as an assertion of a graph does.
    """

    def __init__(self, version):
        super().__init__()
        self.version = version

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def answer(self, text):
        bad = tf.reduce_any(tf.equal(text, "boom"))
        ok = tf.debugging.Assert(~bad, ["No text may be boom."])
        with tf.control_dependencies([ok]):
            length = tf.cast(tf.strings.length(text), tf.float32)
        fraction = 1 / (1 + length)
        return {
            "label": tf.strings.join([f"{self.version}:", text]),
            "score": fraction,
            "probabilities": tf.stack([fraction, 1 - fraction], axis=1),
        }

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name="text_a"),
            tf.TensorSpec([None, None], tf.int32, name="numbers"),
        ]
    )
    def two(self, text_a, numbers):
        ragged = tf.RaggedTensor.from_row_lengths(
            tf.range(tf.reduce_sum(numbers[:, 0])), numbers[:, 0]
        )
        return {"text_bytes": text_a, "numbers": ragged.to_tensor(), "total": numbers + 1}


def write_echo(folder, version):
    """Writes version `version` under `folder`, in one rename."""
    temporary = _temporary(folder, version)
    model = Echo(version)
    tf.saved_model.save(
        model, str(temporary), signatures={"serving_default": model.answer, "two": model.two}
    )
    _put(temporary, folder, version)


def copy_echo(written, folder, version):
    """Puts version `version`, as `write_echo` has written it elsewhere, under `folder` alike."""
    temporary = _temporary(folder, version)
    shutil.copytree(written / str(version), temporary)
    _put(temporary, folder, version)


def _temporary(folder, version):
    return folder.parent / f".{folder.name}-{version}"


def _put(temporary, folder, version):
    folder.mkdir(exist_ok=True)
    temporary.rename(folder / str(version))
