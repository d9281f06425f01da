"""The commands that train: quickstart, pretrain, finetune, sweep, glue."""

import os
import shlex

from keras_bert.base.errors import InputError, damaged
from keras_bert.base.formatting import counted, percent
from keras_bert.cli.command import after_pretraining, as_run_here, command, console, report
from keras_bert.cli.task_types import (
    add_glue_dir,
    resolve_glue,
    task_type_of_teacher,
    task_type_to_train,
)
from keras_bert.samples.quickstart import QuickstartSettings
from keras_bert.training.distillation_settings import StaticDistillSettings, distill_settings
from keras_bert.training.finetuning_settings import finetune_settings
from keras_bert.training.settings import PretrainSettings
from keras_bert.training.sweep_settings import GlueSettings, sweep_settings

_BACKENDS = ("tensorflow", "jax")
# Name of a metric -> its name in a sentence.
_ACCURACIES = {
    "masked_lm_accuracy": "masked tokens",
    "causal_lm_accuracy": "next tokens",
    "forward_lm_accuracy": "next tokens",
    "backward_lm_accuracy": "previous tokens",
    "span_boundary_accuracy": "span boundaries",
    "next_sentence_accuracy": "next sentences",
    "sentence_order_accuracy": "sentence order",
}
_LOSSES = {
    "masked_lm_loss": "masked-token",
    "causal_lm_loss": "next-token",
    "forward_lm_loss": "next-token",
    "backward_lm_loss": "previous-token",
}
# Those of static vectors, with which no baseline compares.
_VECTOR_LOSSES = {"skip_gram_loss": "skip-gram", "cbow_loss": "CBOW"}


@command(
    "quickstart",
    "run the full pipeline on bundled sample data",
    settings=QuickstartSettings,
    backends=_BACKENDS,
)
def quickstart(settings, arguments):
    """Run the full pipeline on bundled sample data (about 4 minutes on 2 CPU cores).

    A vocabulary and pre-training records are made from Python's own manual and docstrings, and a
    small BERT is pre-trained on them. Taggers are fine-tuned on a few tagged sentences, from this
    model and from random weights, to show what pre-training is worth. A spam filter is fine-tuned,
    exported, and used. Each step shows the command that does the same on your own text.
    """
    from keras_bert.samples.quickstart import quickstart

    terminal = console()

    def report(line):
        is_command = line.lstrip().startswith("$ ")
        line = as_run_here(line) if is_command else line
        terminal.print(line, style="dim" if is_command else None, soft_wrap=True)

    results = quickstart(**settings, report=report)
    terminal.print(_quickstart_table(results))
    ask = shlex.quote(f"{settings['output']}/ask.py")
    return f'python {ask} {shlex.quote(str(results["savedmodel"]))} "your own message"'


def _quickstart_table(results):
    loss, spam = results["masked_lm"], results["spam"]
    sections = [
        [
            ("masked-token loss on held-out text, at the start (nats)", f"{loss['start']:.2f}"),
            ("… of the unigram baseline", f"{loss['unigram_entropy']:.2f}"),
            ("… at the end", f"{loss['end']:.2f}"),
            ("… at the end, on the training text", f"{loss['end_on_train']:.2f}"),
        ]
    ]
    for tags in results["tags"]:
        name = f"tagging accuracy after {tags['sentences']} sentences, pre-trained"
        pretrained, random = percent(tags["pretrained"]), percent(tags["random"])
        sections.append([(name, pretrained), ("… from random weights", random)])
    answers = [(f"… {a['text']}", f"{a['label']} ({a['score']:.2f})") for a in results["answers"]]
    name = f"spam filter accuracy on {spam['examples']} unseen messages"
    sections.append([(name, percent(spam["accuracy"])), *answers])
    times = {**results["seconds"], "total": results["total_seconds"]}
    sections.append([(step, f"{seconds:.1f} s") for step, seconds in times.items()])
    return _table("Quickstart", [("what", "left"), ("metric", "right")], sections)


