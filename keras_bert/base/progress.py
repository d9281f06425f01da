"""The progress bar of everything that takes long, on standard error."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from keras_bert.base.terminal import drawn_on, escaped, is_quiet, shows_bars

_REFRESHES_PER_SECOND = 2  # each takes about a millisecond from the work


class ProgressBar:
    """A bar in a terminal or a notebook; in a log file, plain lines or nothing.

    It is there from its construction until `close`, or the end of a `with`.

    Args:
        description: what is done, in a few words.
        unit: what is counted, a plural.
        total: how many there are; None if that is unknown.
        completed: how many an earlier session has done.
        transient: whether the bar disappears when it is closed.
        line_seconds: if no bar is drawn: the time between plain lines, the last of which is
            written by `close`. None writes nothing there.
        poll: function that is called with this object before each redraw, to call `update`; not
            called if no bar is drawn.
        enabled: False shows nothing anywhere, but for what `write` is called with.

    Attributes:
        is_drawn: whether a bar is drawn.
    """

    def __init__(
        self,
        description,
        *,
        unit,
        total=None,
        completed=0,
        transient=False,
        line_seconds=None,
        poll=None,
        enabled=True,
    ):
        self._stream = sys.stderr  # it may be redirected meanwhile
        self.is_drawn = enabled and shows_bars()
        shows_lines = enabled and not self.is_drawn and not is_quiet()
        self._line_seconds = line_seconds if shows_lines else None
        self._line_time = time.monotonic()
        self._last_line = None
        self._is_closed = False
        self._progress = _RichProgress(
            # The bar has the room that the others leave; what is too long is cut at the end.
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None, table_column=Column(ratio=1)),
            _Count(),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            _Note(Column(overflow="ellipsis")),
            console=_Console(
                file=drawn_on(self._stream),
                force_terminal=True,
                force_jupyter=False,  # that would need ipywidgets
                highlight=False,
                markup=False,
            ),
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=transient,
            redirect_stdout=False,  # it would send a result to standard error
            redirect_stderr=False,  # it would break long lines
            disable=not self.is_drawn,
            expand=True,
        )
        self._task = self._progress.add_task(
            escaped(description), total=total, completed=completed, unit=unit, note=""
        )
        if poll is not None:
            self._progress.poll = lambda: poll(self)
        self._progress.start()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def update(self, completed=None, *, advance=None, total=None, description=None, note=None):
        """Changes what is shown; what is None stays.

        Args:
            completed: how many are done.
            advance: how many more are done.
            total: how many there are.
            description: what is done now.
            note: what is shown after the bar in place of the speed, such as metrics.
        """
        changes = {} if note is None else {"note": escaped(note)}
        self._progress.update(
            self._task,
            completed=completed,
            advance=advance,
            total=total,
            description=description and escaped(description),
            **changes,
        )
        if self._line_seconds is not None:
            if time.monotonic() - self._line_time >= self._line_seconds:
                self._write_state()

    def write(self, line):
        """Writes a line that stays, above the bar if there is one; nothing if quiet."""
        if is_quiet():
            return
        if self.is_drawn and not self._is_closed:
            self._progress.console.print(escaped(line), soft_wrap=True)
        else:
            print(line, file=self._stream, flush=True)

    def close(self):
        """Draws the bar a last time and ends its line; nothing if that is done."""
        if self._is_closed:
            return
        self._is_closed = True
        if self.is_drawn:
            self._progress.stop()
        elif self._line_seconds is not None:
            self._write_state()

    def _write_state(self):
        self._line_time = time.monotonic()
        task = self._progress.tasks[0]
        count = _count(task)
        if task.total:
            count = f"{task.completed / task.total:.0%} ({count})"
        note = task.fields["note"]
        line = f"{task.description}: {count}{note and f', {note}'}"
        if line != self._last_line:
            self._last_line = line
            self.write(line)


class _Console(Console):
    def show_cursor(self, show=True):
        """Leaves the cursor alone: an interrupted process could not show it again."""
        return False


class _RichProgress(Progress):
    poll = None

    def get_renderables(self):
        if self.poll is not None:
            self.poll()
        yield from super().get_renderables()


class _Count(ProgressColumn):
    def render(self, task):
        return Text(_count(task), no_wrap=True)


class _Note(ProgressColumn):
    def render(self, task):
        note = task.fields["note"]
        if not note and task.speed:
            note = f"{task.speed:,.1f} {task.fields['unit']}/s"
        return Text(note, no_wrap=True, overflow="ellipsis")


def _count(task):
    count = f"{task.completed}" if task.total is None else f"{task.completed}/{task.total}"
    return f"{count} {task.fields['unit']}"
