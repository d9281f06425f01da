"""How commands talk to the user beside their result."""

import sys


def report(line):
    """Tells the user something beside the result, which has standard output to itself."""
    print(line, file=sys.stderr, flush=True)
