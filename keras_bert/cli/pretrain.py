"""Pre-train an encoder on a data folder; the same command again goes on where it was stopped.

Rows of the objective mlm-nsp train masked tokens and next sentences, those of mlm-sop masked tokens
and the order of sentences, those of mlm masked tokens alone, those of span masked tokens and what
stands beside their spans. With --causal-fraction rows are read from left to right, all or some.
Several --data, --steps and --batch-size are phases of the run, one after another.

keras-bert pretrain --data data/ --vocab vocab.txt --architecture mini --steps 5000 --output runs/a
keras-bert pretrain --data data/ --vocab vocab.txt --model bert-base --steps 5000 --output runs/b
keras-bert pretrain --data data/ --vocab vocab.txt --minutes 60 --output runs/c
keras-bert pretrain --data short/ long/ --steps 9000 1000 --batch-size 256 64 --vocab vocab.txt \
  --output runs/d
tensorboard --logdir runs/a/logs
"""

import shlex

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, percent
from keras_bert.cli import flags
from keras_bert.cli.report import report

SUMMARY = "pre-train an encoder with masked tokens, and what else the rows are made for"
# Figure -> what a person calls it.
_ACCURACIES = {
    "masked_lm_accuracy": "masked tokens",
    "causal_lm_accuracy": "next tokens",
    "span_boundary_accuracy": "from the boundaries of their spans",
    "next_sentence_accuracy": "next sentences",
    "sentence_order_accuracy": "sentence order",
}
_LOSSES = {"masked_lm_loss": "masked-token", "causal_lm_loss": "next-token"}


def add_arguments(parser, argv):
    from keras_bert.training.settings import PretrainSettings

    flags.add(parser, PretrainSettings, command="pretrain")


def run(arguments):
    settings = flags.read(arguments)
    from keras_bert.training.pretrain import pretrain
    from keras_bert.training.strategies.strategy import is_written_here

    metrics = pretrain(**settings, report=report)
    if not is_written_here():
        return
    print(_described(metrics))
    if "health" in metrics:  # a run of an earlier version says nothing of it
        print(metrics["health"]["sentence"])
    _draw(arguments.output)
    logs, model = (shlex.quote(f"{arguments.output}/{name}") for name in ("logs", "model"))
    print(f"Curves: tensorboard --logdir {logs}")
    print(
        f"Next: keras-bert finetune --task classifier --model {model} "
        "--train FILE --dev FILE --output DIR"
    )


def _draw(output):
    """Draws the curves of a run, and says where they are, or why there are none."""
    from keras_bert.pictures.run import draw_run

    try:
        (path,) = draw_run(output)
    except InputError as error:
        report(str(error))
    else:
        print(f"Picture: {path}")


def _described(metrics):
    lines = [
        f"{counted(metrics['steps'], 'step')} of {metrics['parameters']:,} parameters in "
        f"{metrics['seconds'] / 60:.1f} minutes"
    ]
    if metrics["eval"]:
        start, end = metrics["eval_at_start"], metrics["eval"]
        accuracies = (
            f"{what} {percent(end[name])}" for name, what in _ACCURACIES.items() if name in end
        )
        lines += [
            f"{what} loss on the eval split: {start[name]:.3f} at the start, {end[name]:.3f} at "
            f"the end (from word frequencies alone: {metrics['unigram_entropy']:.3f})"
            for name, what in _LOSSES.items()
            if name in end
        ]
        lines.append(f"accuracy at the end: {', '.join(accuracies)}")
    return "\n".join(lines)
