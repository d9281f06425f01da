"""Fine-tune an encoder on labelled texts; the same command again goes on where it was stopped.

keras-bert finetune --model runs/a --train train.tsv --dev dev.tsv --output runs/spam
keras-bert finetune --architecture mini --vocab vocab.txt --train … --dev … --output runs/random
keras-bert finetune --frozen --scalar-mix --model … --train … --dev … --output runs/features
"""

from keras_bert.cli import flags, labelled_flags
from keras_bert.errors import InputError

SUMMARY = "fine-tune an encoder on labelled texts"


def add_arguments(parser):
    parser.add_argument(
        "--task",
        choices=("classifier",),
        default="classifier",
        help="classifier: one label for a text (default: %(default)s)",
    )
    parser.add_argument(
        "--model",
        metavar="FOLDER",
        help="the model folder, or the output of pretrain, to start from",
    )
    parser.add_argument(
        "--architecture",
        metavar="NAME|FILE",
        help="start from random weights instead: tiny, mini, small, medium, base, large, or a "
        "config.json",
    )
    flags.vocab(parser, "the vocabulary of an architecture", required=False)
    flags.cased(parser)
    labelled_flags.file(parser, "--train", "the texts to train on", required=False)
    labelled_flags.file(
        parser, "--dev", "the texts to evaluate on after each epoch", required=False
    )
    labelled_flags.columns(parser)
    parser.add_argument(
        "--output",
        required=True,
        metavar="FOLDER",
        help="gets model/, metrics.json, run.json, logs/ (TensorBoard) and checkpoints/",
    )
    flags.epochs(parser, default=3)
    flags.batch_size(parser, default=32)
    parser.add_argument(
        "--learning-rate",
        type=float,
        metavar="RATE",
        help="the highest rate, reached at the end of the warm-up (default: 5e-5, and 1e-3 with "
        "--frozen)",
    )
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
    parser.add_argument(
        "--dropout", type=float, metavar="SHARE", help="before the head (default: the model's own)"
    )
    parser.add_argument(
        "--frozen",
        action="store_true",
        help="train the head alone: the encoder's outputs are computed once and used in all epochs",
    )
    parser.add_argument(
        "--scalar-mix",
        action="store_true",
        help="the head reads a learned mix of all layers instead of the last one",
    )
    parser.add_argument(
        "--scalar-mix-l2",
        type=float,
        default=0.0,
        metavar="STRENGTH",
        help="pulls the mix toward the average (default: %(default)s)",
    )
    parser.add_argument(
        "--scalar-mix-layer-norm",
        action="store_true",
        help="normalise every layer before mixing",
    )
    flags.max_length(parser)
    parser.add_argument(
        "--keep",
        choices=("best", "last"),
        default="best",
        help="the model of the epoch with the best dev accuracy, or of the last one "
        "(default: %(default)s)",
    )
    flags.checkpoint_every(parser, default=500)
    flags.seed(parser)
    flags.deterministic(parser)
    flags.settings(parser, command="finetune")
    flags.force(parser)


def run(arguments):
    for name in ("train", "dev"):
        if getattr(arguments, name) is None:
            raise InputError(f"finetune needs --{name}, or --settings with the run.json of a run.")

    from keras_bert.train.finetune import finetune

    metrics = finetune(
        task=arguments.task,
        model=arguments.model,
        architecture=arguments.architecture,
        vocab=arguments.vocab,
        cased=arguments.cased,
        train=arguments.train,
        dev=arguments.dev,
        text_column=arguments.text_column,
        label_column=arguments.label_column,
        header=labelled_flags.header(arguments),
        output=arguments.output,
        epochs=arguments.epochs,
        batch_size=arguments.batch_size,
        learning_rate=arguments.learning_rate,
        warmup=arguments.warmup,
        weight_decay=arguments.weight_decay,
        dropout=arguments.dropout,
        frozen=arguments.frozen,
        scalar_mix=arguments.scalar_mix,
        scalar_mix_l2=arguments.scalar_mix_l2,
        scalar_mix_layer_norm=arguments.scalar_mix_layer_norm,
        max_length=arguments.max_length,
        keep=arguments.keep,
        checkpoint_every=arguments.checkpoint_every,
        seed=arguments.seed,
        deterministic=arguments.deterministic,
        force=arguments.force,
        report=labelled_flags.report,
    )
    dev = metrics["dev"]
    trained = metrics["trained_parameters"]
    of_them = f" ({trained:,} of them trained)" if trained < metrics["parameters"] else ""
    print(
        f"{metrics['steps']} steps of {metrics['parameters']:,} parameters{of_them} in "
        f"{metrics['seconds'] / 60:.1f} minutes"
    )
    print(
        f"on the {dev['examples']} dev texts: accuracy {100 * dev['accuracy']:.1f} %, "
        f"macro F1 {100 * dev['macro_f1']:.1f} %, Matthews {dev['matthews']:.3f}"
    )
    if "scalar_mix" in metrics:
        mix = metrics["scalar_mix"]
        shares = ", ".join(f"{100 * share:.1f}" for share in mix["shares"])
        print(f"layers in the mix, embeddings first: {shares} %, times {mix['gamma']:.2f}")
    print(f"Curves: tensorboard --logdir {arguments.output}/logs")
    print(f"Next: keras-bert predict --model {arguments.output} --data FILE")
