"""The errors of removed settings, as flags and as arguments."""

import pytest

from keras_bert.base.errors import InputError
from keras_bert.base.settings import Settings, setting
from keras_bert.cli import main as cli
from keras_bert.cli.command import add_flags
from tests.messages import raises_input_error


class OneSettings(Settings):
    REMOVED = {"colour": "Use {size} instead."}

    size: int = setting(1, help="the size")


class MoreSettings(OneSettings):
    REMOVED = {"taste": "Nothing replaces it."}

    weight: int = setting(1, help="the weight")


def test_an_argument_that_was_removed_names_what_to_use_instead():
    for cls in (OneSettings, MoreSettings):
        with raises_input_error("`colour` was removed. Use `size` instead."):
            cls.of({"colour": "red"})
    with raises_input_error("`taste` was removed. Nothing replaces it."):
        MoreSettings.of({"taste": 1})


def test_a_flag_that_was_removed_names_what_to_use_instead(capsys):
    parser = cli._Parser(prog="keras-bert paint")
    add_flags(parser, MoreSettings)
    with pytest.raises(SystemExit) as stopped:
        parser.reject(["--colour", "red"])
    assert stopped.value.code == 2
    assert "--colour was removed. Use --size instead." in capsys.readouterr().err


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_no_removed_setting_is_still_one_and_each_has_a_sentence(name):
    parser, subparsers = cli.make_parser([name])
    cls = subparsers[name].get_default("settings_class")
    for removed, advice in ({} if cls is None else cls.removed()).items():
        assert removed not in cls.names()
        assert advice.endswith(".") and advice[0].isupper()
        with pytest.raises(InputError, match="was removed"):
            cls.of({removed: None})
