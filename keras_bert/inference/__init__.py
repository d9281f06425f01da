"""The uses of a trained model."""
