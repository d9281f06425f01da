"""Which mentions in a document refer to the same."""
