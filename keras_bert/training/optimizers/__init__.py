"""BERT's optimizers: warm-up, global clipping, no weight decay on biases and LayerNorm."""
