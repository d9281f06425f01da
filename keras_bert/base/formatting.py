"""Counts, percentages, lists and HTML tables, as every message shows them."""

import html


def counted(count, noun):
    """`1 document`, `2,000 documents`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def percent(fraction, *, decimals=1):
    """0.125 as `12.5 %`."""
    return f"{100 * fraction:.{decimals}f} %"


def as_written(value):
    """A setting as one writes it: 5e-5 and 1e-4 for small floats, else its `repr`."""
    if isinstance(value, float) and 0 < abs(value) < 1e-3:
        mantissa, exponent = f"{value:e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return repr(value)


def duration(seconds):
    """`40 seconds`, `12 minutes`, `3.2 hours`, `4.5 days`."""
    for unit, size in (("day", 86_400), ("hour", 3_600)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}s"
    return counted(round(seconds / 60), "minute") if seconds >= 90 else f"{seconds:.0f} seconds"


def listed(names, *, most=10, quote=""):
    """`a, b, c`; of more than `most` names, the first ones and how many more there are.

    A name of more than 80 characters is cut. Each is put between `quote`.
    """
    names = [str(name) for name in names]
    cut = (name if len(name) <= 80 else f"{name[:79]}…" for name in names[:most])
    shown = ", ".join(f"{quote}{name}{quote}" for name in cut)
    more = len(names) - most
    return f"{shown}, … and {more:,} more" if more > 0 else shown


def quoted(names, *, most=10):
    """Lists names as `listed` does, each in quotes."""
    return listed(names, most=most, quote='"')


def in_one_line(text):
    """A text without line breaks, cut after 200 characters."""
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:200]}…"


def text_table(rows, *, header=()):
    """Rows of cells as lines with aligned columns: the first to the left, numbers to the right."""
    rows = [[_cell_text(cell) for cell in row] for row in ([header] if header else []) + [*rows]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _cell_text(cell):
    if isinstance(cell, float):
        return f"{cell:z.4f}"  # no -0.0000
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)


def html_table(rows, *, header=None, caption=None):
    """The HTML of a table: rows of cells, with the cells of a header and a caption above them."""
    lines = ["<table>"]
    if caption is not None:
        lines.append(f'<caption style="text-align: left">{html.escape(str(caption))}</caption>')
    if header is not None:
        lines.append(_row("th", header))
    lines += [_row("td", row) for row in rows]
    return "\n".join([*lines, "</table>"])


def _row(tag, cells):
    style = ' style="text-align: left"'
    return f"<tr>{''.join(f'<{tag}{style}>{html.escape(str(c))}</{tag}>' for c in cells)}</tr>"
