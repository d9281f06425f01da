"""What is kept of outputs: what a reader wants to see, not where and when it was made."""

import re

_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def tidy(notebook, *, places):
    """Tidies the outputs of a notebook, in its place.

    Standard error is left out: bars, and what libraries warn of. So are frames, whose page ends
    with the kernel. Of standard output there stays what a terminal would show in the end. Counts
    of executions go. What lies in one of the folders `places` is named as from there.
    """
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        cell.outputs = [_kept(out, places) for out in _joined(cell.outputs) if _stays(out)]
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


def _kept(output, places):
    if output.output_type == "stream":
        output.text = _anywhere(as_shown(output.text), places)
    for kind, data in output.get("data", {}).items():
        if kind.startswith("text/"):
            output.data[kind] = _anywhere(data, places)
    if "execution_count" in output:
        output.execution_count = None
    return output


def _anywhere(text, places):
    """A text that names no place of this machine or of its memory."""
    for place in places:
        text = text.replace(f"{place}/", "").replace(str(place), ".")
    return _ADDRESS.sub("0x…", text)