@command(
    "pretrain",
    "pre-train an encoder on a data folder",
    settings=PretrainSettings,
    repeats_runs=True,
    backends=_BACKENDS,
)
def pretrain(settings, arguments):
    """Pre-train an encoder on a data folder; run the same command again to resume.

    Data of the objective mlm-nsp trains masked tokens and next sentences, mlm-sop masked tokens and
    sentence order, mlm masked tokens only, span masked tokens and span boundaries. With
    --causal-fraction, all or some examples are read from left to right. Several --data, --steps and
    --batch-size are phases of the run, one after another.

    keras-bert pretrain --data data --architecture mini --steps 5000 --output a
    keras-bert pretrain --data data --model bert-base --steps 5000 --output b
    keras-bert pretrain --data data --minutes 60 --output c
    keras-bert pretrain --data short long --steps 9000 1000 --batch-size 256 64 \\
      --output d
    tensorboard --logdir a/logs
    """
    from keras_bert.programs import is_written_here
    from keras_bert.training.pretrain import pretrain

    metrics = pretrain(**settings, report=report)
    if not is_written_here():
        return None
    with _results(settings["output"]):
        return _print_pretraining(metrics, settings)


def _print_pretraining(metrics, settings):
    """Prints the results of a pre-training run; returns the next command."""
    print(_size_and_time(metrics))
    if metrics["eval"]:
        start, end = metrics["eval_at_start"], metrics["eval"]
        for name, tokens in (_LOSSES | _VECTOR_LOSSES).items():
            if name in end:
                entropy = metrics["unigram_entropy"]
                baseline = f" (unigram baseline: {entropy:.3f})" if name in _LOSSES else ""
                print(
                    f"{tokens} loss on the eval split: {start[name]:.3f} at the start, "
                    f"{end[name]:.3f} at the end{baseline}"
                )
        accuracies = [f"{noun} {percent(end[n])}" for n, noun in _ACCURACIES.items() if n in end]
        if accuracies:
            print(f"accuracy at the end: {', '.join(accuracies)}")
    if "health" in metrics:  # not in the results of an earlier version
        verdict, findings = metrics["health"]["sentence"], metrics["health"].get("findings")
        if findings:  # not in the results of an earlier version
            verdict = "\n  ".join([f"{verdict.partition(': ')[0]}:", *findings])
        print(verdict)
    draw(settings["output"])
    _print_tensorboard(f"{settings['output']}/logs")
    return after_pretraining(f"{settings['output']}/model", metrics["eval"] or metrics["train"])


@command(
    "finetune",
    "fine-tune an encoder on labelled examples",
    settings=lambda first: finetune_settings(task_type_to_train(first)),
    repeats_runs=True,
    more_flags=add_glue_dir,
    prepare=resolve_glue,
    backends=_BACKENDS,
)
def finetune(settings, arguments):
    """Fine-tune an encoder on labelled examples; run the same command again to resume.

    keras-bert finetune --model runs/a --train train.tsv --dev dev.tsv \\
      --output runs/spam
    keras-bert finetune --model runs/a --train train.csv --folds 5 \\
      --output runs/folds
    keras-bert finetune --architecture mini --vocab vocab.txt --train … --dev … \\
      --output runs/random
    keras-bert finetune --glue MNLI --glue-dir FOLDER --model runs/a \\
      --output runs/mnli
    keras-bert finetune --freeze-encoder --layers mix-all --model … --train … \\
      --dev … --output b
    keras-bert finetune --num-seeds 5 --model … --train … --dev … --output runs/five
    keras-bert finetune --train-fraction 0.01 0.1 1 --baseline random \\
      --num-seeds 3 --model … --train … --dev … --output runs/sizes

    The flags depend on --task (default: classifier), and so do the file formats (docs/ has one page
    per family of tasks). The extension of a file says its form. - is standard input,
    tfds:NAME/CONFIG:SPLIT a prepared split.
    """
    from keras_bert.programs import is_written_here
    from keras_bert.training.finetune import finetune

    metrics = finetune(**settings, report=report)
    if not is_written_here():
        return None
    with _results(settings["output"]):
        return _print_finetuning(metrics, settings)


