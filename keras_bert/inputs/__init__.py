"""From files to batches: what training, evaluation and the exports feed a model with."""
