"""The commands that use a trained model: evaluate, compare, predict, zero-shot, those of
pre-training's heads and generate.
"""

import re
from importlib import import_module

from keras_bert.base.errors import InputError, argument
from keras_bert.base.formatting import counted, text_table
from keras_bert.cli.command import (
    after_pretraining,
    command,
    export_command,
    finetune_command,
    one_liner,
    report,
    report_next,
)
from keras_bert.cli.search_commands import evaluate_index
from keras_bert.cli.task_types import (
    has_data_folder,
    task_type_of,
    task_type_of_model,
    task_type_of_models,
)
from keras_bert.inference.settings import (
    EvaluateRecordsSettings,
    FillMaskSettings,
    FollowsSettings,
    GenerateCommandSettings,
    SurprisalCommandSettings,
    ZeroShotSettings,
    compare_command_settings,
    evaluate_settings,
    predict_settings,
)
from keras_bert.readers.glue import glue_submission
from keras_bert.search import EvaluateIndexSettings
from keras_bert.tasks import settings_class, task_class

_BACKENDS = ("tensorflow", "jax")
_ONLY = ("only_old", "only_new")  # what `compare` says of labels in sentences
# A list of numbers, which indented JSON writes one per line. Strings hold no line feeds.
_LIST_OF_NUMBERS = re.compile(r"(?<=\[)\n[-+.,\d\seE]+(?=\])")


def _evaluate_settings(first):
    if first.index is not None:
        return EvaluateIndexSettings
    if has_data_folder(first):
        return EvaluateRecordsSettings
    return evaluate_settings(settings_class(task_type_of_model(first)))


def _add_json(parser):
    parser.add_argument(
        "--json", action="store_true", help="print the metrics as JSON, for other programs"
    )


def metrics_text(metrics):
    """Metrics by name as tables: those that are numbers, then those with several for each."""
    numbers, tables = [], []
    for name, metric in metrics.items():
        if isinstance(metric, dict) and all(isinstance(x, dict) for x in metric.values()):
            columns = [*dict.fromkeys(key for row in metric.values() for key in row)]
            rows = [
                [key, *(row.get(column, "") for column in columns)] for key, row in metric.items()
            ]
            tables.append((rows, [name, *columns]))
        elif isinstance(metric, dict):
            numbers += [(f"{name} {key}", value) for key, value in metric.items()]
        elif metric and isinstance(metric, list) and isinstance(metric[0], dict):
            rows = [[*row.values()] for row in metric if row.get("examples", 1)]
            tables.append(([["", *row] for row in rows], [name, *metric[0]]))
        elif name == "confusion" and len(metrics.get("labels", ())) == len(metric[0]):
            labels = [*metrics["labels"]]
            rows = [[label, *row] for label, row in zip(labels, metric, strict=True)]
            tables.append((rows, ["expected \\ predicted", *labels]))
        elif not isinstance(metric, list):
            numbers.append((name, metric))
    tables = [text_table(rows, header=header) for rows, header in tables if rows]
    return "\n\n".join([text_table(numbers), *tables] if numbers else tables)


