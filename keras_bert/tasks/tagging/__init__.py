"""One label for each word, and the roles of words for a predicate."""
