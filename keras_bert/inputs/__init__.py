"""From token ids and files to the batches of training, evaluation and exports."""
