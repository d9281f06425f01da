"""SavedModels that take strings, and their publication."""
