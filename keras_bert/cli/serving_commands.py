"""The commands that take a model elsewhere: export, serve, ask, convert, push."""

import shlex

from keras_bert.base.errors import InputError
from keras_bert.checkpoints import VECTOR_FORMATS, ConvertSettings, PushSettings
from keras_bert.cli.command import command, one_liner, report
from keras_bert.cli.cpu import import_large
from keras_bert.cli.task_types import stored_task_type
from keras_bert.exports import ExportSettings
from keras_bert.serving import ServeSettings, ask_settings
from keras_bert.tasks import finetuned_task_types


@command(
    "export",
    "write a SavedModel that takes strings",
    settings=ExportSettings,
    backends=("tensorflow", "jax"),
)
def export(settings, arguments):
    """Write a SavedModel that takes strings, as the next version in the output folder.

    It loads wherever TensorFlow and TensorFlow Text are installed; TensorFlow Serving takes the
    output folder. The signature `serving_default` takes strings, `ids` takes token ids, `examples`
    takes serialized tf.Example. An output NAME.tflite is a file for LiteRT, which takes token ids.
    """
    from keras_bert.exports.saved_model import export

    written = export(**settings, report=print)
    size = sum(path.stat().st_size for path in (written, *written.rglob("*")) if path.is_file())
    print(f"Wrote {written} ({size / 1e6:,.1f} MB).")
    if written.is_file():
        program = (
            "from ai_edge_litert.interpreter import Interpreter as LiteRT; "
            "print(LiteRT(model_path={}).get_signature_list())"
        )
        return f"pip install ai-edge-litert; {one_liner(program, written)}"
    program = (
        "import tensorflow as tf, tensorflow_text; "
        f'print(tf.saved_model.load({{}}).signatures["serving_default"]{_sample_call(written)})'
    )
    serve = f"keras-bert serve --models {shlex.quote(str(written.parent))}"
    return f"{serve}, or {one_liner(program, written)}"


def _sample_call(version):
    """The call of a SavedModel's `serving_default` with a text for each of its inputs.

    Empty if not all inputs are batches of strings.
    """
    import tensorflow as tf
    from tensorflow.python.saved_model.loader_impl import parse_saved_model

    graph = parse_saved_model(str(version)).meta_graphs[0]
    inputs = graph.signature_def["serving_default"].inputs
    types = {(value.dtype, len(value.tensor_shape.dim)) for value in inputs.values()}
    if types != {(tf.string.as_datatype_enum, 1)}:
        return ""
    return "(" + ", ".join(f'{name}=tf.constant(["a text"])' for name in sorted(inputs)) + ")"


@command(
    "serve",
    "serve exported models for development, with a page to try them",
    settings=ServeSettings,
)
def serve(settings, arguments):
    """Serve exported models over TensorFlow Serving's REST, for development.

    keras-bert serve --models savedmodels/spam
    keras-bert serve --models savedmodels --attention runs/pretrain --rest-port 8080
    keras-bert serve texts.index

    The server is one process, reachable from this machine only unless --host is given. For
    production, use TensorFlow Serving, which takes the same folders. A new version folder is loaded
    as soon as it appears. The REST address also has a page to try the models.
    """
    import_large("tensorflow")
    from keras_bert.serving.model_version import lay_kernels_out_once
    from keras_bert.serving.serve import serve

    lay_kernels_out_once(settings.get("models"))
    serve(**settings, report=lambda line: print(line, flush=True))


@command("ask", "send examples to a served model", settings=lambda first: ask_settings())
def ask(settings, arguments):
    """Send examples to a served model over REST or gRPC; prints one JSON object per line, in order.

    keras-bert ask http://127.0.0.1:8501 --model spam --text "Win cash prizes"
    keras-bert ask grpc://127.0.0.1:8500 --model qa --data questions.jsonl
    keras-bert ask http://127.0.0.1:8501 --model spam --metadata

    The server is TensorFlow Serving, or keras-bert serve, which speaks REST only.
    """
    import json

    from keras_bert.serving.ask import ask

    for prediction in ask(**settings):
        try:
            line = json.dumps(prediction, ensure_ascii=False)
        except RecursionError:
            raise InputError("The server's response is nested too deeply to be printed.") from None
        # Half of a surrogate pair has no UTF-8; JSON writes it as \ud800.
        print(line.encode("utf-8", "backslashreplace").decode("utf-8"), flush=True)


@command(
    "convert",
    "convert a model's format",
    settings=ConvertSettings,
    backends=("tensorflow", "jax"),
)
def convert(settings, arguments):
    """Convert a model between Hugging Face's folder, Google's checkpoints and keras-nlp's presets.

    keras-bert convert --input uncased_L-12_H-768_A-12 --output bert-base
    keras-bert convert --input bert-base --output for-google --to google
    keras-bert convert --input glove.6B.100d.txt --output glove
    keras-bert convert --input runs/vectors --output vectors.bin \\
      --to word2vec-binary

    The input's format is detected from its files. The weights are the same in all formats; what a
    format has no name for is reported.
    """
    import warnings

    from keras_bert.checkpoints.convert import convert

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        done = convert(**settings, report=report)
    notes = [str(note.message) for note in caught if issubclass(note.category, UserWarning)]
    notes += [f"{name} is not part of that format and was left out." for name in done["left_out"]]
    for note in dict.fromkeys(notes):
        print(f"Note: {note}")
    output, to = settings["output"], settings.get("to", "huggingface")
    print(f"{output}: {done['wrote']}, from a model in the format {done['found']}.")
    if to in ("huggingface", "allennlp", "model2vec"):  # formats that every command reads
        return _use_of(output, task_type=stored_task_type(output))
    if to in VECTOR_FORMATS:
        return f"keras-bert nearest --model {shlex.quote(output)} --word WORD"
    if to == "google":
        checkpoint = shlex.quote(f"{output}/bert_model.ckpt")
        return f"--init_checkpoint={checkpoint}, in google-research/bert"
    program = "import keras_nlp; keras_nlp.models.BertBackbone.from_preset({}).summary()"
    return one_liner(program, output)


@command("push", "publish a model on the Hugging Face hub", settings=PushSettings)
def push(settings, arguments):
    """Publish a model on the Hugging Face hub, with its model card.

    keras-bert push --model runs/spam --to owner/name
    keras-bert push --model runs/spam --to owner/name --private --revision epoch-3

    Log in once with `hf auth login`. The model card is README.md in the run's model folder; edit it
    before you publish it.
    """
    from keras_bert.checkpoints.convert import push

    print(f"Pushed: {push(**settings)}")
    at = f"@{settings['revision']}" if "revision" in settings else ""
    name = settings["to"].removeprefix("hf://")
    return _use_of(f"hf://{name}{at}", task_type=stored_task_type(settings["model"]))


def _use_of(model, *, task_type):
    """The command that uses a model of this task type, which is None for an encoder alone."""
    model = shlex.quote(model)
    if task_type in finetuned_task_types():
        return f"keras-bert predict --model {model} --data FILE"
    return f"keras-bert embed --model {model} --data FILE --output vectors.parquet"