def _print_finetuning(metrics, settings):
    """Prints the results of one or several fine-tuning runs; returns the next command."""
    from keras_bert.tasks import task_class

    output, dev = settings["output"], metrics["dev"]
    if "training_sizes" in metrics:
        console().print(_sizes_table(metrics))
        print(
            f"The model of {metrics['kept']['run']}, the best on the dev data of the runs from "
            "--model, is kept:"
        )
    elif "runs" in metrics:
        folds = settings.get("folds")
        runs = counted(folds, "fold") if folds else counted(len(metrics["runs"]), "seed")
        print(f"over {runs}, mean and standard deviation on dev:")
        for name, mean in metrics["mean"].items():
            if isinstance(mean, float):
                print(f"  {name} {mean:.4f} ± {metrics['std'][name]:.4f}")
        best = "trained on all examples" if folds else "the best on the dev data"
        print(f"The model of {metrics['kept']['run']}, {best}, is kept:")
    print(_size_and_time(metrics))
    describe = task_class(settings.get("task", "classifier")).describe_metrics
    prefix = "all folds together, " if settings.get("folds") else ""
    print(f"{prefix}on the {counted(dev['examples'], 'dev example')}: {describe(dev)}")
    if "ensemble" in metrics:
        print(f"the ensemble, exported to {output}/ensemble: {describe(metrics['ensemble'])}")
    if "scalar_mix" in metrics:
        mix = metrics["scalar_mix"]
        weights = ", ".join(map(percent, mix["layer_weights"]))
        print(f"layer weights, the lowest layer first: {weights}, times {mix['gamma']:.2f}")
    draw(output)
    _print_tensorboard(f"{output}/{'runs' if 'runs' in metrics else 'logs'}")
    return f"keras-bert predict --model {shlex.quote(output)} --data FILE"


def _distill_settings(first):
    if first.static and first.data is None and first.settings is None:
        return StaticDistillSettings
    return distill_settings(task_type_of_teacher(first))


@command(
    "distill",
    "make a smaller model that answers as another one",
    settings=_distill_settings,
    repeats_runs=True,
    backends=_BACKENDS,
)
def distill(settings, arguments):
    """Train a smaller student on a teacher's answers; run the same command again to resume.

    keras-bert distill --teacher runs/spam --data texts.txt --architecture mini \\
      --output runs/small
    keras-bert distill --teacher runs/spam --data texts.csv --keep-layers 0 2 4 \\
      --output runs/half
    keras-bert distill --teacher hf://sentence-transformers/all-MiniLM-L6-v2 \\
      --static --output static

    The teacher is a classifier, a tagger, a regression or cross-encoder, or a text embedder; the
    flags depend on its task. The texts may have labels, which are then learned, too. With --static
    the student is one vector per token of an embedder, which needs no data.
    """
    from keras_bert.programs import is_written_here
    from keras_bert.training.distill import distill

    metrics = distill(**settings, report=report)
    if "kept" not in metrics:
        output = shlex.quote(settings["output"])
        return f"keras-bert embed --model {output} --data FILE --tokens none --output vectors.npy"
    if not is_written_here():
        return None
    with _results(settings["output"]):
        return _print_finetuning(metrics, {"task": metrics["task"], **settings})


