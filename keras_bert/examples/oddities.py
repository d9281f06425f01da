"""What is odd among labelled texts but no error: a person should know before a model learns it."""

from keras_bert.wording import counted

_QUOTES = "\"'"


def oddities(examples):
    """Lines for the user on `LabelledText`s: how many are odd, and where the first one stands."""
    empty = [example for example in examples if not all(text.strip() for text in example.texts)]
    in_quotes = [example for example in examples if _is_quoted(example.label)]
    lines = []
    if empty:
        lines.append(f"{_where(empty)}: {counted(len(empty), 'text')} without a word.")
    if in_quotes:
        label = in_quotes[0].label
        lines.append(
            f"{_where(in_quotes)}: {counted(len(in_quotes), 'label')} in quotes. A quote is a "
            f"character like any other here, so {label} is another label than {label[1:-1]}."
        )
    return [*lines, *examples[0].source.notes()] if examples else lines


def _where(examples):
    first = examples[0]
    from_here = " and later" if len(examples) > 1 else ""
    return f"{first.source.name}, line {first.line}{from_here}"


def _is_quoted(label):
    return isinstance(label, str) and len(label) > 2 and label[0] == label[-1] in _QUOTES
