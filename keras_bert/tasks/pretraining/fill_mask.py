"""An encoder with the masked-LM head alone (Devlin et al. 2018, section 3.1)."""

import keras

from keras_bert.heads.lm_head import masked_lm_inputs
from keras_bert.tasks.pretraining.pretraining_task import PretrainingTask


@keras.saving.register_keras_serializable(package="keras_bert")
class FillMask(PretrainingTask):
    """An encoder with the masked-LM head, tied to its token embedding.

    Takes the encoder's dictionary and `masked_lm_positions` (B, P) int32, and gives the logits
    `masked_lm` (B, P, V) of the token at each position (B batch, P predictions, V vocabulary).
    Labels are `masked_lm` (B, P) ids; sample weights of the same name and shape are 1 at
    predictions that count and 0 at padding. A pooler is not used; a model folder keeps it for us
    alone, because Hugging Face's BertForMaskedLM has none.

    Args:
        encoder: an `Encoder`, such as a `BertEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).
    """

    KIND = "fill-mask"
    HEADS = ("lm_head",)
    SHOWN = {"masked_lm_loss": "masked-token loss", "masked_lm_accuracy": "accuracy"}

    def __init__(self, encoder, tokenizer=None, *, name="fill_mask", **between):
        self.set_encoder(encoder, **between)
        self.lm_head = encoder.lm_head()
        super().__init__(tokenizer, name=name)

    @staticmethod
    def head_inputs():
        return masked_lm_inputs()

    def build_head(self, encoded, inputs):
        positions = inputs["masked_lm_positions"]  # (B, P)
        return {"masked_lm": self.lm_head(encoded["sequence_output"], positions)}

    def fill(self, text, *, top_k=5):
        """The candidates at each [MASK] of a text (see `keras_bert.inference.fill_mask`)."""
        from keras_bert.inference.fill_mask import fill_mask

        return fill_mask(model=self, text=text, top_k=top_k)
