"""What a run logs, shows and writes beside its weights."""
