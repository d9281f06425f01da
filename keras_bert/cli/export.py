"""Write a SavedModel that takes strings, as the next version under the output folder.

It loads wherever TensorFlow and TensorFlow Text are; TensorFlow Serving is pointed at the output
folder. The signature `serving_default` takes `text`, `ids` takes token ids, `examples` takes
serialized tf.Example.
"""

from keras_bert.cli import labelled_flags

SUMMARY = "write a SavedModel that takes strings"


def add_arguments(parser):
    labelled_flags.model(parser)
    parser.add_argument(
        "--output",
        required=True,
        metavar="FOLDER",
        help="the folder of all versions of this model, such as savedmodels/NAME",
    )
    labelled_flags.max_length_of_training(parser)


def run(arguments):
    from keras_bert.export import export

    version = export(
        model=arguments.model, output=arguments.output, max_length=arguments.max_length
    )
    print(f"Wrote {version}.")
    print(
        'Next: python -c "import tensorflow as tf, tensorflow_text; '
        f"print(tf.saved_model.load('{version}').signatures['serving_default']"
        "(text=tf.constant(['a text'])))\""
    )
