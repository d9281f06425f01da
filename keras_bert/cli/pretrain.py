"""Pre-train an encoder on a data folder; the same command again goes on where it was stopped.

Rows of the objective mlm-nsp train masked tokens and next sentences, those of mlm masked tokens
alone.

keras-bert pretrain --data data/ --vocab vocab.txt --architecture mini --steps 5000 --output runs/a
tensorboard --logdir runs/a/logs
"""

from keras_bert.cli import flags
from keras_bert.errors import InputError

SUMMARY = "pre-train an encoder with masked tokens, and next sentences where the rows have them"


def add_arguments(parser):
    parser.add_argument(
        "--data", metavar="FOLDER", help="the folder that keras-bert pretraining-data wrote"
    )
    flags.vocab(parser, "the vocabulary that its rows were made with", required=False)
    parser.add_argument(
        "--output",
        required=True,
        metavar="FOLDER",
        help="gets model/, metrics.json, run.json, logs/ (TensorBoard) and checkpoints/",
    )
    parser.add_argument(
        "--architecture",
        default="tiny",
        metavar="NAME|FILE",
        help="tiny, mini, small, medium, base, large, or a config.json (default: %(default)s)",
    )
    flags.steps(parser, required=False)
    flags.batch_size(parser, default=32)
    flags.learning_rate(parser, default=5e-4)
    parser.add_argument(
        "--warmup",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="share of the steps in which the rate rises from 0 (default: %(default)s)",
    )
    parser.add_argument(
        "--weight-decay",
        type=float,
        default=0.01,
        metavar="DECAY",
        help="of matrices; biases and norms have none (default: %(default)s)",
    )
    flags.checkpoint_every(parser, default=500)
    flags.eval_every(parser)
    parser.add_argument(
        "--eval-batches",
        type=int,
        metavar="N",
        help="evaluate on the first N batches of the eval split (default: on all of it)",
    )
    flags.seed(parser)
    flags.deterministic(parser)
    flags.settings(parser, command="pretrain")
    flags.force(parser)


def run(arguments):
    for name in ("data", "vocab", "steps"):
        if getattr(arguments, name) is None:
            raise InputError(f"pretrain needs --{name}, or --settings with the run.json of a run.")

    from keras_bert.train.pretrain import pretrain

    metrics = pretrain(
        data=arguments.data,
        vocab=arguments.vocab,
        output=arguments.output,
        architecture=arguments.architecture,
        steps=arguments.steps,
        batch_size=arguments.batch_size,
        learning_rate=arguments.learning_rate,
        warmup=arguments.warmup,
        weight_decay=arguments.weight_decay,
        seed=arguments.seed,
        eval_every=arguments.eval_every,
        eval_batches=arguments.eval_batches,
        checkpoint_every=arguments.checkpoint_every,
        deterministic=arguments.deterministic,
        force=arguments.force,
    )
    print(_report(metrics))
    print(f"Curves: tensorboard --logdir {arguments.output}/logs")
    print(
        f"Next: keras-bert finetune --task classifier --model {arguments.output}/model "
        "--train FILE --dev FILE --output DIR"
    )


def _report(metrics):
    lines = [
        f"{metrics['steps']} steps of {metrics['parameters']:,} parameters in "
        f"{metrics['seconds'] / 60:.1f} minutes"
    ]
    if metrics["eval"]:
        start, end = metrics["eval_at_start"], metrics["eval"]
        accuracy = f"accuracy at the end: masked tokens {100 * end['masked_lm_accuracy']:.1f} %"
        if "next_sentence_accuracy" in end:
            accuracy += f", next sentences {100 * end['next_sentence_accuracy']:.1f} %"
        lines += [
            f"masked-token loss on the eval split: {start['masked_lm_loss']:.3f} at the start, "
            f"{end['masked_lm_loss']:.3f} at the end "
            f"(from word frequencies alone: {metrics['unigram_entropy']:.3f})",
            accuracy,
        ]
    return "\n".join(lines)