@command(
    "sweep",
    "fine-tune with each combination of learning rate, batch size, epochs and layers",
    settings=lambda first: sweep_settings(task_type_to_train(first)),
    repeats_runs=True,
    more_flags=add_glue_dir,
    prepare=resolve_glue,
    backends=_BACKENDS,
)
def sweep(settings, arguments):
    """Fine-tune with each combination of rate, batch size, epochs and layers; keep the best.

    keras-bert sweep --model runs/a --train train.tsv --dev dev.tsv \\
      --output sweeps/spam
    keras-bert sweep --learning-rate 1e-4 5e-5 --batch-size 32 --epochs 3 \\
      --model … --output sweep-b
    keras-bert sweep --layers first layer-{1..12} --freeze-encoder --num-seeds 3 … \\
      --output sweep-c

    The default is 18 runs around the learning rate and the epochs of finetune, for base and many
    examples those of the BERT paper; the best model is the one with the best metric on the dev
    data. Several --layers are compared at finetune's own, unless others are given. Run the same
    command again to resume. The flags depend on --task (default: classifier).
    """
    from keras_bert.training.finetune import sweep

    metrics = sweep(**settings, report=report)
    with _results(settings["output"]):
        return _print_sweep(metrics, settings)


def _print_sweep(metrics, settings):
    """Prints the results of a sweep; returns the next command."""
    runs, best, output = metrics["runs"], metrics["kept"]["run"], settings["output"]
    more = [name for name in ("layers", "seed") if name in runs[best]]
    columns = [*more, "learning rate", "batch", "epochs", "best epoch"]
    columns.append(f"dev {metrics['best_metric']}")
    cells = [
        (
            *(str(run[name]) for name in more),
            f"{run['learning_rate']:g}",
            str(run["batch_size"]),
            str(run["epochs"]),
            str(run["kept"]["epoch"]),
            _number(run["metric"]),
            "best" if name == best else "",
        )
        for name, run in runs.items()
    ]
    header = [*((name, "right") for name in columns), ("", "left")]
    console().print(_table(counted(len(runs), "run"), header, [cells]))
    if "by_layers" in metrics:
        console().print(_layers_table(metrics))
    draw(output)
    print(f"Kept the model of {best}.")
    _print_tensorboard(f"{output}/runs")
    return f"keras-bert predict --model {shlex.quote(output)} --data FILE"


def _layers_table(metrics):
    """The scores of a sweep by the layers that the head reads."""
    scores = metrics["by_layers"]
    rows = [(layers, _scores(score)) for layers, score in scores.items()]
    header = [("layers", "left"), (f"dev {metrics['best_metric']}", "right")]
    return _table(f"by layers{_seeds(next(iter(scores.values())))}", header, [rows])


def _sizes_table(metrics):
    """The scores of the model, and of the baseline, by the number of training examples."""
    sizes = metrics["training_sizes"]
    rows = [
        (f"{same_size[0]['train_examples']:,}", *map(_scores, same_size))
        for same_size in zip(*sizes.values(), strict=True)
    ]
    header = [(name, "right") for name in ("training examples", *sizes)]
    title = f"dev {metrics['best_metric']}{_seeds(sizes['model'][0])}"
    return _table(title, header, [rows])


def _seeds(score):
    count = len(score["metrics"])
    return f", mean and standard deviation over {counted(count, 'seed')}" if count > 1 else ""


def _scores(score):
    """The mean and the standard deviation of several seeds' metrics as text."""
    deviation = "" if score["std"] is None else f" ± {score['std']:.4f}"
    return f"{_number(score['mean'])}{deviation}"


def _number(metric):
    return "NaN" if metric is None else f"{metric:.4f}"


