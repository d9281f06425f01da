"""What a trained model says about new examples, and how good it is."""
