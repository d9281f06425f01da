"""ModernBERT (Warner et al. 2024), and models with its `model_type`, such as Ettin."""
