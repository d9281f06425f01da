"""Where in a text the answer to a question begins and ends (Devlin et al. 2018, section 4.2)."""

import keras
from keras import ops

from keras_bert.layers.dense import logits_layer
from keras_bert.tasks.task import Task

# What google-research/bert adds where nothing is to be seen; a softmax makes zero of it.
_NOWHERE = -10000.0


@keras.saving.register_keras_serializable(package="keras_bert")
class QuestionAnswerer(Task):
    """An encoder with a linear layer over every token's output: is it the first, is it the last.

    Takes the encoder's dictionary and gives the logits (B batch, S tokens in a row)

    - `start_logits` (B, S): that the answer begins with the token
    - `end_logits` (B, S): that it ends with it

    The head is that of Hugging Face's BertForQuestionAnswering, a layer without dropout. At padding
    the logits are -10000 and not the layer's, so that a row's probabilities and loss do not depend
    on how far it is padded. Labels are `start_logits` and `end_logits` (B,), the positions of the
    two tokens; sample weights of the same names and shapes are 0 at rows that do not count. A
    pooler is not used; a model folder keeps it for us alone, because that class has none.

    Args:
        encoder: a `BertEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).

    Attributes: `qa_outputs` (the `Dense`).
    """

    KIND = "question-answering"
    ARCHITECTURE = "BertForQuestionAnswering"
    READS = ("sequence_output", "input_mask")
    HEADS = ("qa_outputs",)

    def __init__(self, encoder, tokenizer=None, *, name="question_answerer"):
        self.encoder = encoder
        self.qa_outputs = logits_layer(
            2,
            initializer_range=encoder.config.initializer_range,
            name="qa_outputs",
            dtype=encoder.layer_policy,
        )
        super().__init__(tokenizer, name=name)

    def connect(self, encoded, inputs):
        logits = self.qa_outputs(encoded["sequence_output"])  # (B, S, 2)
        at_tokens = ops.cast(inputs["input_mask"], "bool")  # (B, S)
        return {
            "start_logits": ops.where(at_tokens, logits[..., 0], _NOWHERE),
            "end_logits": ops.where(at_tokens, logits[..., 1], _NOWHERE),
        }

    def default_losses(self):
        """Cross-entropy over the tokens of a row, in nats; the mean over the rows that count."""
        return {name: _cross_entropy() for name in ("start_logits", "end_logits")}

    def default_metrics(self):
        """For both outputs `accuracy`, the share of rows whose right token has the highest one."""
        return {
            name: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
            for name in ("start_logits", "end_logits")
        }

    def default_loss_weights(self):
        """The loss is the mean of both outputs', as in BERT."""
        return {"start_logits": 0.5, "end_logits": 0.5}


def _cross_entropy():
    return keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )
