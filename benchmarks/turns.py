"""Keeps what a long benchmark has found so far, so that it resumes after an interruption."""

import json
import sys


class Turns:
    """A file of JSON lines: what was done (a dictionary of settings), and what came out.

    Ends the program if the file was begun with other settings, whose results would be taken for
    those of the new ones.

    Args:
        path: the file; it may hold turns already.
        settings: what all its turns have in common, a dictionary; the file's first line.
        report: a function that is told each new line.
    """

    def __init__(self, path, settings, report=lambda line: None):
        self._path = path
        self._report = report
        settings = {name: str(value) for name, value in settings.items()}
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        begun, *self._done = [json.loads(line) for line in lines] or [settings]
        if begun != settings:
            sys.exit(f"{path} was begun with {begun}, not {settings}; give another --output.")
        if not lines:
            self._write(settings)

    def result(self, turn, work):
        """Returns `turn` with its results, which `work(**turn)` computes if they are not stored."""
        for line in self._done:
            if turn.items() <= line.items():
                return line
        self._done.append({**turn, **work(**turn)})
        self._report(self._write(self._done[-1]))
        return self._done[-1]

    def lines(self):
        """The turns so far, each with what came of it."""
        return list(self._done)

    def _write(self, record):
        line = json.dumps(record)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        return line
