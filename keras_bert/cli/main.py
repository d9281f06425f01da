"""`keras-bert COMMAND …`: parses, runs the command, and reports errors in one sentence."""

import argparse
import contextlib
import os
import sys

from keras_bert import __version__
from keras_bert.base.errors import InputError
from keras_bert.base.files import parse_json, read_small
from keras_bert.base.signals import STOPPED, Terminated
from keras_bert.base.terminal import OutputError
from keras_bert.cli import (
    data_commands,
    doctor,
    model_commands,
    overview,
    serving_commands,
    training_commands,
)
from keras_bert.cli.command import command
from keras_bert.cli.flags import with_flags
from keras_bert.cli.quiet import quiet_libraries

SHELLS = ("bash", "zsh", "tcsh")
# The units of paths in the help.
_PATHS = ("FILE", "FOLDER", "PATH", "DIR", "run.json")
_DESCRIPTION = "From raw text to a served language model."
_NO_MEMORY = "Not enough memory{}. Free some, or use a smaller batch size, maximum length or model."


@command(
    "completion",
    "print a shell's completion of these commands",
    more_flags=lambda parser: parser.add_argument("shell", choices=SHELLS, help="the shell"),
)
def completion(settings, arguments):
    """Print the script with which a shell completes keras-bert's commands, flags and files.

    keras-bert completion bash > ~/.local/share/bash-completion/completions/keras-bert
    keras-bert completion zsh > ~/.zfunc/_keras-bert      (a folder of your fpath)

    The flags of a task type are those of a classifier.
    """
    print(completion_script(arguments.shell))


def completion_script(shell):
    import shtab

    parser, subparsers = make_parser([])
    for subparser in subparsers.values():
        for action in subparser._actions:
            if action.metavar in _PATHS:
                action.complete = shtab.FILE
    return shtab.complete(parser, shell=shell)


# By name, in the order in which a new user meets them.
COMMANDS = {
    each.name: each
    for each in (
        training_commands.quickstart,
        data_commands.vocab,
        data_commands.pretraining_data,
        data_commands.inspect,
        training_commands.pretrain,
        training_commands.finetune,
        training_commands.sweep,
        model_commands.evaluate,
        model_commands.predict,
        model_commands.embed,
        model_commands.fill_mask,
        serving_commands.export,
        serving_commands.serve,
        serving_commands.ask,
        serving_commands.convert,
        serving_commands.push,
        doctor.doctor,
        completion,
    )
}


def main(argv=None):
    """Runs one command; returns the exit status.

    0, 1 if memory ran out, 2 for bad input or output that cannot be written, 130 or 143 if
    interrupted.
    """
    arguments = parse(argv)
    command = COMMANDS.get(arguments.command)
    try:
        with contextlib.nullcontext() if arguments.verbose else quiet_libraries():
            if command is None:
                overview.show()
            else:
                _check_environment(command)
                command.run(arguments)
            sys.stdout.flush()
        return 0
    except InputError as error:
        status, message = 2, str(error)
    except BrokenPipeError:
        # The reader of the output closed it (`keras-bert predict … | head`), which is not an error.
        return 0
    except OutputError as error:
        status, message = 2, f"Cannot write to {error.filename}: {error.strerror}."
    except MemoryError as error:
        status, message = 1, _NO_MEMORY.format(f" ({error})" if str(error) else "")
    except KeyboardInterrupt as stop:
        status = 143 if isinstance(stop, Terminated) else 130
        message = str(stop) or STOPPED
    cls = getattr(arguments, "settings_class", None)
    print(f"keras-bert: {with_flags(message, cls)}", file=sys.stderr)
    return status


def _check_environment(command):
    """Raises `InputError` where the import of the libraries that a command needs would fail."""
    if sys.flags.optimize > 1 and command not in (doctor.doctor, completion):
        raise InputError(
            "TensorFlow Text cannot be imported without docstrings. Set PYTHONOPTIMIZE to 0 or 1, "
            "or run python without -OO."
        )
    backend, source = os.environ.get("KERAS_BACKEND"), "KERAS_BACKEND"
    if not backend:
        home = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
        source = os.path.join(home, "keras.json")
        with contextlib.suppress(OSError, ValueError, AttributeError):
            backend = parse_json(read_small(source)).get("backend")
    if backend and command.backends and backend not in command.backends:
        raise InputError(
            f"{command.name} needs {' or '.join(command.backends)} as the Keras backend. Received: "
            f"{backend!r} from {source}. Set KERAS_BACKEND=tensorflow."
        )


def parse(argv=None):
    """Returns the parsed arguments, with `command` (a name or None) and `beam_options`."""
    argv = sys.argv[1:] if argv is None else argv
    parser, subparsers = make_parser(argv)
    arguments, rest = parser.parse_known_args(argv)
    name = arguments.command
    if rest and (name is None or not COMMANDS[name].takes_beam_options):
        subparsers.get(name, parser).reject(rest)
    arguments.beam_options = rest
    return arguments


def make_parser(argv):
    """-> (the parser of all commands, {name: the parser of a command}).

    The flags of some commands depend on `argv` (the task type).
    """
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--verbose", action="store_true", help="also show what TensorFlow and Beam print"
    )
    parser = _Parser(prog="keras-bert", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"keras-bert {__version__}")
    parser.set_defaults(command=None, verbose=False)
    subparsers = parser.add_subparsers(metavar="COMMAND")
    for name, each in COMMANDS.items():
        subparser = subparsers.add_parser(
            name,
            parents=[common],
            help=each.summary,
            description=each.description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            # An abbreviated flag would change its meaning when a longer one is added, and would
            # capture options that are Beam's.
            allow_abbrev=False,
        )
        each.add_flags(subparser, argv)
        subparser.set_defaults(command=name)
    return parser, subparsers.choices


class _Parser(argparse.ArgumentParser):
    """Reports an error in one sentence, without the usage."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help.\n")

    def reject(self, unknown):
        """Reports arguments that are unknown, and the flags that begin like them."""
        what = "argument" if len(unknown) == 1 else "arguments"
        flags = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        begins = tuple(f"{flag}-" for flag in flags)
        longer = [known for known in self._option_string_actions if known.startswith(begins)]
        hint = f" (there is {' and '.join(longer)})" if longer else ""
        self.error(f"unknown {what} {' '.join(unknown)}{hint}")
