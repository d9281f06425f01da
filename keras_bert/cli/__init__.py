"""The `keras-bert` command: one module a command, thin over the Python function of that name."""
