"""Contexts with choices: JSON Lines, SWAG's CSV, tables; what is wrong is told by its line."""

import numpy as np
import pytest

from keras_bert.readers.choices import ChoiceSource
from tests.messages import raises_input_error

SWAG = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"
    '0,v_1,3415,s,"Members of the group, all four, stand.",He,gold,sits.,"runs, fast.",'
    '"says ""no"".",is.,2\n'
    "1,v_2,3416,s,A drum line passes.,It,gen,a,b,c,d,0\n"
)


def read(tmp_path, content, **options):
    path = tmp_path / "file"
    path.write_text(content)
    return ChoiceSource(path, **options)


def test_swag(tmp_path):
    source = read(tmp_path, SWAG)
    first, second = source
    assert first.context == "Members of the group, all four, stand."
    assert first.choices == ("He sits.", "He runs, fast.", 'He says "no".', "He is.")
    assert (first.label, second.label, second.line) == (2, 0, 3)
    assert "CSV" in source.description and 'after "sent2"' in source.description
    table = SWAG.splitlines()[0].replace(",", "\t")
    (row,) = read(tmp_path, table + "\n0\tv\t1\ts\tA.\tIt\tgen\ta\tb\t\t\t1\n")
    assert row.choices == ("It a", "It b")  # the other columns are of examples with more


def test_given_numbers_may_be_of_numpy():
    (example,) = ChoiceSource([("a", ["b", "c"], np.int64(1))])
    assert example.label == 1
    with raises_input_error("the label True. It should be the number of"):
        ChoiceSource([("a", ["b", "c"], True)])


@pytest.mark.parametrize("item", [None, 5, "a", ("a",), ("a", ["b", "c"], 1, "more")])
def test_items_that_are_no_examples(item):
    with pytest.raises(ValueError, match="must be a context and its choices.*Received"):
        ChoiceSource([item])
    with raises_input_error('no list of choices under "choices"'):
        ChoiceSource([("a", 7, 1)])


def test_json_lines_and_fields(tmp_path):
    lines = '{"context": "a", "choices": ["b", "c"], "label": 1}\n'
    (row,) = read(tmp_path, lines)
    assert (row.context, row.choices, row.label) == ("a", ("b", "c"), 1)
    other = '{"q": "a", "x": "b", "y": "c", "right": "0"}\n'
    (row,) = read(tmp_path, other, fields="context=q, choices=x|y, label=right")
    assert (row.context, row.choices, row.label) == ("a", ("b", "c"), 0)
    (row,) = read(tmp_path, '{"question": "a", "options": ["b", "c"]}\n', need_labels=False)
    assert row.label is None


@pytest.mark.parametrize(
    "content, message",
    [
        ('{"context": "a", "label": 1}\n', "line 1: no choices among the columns"),
        ("context\tending0\tending1\nx\ty\tz\n", "line 1: no label among the columns"),
        ('{"context": "a", "choices": "b", "label": 0}\n', "line 1: no list of choices"),
        ('{"context": 3, "choices": ["b", "c"], "label": 0}\n', 'line 1: no text under "context"'),
        (SWAG + "2,only\n", "line 4: 2 columns, but the first line has 12"),
        (SWAG.replace(",2\n", ",7\n"), "line 2: the label is 7, but there are 4 choices"),
    ],
)
def test_bad_input(tmp_path, content, message):
    with raises_input_error(message):
        list(read(tmp_path, content))
