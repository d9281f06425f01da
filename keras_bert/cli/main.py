"""`keras-bert COMMAND …`: parses, runs the command, and reports errors in one sentence."""

import argparse
import contextlib
import difflib
import os
import sys

from keras_bert.base.errors import InputError, Naming
from keras_bert.base.files import parse_json, read_small
from keras_bert.base.signals import STOPPED, Terminated
from keras_bert.base.terminal import OutputError, set_quiet
from keras_bert.base.version import __version__
from keras_bert.cli import (
    data_commands,
    doctor,
    model_commands,
    overview,
    search_commands,
    serving_commands,
    settings_file,
    training_commands,
    vector_commands,
)
from keras_bert.cli.command import command, spelled_as_flag
from keras_bert.cli.library_output import quiet_libraries, warnings_as_notes
from keras_bert.cli.task_types import first_arguments
from keras_bert.tasks import finetuned_task_types, settings_class, task_type_named
from keras_bert.training.finetuning_settings import LabelledRunSettings

SHELLS = ("bash", "zsh", "tcsh")
# The units of paths in the help.
_PATHS = ("FILE", "FOLDER", "PATH", "DIR", "run.json")
_DESCRIPTION = "Train, fine-tune and serve BERT, from a CSV or raw text to a SavedModel."
# What people type -> what they mean.
_SYNONYMS = {
    "train": "finetune",
    "fine-tune": "finetune",
    "infer": "predict",
    "test": "evaluate",
    "--lr": "--learning-rate",
    "--bs": "--batch-size",
    "--num-epochs": "--epochs",
    "--num-train-epochs": "--epochs",
    "--train-file": "--train",
    "--validation-file": "--dev",
    "--output-dir": "--output",
    "--model-name-or-path": "--model",
    "--max-seq-length": "--max-length",
    "--task-name": "--task",
}
_BACKENDS = ("tensorflow", "jax", "torch", "numpy", "openvino")  # of Keras
_NO_MEMORY = "Not enough memory{}. Free some, or use a smaller batch size, maximum length or model."


