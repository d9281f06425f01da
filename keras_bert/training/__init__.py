"""Training runs: optimizer, exact resume, what is shown and logged, and the runs themselves."""
