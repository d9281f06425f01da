"""One label or score for a text or a pair of texts, and one of several choices."""
