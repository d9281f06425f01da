"""Bidirectional language models (Peters et al. 2018, section 3.1)."""

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.heads.lm_head import NextTokenPositions
from keras_bert.layers.elementwise import Dropout
from keras_bert.tasks.pretraining.pretrainer import PretrainingTask, shown


@keras.saving.register_keras_serializable(package="keras_bert")
class BidirectionalLM(PretrainingTask):
    """Two language models, forward and backward, which share tokens and softmax.

    Takes the encoder's dictionary, and returns the logits `forward_lm` and `backward_lm`, both
    (B, S - 1, V) (B batch, S length, V vocabulary). Column i of `forward_lm` predicts the token at
    position i + 1 from positions 0 to i, and column i of `backward_lm` the token at position i from
    positions i + 1 to the last. Labels are ids of the same names (B, S - 1); sample weights are 1
    where both positions are tokens and 0 elsewhere.

    The loss is the mean of the two cross-entropies. Metrics have the perplexity of each direction.

    Args:
        encoder: an encoder of two separate directions, such as a `BilmEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None.

    Raises:
        InputError: a token's vector has seen both sides in every part, as in a BERT.
    """

    KIND = "bidirectional-lm"
    HEADS = ("lm_head",)
    TOKEN_OUTPUTS = PERPLEXITIES = ("forward_lm", "backward_lm")
    MASKED_OUTPUTS = ()
    SHOWN = shown(forward_lm="next-token", backward_lm="previous-token")

    def __init__(self, encoder, tokenizer=None, *, name="bidirectional_lm"):
        if self.KIND not in encoder.OBJECTIVES:
            raise InputError(
                "A bidirectional LM needs an encoder with a forward and a backward direction, such "
                f"as elmo. Received: a {encoder.config.model_type} encoder."
            )
        self.set_encoder(encoder)  # no layers above, which would see both directions
        self.lm_head = encoder.lm_head()
        self.positions = NextTokenPositions(name="positions")
        self.output_dropout = Dropout(
            rate=encoder.config.hidden_dropout_prob,
            name="output_dropout",
            dtype=encoder.layer_policy,
        )
        super().__init__(tokenizer, name=name)

    def build_head(self, encoded, inputs):
        hidden = self.output_dropout(encoded["sequence_output"])
        forward, backward = ops.split(hidden, 2, axis=-1)  # (B, S, D / 2) each
        positions = self.positions(inputs["input_ids"])  # (B, S - 1)
        return {
            "forward_lm": self.lm_head(forward, positions),
            "backward_lm": self.lm_head(backward, positions + 1),
        }

    def default_loss_weights(self):
        return dict.fromkeys(self.output, 0.5)

    def signatures(self, *, max_length=None, top_k=5):
        """Raises `InputError`: at a [MASK] the head predicts its neighbours."""
        raise InputError(
            "A bidirectional LM cannot be exported: an exported pre-trained model fills [MASK], "
            "and this one predicts the next and the previous token. Fine-tune it first."
        )
