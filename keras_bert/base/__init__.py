"""What everything else stands on: errors, files, settings, formatting, signals."""
