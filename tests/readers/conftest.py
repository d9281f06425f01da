"""Fixtures of the tests of files and tables."""

import csv
import io
import json

import pytest


@pytest.fixture
def both(tmp_path):
    """A function from rows to their file and the table that pandas makes of it."""

    pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas")

    def both(names, rows, *, name="a.csv", sep=",", **options):
        path = tmp_path / name
        if name.endswith("jsonl"):
            rows = [dict(zip(names, row, strict=True)) for row in rows]
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
            return path, pandas.DataFrame(rows)
        file = io.StringIO()
        csv.writer(file, delimiter=sep, lineterminator="\n").writerows([names, *rows])
        path.write_text(file.getvalue())
        return path, pandas.read_csv(path, sep=sep, **options)

    return both