@command(
    "evaluate",
    "compute metrics on labelled examples, or on a data folder",
    settings=_evaluate_settings,
    more_flags=_add_json,
    backends=_BACKENDS,
)
def evaluate(settings, arguments):
    """Compute a model's metrics, and show them as tables, or with --json as JSON.

    A fine-tuned model is evaluated on labelled examples; flags of its task type set how the file is
    read. A pre-trained model is evaluated on the held-out examples of a data folder, with the flags
    --batch-size and --batches only.

    keras-bert evaluate --model runs/spam --data dev.tsv
    keras-bert evaluate --model runs/mnli --glue MNLI-mm --data glue/
    keras-bert evaluate --model runs/pretrained --data data/
    keras-bert evaluate --index texts.index --data beir/ --output queries.csv
    keras-bert evaluate --index texts.index --data beir/ --rerank runs/reranker

    An index is evaluated on a retrieval folder, by vectors, and if it has words also by words and
    by both, and with --rerank as a cross-encoder orders the first 50.
    """
    import json

    from keras_bert.inference.evaluate import evaluate

    if arguments.settings_class is EvaluateIndexSettings:
        metrics, output, next_step = evaluate_index(settings)
        as_json = json.dumps(metrics, indent=2, allow_nan=False)
        print(as_json if arguments.json else metrics_text(metrics))
        if output is not None:
            report(f"Wrote {output}.")
        return report_next(next_step)
    metrics = evaluate(**settings, report=report)
    errors = metrics.pop("errors", [])
    if arguments.json:
        text = json.dumps(metrics, indent=2, ensure_ascii=False, allow_nan=False)
        print(_LIST_OF_NUMBERS.sub(lambda numbers: " ".join(numbers[0].split()), text))
    else:
        print(metrics_text(metrics))
    for error in errors:
        report(task_class(task_type_of(settings["model"])).describe_error(error))
    if arguments.settings_class is EvaluateRecordsSettings:
        return report_next(after_pretraining(settings["model"], metrics))
    report_next(export_command(settings["model"]))


