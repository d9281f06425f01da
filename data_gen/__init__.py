"""Apache Beam jobs that turn text into vocabularies and pre-training instances."""
