"""BERT, SpanBERT and RoBERTa (Devlin et al. 2018; Joshi et al. 2019; Liu et al. 2019)."""
