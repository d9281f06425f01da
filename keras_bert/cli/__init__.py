"""The `keras-bert` command: each command is thin over the Python function of that name."""
