"""Labels for spans of words, and for pairs of them."""
