"""Settings: what a value may be, where it stands, and that flags, file and call say the same."""

import argparse
import dataclasses
import pickle
from collections.abc import Sequence
from dataclasses import InitVar
from importlib import import_module

import pytest

from keras_bert.base.errors import InputError, Naming, argument, arguments
from keras_bert.base.settings import (
    PathText,
    Report,
    Settings,
    about,
    advanced_setting,
    checked,
    help_group,
    merged,
    reader_settings,
    required,
    setting,
    takes,
    value_type,
)
from keras_bert.cli.command import add_flags, read_flags, spelled_as_flag
from tests.messages import raises_input_error


class RowSettings(Settings):
    name: str = required(help="what it is called", unit="NAME")
    count: int = setting(3, help="how many", at_least=1, at_most=9)
    rate: float = setting(0.5, help="the rate", above=0, below=1)
    path: PathText | None = setting(None, help="a file", default_help="none")
    fast: bool = setting(False, help="hurry", recorded=False)
    kind: str = setting("a", help="which", choices=("a", "b", "c"))


class ColumnSettings(Settings):
    column: int | None = setting(None, help="where", reads=True, default_help="told by content")
    header: bool | None = setting(None, help="is there one", reads=True)
    words: Sequence[str] | None = setting(None, help="a word")


@pytest.mark.parametrize(
    "given, message",
    [
        ({}, "Missing required arguments: `name`."),
        ({"name": "x", "colour": 1}, "Unknown setting `colour`"),
        ({"name": 3}, "`name` is 3. It should be a text"),
        ({"name": "x", "count": 0}, "`count` must be at least 1. Received: 0"),
        ({"name": "x", "count": 10}, "`count` must be at most 9. Received: 10"),
        ({"name": "x", "count": 2.0}, "`count` is 2.0. It should be a whole number"),
        ({"name": "x", "count": True}, "`count` is True. It should be a whole number"),
        ({"name": "x", "rate": 0}, "`rate` must be above 0. Received: 0.0"),
        ({"name": "x", "rate": 1}, "`rate` must be below 1. Received: 1.0"),
        ({"name": "x", "rate": float("nan")}, "`rate` is nan. It should be a finite number"),
        ({"name": "x", "rate": float("inf")}, "`rate` is inf. It should be a finite number"),
        ({"name": "x", "rate": 10**400}, "`rate` is inf. It should be a finite number"),
        ({"name": "x", "fast": 1}, "`fast` is 1. It should be true or false"),
        ({"name": "x", "kind": "d"}, "`kind` is 'd'. It should be a, b or c"),
        ({"name": "x", "path": 4}, "`path` is 4. It should be a text"),
    ],
)
def test_what_cannot_be_is_said(given, message):
    with raises_input_error(message):
        RowSettings.of(given)


def test_a_run_records_what_its_result_depends_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = RowSettings(name="x", path="data.txt", fast=True)
    expected = {"name": "x", "count": 3, "rate": 0.5, "kind": "a"}
    assert settings.recorded() == {**expected, "path": str(tmp_path / "data.txt")}
    for path in ("-", "tfds:glue/sst2:train", "gs://bucket/data"):
        assert RowSettings(name="x", path=path).recorded()["path"] == path
    assert RowSettings(name="x", path=tmp_path).path == str(tmp_path)


def test_classes_are_put_together_and_taken_apart():
    both = merged(ColumnSettings, RowSettings)
    settings = both.of({"name": "x", "column": 2, "rate": 0.25})
    assert settings.part(ColumnSettings) == {"column": 2, "header": None, "words": None}
    assert [field.name for field in dataclasses.fields(reader_settings(ColumnSettings))] == [
        "column",
        "header",
    ]
    assert merged(ColumnSettings, RowSettings) is both


def test_a_call_shows_its_settings():
    class CallSettings(RowSettings):
        report: InitVar[Report] = None
        name: str = required(kw_only=False, help="what it is called")

    @takes(CallSettings)
    def make(name, *, report=None, **settings):
        """Makes.

        Args:
            **settings: the fields of `CallSettings`.
            report: is told.
        """

    import inspect

    shown = inspect.signature(make)
    assert str(shown) == (
        "(name: str, *, count: int = 3, rate: float = 0.5, path: str | os.PathLike[str] | None = "
        "None, fast: bool = False, kind: str = 'a', report: collections.abc.Callable[[str], None] "
        "| None = None)"
    )
    assert (
        "\n    count: how many.\n" in make.__doc__ and "path: a file (None: none)" in make.__doc__
    )


def parse(cls, *given):
    parser = argparse.ArgumentParser()
    add_flags(parser, cls)
    return read_flags(parser.parse_args(given))


def test_flags_give_what_was_given_and_no_more():
    assert parse(RowSettings, "--name", "x") == {"name": "x"}
    given = parse(RowSettings, "--name=x", "--count", "9", "--rate", "1e-1", "--fast")
    assert given == {"name": "x", "count": 9, "rate": 0.1, "fast": True}
    assert parse(ColumnSettings, "--header", "no", "--words", "a", "--words", "b") == {
        "header": False,
        "words": ["a", "b"],
    }


def test_arguments_of_a_message_are_flags_on_the_command_line():
    row, column = spelled_as_flag(RowSettings), spelled_as_flag(ColumnSettings)
    error = InputError.naming(
        '{count} is {!r}; give {path}, or {kind="b"}, {fast=True} or a {colour}.', "{`count`}"
    )
    assert str(error) == (
        "`count` is '{`count`}'; give `path`, or `kind=\"b\"`, `fast=True` or a `colour`."
    )
    assert error.worded(row) == (
        "--count is '{`count`}'; give --path, or --kind b, --fast or a `colour`."
    )
    error = InputError.naming('say {kind="|"}.')
    assert error.worded(row) == "say --kind '|'."
    error = InputError.naming("say {header=False}, or {header=True}.")
    assert error.worded(column) == "say --header no, or --header yes."
    assert InputError("`count` of {count}").worded(row) == "`count` of {count}"


