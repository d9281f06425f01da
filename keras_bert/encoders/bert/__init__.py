"""BERT and SpanBERT (Devlin et al. 2018; Joshi et al. 2019)."""
