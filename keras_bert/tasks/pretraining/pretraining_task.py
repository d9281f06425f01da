"""What all pre-training tasks have in common: their loss, what is measured, and their batches."""

from keras_bert.tasks.pretraining.metrics import CrossEntropy, Metrics
from keras_bert.tasks.task import Task


class PretrainingTask(Task):
    """A task whose outputs are logits, among them such over the vocabulary.

    Its loss is the sum of the outputs' cross-entropies, each the mean over what counts, as in
    google-research/bert. `compile_defaults` measures each output's `cross_entropy` in nats and
    `accuracy`, and those of tokens also over the masked, the replaced and the kept ones (see
    `keras_bert.tasks.pretraining.metrics`), in training and in `evaluate`. The loss that Keras
    reports is the mean of the batches' means; the cross-entropy measured is the mean over all
    predictions, also where batches differ in how many they have.

    Class attributes, beside those of `Task`:
        TOKEN_OUTPUTS: the outputs that give tokens.
        MASKED_OUTPUTS: those of them that give one at each masked position.
    """

    TOKEN_OUTPUTS = ("masked_lm",)
    MASKED_OUTPUTS = ("masked_lm",)

    _output_metrics = None

    def default_losses(self):
        """Cross-entropy in nats; the mean over predictions and rows that count."""
        return {name: CrossEntropy() for name in self.output}

    def compile(self, *arguments, **options):
        self._output_metrics = None  # of losses of somebody else nothing more is known
        super().compile(*arguments, **options)

    def compile_defaults(self, optimizer=None, *, counts_finite=False, **options):
        """As that of `Task`; `counts_finite` adds the figure by which a run finds its bad batch."""
        super().compile_defaults(optimizer, **options)
        mask_id = None if self.tokenizer is None else self.tokenizer.vocabulary.mask_id
        self._output_metrics = Metrics(
            self.output,
            masked_outputs=self.MASKED_OUTPUTS,
            mask_id=mask_id,
            counts_finite=counts_finite,
        )

    @property
    def metrics(self):
        measured = [] if self._output_metrics is None else self._output_metrics.metrics
        return [*super().metrics, *measured]

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        if self._output_metrics is not None:
            y_pred = self._output_metrics.measure(x, y, y_pred, sample_weight)  # nats
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if self._output_metrics is not None and self._output_metrics.finite is not None:
            self._output_metrics.finite.update_state(loss)
        return loss

    def dataset(self, data, *, split="train", batch_size=32, **options):
        """The batches of a data folder, given as a `DataFolder` or by its path.

        `options` are those of `keras_bert.tasks.pretraining.features`: of the split "train" `seed`
        (0) and `first_step`, of "eval" `batches`. Raises InputError: there is no such folder.
        """
        from keras_bert.tasks.pretraining.features import pretraining_dataset

        vocabulary = self.tokenizer.vocabulary
        options |= {"batch_size": batch_size, "vocabulary": vocabulary, "task": self}
        return pretraining_dataset(data, split=split, **options)

    def signatures(self, *, max_length=None, top_k=5):
        """What the masked-LM head alone answers; `top_k` is the candidates for each [MASK]."""
        from keras_bert.tasks.pretraining.signatures import fill_mask_signatures

        return fill_mask_signatures(
            self, max_length=max_length or self.config.max_length, top_k=top_k
        )
