"""`keras-bert COMMAND …`: parses, runs the command, and says what went wrong in one sentence."""

import argparse
import contextlib
import os
import sys
from importlib import import_module

from keras_bert import __version__
from keras_bert.base.errors import InputError
from keras_bert.base.files import parse_json, read_small
from keras_bert.base.signals import STOPPED, Terminated
from keras_bert.base.terminal import OutputError
from keras_bert.cli import way
from keras_bert.cli.flags import with_flags
from keras_bert.cli.quiet import quiet_libraries

# In the order in which a newcomer meets them; each is a module of this package.
COMMANDS = (
    "quickstart",
    "vocab",
    "pretraining-data",
    "inspect",
    "pretrain",
    "finetune",
    "sweep",
    "evaluate",
    "predict",
    "embed",
    "fill-mask",
    "export",
    "serve",
    "ask",
    "convert",
    "push",
    "doctor",
    "completion",
)

# The backends of Keras with which a command that loads it can do its work.
_TENSORFLOW = "quickstart pretrain finetune sweep evaluate predict fill-mask export".split()
_BACKENDS = {
    **dict.fromkeys(_TENSORFLOW, ("tensorflow",)),
    **dict.fromkeys(("embed", "convert"), ("tensorflow", "jax")),
}

_DESCRIPTION = "From raw text to a served language model."
_NO_MEMORY = (
    "There is not enough memory{}. Free some, or use a smaller batch size, maximum length or model."
)


def main(argv=None):
    """Runs one command; returns the exit status.

    0, 1 where memory ran out, 2 for bad input or output that cannot be written, 130 or 143 if
    stopped.
    """
    arguments = parse(argv)
    settings_class = getattr(arguments, "settings_class", None)
    try:
        with contextlib.nullcontext() if arguments.verbose else quiet_libraries():
            _check_environment(arguments.command)
            arguments.run(arguments)
            sys.stdout.flush()
    except InputError as error:
        print(f"keras-bert: {with_flags(str(error), settings_class)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output went away (`keras-bert predict … | head`): not an error of ours.
        return 0
    except OutputError as error:
        print(
            f"keras-bert: The {error.filename} cannot be written: {error.strerror}.",
            file=sys.stderr,
        )
        return 2
    except MemoryError as error:
        said = f" ({error})" if str(error) else ""
        print(f"keras-bert: {_NO_MEMORY.format(said)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        sentence = str(stop) or STOPPED
        print(f"keras-bert: {with_flags(sentence, settings_class)}", file=sys.stderr)
        return 143 if isinstance(stop, Terminated) else 130
    return 0


def _check_environment(command):
    """Raises `InputError` where the libraries that a command loads would fail at their import.

    So they do without docstrings, and with a backend of Keras that the command cannot work with.
    """
    if sys.flags.optimize > 1 and command not in (None, "doctor", "completion"):
        raise InputError(
            "TensorFlow Text cannot be loaded without docstrings. Set PYTHONOPTIMIZE to 0 or 1, or "
            "run python without -OO."
        )
    backend, said_by = os.environ.get("KERAS_BACKEND"), "KERAS_BACKEND"
    if not backend:
        said_by = os.path.join(
            os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras"), "keras.json"
        )
        with contextlib.suppress(OSError, ValueError, AttributeError):
            backend = parse_json(read_small(said_by)).get("backend")
    wanted = _BACKENDS.get(command)
    if backend and wanted and backend not in wanted:
        raise InputError(
            f"{command} needs {' or '.join(wanted)} as the backend of Keras. {said_by} says "
            f"{backend!r}. Set KERAS_BACKEND=tensorflow."
        )


def parse(argv=None):
    """Returns the parsed arguments, with `run` and, for Beam jobs, `beam_options`."""
    argv = sys.argv[1:] if argv is None else argv
    parser, commands = make_parser(argv)
    arguments, rest = parser.parse_known_args(argv)
    if rest and not arguments.takes_beam_options:
        commands[arguments.command].reject(rest)
    arguments.beam_options = rest
    return arguments


def make_parser(argv):
    """-> (the parser of all commands, that of each by its name).

    `argv` settles the flags of commands whose flags depend on others (the kind of a task).
    """
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--verbose", action="store_true", help="show what TensorFlow and Beam print, too"
    )
    parser = _Parser(prog="keras-bert", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"keras-bert {__version__}")
    parser.set_defaults(run=way.run, command=None, verbose=False, takes_beam_options=False)
    subparsers = parser.add_subparsers(metavar="COMMAND")
    for command in COMMANDS:
        module = import_module(f"keras_bert.cli.{command.replace('-', '_')}")
        subparser = subparsers.add_parser(
            command,
            parents=[common],
            help=module.SUMMARY,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            # An abbreviated flag would change its meaning when a longer one is added, and would
            # swallow options that are Beam's.
            allow_abbrev=False,
        )
        module.add_arguments(subparser, argv)
        subparser.set_defaults(
            run=module.run,
            command=command,
            takes_beam_options=getattr(module, "BEAM_OPTIONS", False),
        )
    return parser, subparsers.choices


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without a block of usage."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help.\n")

    def reject(self, unknown):
        """Says which arguments are not known, and what begins like them."""
        what = "argument" if len(unknown) == 1 else "arguments"
        flags = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        begins = tuple(f"{flag}-" for flag in flags)
        longer = [known for known in self._option_string_actions if known.startswith(begins)]
        there_are = f" (there is {' and '.join(longer)})" if longer else ""
        self.error(f"unknown {what} {' '.join(unknown)}{there_are}")
