"""The commands of vectors: embed, senses and nearest."""

import json
import shlex

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted
from keras_bert.cli.command import (
    command,
    finetune_command,
    one_liner,
    report,
    report_next,
    spelled_as_flag,
)
from keras_bert.cli.model_commands import run_job
from keras_bert.inference.vector_settings import (
    EmbedCommandSettings,
    NearestSettings,
    SensesCommandSettings,
)
from keras_bert.readers import TextFileSettings

_BACKENDS = ("tensorflow", "jax")


@command(
    "embed",
    "write contextual embeddings of words and texts",
    settings=EmbedCommandSettings,
    is_job_with_runner=True,
    backends=("tensorflow", "jax"),
)
def embed(settings, arguments):
    """Write contextual embeddings of the words and texts of a file.

    keras-bert embed --model FOLDER --data texts.txt --output embeddings.parquet
    keras-bert embed --model FOLDER --data texts.txt --output e.parquet \\
      --layers concat-last-4
    keras-bert embed --model FOLDER --data tickets.csv --tokens none \\
      --output vectors.parquet --picture map.png --colour-by queue

    For each text: its tokens with their offsets (in characters) and vectors, the vector of the
    first token, and the mean over the text. Texts may have any length.

    With --runner and other options of Apache Beam it is a job over many files, such as
    --data 'texts/*.txt' --output vectors.parquet, a folder with a file for each (docs/clusters.md).
    """
    from keras_bert.inference.embed_to_file import embed_to_file

    picture, colour_by = settings.pop("picture", None), settings.pop("colour_by", None)
    if arguments.beam_options:
        if picture is not None:
            raise InputError.naming("A job draws no {picture}. Leave it out.")
        return run_job("embed_files", settings, arguments)

    counts = embed_to_file(**settings, progress=True, report=report)
    output = settings["output"]
    tokens = f", {counted(counts['tokens'], 'token')}" if settings.get("tokens") != "none" else ""
    print(
        f"{output}: {counted(counts['texts'], 'text')}{tokens}, vectors of size {counts['width']}."
    )
    if picture is not None:
        from keras_bert.inference.embed_to_file import read_vectors
        from keras_bert.pictures.texts import draw_texts

        vectors, labels = read_vectors(output, column=colour_by)
        print(f"Wrote {draw_texts(vectors, picture, labels=labels)}")
    program = "import pyarrow.parquet as p; print(p.read_table({}).slice(0, 1))"
    if output.endswith(".npy"):
        program = "import numpy; print(numpy.load({}).shape)"
    return one_liner(program, output)


@command(
    "senses",
    "tell the senses of words apart by their vectors",
    settings=SensesCommandSettings,
    backends=_BACKENDS,
)
def senses(settings, arguments):
    """Learn the vectors of word senses, predict senses, and compare two words in context.

    keras-bert senses --model FOLDER --train senses.tsv --output senses.safetensors
    keras-bert senses --model FOLDER --predict senses.safetensors \\
      --text "a **bank** lends"
    keras-bert senses --model FOLDER --pairs cosimlex_en.tsv --layers layer-8

    A line of --train is a text with a marked word, as in the last example but one, and its sense,
    such as bank%river. The accuracy is that of the nearest mean vector, by layer; without --dev,
    each example is predicted from the others. Predictions are JSON Lines, metrics of pairs JSON.
    """
    from keras_bert.inference.senses import SenseVectors, senses, word_similarity

    model = shlex.quote(settings["model"])
    next_step = f"keras-bert embed --model {model} --data FILE --output vectors.parquet"
    if settings.get("predict") is not None:
        vectors = SenseVectors.load(settings["predict"], model=settings["model"])
        names = ("text", "data", *TextFileSettings.names())
        given = {name: settings[name] for name in names if settings.get(name) is not None}
        for sense in vectors.predict(**given, report=report):
            print(json.dumps(sense._asdict(), ensure_ascii=False), flush=True)
        return report_next(next_step)
    if settings.get("pairs") is not None:
        layers = settings.get("layers") or ["last"]
        for choice in [layers] if isinstance(layers, str) else layers:
            metrics = word_similarity(
                model=settings["model"], pairs=settings["pairs"], layers=choice, report=report
            )
            print(json.dumps({"layers": choice, **metrics}, allow_nan=False))
        return report_next(next_step)
    metrics = senses(**settings, report=report).metrics
    for layers, accuracy in metrics["accuracy"].items():
        print(f"  {accuracy:8.4f}  {layers}")
    print(f"  {metrics['most_frequent_sense']:8.4f}  (the most frequent sense of each word)")
    print(
        f"Accuracy on {counted(metrics['examples'], 'example')}: "
        f"{counted(metrics['senses'], 'sense')} of {counted(metrics['words'], 'word')}."
    )
    output = settings.get("output")
    if output is None:
        again = {**settings, "layers": metrics["layers"], "output": "NAME.safetensors"}
        spelled = spelled_as_flag(SensesCommandSettings)
        flags = (spelled(name, str(value)) for name, value in again.items())
        return f"keras-bert senses {' '.join(flags)}"
    print(f"Wrote {output}: the sense vectors of {metrics['layers']}.")
    return f'keras-bert senses --model {model} --predict {shlex.quote(str(output))} --text "…"'


@command(
    "nearest",
    "find the words with the nearest vectors",
    settings=NearestSettings,
    backends=_BACKENDS,
)
def nearest(settings, arguments):
    """Find the words whose vectors are nearest to a word's, and evaluate word vectors.

    keras-bert nearest --model runs/vectors --word bank
    keras-bert nearest --model glove.6B.100d.txt --analogy king man woman
    keras-bert nearest --model runs/vectors --analogies questions-words.txt
    keras-bert nearest --model runs/vectors --pairs wordsim353.csv

    Vectors are those of the token embedding, compared by their cosine. The metrics of a file are
    written as JSON.
    """
    from keras_bert.inference.nearest import nearest

    next_step = finetune_command(settings["model"])
    neighbours = nearest(**settings)
    if isinstance(neighbours, dict):  # the metrics of a file
        print(json.dumps(neighbours, indent=2, ensure_ascii=False, allow_nan=False))
        return report_next(next_step)
    for word, similarity in neighbours:
        print(f"  {similarity:8.4f}  {word}")
    return next_step
