"""Batches of rows whose plan is settled before training begins."""

from keras_bert.inputs.datasets import planned_batches
from keras_bert.inputs.length_batches import shuffled_batches, sorted_batches


class RowBatches:
    """Rows that batches are made of by their numbers; a subclass says how, in `batch`.

    Which rows make which batch is settled before training starts, so that a run can begin at any
    step; it depends on nothing but the arguments.

    Args:
        lengths: int (N,), the tokens of each row; batches are of rows of about one length.
    """

    def __init__(self, lengths):
        self.lengths = lengths

    def __len__(self):
        return len(self.lengths)

    def batch(self, rows):
        """What `fit` takes for rows of these numbers, int32 (B,): (inputs, labels[, weights])."""
        raise NotImplementedError

    @property
    def weight_totals(self):
        """The sum of the weights of all rows by the output's name, where labels have weights."""
        return {}

    def training_batches(self, *, steps, seed, epochs=1, first_step=0):
        """A dataset of `epochs` times `steps` batches, less the first `first_step`.

        In each epoch every row is in one of the batches, with others of about its length.
        """
        plan = []
        for epoch in range(epochs):
            plan += shuffled_batches(self.lengths, count=steps, seed=seed, epoch=epoch)
        return planned_batches(plan[first_step:], self.batch)

    def shuffled(self, *, batch_size, seed, epochs):
        """`training_batches` of up to `batch_size` rows."""
        return self.training_batches(steps=-(-len(self) // batch_size), seed=seed, epochs=epochs)

    def evaluation_batches(self, *, batch_size):
        """A dataset of every row once, from the shortest to the longest."""
        return planned_batches(sorted_batches(self.lengths, batch_size=batch_size), self.batch)
