"""Fine-tune with every choice of rate, batch size and epochs; keep the model that is best on dev.

keras-bert sweep --model runs/a --train train.tsv --dev dev.tsv --output sweeps/spam
keras-bert sweep --learning-rate 1e-4 5e-5 --batch-size 32 --epochs 3 --model … --output sweeps/b

By itself it tries the 18 runs of the BERT paper. The same command again goes on where it was
stopped. The flags are those of the kind that --task names, or of a classifier.
"""

import shlex

from keras_bert.base.formatting import counted
from keras_bert.cli import flags
from keras_bert.cli.finetune import draw
from keras_bert.cli.glue import add_glue_data, kind_of_glue, settle_glue
from keras_bert.cli.kinds import kind_given
from keras_bert.cli.report import console, report

SUMMARY = "fine-tune with every choice of rate, batch size and epochs"


def add_arguments(parser, argv):
    from keras_bert.training.settings import sweep_settings

    kind = kind_of_glue(argv) or kind_given(argv, flag="--task")
    flags.add(parser, sweep_settings(kind), command="sweep")
    add_glue_data(parser)


def run(arguments):
    settle_glue(arguments)
    settings = flags.read(arguments)
    from keras_bert.training.finetune import sweep

    metrics = sweep(**settings, report=report)
    console().print(_table(metrics))
    output = arguments.output
    draw(output)
    logs = shlex.quote(f"{output}/logs")
    print(f"Kept the model of {metrics['kept']['run']}; all: tensorboard --logdir {logs}")
    print(f"Next: keras-bert predict --model {shlex.quote(output)} --data FILE")


def _table(metrics):
    from rich.table import Table

    runs, best = metrics["runs"], metrics["kept"]["run"]
    table = Table(title=counted(len(runs), "run"), title_justify="left")
    for column in ("rate", "batch", "epochs", "kept epoch", f"dev {metrics['best_metric']}"):
        table.add_column(column, justify="right")
    table.add_column("")
    for name, of_run in runs.items():
        table.add_row(
            f"{of_run['learning_rate']:g}",
            str(of_run["batch_size"]),
            str(of_run["epochs"]),
            str(of_run["kept"]["epoch"]),
            "NaN" if of_run["metric"] is None else f"{of_run['metric']:.4f}",
            "best" if name == best else "",
            style="bold" if name == best else None,
        )
    return table
