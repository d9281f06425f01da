"""Optimizers, schedules, and which weights they train how fast."""