@command(
    "compare",
    "compare two models on the same labelled examples",
    settings=lambda first: compare_command_settings(settings_class(task_type_of_models(first))),
    more_flags=_add_json,
    backends=_BACKENDS,
)
def compare(settings, arguments):
    """Compare two models of one task on the same labelled examples, the earlier one first.

    keras-bert compare --models runs/march runs/april --data test.csv
    keras-bert compare --models savedmodels/tickets runs/april --data test.csv \\
      --output changed.csv --picture changed.png

    For each metric the difference and its 95 % interval (paired bootstrap), McNemar's test of the
    examples that one model alone has right, and F1 by label. --output gets the examples whose
    answer changed: better, worse or other.
    """
    import json

    from keras_bert.inference.compare import compare, describe_comparison, describe_labels

    picture = settings.pop("picture", None)
    if picture is not None:
        from keras_bert.pictures import check_picture

        check_picture(picture)
    compared = compare(**settings, report=report)
    if arguments.json:
        print(json.dumps(compared, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(metrics_text({n: x for n, x in compared.items() if n not in ("metric", *_ONLY)}))
    if settings.get("output") is not None:
        changed = sum(compared["changed"].values())
        print(f"Wrote {settings['output']}: {counted(changed, 'example')} with another answer.")
    if picture is not None:
        from keras_bert.pictures.comparison import draw_comparison

        print(f"Wrote {draw_comparison(compared, picture)}")
    for line in filter(None, (describe_comparison(compared), *describe_labels(compared))):
        report(line)
    report_next(export_command(settings["models"][1]))


@command(
    "predict",
    "predict with a fine-tuned model",
    settings=lambda first: predict_settings(settings_class(task_type_of_model(first))),
    is_job_with_runner=True,
    backends=_BACKENDS,
)
def predict(settings, arguments):
    """Predict with a fine-tuned model: one JSON object per line and example, in order.

    keras-bert predict --model runs/spam --data messages.txt
    tail -f messages.log | keras-bert predict --model runs/spam --data - --batch-size 1
    keras-bert predict --model runs/spam --text "Win cash prizes"
    keras-bert predict --model runs/spam --data messages.csv --output labelled.csv
    keras-bert predict --model runs/mnli --glue MNLI-mm --data glue/ \\
      --output submission/

    With --output, a table is written: the columns of the input, the label and its probabilities.
    With --glue, the lines are those of the file to submit, which --output writes into a folder.

    With --runner and other options of Apache Beam it is a job over many files, such as
    --data 'texts/*.csv' --output labelled.jsonl, a folder with a file for each (docs/clusters.md).
    """
    import json

    from keras_bert.inference.predict import predict

    if arguments.beam_options:
        return run_job("predict_files", settings, arguments)
    glue, output = settings.get("glue"), settings.get("output")
    predictions = predict(**settings, report=report)
    next_step = export_command(settings["model"])
    if output is not None and glue is not None:
        print(f"Wrote {predictions}")
        return report_next("the same for GLUE's other tasks; submit a zip of all eleven files.")
    if output is not None:
        print(f"Wrote {output}: {counted(predictions, 'row')}.")
        return report_next(next_step)
    lines = (json.dumps(p, ensure_ascii=False, allow_nan=False) for p in predictions)
    if glue is not None:
        lines = glue_submission(glue, predictions)
    for line in lines:
        print(line, flush=True)
    report_next(next_step)


def run_job(function, settings, arguments):
    """Runs a function of `data_gen.inference`, and returns the next step."""
    for name in ("data", "output"):
        if name not in settings:
            raise InputError.naming("A job needs {}. Pass it.", argument(name))
    names = {"model", "data", "output", "force"}
    given = {name: settings.pop(name) for name in names & settings.keys()}
    shards = getattr(import_module("data_gen.inference"), function)(
        **given, settings=settings, beam_options=arguments.beam_options, report=report
    )
    output, rows = given["output"], sum(shard["rows"] for shard in shards)
    print(f"{output}: {counted(rows, 'row')} in {counted(len(shards), 'file')}.")
    program = (  # Beam opens the files of any file system that it has written to
        "import json; from apache_beam.io.filesystems import FileSystems as files; "
        "print(*json.load(files.open({})), sep=chr(10))"
    )
    return one_liner(program, f"{output}/shards.json")


@command(
    "zero-shot",
    "choose among labels that the model was not trained on",
    settings=ZeroShotSettings,
    backends=_BACKENDS,
)
def zero_shot(settings, arguments):
    """Choose among labels that the model was not trained on, by natural-language inference.

    keras-bert zero-shot --model FOLDER --text "Who scored?" --labels sport --labels art
    keras-bert zero-shot --model FOLDER --data texts.txt --labels sport --labels art \\
      --template "This text is about {}."

    The model is a pair-classifier with a label "entailment", such as one trained on MNLI. Each
    label makes a hypothesis by the template. One JSON object per line and text is written, in
    order.
    """
    import json

    from keras_bert.inference.zero_shot import zero_shot

    for prediction in zero_shot(**settings, report=report):
        print(json.dumps(prediction, ensure_ascii=False, allow_nan=False), flush=True)
    report_next(finetune_command(settings["model"]))


@command(
    "fill-mask",
    "predict the words for [MASK] in a text",
    settings=FillMaskSettings,
    backends=_BACKENDS,
)
def fill_mask(settings, arguments):
    """Predict the tokens for [MASK] in a text, most probable first.

    keras-bert fill-mask --model FOLDER --text "She paid it into the [MASK]."
    keras-bert fill-mask --model FOLDER --text "The [MASK] sat on the [MASK]." \\
      --top-k 3
    keras-bert fill-mask --model FOLDER --text "She saw [MASK] [MASK] of it." \\
      --head span-boundary
    """
    from keras_bert.inference.fill_mask import fill_mask

    masks = fill_mask(**settings)
    for number, candidates in enumerate(masks, start=1):
        print("[MASK]" if len(masks) == 1 else f"[MASK] {number} of {len(masks)}")
        _print_candidates(candidates)
    return finetune_command(settings["model"])


def _print_candidates(candidates):
    for token, probability in candidates:
        print(f"  {probability:8.4f}  {token}")


@command(
    "follows",
    "say whether a text follows another",
    settings=FollowsSettings,
    backends=_BACKENDS,
)
def follows(settings, arguments):
    """Give the probability that a text follows another, by the second head of pre-training.

    keras-bert follows --model FOLDER --text-a "She opened the door." \\
      --text-b "It was raining."

    That is the next-sentence head of the objective mlm-nsp, or the sentence-order head of mlm-sop:
    then it is the probability that the two texts are in order.
    """
    from keras_bert.inference.fill_mask import follows

    for text_a, text_b, probability in follows(**settings):
        print(f"  {probability:8.4f}  {text_a} | {text_b}")
    return finetune_command(settings["model"], "pair-classifier")


@command(
    "surprisal",
    "show how surprising each token of a text is",
    settings=SurprisalCommandSettings,
    backends=_BACKENDS,
)
def surprisal(settings, arguments):
    """Show -log p of each token of a text, in nats, and the (pseudo-)perplexity.

    keras-bert surprisal --model FOLDER --text "She paid it into the bank." \\
      --picture bank.png
    keras-bert surprisal --model FOLDER --data texts.txt > surprisals.jsonl
    keras-bert surprisal --model FOLDER --data texts.txt --perplexity

    A masked LM predicts each token from all others, with a [MASK] in its place; a causal LM from
    those before it. Of a file, one JSON object per line and text is written, in order.
    """
    import json

    from keras_bert.inference.surprisal import pseudo_perplexity, surprisal

    picture, only_perplexity = settings.pop("picture", None), settings.pop("perplexity", False)
    next_step = finetune_command(settings["model"])
    if only_perplexity:
        number = pseudo_perplexity(**settings, report=report)
        print(json.dumps({"pseudo_perplexity": _finite(number)}))
        return report_next(next_step)
    if settings.get("data") is not None:
        for text in surprisal(**settings, report=report):
            line = {"line": text.line, "text": text.text, "tokens": text.tokens}
            line["surprisals"] = [round(nats, 6) for nats in text.surprisals.tolist()]
            line["log_probability"] = round(text.log_probability, 6)
            line["perplexity"] = _finite(text.perplexity)
            print(json.dumps(line, ensure_ascii=False, allow_nan=False), flush=True)
        return report_next(next_step)
    for text in surprisal(**settings):
        print(text.text)
        _print_candidates(zip(text.tokens, text.surprisals, strict=True))
        print(
            f"{text.log_probability:10.4f} nats, {counted(len(text.tokens), 'token')}, "
            f"perplexity {text.perplexity:.2f}"
        )
        if picture is not None:
            from keras_bert.pictures.tokens import draw_surprisal

            print(f"Wrote {draw_surprisal(found=text, output=picture)}")
    return next_step


def _finite(number):
    """A perplexity as JSON holds it: None for that of no tokens."""
    return round(number, 6) if number == number else None


@command(
    "generate",
    "continue a text with a causal language model",
    settings=GenerateCommandSettings,
    backends=_BACKENDS,
)
def generate(settings, arguments):
    """Continue a text, token by token, with a causal language model.

    keras-bert generate --model FOLDER --prompt "Let's stick to"
    keras-bert generate --model FOLDER --prompt "Once upon a time" --top-p 0.9 \\
      --seed 7
    keras-bert generate --model FOLDER --prompt "Let's stick to" --candidates
    keras-bert generate --model FOLDER --prompt "The cat sat on the mat." \\
      --log-probability

    Without --temperature, --top-k and --top-p the next token is always the most probable one; with
    any of them it is drawn at random, the same for the same --seed. A single text appears as it is
    generated.
    """
    from keras_bert.inference.generate import generate, log_probability, next_tokens

    model, prompts = settings["model"], settings["prompt"]
    shows = {name: settings.pop(name, False) for name in ("candidates", "log_probability")}
    if shows["candidates"]:
        top_k = {"top_k": settings["top_k"]} if settings.get("top_k") else {}
        for prompt in prompts:
            print(prompt)
            _print_candidates(next_tokens(model=model, prompt=prompt, **top_k))
    elif shows["log_probability"]:
        texts = log_probability(model=model, text=prompts)
        for prompt, text in zip(prompts, texts, strict=True):
            print(
                f"{text.log_probability:10.4f} nats, {counted(text.tokens, 'token')}, perplexity "
                f"{text.perplexity:.2f}: {prompt}"
            )
    elif len(prompts) == 1:
        began = []

        def show(text):
            if not began:
                began.append(True)
                print(prompts[0], end="")
            print(text, end="", flush=True)

        generate(**settings, on_text=show)
        print()
    else:
        for generated in generate(**settings):
            print(generated.prompt + generated.text)
    return export_command(model)