@command(
    "glue",
    "fine-tune and evaluate on all of GLUE, and write the submission",
    settings=GlueSettings,
    repeats_runs=True,
    backends=_BACKENDS,
)
def glue(settings, arguments):
    """Fine-tune on every task of GLUE, with a table of the results and the file to submit.

    keras-bert glue --data glue --model hf://google-bert/bert-base-uncased \\
      --output runs/glue
    keras-bert glue --quick --num-seeds 3 --data glue --model runs/a \\
      --output runs/glue
    keras-bert glue --tasks MRPC RTE --dev-only --data glue --model runs/a \\
      --output runs/two

    The default is the 18 runs of the BERT paper for each task; the expected time is printed before
    training starts. Run the same command again to resume.
    """
    from keras_bert.training.glue import glue

    results = glue(**settings, report=report)
    with _results(settings["output"]):
        console().print(_glue_table(results))
    print(f"Metrics on the dev data, times 100: {settings['output']}/metrics.json")
    if results["submission"] is None:
        return None
    if results["missing"]:
        print(f"GLUE accepts a zip of all files. Missing: {', '.join(results['missing'])}")
    else:
        print("Upload the zip on gluebenchmark.com to get the metrics on the test data.")
    print(f"Wrote {results['submission']}")
    return None


def _glue_table(results):
    """The table of `glue`: a row per task, and the averages."""
    has_seeds = "mean" in results

    def hundredfold(value):
        return "" if value is None else f"{100 * value:.1f}"

    def over_seeds(result):
        if result.get("mean") is None:
            return ""
        return f"{hundredfold(result['mean'])} ± {hundredfold(result['std'])}"

    rows = []
    for name, result in results["tasks"].items():
        rate = "" if "epochs" not in result else f"{result['learning_rate']:g}"
        chosen = [rate, *(str(result.get(setting, "")) for setting in ("batch_size", "epochs"))]
        metrics = " / ".join(map(hundredfold, result["metrics"].values()))
        rows.append(
            [
                name,
                " / ".join(result["metrics"]),
                metrics,
                hundredfold(result["score"]),
                over_seeds(result),
            ]
            + chosen
        )
    averages = []
    for which, value in results["average"].items():
        if value is not None:
            seeds = {key: results[key][which] for key in ("mean", "std") if has_seeds}
            name = f"average {which.replace('_', ' ').replace('wnli', 'WNLI')}"
            averages.append([name, "", "", hundredfold(value), over_seeds(seeds), "", "", ""])
    columns = [("task", "left"), ("metrics", "left"), ("dev", "right"), ("score", "right")]
    columns += [("over seeds", "right")]
    columns += [(name, "right") for name in ("learning rate", "batch", "epochs")]
    shown = [
        number for number, (name, _) in enumerate(columns) if has_seeds or name != "over seeds"
    ]
    sections = [[[row[number] for number in shown] for row in table] for table in (rows, averages)]
    return _table("GLUE", [columns[number] for number in shown], sections)


def _table(title, columns, sections):
    """A Rich table; `columns` are (name, alignment), a row whose last cell is "best" is bold."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name, justify in columns:
        table.add_column(name, justify=justify)
    for rows in sections:
        table.add_section()
        for cells in rows:
            table.add_row(*cells, style="bold" if cells[-1] == "best" else None)
    return table


def _results(output):
    """The context in which results are printed, which may be those of a finished run's file."""
    return damaged(f"{output}/metrics.json", "Restore it from a copy, or use --force.")


def _size_and_time(metrics):
    total = metrics["parameters"]
    trainable = metrics.get("trainable_parameters", total)
    note = f" ({trainable:,} of them trainable)" if trainable < total else ""
    return (
        f"{counted(metrics['steps'], 'step')} of {total:,} parameters{note} in "
        f"{metrics['seconds'] / 60:.1f} minutes"
    )


def draw(output):
    """Draws the pictures of a run, and prints where they are, or why there are none."""
    from keras_bert.pictures.run import draw_run

    try:
        pictures = draw_run(output)
    except InputError as error:
        report(str(error))
    else:
        print(f"{counted(len(pictures), 'picture')}: {os.path.commonpath(pictures)}")


def _print_tensorboard(logs):
    print(as_run_here(f"TensorBoard: tensorboard --logdir {shlex.quote(logs)}"))
