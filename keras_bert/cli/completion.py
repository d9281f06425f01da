"""Print what completes keras-bert's commands, flags and files in a shell.

keras-bert completion bash > ~/.local/share/bash-completion/completions/keras-bert
keras-bert completion zsh > ~/.zfunc/_keras-bert      (a folder of your fpath)

Flags of a kind of task are those of a classifier.
"""

SUMMARY = "print a shell's completion of these commands"
SHELLS = ("bash", "zsh", "tcsh")

# What stands for a path in the help.
_PATHS = ("FILE", "FOLDER", "PATH", "DIR", "run.json")


def add_arguments(parser, argv):
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(arguments):
    print(completion(arguments.shell))


def completion(shell):
    """The script of a shell."""
    import shtab

    from keras_bert.cli.main import make_parser

    parser, commands = make_parser([])
    for command in commands.values():
        for action in command._actions:
            if action.metavar in _PATHS:
                action.complete = shtab.FILE
    return shtab.complete(parser, shell=shell)
