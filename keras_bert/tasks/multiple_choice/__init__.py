"""Which of several choices fits a text."""
