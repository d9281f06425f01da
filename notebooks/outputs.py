"""Outputs as they are kept: what a reader wants to see, not where and when it was computed."""

import re

_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def tidy(notebook, *, folders):
    """Tidies the outputs of a notebook in place.

    Removed are standard error (bars and warnings), frames, whose page ends with the kernel, and
    execution counts. Standard output is what a terminal would show at the end. Paths below one of
    `folders` are relative to it.
    """
    for cell in notebook.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k in ("jupyter", "tags")}
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        cell.outputs = [_kept(out, folders) for out in _joined(cell.outputs) if _stays(out)]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


def as_shown(text):
    """A text as a terminal shows it in the end: colours gone, \\r and \\b followed."""
    return "\n".join(_line(line) for line in _COLOURS.sub("", text).split("\n"))


def _line(text):
    shown, at = [], 0
    for character in text:
        if character == "\r":
            at = 0
        elif character == "\b":
            at = max(0, at - 1)
        else:
            shown[at : at + 1] = [character]
            at += 1
    return "".join(shown).rstrip()


def _stays(output):
    is_stderr = output.output_type == "stream" and output.name == "stderr"
    return not is_stderr and "<iframe" not in output.get("data", {}).get("text/html", "")


def _joined(outputs):
    """The outputs, with those parts of a stream that follow one another as one."""
    joined = []
    for output in outputs:
        before = joined[-1] if joined else None
        if before is not None and before.get("name", "") == output.get("name"):
            before.text += output.text
        else:
            joined.append(output)
    return joined


def _kept(output, folders):
    if output.output_type == "stream":
        output.text = _anywhere(as_shown(output.text), folders)
    for kind, data in output.get("data", {}).items():
        if kind.startswith("text/"):
            output.data[kind] = _anywhere(data, folders)
    if "execution_count" in output:
        output.execution_count = None
    return output


def _anywhere(text, folders):
    """A text that names no place of this machine or of its memory."""
    for folder in folders:
        text = text.replace(f"{folder}/", "").replace(str(folder), ".")
    return _ADDRESS.sub("0x…", text)
