"""Heads, and the poolings and mixes of layers between the encoder and a head."""
