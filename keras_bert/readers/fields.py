"""Which column, key or feature holds what, as a user writes it: `text=sentence,label=label`."""

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed


def parse_fields(text, *, known):
    """The dictionary of `fields`; {} for None.

    Raises InputError where a part is no NAME=COLUMN, or names none of `known`.
    """
    fields = {}
    for part in text.split(",") if text is not None else ():
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not (name and equals and column):
            raise InputError(
                f'`fields` has the part "{part}"; it should be NAME=COLUMN, as in '
                f"{','.join(f'{one}=…' for one in known)}."
            )
        if name not in known:
            raise InputError(f'`fields` names "{name}"; it should be {listed(known)}.')
        if name in fields:
            raise InputError(f'`fields` names "{name}" twice.')
        fields[name] = column
    return fields
