"""DeBERTa-v3, and DeBERTa-v2 where it is the same (He et al. 2021)."""
