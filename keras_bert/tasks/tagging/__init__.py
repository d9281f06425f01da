"""One label for each token."""
