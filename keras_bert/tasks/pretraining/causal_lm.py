"""An encoder that reads from left to right, with a head for the next token."""

import keras

from keras_bert.base.errors import InputError
from keras_bert.heads.lm_head import NextTokenPositions
from keras_bert.tasks.pretraining.pretraining_task import PretrainingTask


@keras.saving.register_keras_serializable(package="keras_bert")
class CausalLM(PretrainingTask):
    """A causal encoder with its language-model head, which predicts the token after each token.

    Takes the encoder's dictionary, and gives the logits `causal_lm` (B, S - 1, V): column i is the
    token at position i + 1, of which the encoder has seen positions 0 to i (B batch, S length, V
    vocabulary). Labels are `causal_lm` (B, S - 1) ids; sample weights of the same name and shape
    are 1 at tokens and 0 at padding.

    The head is a `FillMask`'s, so that a run goes on from the folder of either.

    Args:
        encoder: a causal encoder, such as a `BertEncoder` whose config has `is_decoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None.

    Raises:
        InputError: the encoder sees what comes after a token.
    """

    KIND = "causal-lm"
    HEADS = ("lm_head",)
    TOKEN_OUTPUTS = ("causal_lm",)
    MASKED_OUTPUTS = ()
    SHOWN = {"causal_lm_loss": "next-token loss", "causal_lm_accuracy": "accuracy"}

    def __init__(self, encoder, tokenizer=None, *, name="causal_lm", layer_mix=None):
        if not encoder.config.is_causal:
            raise InputError(
                "A causal LM needs a causal encoder, in which each token sees only the tokens "
                "before it. Received an encoder that is not causal (in a BERT's config, is_decoder "
                "is not true)."
            )
        self.encoder = encoder
        self.lm_head = encoder.lm_head()
        self.positions = NextTokenPositions(name="positions")
        # No BiLSTM, which would see the next token.
        super().__init__(tokenizer, name=name, layer_mix=layer_mix)

    def connect(self, encoded, inputs):
        positions = self.positions(inputs["input_ids"])  # (B, S - 1)
        return {"causal_lm": self.lm_head(encoded["sequence_output"], positions)}

    def signatures(self, *, max_length=None, top=5):
        """None: at a [MASK] the head predicts what comes after it."""
        raise InputError(
            "A causal LM predicts the next token and fills no [MASK], which is all that an export "
            "of a pre-trained model does; transformers opens its folder with AutoModelForCausalLM."
        )
