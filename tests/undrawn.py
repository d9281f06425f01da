"""Data jobs without the picture of their card, which takes longer than a small job itself."""

from unittest import mock


def undrawn():
    """Within it no card is drawn; test_pretraining_data.py draws one of each kind."""
    return mock.patch("data_gen.pretraining_data.draw_card")
