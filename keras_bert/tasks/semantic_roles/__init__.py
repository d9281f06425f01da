"""The arguments of a marked predicate, and their roles."""
