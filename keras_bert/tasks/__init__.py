"""Tasks: an encoder with a head, the losses and the metrics that belong to it."""
