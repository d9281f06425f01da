"""How messages count and list, and how objects are shown as tables: one form everywhere."""

import html


def counted(count, noun):
    """`1 document`, `2,000 documents`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def percent(fraction, *, decimals=1):
    """0.125 as `12.5 %`."""
    return f"{100 * fraction:.{decimals}f} %"


def listed(names, *, most=10):
    """`a, b, c`; of more than `most` names, the first ones and how many more there are.

    Of a name of more than 80 characters, the beginning.
    """
    return _joined(map(_cut, names), most)


def quoted(names, *, most=10):
    """As `listed`, with each name in quotes."""
    return _joined((f'"{_cut(name)}"' for name in names), most)


def _cut(name, longest=80):
    name = str(name)
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _joined(names, most):
    names = list(names)
    shown = ", ".join(names[:most])
    more = len(names) - most
    return f"{shown}, … and {more:,} more" if more > 0 else shown


def html_table(rows, *, header=None, caption=None):
    """The HTML of a table whose cells are anything that has a text.

    Args:
        rows: lists of cells.
        header: the cells above them, or None.
        caption: a line above the table, or None.
    """
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
