"""What every other part uses: errors, files, settings, formatting, signals."""
