"""Contextual embeddings: the vectors that an encoder gives to words and texts as they stand."""
