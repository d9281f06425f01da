"""Features of a run, one file each: the setting, what it does in `fit`, and what it reports."""