def test_messages_with_arguments_in_others_and_in_another_process():
    row = spelled_as_flag(RowSettings)
    inner = InputError.naming("{} excludes {}.", argument("count", 3), arguments(["rate", "path"]))
    error = InputError.naming("Line {:,}: {} {}", 1000, inner, Naming("Use {fast}."))
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert str(one) == "Line 1,000: `count=3` excludes `rate`, `path`. Use `fast`."
        assert one.worded(row) == "Line 1,000: --count 3 excludes --rate, --path. Use --fast."


def test_the_help_has_every_setting_with_its_default(capsys):
    with pytest.raises(SystemExit):
        parse(merged(ColumnSettings, RowSettings), "--help")
    shown = capsys.readouterr().out
    for text in (
        "--name NAME",
        "how many (default: 3)",
        "a file (default: none)",
        "--kind {a,b,c}",
        "--header {yes,no}",
        "(default: told by content)",
    ):
        assert text in shown, text


def test_a_field_says_in_which_group_its_flag_is_and_whether_the_short_help_has_it():
    class TaskSettings(RowSettings, ColumnSettings):
        pooling: str = setting("cls", help="what is read", stored=True, common=True)
        steps: int = advanced_setting(1, help="steps", stored=True)

    fields = {field.name: field for field in dataclasses.fields(TaskSettings)}
    names = ("name", "count", "column", "pooling", "steps")
    groups = ("required", "options", "data", "task and model", "advanced")
    assert tuple(help_group(fields[name]) for name in names) == groups
    for is_short, absent in ((True, {"count", "column", "steps"}), (False, set())):
        parser = argparse.ArgumentParser()
        add_flags(parser, TaskSettings, is_short=is_short)
        shown = parser.format_help()
        assert {name for name in names if f"  --{name} " not in shown} == absent


SETTINGS_MODULES = [
    "keras_bert.checkpoints",
    "keras_bert.cli.data_commands",
    "keras_bert.exports",
    "keras_bert.inference.settings",
    "keras_bert.inference.vector_settings",
    "keras_bert.samples.quickstart",
    "keras_bert.tasks",
    "keras_bert.tasks.classification",
    "keras_bert.tasks.coreference",
    "keras_bert.tasks.multiple_choice",
    "keras_bert.tasks.question_answering",
    "keras_bert.tasks.span_classification",
    "keras_bert.tasks.tagging",
    "keras_bert.training.settings",
    "keras_bert.training.finetuning_settings",
    "data_gen.settings",
]


def every_field(modules=SETTINGS_MODULES):
    """(name of the class, field) of every command's settings."""
    for name in modules:
        for cls in vars(import_module(name)).values():
            if isinstance(cls, type) and issubclass(cls, Settings):
                yield from ((cls.__name__, field) for field in dataclasses.fields(cls))


def test_every_number_of_every_command_is_finite_and_every_seed_one_that_libraries_take():
    numbers, seeds = set(), set()
    job_fields = [field for _, field in every_field(["data_gen.settings"])]
    for cls, field in every_field():
        if value_type(field)[0] is float:
            numbers.add(field.name)
            for value in (float("inf"), float("-inf"), float("nan")):
                with raises_input_error(f"`{field.name}` is ...a finite number"):
                    checked(field, value)
        if field.name == "seed":
            seeds.add(cls)
            # numpy's, Keras's and Python's generators take 32 bits; the jobs hash theirs, of 63.
            most = 2**63 - 1 if field in job_fields else 2**32 - 1
            checked(field, most)
            for value, bound in ((-1, "at least 0"), (most + 1, f"at most {most}")):
                with raises_input_error(f"`seed` must be {bound}. Received: {value}."):
                    checked(field, value)
    assert {"learning_rate", "warmup", "weight_decay", "eval_fraction"} <= numbers
    assert {"FinetuneSettings", "PretrainSettings", "QuickstartSettings", "DataSettings"} <= seeds


def test_every_number_of_every_command_fits_into_the_types_of_tensorflow():
    """4,294,967,297 would be 1 as an int32, and 1e-46 would be 0 as a float32."""
    for _, field in every_field():
        if value_type(field)[0] is int:
            most = about(field).at_most
            most = 2**31 - 1 if most is None else most
            for value in (most + 1, 2**64 + 1):
                with raises_input_error(
                    f"`{field.name}` must be at most {most}. Received: {value}."
                ):
                    checked(field, value)
        elif value_type(field)[0] is float and about(field).at_most is None:
            with raises_input_error(f"`{field.name}` must be ..."):
                checked(field, 1e39)
            with raises_input_error(
                f"`{field.name}` is too small for a float32. Expected 0, or 1.2e-38"
            ):
                checked(field, 1e-40)


def test_what_stands_in_place_of_a_file_may_be_nothing_or_empty():
    """A sequence in place of a path, or None if examples are given in another way."""

    class DataSettings(Settings):
        data: object = setting(None, help="a file, or a sequence")

    assert DataSettings.of({}).data is None and DataSettings.of({"data": []}).data == []
    with raises_input_error("`data` is empty. Give a path"):
        DataSettings.of({"data": ""})
    with raises_input_error("`data`: a text ...… cannot be opened: File name too long."):
        DataSettings.of({"data": "a text " * 50})
