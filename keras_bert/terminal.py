"""What a person sees while long work runs."""

import sys


def shows_bars():
    """Whether standard error draws what moves: a terminal, or the output of a notebook's cell."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")