@command(
    "completion",
    "print a shell's completion of these commands",
    more_flags=lambda parser: parser.add_argument("shell", choices=SHELLS, help="the shell"),
)
def completion(settings, arguments):
    """Print the script with which a shell completes keras-bert's commands, flags and files.

    mkdir -p ~/.local/share/bash-completion/completions ~/.zfunc
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


# The commands as `keras-bert --help` lists them.
GROUPS = {
    "use a published model": (
        training_commands.finetune,
        training_commands.sweep,
        training_commands.distill,
        training_commands.glue,
        model_commands.evaluate,
        model_commands.compare,
        model_commands.predict,
        model_commands.zero_shot,
        vector_commands.embed,
        model_commands.fill_mask,
        model_commands.follows,
        model_commands.surprisal,
        model_commands.generate,
        vector_commands.senses,
        vector_commands.nearest,
        search_commands.index,
        search_commands.search,
        search_commands.mine_negatives,
    ),
    "serve": (
        serving_commands.export,
        serving_commands.serve,
        serving_commands.ask,
        serving_commands.convert,
        serving_commands.push,
    ),
    "pre-train on your own text": (
        data_commands.vocab,
        data_commands.pretraining_data,
        data_commands.inspect,
        training_commands.pretrain,
    ),
    "more": (training_commands.quickstart, settings_file.init, doctor.doctor, completion),
}
COMMANDS = {one.name: one for commands in GROUPS.values() for one in commands}


def main(argv=None):
    """Runs one command; returns the exit status.

    0, 1 if memory ran out, 2 for bad input or output that cannot be written, 130 or 143 if
    interrupted.
    """
    arguments = None
    try:
        arguments = parse(argv)
        command = COMMANDS.get(arguments.command)
        set_quiet(arguments.quiet)
        with warnings_as_notes() if arguments.verbose else quiet_libraries():
            if command is None:
                overview.show()
            else:
                _check_environment(command)
                command.run(arguments)
            sys.stdout.flush()
        return 0
    except InputError as error:
        cls = getattr(arguments, "settings_class", LabelledRunSettings)
        status, message = 2, error.worded(spelled_as_flag(cls))
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
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        status, message = 1, _NO_MEMORY.format(" on the device")
    print(f"keras-bert: {message}", file=sys.stderr)
    return status


def _is_out_of_memory(error):
    """Whether an error of the Keras backend means that the memory of its device was not enough."""
    programs = sys.modules.get("keras_bert.programs")  # else nothing was computed
    return programs is not None and programs.is_out_of_memory(error)


def _check_environment(command):
    """Raises `InputError` if the import of the libraries that a command needs would fail."""
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
    if backend and backend not in _BACKENDS and command is not completion:
        raise InputError(
            f"Keras has no backend {backend!r}, which {source} names. Expected one of "
            f"{', '.join(_BACKENDS)}. Set KERAS_BACKEND=tensorflow."
        )


def parse(argv=None):
    """Returns the parsed arguments, with `command` (a name or None) and `beam_options`."""
    argv = sys.argv[1:] if argv is None else argv
    parser, subparsers = make_parser(argv)
    if (task := first_arguments(argv).task) is not None:
        task_type_named(task)  # raises an error if it is unknown
    arguments, rest = parser.parse_known_args(argv)
    name = arguments.command
    if rest and (name is None or not COMMANDS[name].accepts(rest)):
        subparsers.get(name, parser).reject(rest)
    arguments.beam_options = rest
    return arguments


def make_parser(argv):
    """-> (the parser of all commands, {name: the parser of a command}).

    The flags of the command in `argv` depend on its `first_arguments`: the task type, or the model.
    """
    first, nothing = first_arguments(argv), first_arguments([])
    parser = _MainParser(prog="keras-bert", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"keras-bert {__version__}")
    parser.set_defaults(command=None, verbose=False, quiet=False)
    subparsers = parser.add_subparsers(metavar="COMMAND", prog="keras-bert", parser_class=_Parser)
    for name, one in COMMANDS.items():
        subparser = subparsers.add_parser(
            name,
            usage=f"keras-bert {name} [flags]",
            help=one.summary,
            description=one.description,
            formatter_class=_Help,
            # An abbreviated flag would change its meaning when a longer one is added, and would
            # capture options that are Beam's.
            allow_abbrev=False,
            add_help=False,
        )
        one.add_flags(subparser, first if name == first.command else nothing)
        _add_common_flags(subparser, has_more=one.settings is not None)
        subparser.set_defaults(command=name)
    return parser, subparsers.choices


def _add_common_flags(parser, *, has_more):
    """The flags that every command has, as the last group."""
    group = parser.add_argument_group("output and help")
    group.add_argument("--quiet", action="store_true", help="show results and errors only")
    group.add_argument(
        "--verbose", action="store_true", help="also show what TensorFlow and Beam print"
    )
    group.add_argument("-h", "--help", action="help", help="show the common flags and exit")
    if has_more:
        group.add_argument("--help-all", action="help", help="show all flags and exit")


class _Parser(argparse.ArgumentParser):
    """Reports an error in one sentence, without the usage, and suggests what may be meant."""

    def _print_message(self, message, file=None):
        if message:
            file = file or sys.stderr
            file.write(message)
            file.flush()  # if `main` reports an error: at exit it would be lost

    def _check_value(self, action, value):
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            self.error(f"Unknown command {value!r}.{_suggestion(value, action.choices)}")
        super()._check_value(action, value)

    def error(self, message):
        sentence = message[:1].upper() + message[1:]  # argparse's own begin in lower case
        end = "" if sentence.endswith((".", "?")) else "."
        self.exit(2, f"{self.prog}: {sentence}{end} See {self.prog} --help.\n")

    def reject(self, unknown):
        """Reports arguments that are unknown, and the flags that begin like them."""
        noun = "argument" if len(unknown) == 1 else "arguments"
        flags = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        cls = self.get_default("settings_class")
        removed = {} if cls is None else cls.removed()
        for flag in flags:
            if advice := removed.get(flag.removeprefix("--").replace("-", "_")):
                advice = Naming(advice).worded(spelled_as_flag(cls))
                self.error(f"{flag} was removed. {advice}")
        hints = {_owner(flag) or _suggestion(flag, self._option_string_actions) for flag in flags}
        self.error(f"Unknown {noun}: {' '.join(unknown)}.{''.join(sorted(hints))}")


class _Help(argparse.HelpFormatter):
    """Fills the paragraphs of a description to the terminal's width, and leaves examples alone."""

    def _fill_text(self, text, width, indent):
        paragraphs = text.split("\n\n")
        return "\n\n".join(
            paragraph
            if paragraph.startswith(("keras-bert ", "mkdir ", " "))
            else super(_Help, self)._fill_text(paragraph, width, indent)
            for paragraph in paragraphs
        )


class _MainParser(_Parser):
    """The parser of all commands, which are listed by what they are for."""

    def format_help(self):
        lines = ["usage: keras-bert COMMAND [flags]", "", self.description, ""]
        for title, commands in GROUPS.items():
            lines += [f"{title}:", *(f"  {c.name:<18}{c.summary}" for c in commands), ""]
        lines.append("keras-bert COMMAND --help shows the flags of a command.")
        return "\n".join([*lines, ""])


def _owner(flag):
    """A hint if the flag is that of another task, or `--no-…` of a flag that takes yes or no."""
    if flag == "--no-header":
        return " Write it as --header no."
    name = flag.removeprefix("--").removeprefix("no-").replace("-", "_")
    task_types = [
        task_type
        for task_type in finetuned_task_types()
        if name in settings_class(task_type).names()
    ]
    return f" {flag} is a flag of --task {' and '.join(task_types)}." if task_types else ""


def _suggestion(word, names):
    """A hint at names that are similar to a word, or that another program calls so."""
    longer = [name for name in names if word.startswith("--") and name.startswith(f"{word}-")]
    synonyms = [name for name in names if name == _SYNONYMS.get(word)]
    hints = longer or synonyms or difflib.get_close_matches(word, names, n=1)
    return f" Did you mean {' or '.join(hints)}?" if hints else ""
