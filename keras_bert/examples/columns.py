"""Which column of a table holds the text and which the label."""

from dataclasses import dataclass
from statistics import fmean

from keras_bert.errors import InputError
from keras_bert.wording import listed, quoted

TEXT_NAMES = ("text", "sentence", "message", "content", "review", "document")
LABEL_NAMES = ("label", "class", "category", "target", "quality", "sentiment")
# A header of unknown names is believed in only where this many rows follow it.
_ROWS_TO_TELL_A_HEADER = 10
# With fewer rows than this, a column of different values may still be the label.
_ROWS_TO_DOUBT_A_LABEL = 20


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where text and label stand in the rows of a file.

    `text` and `label` are keys of JSON objects, or indices from 0 of cells; `label` is None in an
    unlabelled file. `names` are the header's, None without one.
    """

    text: int | str
    label: int | str | None
    names: tuple[str, ...] | None = None

    def describe(self, column):
        """A column as a person finds it: by its name, or by its number from 1."""
        if isinstance(column, str):
            return f'"{column}"'
        return f'"{self.names[column]}"' if self.names else f"column {column + 1}"


def choose_columns(table, *, text, label, header, labels, need_labels):
    """The `Columns` of `table`, by the header's names and else by the content of its sample.

    `text` and `label` are names or numbers from 1 given by the user, `header` whether there is one;
    None leaves it to the content. `labels` are the labels that a model knows, or None. Where
    `need_labels` is False, a table without labels is no error.
    """
    if table.kind == "jsonl":
        return _keys(table, text, label, need_labels)
    line, first = table.sample[0]
    if table.width == 1 and need_labels:
        raise table.error(
            line,
            "no TAB; a labelled file has a text and its label parted by a TAB, "
            'or JSON Lines with "text" and "label".',
        )
    if table.kind == "lines":
        return Columns(text=0, label=None)
    body = [row for _, row in table.sample]
    names = None
    if _has_header(first, body[1:], text=text, label=label, header=header):
        names = tuple(cell.strip() for cell in first)
        body = body[1:]
        if len(set(names)) < len(names):
            raise table.error(line, "two columns of the header have the same name.")
        if not body:
            raise InputError(f"{table.name} holds a header line and nothing else.")
    label = _given(table, label, names)
    text = _given(table, text, names)
    lower = [name.casefold() for name in names or ()]
    if label is None:
        label = _named(lower, LABEL_NAMES, taken=text)
    if text is None:
        text = _named(lower, TEXT_NAMES, taken=label)
    if label is None and labels is not None:
        label = _column_of_known_labels(table.width, body, labels, taken=text)
    if label is None and need_labels:
        # Labels that the model does not know are told when they are reached, by their lines.
        label = _column_of_few_values(table.width, body, taken=text)
    if label is None and need_labels:
        known = "" if labels is None else f" and none holds the model's ({quoted(labels)})"
        raise InputError(
            f"{table.name}: no column looks like a label (few different values, each many times)"
            f"{known}; say which one it is with `label_column`."
        )
    if text is None:
        text = _column_of_texts(table, body, names, taken=label)
    if text == label:
        raise InputError(f"{table.name}: text and label cannot be the same column.")
    return Columns(text=text, label=label, names=names)


def _keys(table, text, label, need_labels):
    line, first = table.sample[0]
    lower = {key.casefold(): key for key in first}

    def key(given, known):
        return given or next((lower[name] for name in known if name in lower), known[0])

    text_key, label_key = key(text, TEXT_NAMES), key(label, LABEL_NAMES)
    for what, wanted, required in (
        ("text", text_key, True),
        ("label", label_key, need_labels or label is not None),
    ):
        if required and wanted not in first:
            raise table.error(
                line,
                f'no "{wanted}" among the keys ({listed(first)}); '
                f"say which key holds the {what} with `{what}_column`.",
            )
    return Columns(text=text_key, label=label_key if label_key in first else None)


def _has_header(first, rest, *, text, label, header):
    """True where the first line names the columns instead of being a row."""
    if header is not None:
        return header
    if any(column is not None and not str(column).isdigit() for column in (text, label)):
        return True  # a column given by name can only stand in a header
    rest = [row for row in rest if row != first]  # a header may stand there twice
    below = [{row[column] for row in rest} for column in range(len(first))]
    if any(cell in values for cell, values in zip(first, below, strict=True)):
        return False
    known = {*TEXT_NAMES, *LABEL_NAMES}
    if any(cell.strip().casefold() in known for cell in first):
        return True
    # A label column: few values, each of them again and again, but never the first line's.
    return len(rest) >= _ROWS_TO_TELL_A_HEADER and any(
        2 <= len(values) <= len(rest) / 4 for values in below
    )


def _given(table, column, names):
    """The index of a column that the user gave by name or by number from 1; None for None."""
    if column is None:
        return None
    if names and str(column) in names:
        return names.index(str(column))
    if str(column).isdigit() and 1 <= int(column) <= table.width:
        return int(column) - 1
    known = quoted(names) if names else f"1 to {table.width}"
    raise InputError(f'{table.name} has no column "{column}"; its columns are {known}.')


def _named(lower, known, *, taken):
    found = (lower.index(name) for name in known if name in lower)
    return next((column for column in found if column != taken), None)


def _column_of_known_labels(width, body, labels, *, taken):
    """The column most of whose values are labels that the model knows, or None."""
    shares = {
        column: fmean(row[column].strip() in labels for row in body)
        for column in range(width)
        if column != taken
    }
    best = max(shares, key=shares.get, default=None)
    return best if best is not None and shares[best] > 0.5 else None


def _column_of_few_values(width, body, *, taken):
    """The column with the fewest values; of two alike the shorter, then the later one."""
    distinct = {
        column: len({row[column] for row in body}) for column in range(width) if column != taken
    }

    def order(column):
        # A label comes back. A column of a single value ("en") tells nothing, but is more like one
        # than a column whose values are all different.
        unlike = 2 if distinct[column] == len(body) > 1 else int(distinct[column] == 1)
        return unlike, distinct[column], _length(body, column), -column

    best = min(distinct, key=order)
    if len(body) >= _ROWS_TO_DOUBT_A_LABEL and distinct[best] > len(body) / 2:
        return None
    return best


def _column_of_texts(table, body, names, *, taken):
    """The column with the longest texts; of two about as long the user tells which is meant."""
    lengths = {column: _length(body, column) for column in range(table.width) if column != taken}
    best = max(lengths, key=lengths.get)
    for column, length in lengths.items():
        of_words = fmean(" " in row[column] for row in body) > 0.5
        if column != best and of_words and length > lengths[best] / 2:
            found = Columns(text=best, label=None, names=names)
            raise InputError(
                f"{table.name} has text in {found.describe(min(best, column))} and in "
                f"{found.describe(max(best, column))}; say which one is meant with `text_column`."
            )
    return best


def _length(body, column):
    return fmean(len(row[column]) for row in body)
