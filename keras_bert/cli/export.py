"""Write a SavedModel that takes strings, as the next version under the output folder.

It loads wherever TensorFlow and TensorFlow Text are; TensorFlow Serving is pointed at the output
folder. The signature `serving_default` takes strings, `ids` takes token ids, `examples` takes
serialized tf.Example. With an output NAME.tflite it is a file for LiteRT, which takes token ids.
"""

from keras_bert.cli import flags
from keras_bert.cli.report import one_liner

SUMMARY = "write a SavedModel that takes strings"


def add_arguments(parser, argv):
    from keras_bert.export.settings import ExportSettings

    flags.add(parser, ExportSettings)


def run(arguments):
    settings = flags.read(arguments)
    from keras_bert.export.saved_model import export

    written = export(**settings, report=print)
    print(f"Wrote {written} ({_size(written) / 1e6:,.1f} MB).")
    if written.is_file():
        loads = one_liner(
            "from ai_edge_litert.interpreter import Interpreter as LiteRT; "
            "print(LiteRT(model_path={}).get_signature_list())",
            written,
        )
        print(f"Next: pip install ai-edge-litert; {loads}")
        return
    asks = one_liner(
        "import tensorflow as tf, tensorflow_text; "
        f'print(tf.saved_model.load({{}}).signatures["serving_default"]{_asked(written)})',
        written,
    )
    print(f"Next: {asks}")


def _asked(version):
    """The call of a SavedModel's `serving_default` with a text for each of its inputs.

    Empty where it takes something else, too.
    """
    import tensorflow as tf
    from tensorflow.python.saved_model.loader_impl import parse_saved_model

    graph = parse_saved_model(str(version)).meta_graphs[0]
    inputs = graph.signature_def["serving_default"].inputs
    kinds = {(value.dtype, len(value.tensor_shape.dim)) for value in inputs.values()}
    if kinds != {(tf.string.as_datatype_enum, 1)}:
        return ""
    return "(" + ", ".join(f'{name}=tf.constant(["a text"])' for name in sorted(inputs)) + ")"


def _size(path):
    """Bytes of a file, or of all files in a folder."""
    return sum(p.stat().st_size for p in (path, *path.rglob("*")) if p.is_file())
