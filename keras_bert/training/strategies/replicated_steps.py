"""What `fit` and `evaluate` call for a step, or several, under a strategy of `tf.distribute`.

Keras 3.15's own fails there with several steps an execution, and with several workers: it asks for
the mean over all of them of each figure of a step, along an axis that numbers do not have. Nobody
reads these. An entry's figures are added up over the replicas by the metrics themselves.
"""

import tensorflow as tf


def replicated_training(model, strategy):
    """What stands for `model.train_function`: takes an iterator, which has as many batches.

    It does `model.steps_per_execution` steps before it comes back.
    """
    together = _together(model.train_step, strategy)

    @tf.function(autograph=False)
    def steps(iterator):
        def step(number):
            together(iterator.get_next())
            return number + 1

        tf.while_loop(
            lambda number: number < model.steps_per_execution,
            step,
            [tf.constant(0)],
            parallel_iterations=1,  # sums of two steps at a time would wait for one another
        )

    figures = _unread_figures(model)

    def train(iterator):
        steps(iterator)
        return figures

    return train


def replicated_evaluation(model, strategy):
    """What stands for `model.test_function`; it ends early with the data."""
    together = _together(model.test_step, strategy)
    figures = _unread_figures(model)

    def test(iterator):
        for _ in range(model.steps_per_execution):
            try:
                batch = next(iterator)
            except StopIteration:
                break
            together(batch)
        return figures

    return test


def _together(step, strategy):
    """A step of each replica with its part of a batch."""
    return tf.function(
        lambda batch: strategy.run(step, (batch,)), autograph=False, reduce_retracing=True
    )


def _unread_figures(model):
    """The names by which Keras knows that it is to ask the metrics themselves."""
    return dict.fromkeys(model.get_metrics_result())
