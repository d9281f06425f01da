"""Readers of labelled files: each yields examples, what a person labelled."""
