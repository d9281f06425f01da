"""Flags that mean the same in every command that has them."""

import argparse

from keras_bert.errors import InputError


def _positive(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_positive.__name__ = "positive whole number"  # argparse puts this into its message


def seed(parser):
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="same seed, same input, same result (default: %(default)s)",
    )


def force(parser, help="begin anew: delete what this command left in the output before"):
    parser.add_argument("--force", action="store_true", help=help)


def max_length(parser, default=128):
    parser.add_argument(
        "--max-length",
        type=_positive,
        default=default,
        metavar="TOKENS",
        help="tokens in a row, [CLS] and [SEP] counted in (default: %(default)s)",
    )


def batch_size(parser, default):
    parser.add_argument(
        "--batch-size",
        type=_positive,
        default=default,
        metavar="ROWS",
        help="rows in a step (default: %(default)s)",
    )


def epochs(parser, default):
    parser.add_argument(
        "--epochs",
        type=_positive,
        default=default,
        help="passes over the training data (default: %(default)s)",
    )


def steps(parser, required=True):
    parser.add_argument(
        "--steps", type=_positive, required=required, help="optimizer steps to train for"
    )


def learning_rate(parser, default):
    parser.add_argument(
        "--learning-rate",
        type=float,
        default=default,
        metavar="RATE",
        help="the highest rate, reached at the end of the warm-up (default: %(default)s)",
    )


def vocab(parser, what, *, required):
    parser.add_argument(
        "--vocab",
        required=required,
        metavar="PATH",
        help=f"{what}: a vocab.txt, or a folder with a vocabulary (byte-pair encoding: vocab.json "
        "and merges.txt)",
    )


def cased(parser):
    parser.add_argument(
        "--cased", action="store_true", help="keep capitals and accents (default: fold them)"
    )


def checkpoint_every(parser, default):
    parser.add_argument(
        "--checkpoint-every",
        type=_positive,
        default=default,
        metavar="STEPS",
        help="steps between two checkpoints to resume from (default: %(default)s)",
    )


def eval_every(parser):
    parser.add_argument(
        "--eval-every",
        type=_positive,
        metavar="STEPS",
        help="steps between two evaluations (default: at every checkpoint)",
    )


def settings(parser, command):
    """`--settings run.json`; the flags that a run.json can stand for must not be `required`."""
    parser.add_argument(
        "--settings",
        action=_Settings,
        command=command,
        metavar="run.json",
        help="take the settings of a former run from its run.json; a flag that is given another "
        "value than its default wins over the file",
    )


class _Settings(argparse.Action):
    """Fills in, from a run.json, what the command line leaves at its default."""

    def __init__(self, option_strings, dest, *, command, **options):
        super().__init__(option_strings, dest, **options)
        self.command = command

    def __call__(self, parser, namespace, values, option_string=None):
        from keras_bert.train.run_folder import read_settings

        try:
            found = read_settings(values, command=self.command)
        except InputError as error:
            raise argparse.ArgumentError(self, str(error)) from error
        for name, value in found.items():
            if not hasattr(namespace, name):
                raise argparse.ArgumentError(
                    self, f"{values} has the setting {name}, which {self.command} does not know."
                )
            if getattr(namespace, name) == parser.get_default(name):
                setattr(namespace, name, value)
        setattr(namespace, self.dest, values)


def deterministic(parser):
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="the same weights to the last bit in every run on this machine (slower)",
    )
