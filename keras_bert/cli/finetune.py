"""Fine-tune an encoder on labelled examples; the same command again goes on where it was stopped.

keras-bert finetune --model runs/a --train train.tsv --dev dev.tsv --output runs/spam
keras-bert finetune --architecture mini --vocab vocab.txt --train … --dev … --output runs/random
keras-bert finetune --glue MNLI --glue-dir FOLDER --model runs/a --output runs/mnli
keras-bert finetune --freeze-encoder --scalar-mix --model … --train … --dev … --output runs/features
keras-bert finetune --num-seeds 5 --model … --train … --dev … --output runs/five

The flags are those of the kind that --task names, or of a classifier where it is left out. What a
file may look like depends on it, too (docs/ has a page a family), and is told by content; - is
standard input, tfds:NAME/CONFIG:SPLIT a prepared split.
"""

import shlex

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent
from keras_bert.cli import flags
from keras_bert.cli.glue import add_glue_data, kind_of_glue, settle_glue
from keras_bert.cli.kinds import kind_given
from keras_bert.cli.report import report

SUMMARY = "fine-tune an encoder on labelled examples"


def add_arguments(parser, argv):
    from keras_bert.training.settings import finetune_settings

    kind = kind_of_glue(argv) or kind_given(argv, flag="--task")
    flags.add(parser, finetune_settings(kind), command="finetune")
    add_glue_data(parser)


def run(arguments):
    settle_glue(arguments)
    settings = flags.read(arguments)
    from keras_bert.training.finetune import finetune
    from keras_bert.training.strategies.strategy import is_written_here

    metrics = finetune(**settings, report=report)
    if not is_written_here():
        return
    if "runs" in metrics:
        _tell_seeds(metrics)
    dev = metrics["dev"]
    trained = metrics["trainable_parameters"]
    of_them = f" ({trained:,} of them trained)" if trained < metrics["parameters"] else ""
    print(
        f"{counted(metrics['steps'], 'step')} of {metrics['parameters']:,} parameters{of_them} in "
        f"{metrics['seconds'] / 60:.1f} minutes"
    )
    print(f"on the {counted(dev['examples'], 'dev example')}: {_described(settings, dev)}")
    if "scalar_mix" in metrics:
        mix = metrics["scalar_mix"]
        fractions = ", ".join(map(percent, mix["layer_weights"]))
        print(f"layers in the mix, embeddings first: {fractions}, times {mix['gamma']:.2f}")
    draw(arguments.output)
    logs = "runs" if "runs" in metrics else "logs"
    print(f"Curves: tensorboard --logdir {shlex.quote(f'{arguments.output}/{logs}')}")
    print(f"Next: keras-bert predict --model {shlex.quote(arguments.output)} --data FILE")


def draw(output):
    """Draws the pictures of a run, and says where they are, or why there are none."""
    from keras_bert.pictures.run import draw_run

    try:
        drawn = draw_run(output)
    except InputError as error:
        report(str(error))
    else:
        print(f"{counted(len(drawn), 'picture')}: {output}/pictures")


def _tell_seeds(metrics):
    print(f"over {counted(len(metrics['runs']), 'seed')}, mean and standard deviation on dev:")
    for name, mean in metrics["mean"].items():
        if isinstance(mean, float):
            print(f"  {name} {mean:.4f} ± {metrics['std'][name]:.4f}")
    print(f"The model of {metrics['kept']['run']}, the best on the dev data, is kept:")


def _described(settings, metrics):
    from keras_bert.tasks import task_class

    return task_class(settings.get("task", "classifier")).describe_metrics(metrics)
