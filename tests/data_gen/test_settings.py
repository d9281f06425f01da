"""The settings of the jobs: what follows from what, and that there is one list of each choice."""

import inspect

import pytest

from data_gen.pretraining_data import Job, pretraining_data
from data_gen.settings import DataSettings, VocabularySettings
from data_gen.vocabulary import learn_vocabulary
from keras_bert.base.settings import about
from keras_bert.records.masking import UNITS
from tests.messages import raises_input_error

GIVEN = {"input": "a.txt", "vocab": "v", "output": "o"}


def choices(name):
    [field] = [f for f in DataSettings.__dataclass_fields__.values() if f.name == name]
    return about(field).choices


def test_choices_are_those_that_masks_know():
    assert set(choices("mask_unit")) == set(UNITS)


@pytest.mark.parametrize(
    "given, expected",
    [
        ({}, ("token", 20, 0.1, 5)),
        ({"max_length": 8}, ("token", 8, 0.1, 5)),
        ({"max_length": 512, "objective": "mlm"}, ("token", 20, 0.0, 5)),
        ({"objective": "mlm-sop"}, ("token", 20, 0.1, 5)),
        ({"objective": "span", "masking": "dynamic"}, ("span", 20, 0.0, 1)),
        ({"mask_unit": "whole-word", "dupe_factor": 2}, ("whole-word", 20, 0.1, 2)),
    ],
)
def test_what_is_left_open_follows_from_the_rest(given, expected):
    filled = DataSettings.of(GIVEN | given).filled()
    names = ("mask_unit", "max_predictions", "short_seq_prob", "dupe_factor")
    assert tuple(getattr(filled, name) for name in names) == expected
    assert filled.filled() == filled


@pytest.mark.parametrize(
    "given, message",
    [
        ({"max_length": 16, "max_predictions": 17}, "17. It must be at most `max_length`, 16."),
        ({"mask_unit": "span"}, "`objective` mlm-nsp it must be token or whole-word"),
        ({"objective": "span", "mask_unit": "token"}, "`objective` span it must be span"),
        ({"min_characters": 9, "max_characters": 8}, "at least `min_characters`, 9"),
        ({"no_such": 1}, "Unknown setting `no_such`"),
        ({"seed": 1.5}, "`seed` is 1.5. It should be a whole number"),
    ],
)
def test_settings_that_do_not_go_together_are_one_sentence(given, message):
    with raises_input_error(message):
        DataSettings.of(GIVEN | given)


def test_a_slash_after_the_output_is_no_part_of_it(corpus):
    given = DataSettings.of(GIVEN | {"output": "o/"})
    assert Job.from_settings(given, vocabulary=corpus.vocabulary).output == "o"


def test_one_path_is_a_list_of_one():
    assert DataSettings.of(GIVEN).input == ["a.txt"]
    assert VocabularySettings.of({"input": ("a", "b"), "output": "o", "size": 9}).input == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    "function, cls",
    [(pretraining_data, DataSettings), (learn_vocabulary, VocabularySettings)],
)
def test_the_call_shows_its_settings(function, cls):
    parameters = inspect.signature(function).parameters
    others = {"lowercase", "beam_options", "report"}
    assert cls.names() | others == set(parameters)
    assert all(f"{name}: " in function.__doc__ for name in cls.names())


def test_the_two_words_for_case_do_not_contradict_each_other(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    given = {"input": tmp_path / "a.txt", "output": tmp_path / "o", "cased": True}
    with raises_input_error("`cased` and `lowercase` contradict"):
        learn_vocabulary(**given, size=60, lowercase=True)
    with raises_input_error("`cased` and `lowercase` contradict"):
        pretraining_data(**given, vocab="v", lowercase=True)
