"""The piece of a text that answers a question."""
