"""Write a SavedModel that takes strings, as the next version under the output folder.

It loads wherever TensorFlow and TensorFlow Text are; TensorFlow Serving is pointed at the output
folder. The signature `serving_default` takes strings, `ids` takes token ids, `examples` takes
serialized tf.Example.
"""

from keras_bert.cli import flags
from keras_bert.cli.kinds import kind_of

SUMMARY = "write a SavedModel that takes strings"


def add_arguments(parser, argv):
    from keras_bert.export.settings import ExportSettings

    flags.add(parser, ExportSettings)


def run(arguments):
    settings = flags.read(arguments)
    from keras_bert.export.saved_model import export
    from keras_bert.tasks import settings_class

    version = export(**settings)
    print(f"Wrote {version}.")
    given = settings_class(kind_of(arguments.model)).GIVEN
    texts = ", ".join(f"{name}=tf.constant(['a text'])" for name in given)
    asked = f"['serving_default']({texts})" if given else ""
    print(
        'Next: python -c "import tensorflow as tf, tensorflow_text; '
        f"print(tf.saved_model.load('{version}').signatures{asked})\""
    )
