"""Known examples, written in many forms, are read as these examples or are one error.

The forms: names of columns (usual, unknown, numbers), their order, other columns beside them,
separators, headers, types, and gaps. A file and the table that pandas makes of it are the same.
"""

import json

import hypothesis
import pytest
from hypothesis import strategies

from keras_bert.base.errors import InputError
from keras_bert.readers.texts import TextSource

pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")

_TEXTS = [
    "short",
    "two words",
    "a longer text, with a comma",
    'so "it" said',
    "semi; colon",
    "ü ☃ 漢字",
]
# Labels as Python has them in a column, and what they are called.
_LABELS = {
    "words": (["ham", "spam"], ["ham", "spam"]),
    "numbers": ([0, 1], ["0", "1"]),
    "truth": ([True, False], ["True", "False"]),
    "codes": (["007", "7", "1.10", "1e5"], ["007", "7", "1.10", "1e5"]),
    "spaces": (["not ham", "ham"], ["not ham", "ham"]),
}
_OTHERS = {
    "id": lambda n: f"T-{n:03}",
    "day": lambda n: f"2024-01-{n % 28 + 1:02}",
    "lang": lambda n: ("en", "de")[n % 2],
    "amount": lambda n: n % 3 + 0.5,
    "remark": lambda n: f"a much longer sentence that is no part of it, number {n}",
    "state": lambda n: ("open", "pending")[n % 2],
}
_FORMS = ("csv", "semicolon", "tabs.csv", "tsv", "jsonl", "json", "parquet", "records")
_SEPARATORS = {"csv": ",", "semicolon": ";", "tabs.csv": "\t", "tsv": "\t"}


@strategies.composite
def tables(draw):
    """(names, rows, examples, the flags, the form): a table of known examples."""
    kind = draw(strategies.sampled_from([*_LABELS]))
    values, called = _LABELS[kind]
    numbers = draw(
        strategies.lists(strategies.integers(0, len(values) - 1), min_size=2, max_size=9)
    )
    form = draw(strategies.sampled_from(_FORMS))
    texts = [f"{draw(strategies.sampled_from(_TEXTS))} {n}" for n in range(len(numbers))]
    labels = [values[number] for number in numbers]
    gaps = draw(strategies.lists(strategies.sampled_from(["text", "label"]), max_size=2))
    examples = [(text, called[number]) for text, number in zip(texts, numbers, strict=True)]
    for row, gap in enumerate(gaps[: len(examples)]):
        (texts if gap == "text" else labels)[row], examples[row] = None, None
    columns = {
        draw(strategies.sampled_from(["text", "Sentence", "utterance", "phrase"])): texts,
        draw(strategies.sampled_from(["label", "Category", "intent", "verdict"])): labels,
    }
    text, label = columns
    for name in draw(
        strategies.lists(strategies.sampled_from([*_OTHERS]), max_size=3, unique=True)
    ):
        columns[name] = [_OTHERS[name](n) for n in range(len(texts))]
    names = draw(strategies.permutations([*columns]))
    rows = [*zip(*(columns[name] for name in names), strict=True)]
    flags = draw(strategies.sampled_from(["none", "names", "numbers"]))
    given = {"text_column": text, "label_column": label}
    if flags == "numbers":
        given = {part: names.index(name) + 1 for part, name in given.items()}
    header = flags != "numbers" or form not in _SEPARATORS or draw(strategies.booleans())
    given = {} if flags == "none" else given
    return names, rows, [e for e in examples if e is not None], given, form, header, kind


def written(names, rows, form, folder, *, header):
    """The table as a file, or as records in memory."""
    frame = pandas.DataFrame(rows, columns=names, dtype=object)
    if form in _SEPARATORS:
        path = folder / f"a.{'tsv' if form == 'tsv' else 'csv'}"
        frame.to_csv(path, index=False, header=header, sep=_SEPARATORS[form])
        return path
    records = [dict(zip(names, row, strict=True)) for row in rows]
    if form == "records":
        return records
    path = folder / f"a.{form}"
    if form == "parquet":
        frame.infer_objects().to_parquet(path)
    elif form == "json":
        path.write_text(json.dumps(records))
    else:
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def table_of(data, names, rows, form, *, header, kind):
    """The table that pandas makes of it."""
    if form not in _SEPARATORS:
        return pandas.DataFrame(rows, columns=names, dtype=object).infer_objects()
    types = {"dtype": str} if kind == "codes" else {}
    return pandas.read_csv(data, sep=_SEPARATORS[form], header=0 if header else None, **types)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("known")


def outcome(data, **options):
    try:
        return [(e.text, e.label) for e in TextSource(data, **options)]
    except InputError as error:
        assert "\n" not in str(error)
        return None


@hypothesis.settings(max_examples=250, deadline=None, derandomize=True)
@hypothesis.given(table=tables())
def test_known_examples_or_one_error(table, folder):
    names, rows, examples, given, form, header, kind = table
    data = written(names, rows, form, folder, header=header)
    frame = table_of(data, names, rows, form, header=header, kind=kind)
    is_bare = form in _SEPARATORS and not header
    # Without a known name in its first line, a TSV has no header unless that is said.
    said = {"header": header} if is_bare or form == "tsv" and given else {}
    file_outcome = outcome(data, **given, **said)
    table_outcome = outcome(frame, **given)
    if is_bare and file_outcome is None and form != "tsv":  # every row has another separator, too
        data.write_text(f"sep={_SEPARATORS[form]}\n{data.read_text()}")
        file_outcome = outcome(data, header=False, **given)
    assert file_outcome == table_outcome
    if given and examples:
        assert file_outcome == examples
    assert file_outcome in (None, examples), (names, file_outcome)
