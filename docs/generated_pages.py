"""Pages that are made when the site is built: a page a command, and the Python names.

Hooks of mkdocs (mkdocs.yml names this file). What the commands and functions say of themselves
stands in their source, once.
"""

import dataclasses
import os
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

os.environ["COLUMNS"] = "100"  # how wide argparse writes

COMMANDS, NAMES = "commands.md", "python_names.md"


def on_config(config):
    """Leaves pages out of the navigation that are not there, and adds those that nobody named."""
    docs = Path(config.docs_dir)
    there = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    generated = {COMMANDS, NAMES}
    nav, named = _held(config.nav, there | generated)
    pages = [{command: f"commands/{command}.md"} for command in _all_commands()]
    nav[nav.index({"Commands": COMMANDS})] = {"Commands": [COMMANDS, *pages]}
    more = sorted(there - named)
    config.nav = nav + ([{"More": more}] if more else [])
    return config


def on_files(files, config):
    """Adds the generated pages."""
    pages = {COMMANDS: _commands(), NAMES: _names()}
    for command in _all_commands():
        pages[f"commands/{command}.md"] = _command(command)
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def _held(nav, there):
    """A navigation without pages that are not there -> (it, the paths that it names)."""
    kept, named = [], set()
    for item in nav:
        if isinstance(item, str):
            title, target = None, item
        else:
            ((title, target),) = item.items()
        if isinstance(target, list):
            target, inner = _held(target, there)
            named |= inner
        elif target in there:
            named.add(target)
        else:
            continue
        if target:
            kept.append(target if title is None else {title: target})
    return kept, named


def _all_commands():
    from keras_bert.cli.main import COMMANDS

    return COMMANDS


def _commands():
    rows = [
        f"| [{name}](commands/{name}.md) | {command.summary} |"
        for name, command in _all_commands().items()
    ]
    return "\n".join(
        [
            "# Commands",
            "",
            "`keras-bert` by itself shows the way from text to a served model, and the step that "
            "is next in the current folder. Every command has `--help`, ends with what one does "
            "next, and says what is wrong with its input in one sentence, with exit status 2.",
            "",
            "| command | does |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _command(command):
    """A command's page: its description, and its flags as the terminal shows them."""
    parts = [f"# keras-bert {command}", "", *_described(_all_commands()[command].description), ""]
    parts += ["## Flags", "", "```", _flags(command), "```", ""]
    if command == "finetune":
        for kind in _kinds():
            parts += [f"## Flags of `--task {kind}`", "", *_own_flags(kind), ""]
    return "\n".join(parts)


def _described(text):
    """A description with its lines of commands as a block."""
    lines, inside = [], False
    for line in text.strip().splitlines():
        is_code = line.startswith(("keras-bert ", "tail ", "    "))
        if is_code != inside:
            lines += ["```", ""] if inside else ["", "```bash"]
            inside = is_code
        lines.append(line)
    return [*lines, "```"] if inside else lines


def _flags(command):
    """What `--help` prints, without the text that stands above it on the page."""
    from keras_bert.cli.main import make_parser

    _, commands = make_parser([])
    commands[command].description = None
    return commands[command].format_help().rstrip()


def _kinds():
    from keras_bert.tasks import finetuned_kinds

    return finetuned_kinds()


def _own_flags(kind):
    """What a kind of task has beside what all have."""
    from keras_bert.base.settings import about
    from keras_bert.tasks import settings_class
    from keras_bert.tasks.settings import TaskSettings

    common = {field.name for field in dataclasses.fields(TaskSettings)}
    own = [f for f in dataclasses.fields(settings_class(kind)) if f.name not in common]
    yield "| flag | says | default |"
    yield "|---|---|---|"
    for field in own:
        default = about(field).default_help if field.default is None else field.default
        says = about(field).help.replace("|", "\\|")
        yield f"| `--{field.name.replace('_', '-')}` | {says} | {default} |"


def _names():
    """The reference: every public name, by what its module says."""
    import keras_bert

    lines = [
        "# Python names",
        "",
        "`import keras_bert as kb`, then any of these. The package imports nothing heavy until a "
        "name is used. These are the calls of most commands, too; `vocab` is "
        "`data_gen.vocabulary.learn_vocabulary`, `pretraining-data` "
        "`data_gen.pretraining_data.make_pretraining_data`, `convert` "
        "`keras_bert.checkpoints.convert.convert`, and `export` "
        "`keras_bert.export.saved_model.export`, or a task's own `export`.",
        "",
    ]
    for name in sorted(keras_bert.__all__, key=lambda name: (name[0].islower(), name.lower())):
        lines += [f"::: keras_bert.{name}", ""]
    return "\n".join(lines)


def on_page_markdown(markdown, page, config, files):
    """Links to files of the repository that are no pages become their names."""
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]+\)", r"\1", markdown)
