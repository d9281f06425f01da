"""The learning rate over a run: a warm-up, and what comes after it."""
