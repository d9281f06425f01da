"""The encoder's layers, in `keras.ops` alone."""
