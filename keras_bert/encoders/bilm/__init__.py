"""Bidirectional language models (ELMo, Peters et al. 2018)."""
