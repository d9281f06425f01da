"""Pictures of attention, of words in context and of runs; they need the extra `pictures`."""
