"""What fine-tuning feeds a model with: rows of labelled examples in memory."""

import math
from functools import cached_property

from keras_bert.training.evaluation import Evaluation
from keras_bert.training.loop import Feed


class LabelledRows(Feed):
    """Rows in memory, in batches of about one length.

    Args:
        model: what is trained, compiled: the task, or the head alone that `freeze` gives.
        task: the `Task` whose rows they are.
        train_rows, dev_rows: `TokenizedExamples`.
        plan: the `Plan` of the run.
        settings: the `FinetuneSettings`.
        computed: None, or a function that gives the `FrozenRows` of both, which a head alone is
            fed with; called where there is something to train.
    """

    def __init__(self, model, task, train_rows, dev_rows, *, plan, settings, computed=None):
        self.model = model
        self.task = task
        self.train_rows = train_rows
        self.dev_rows = dev_rows
        self.plan = plan
        self.settings = settings
        self.computed = computed
        self._kept = -math.inf, None, None  # figure, step, outputs
        if computed is None:  # a head alone reads no tokens
            self.tokens_a_step = float(train_rows.lengths.sum() / plan.evaluate_every)

    def training(self, first_step):
        return self._fed[0].training_batches(
            steps=self.plan.evaluate_every,
            seed=self.settings.seed,
            epochs=self.settings.epochs,
            first_step=first_step,
        )

    def measures(self, step):
        """Keras's figures on the dev rows; official ones too, where the task's FIGURE is one."""
        figures, outputs = self._evaluate()
        if self.task.FIGURE not in figures:
            # Epochs are told apart by what a folder of each would answer.
            self.task.tune(outputs, self.dev_rows)
            answers = self.task.decode(outputs, self.dev_rows)
            measures = self.task.measure(answers, self.dev_rows.examples)
            official = {name: v for name, v in measures.items() if isinstance(v, float)}
            figures = {**figures, **official}
        figure = figures[self.task.FIGURE]
        if self.settings.keep == "last" or figure > self._kept[0]:
            self._kept = figure, step, outputs
        return figures

    def outputs_at(self, step):
        """What the model with its weights after `step` steps, which it has now, says of dev.

        As `Inference.outputs`. What an evaluation of this session has found is not computed again.
        """
        _, of_step, outputs = self._kept
        return outputs if step == of_step else self._evaluate()[1]

    @cached_property
    def _evaluate(self):
        return Evaluation(self.model, self._fed[1], batch_size=self.settings.batch_size)

    @cached_property
    def _fed(self):
        return (self.train_rows, self.dev_rows) if self.computed is None else self.computed()
