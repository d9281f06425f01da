"""The strategies of `tf.distribute` that a run trains under; docs/distribution.md is the guide."""
