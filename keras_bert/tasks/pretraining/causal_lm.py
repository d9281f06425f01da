"""An encoder that reads from left to right, with a head for the next token."""

import keras

from keras_bert.errors import InputError
from keras_bert.heads.masked_lm import masked_lm_head
from keras_bert.heads.next_token import NextTokenPositions
from keras_bert.tasks.pretraining.pretraining_task import PretrainingTask


@keras.saving.register_keras_serializable(package="keras_bert")
class CausalLM(PretrainingTask):
    """A causal encoder with the masked-LM head, which predicts at each token the one after it.

    Takes the encoder's dictionary, and gives the logits `causal_lm` (B, S - 1, V): column i is the
    token at position i + 1, of which the encoder has seen positions 0 to i (B batch, S length, V
    vocabulary). Labels are `causal_lm` (B, S - 1) ids; sample weights of the same name and shape
    are 1 at tokens and 0 at padding.

    The head is a `FillMask`'s, so that a run goes on from the folder of either.

    Args:
        encoder: a `BertEncoder` whose config has `is_decoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None.

    Raises:
        InputError: the encoder sees what comes after a position, or is a RoBERTa, whose causal
            class `transformers` has under names of its own.
    """

    KIND = "causal-lm"
    ARCHITECTURE = "BertLMHeadModel"
    HEADS = ("masked_lm_head",)
    TOKEN_OUTPUTS = ("causal_lm",)
    MASKED_OUTPUTS = ()
    SHOWN = {"causal_lm_loss": "next-token loss", "causal_lm_accuracy": "accuracy"}

    def __init__(self, encoder, tokenizer=None, *, name="causal_lm"):
        if not encoder.config.is_decoder:
            raise InputError(
                "A causal LM needs an encoder that sees no more than what came before; in the "
                "config of this one, is_decoder is not true."
            )
        if encoder.config.model_type != "bert":
            raise InputError(
                f"A causal LM is made of a BERT, not of a {encoder.config.model_type}."
            )
        self.encoder = encoder
        self.masked_lm_head = masked_lm_head(encoder)
        self.positions = NextTokenPositions(name="positions")
        super().__init__(tokenizer, name=name)

    def connect(self, encoded, inputs):
        positions = self.positions(inputs["input_ids"])  # (B, S - 1)
        return {"causal_lm": self.masked_lm_head(encoded["sequence_output"], positions)}

    def signatures(self, *, max_length=None, top=5):
        """None: at a [MASK] the head predicts what comes after it."""
        raise InputError(
            "A causal LM predicts the next token and fills no [MASK], which is all that an export "
            "of a pre-trained model does; transformers opens its folder with AutoModelForCausalLM."
        )
