"""A file in any form, and a table of the same content, give the same examples, labels and notes."""

import io
import json

import hypothesis
import pytest
from hypothesis import strategies

from keras_bert.readers.labels import several_labels
from keras_bert.readers.text_notes import text_warnings
from keras_bert.readers.texts import TextSource
from tests.messages import raises_input_error

pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")

_CELLS = strategies.text(
    strategies.sampled_from('ab c,;"\t\n|ü\u2028'), min_size=1, max_size=6
).filter(lambda text: text.strip())
_TEXTS = strategies.one_of(strategies.none(), strategies.just("  "), _CELLS)
_LABELS = strategies.sampled_from(
    [["x", "y", None], ["0", "1", None], ["0", "1", "1.0"], ["x", "1.0", "01"]]
    + [["-1", "1"], ["True", "false"], ["0.5", "2", "1.0"]]
)


@strategies.composite
def tables(draw):
    labels = draw(_LABELS)
    row = strategies.tuples(_TEXTS, strategies.sampled_from(labels))
    return draw(strategies.lists(row, min_size=2, max_size=12))


def read(data, **options):
    """-> what a run sees: examples, labels, notes (without the name and the lines), the columns."""
    source = TextSource(data, **options)
    examples = [(e.text, e.label) for e in source]
    notes = [note.partition(": ")[2] for note in source.notes()]
    return examples, notes, source.schema, source.is_left_over


def outcome(data, **options):
    """The result of `read`, or the error without the name of the source."""
    try:
        return read(data, **options)
    except ValueError as error:
        message = str(error).partition(":")[2].replace("keys", "columns")
        return message.partition(" If the first line")[0]  # which only a text file has


def files(frame, folder):
    """A table in every form that can have it."""
    frame.to_csv(folder / "a.csv", index=False)
    yield folder / "a.csv"
    frame.to_csv(folder / "semicolons.csv", index=False, sep=";")
    yield folder / "semicolons.csv"
    frame.to_csv(folder / "a.csv.gz", index=False)
    yield folder / "a.csv.gz"
    frame.to_json(folder / "a.jsonl", orient="records", lines=True)
    yield folder / "a.jsonl"
    frame.to_json(folder / "a.json", orient="records")
    yield folder / "a.json"
    frame.to_parquet(folder / "a.parquet")
    yield folder / "a.parquet"
    yield frame
    yield frame.to_dict("records")
    yield json.loads(frame.to_json(orient="records"))
    yield frame.to_dict("list")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("forms")


_SETTINGS = {"max_examples": 40, "deadline": None, "derandomize": True}


@hypothesis.settings(**_SETTINGS)
@hypothesis.given(
    rows=tables(), names=strategies.sampled_from(["text label", "phrase verdict", "text verdict"])
)
def test_every_form_gives_the_same(rows, names, folder):
    frame = pandas.DataFrame(rows, columns=names.split(), dtype=object)
    # As a file has it: numbers and truth values by pandas' own types.
    frame = pandas.read_csv(io.StringIO(frame.to_csv(index=False)))
    expected = outcome(frame)
    for data in files(frame, folder):
        assert outcome(data) == expected, data
    path = folder / "a.tsv"
    frame.to_csv(path, index=False, sep="\t")
    named = dict(zip(("text_column", "label_column"), names.split(), strict=True))
    if '"' not in path.read_text() or TextSource(path, **named).description.count("pandas"):
        assert outcome(path, **named) == outcome(frame, **named)


@hypothesis.settings(**_SETTINGS)
@hypothesis.given(rows=tables())
def test_given_columns_and_those_of_training_are_the_same(rows, folder):
    frame = pandas.DataFrame(rows, columns=["phrase", "verdict"], dtype=object)
    frame = pandas.read_csv(io.StringIO(frame.to_csv(index=False)))
    given = {"text_column": "phrase", "label_column": "verdict"}
    expected = outcome(frame, **given)
    schema = {"text": ["phrase"], "label": ["verdict"]}
    for data in files(frame, folder):
        assert outcome(data, **given) == expected
        found_by_schema = outcome(data, schema=schema)
        assert found_by_schema == expected
        assert outcome(data, need_labels=False, **given) == outcome(
            frame, need_labels=False, **given
        )


@hypothesis.settings(**_SETTINGS)
@hypothesis.given(
    labels=strategies.lists(
        strategies.lists(strategies.sampled_from(["a", "b c", "1", "true", "d'e"]), max_size=3),
        min_size=1,
        max_size=5,
    )
)
def test_lists_of_labels_are_the_same_in_every_form(labels, folder):
    rows = [{"text": f"text {n}", "labels": names} for n, names in enumerate(labels)]
    frame = pandas.DataFrame(rows)
    expected = outcome(frame, form=several_labels)
    for data in files(frame, folder):
        assert outcome(data, form=several_labels) == expected, data
    joined = pandas.DataFrame([{**row, "labels": "|".join(row["labels"])} for row in rows])
    for data in (joined, [*joined.to_dict("records")]):
        assert outcome(data, form=several_labels)[0] == expected[0]


def test_notes_are_the_same_but_for_the_lines(folder):
    rows = [("one text", "x"), (None, "x"), ("two texts", None), ("three", "y"), ("one text", "y")]
    frame = pandas.DataFrame(rows, columns=["text", "label"])
    expected = None
    for data in files(frame, folder):
        source = TextSource(data)
        notes = [note.partition(": ")[2] for note in text_warnings([*source])]
        notes = [note.partition(" (")[0] for note in notes]
        expected = expected or notes
        assert notes == expected and len(notes) == 3


def test_spaces_around_the_names_of_columns_are_no_part_of_them(tmp_path):
    names, rows = ["id", "msg ", " queue"], [[1, "one text", "a"], [2, "another", "b"]]
    path = tmp_path / "a.csv"
    frame = pandas.DataFrame(rows, columns=names)
    frame.to_csv(path, index=False)
    expected = [("one text", "a"), ("another", "b")]
    both = path, frame
    for train in both:
        for text, label in (("msg", "queue"), ("msg ", " queue")):
            trained = TextSource(train, text_column=text, label_column=label)
            assert [(e.text, e.label) for e in trained] == expected
            for data in both:
                again = TextSource(data, schema=trained.schema)
                assert [(e.text, e.label) for e in again] == expected
    frame["msg"] = "a third"  # now it is another column
    assert TextSource(frame, text_column="msg", label_column="queue").columns.texts == (("msg",),)
    both_spaced = frame.rename(columns={"msg": " msg"})
    with raises_input_error('has no column "msg"'):
        TextSource(both_spaced, text_column="msg", label_column="queue")
