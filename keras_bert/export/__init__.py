"""SavedModels that take strings and stand alone."""
