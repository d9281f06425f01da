"""Optimizers, their learning rates and their update rules."""
