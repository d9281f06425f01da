"""Tables that a notebook shows in place of an object's repr."""

import html


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
