"""What fine-tuning feeds a model with: rows of labelled examples in memory."""

from functools import cached_property

from keras_bert.inference.answers import Inference
from keras_bert.train.frozen import computed_once
from keras_bert.train.loop import Feed


class LabelledRows(Feed):
    """Rows in memory, in batches of about one length.

    Args:
        task: the `Task` whose rows they are.
        train_rows, dev_rows: `TokenizedExamples`.
        plan: the `Plan` of the run.
        settings: the `FinetuneSettings`.
        frozen: None, or what `freeze` gives: a head alone is fed what the encoder makes of rows.
        folder: where a frozen encoder's outputs lie while the run is at work.
    """

    def __init__(self, task, train_rows, dev_rows, *, plan, settings, frozen, folder):
        self.task = task
        self.train_rows = train_rows
        self.dev_rows = dev_rows
        self.plan = plan
        self.settings = settings
        self.frozen = frozen
        self.folder = folder
        if frozen is None:  # a head alone reads no tokens
            self.tokens_a_step = float(train_rows.lengths.sum() / plan.evaluate_every)

    def training(self, first_step):
        return self._fed[0].training_batches(
            steps=self.plan.evaluate_every,
            seed=self.settings.seed,
            epochs=self.settings.epochs,
            first_step=first_step,
        )

    def evaluation(self):
        return self._fed[1].evaluation_batches(batch_size=self.settings.batch_size)

    def measures(self):
        metrics = [metric for some in self.task.default_metrics().values() for metric in some]
        if self.task.FIGURE in {metric.name for metric in metrics}:
            return {}
        measures = self.task.measure(self._inference.of_rows(self.dev_rows), self.dev_rows.examples)
        return {name: value for name, value in measures.items() if isinstance(value, float)}

    @cached_property
    def _inference(self):
        return Inference(self.task, batch_size=self.settings.batch_size)

    @cached_property
    def _fed(self):
        rows = (self.train_rows, self.dev_rows)
        if self.frozen is None:
            return rows
        return computed_once(
            rows, *self.frozen, batch_size=self.settings.batch_size, folder=self.folder
        )
