"""One label for a text."""
