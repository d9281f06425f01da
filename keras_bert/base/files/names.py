"""The hidden names that we write aside under. Whatever has one is ours, and nothing else is."""

import re
import secrets

MARK = ".keras-bert-"
READY = ".ready"

_ASIDE = re.compile(rf"\.(.+){re.escape(MARK)}[0-9a-f]{{12}}({re.escape(READY)})?", re.DOTALL)


def aside_name(name):
    """A new hidden name for what is to be called `name`: `.NAME.keras-bert-RANDOM`."""
    return f".{name}{MARK}{secrets.token_hex(6)}"


def is_aside(name, of=None):
    """Whether something is called as `aside_name` calls it, for any name or the one given."""
    match = _ASIDE.fullmatch(name)
    return match is not None and of in (None, match[1])


def split_aside(name):
    """What a hidden name is for, and whether it ends in READY; (None, False) if it is not ours."""
    match = _ASIDE.fullmatch(name)
    return (match[1], match[2] is not None) if match else (None, False)
