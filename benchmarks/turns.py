"""What a long benchmark has found so far, so that stopped and started again, it goes on."""

import json


class Turns:
    """A file of JSON lines: what was done (a dictionary of settings), and what came out.

    Args:
        path: the file; it may hold turns already.
        report: a function that is told each new line.
    """

    def __init__(self, path, report=lambda line: None):
        self._path = path
        self._report = report
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._done = [json.loads(line) for line in lines]

    def of(self, turn, work):
        """What came of `turn`, beside it; `work(**turn)` finds it where that is not known yet."""
        for line in self._done:
            if turn.items() <= line.items():
                return line
        self._done.append({**turn, **work(**turn)})
        line = json.dumps(self._done[-1])
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        self._report(line)
        return self._done[-1]
