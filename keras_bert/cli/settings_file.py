"""The command init: a settings file, with what each setting of a task does."""

import dataclasses
import json
import shlex
import textwrap
import typing
from pathlib import Path

from keras_bert.base.errors import InputError
from keras_bert.base.files import write_text
from keras_bert.base.ownership import check_output_file
from keras_bert.base.settings import (
    PathText,
    Settings,
    about,
    checkpoint_setting,
    model_setting,
    required,
    value_type,
)
from keras_bert.cli.command import command
from keras_bert.tasks import task_type_named
from keras_bert.training.finetuning_settings import finetune_settings

_SETTINGS_MARK = "# Settings of `keras-bert finetune"  # how such a file begins


class InitSettings(Settings):
    output: PathText = required(help="the file to write", unit="FILE.toml")
    task: str = model_setting(
        "classifier", help="the task type, as --task of finetune", unit="TASK", common=True
    )
    force: bool = checkpoint_setting(False, help="replace a file that this command wrote before")

    def check(self):
        if Path(self.output).suffix != ".toml":
            raise InputError.naming(
                "Settings are written as TOML, and {output} is {}. Expected a name that ends in "
                ".toml, by which `finetune` reads the file.",
                self.output,
            )


@command("init", "write a commented settings file for a task", settings=InitSettings)
def init(settings, arguments):
    """Write a commented settings file for a task: each setting, its default and what it does.

    keras-bert init --task tagger --output tagger.toml
    keras-bert finetune --settings tagger.toml --train train.conll --dev dev.conll \\
      --output runs/a
    """
    chosen = InitSettings.of(settings)
    task, path = task_type_named(chosen.task), Path(chosen.output)
    check_output_file(path, is_ours=_is_settings_file, force=chosen.force)
    lines = [
        f"{_SETTINGS_MARK} --task {task}`. Remove the # in front of a setting to",
        "# change it. Flags override this file.",
        'command = "finetune"',
        "",
        "[settings]",
        f"task = {json.dumps(task)}",
    ]
    for field in dataclasses.fields(finetune_settings(task)):
        if field.name == "task":
            continue
        description, default = about(field), field.default
        has_default = default not in (None, dataclasses.MISSING)
        value = json.dumps(default if has_default else example_value(field))
        more = "" if default is None and description.default_help is None else " (required)"
        more = f" (default: {description.default_help})" if description.default_help else more
        choices = (
            f" One of: {', '.join(map(str, description.choices))}." if description.choices else ""
        )
        text = f"{description.help}{'' if has_default else more}.{choices}"
        indents = {"initial_indent": "# ", "subsequent_indent": "# "}
        lines += ["", *textwrap.wrap(text, 98, break_on_hyphens=False, **indents)]
        lines.append(f"# {field.name} = {value}")
    write_text(path, "\n".join([*lines, ""]))
    print(f"Wrote {path}.")
    return (
        f"keras-bert finetune --settings {shlex.quote(str(path))} --model FOLDER --train FILE "
        "--dev FILE --output DIR"
    )


def example_value(field):
    """A valid value of a setting without a default, for a settings file."""
    description, (kind, _) = about(field), value_type(field)
    is_list = typing.get_origin(kind) is list
    if description.choices:
        return description.choices[0]
    (kind,) = typing.get_args(kind) if is_list else (kind,)
    if kind is bool:
        return True
    if kind is int:
        example = int(max(1, description.at_least or 1))
    elif kind is float:
        example = 0.5
    else:
        example = (description.unit or field.name.upper()).removesuffix(",…")
    return [example] if is_list else example


def _is_settings_file(path):
    """Whether `init` wrote a file, by its first line."""
    with path.open("rb") as file:
        return file.readline(1000).startswith(_SETTINGS_MARK.encode())
