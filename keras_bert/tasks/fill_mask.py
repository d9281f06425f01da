"""An encoder with the masked-LM head alone (Devlin et al. 2018, section 3.1)."""

import keras

from keras_bert.heads.masked_lm import MaskedLMHead
from keras_bert.tasks.task import Task


@keras.saving.register_keras_serializable(package="keras_bert")
class FillMask(Task):
    """An encoder with the masked-LM head, tied to its token embedding.

    Takes the encoder's dictionary and `masked_lm_positions` (B, P) int32, and gives the logits
    `masked_lm` (B, P, V) of the token at each position (B batch, P predictions, V vocabulary).
    Labels are `masked_lm` (B, P) ids; sample weights of the same name and shape are 1 at
    predictions that count and 0 at padding. A pooler is not used; a model folder keeps it for us
    alone, because Hugging Face's BertForMaskedLM has none.

    Args:
        encoder: a `BertEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None (then the task takes ids only).
    """

    ARCHITECTURE = "BertForMaskedLM"

    def __init__(self, encoder, tokenizer=None, *, name="fill_mask"):
        config = encoder.config
        masked_lm_head = MaskedLMHead(
            token_embedding=encoder.token_embedding,
            hidden_act=config.hidden_act,
            layer_norm_eps=config.layer_norm_eps,
            initializer_range=config.initializer_range,
            dtype=encoder.token_embedding.dtype_policy,
            name="masked_lm_head",
        )
        inputs = self.feature_inputs()
        positions = keras.Input((None,), dtype="int32", name="masked_lm_positions")  # (B, P)
        hidden = encoder(inputs)["sequence_output"]  # (B, S, D)
        super().__init__(
            inputs={**inputs, "masked_lm_positions": positions},
            outputs={"masked_lm": masked_lm_head(hidden, positions)},
            encoder=encoder,
            tokenizer=tokenizer,
            name=name,
        )
        self.masked_lm_head = masked_lm_head

    def default_losses(self):
        """Cross-entropy in nats; the mean over predictions that count."""
        return {
            "masked_lm": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            )
        }

    def default_metrics(self):
        """`masked_lm_accuracy`, and `masked_lm_cross_entropy` in nats, over what counts.

        The names are those of the same figures of a `Pretrainer`: Keras puts the name of the
        output before a metric's only where there are several outputs.
        """
        return {
            "masked_lm": [
                keras.metrics.SparseCategoricalAccuracy(name="masked_lm_accuracy"),
                keras.metrics.SparseCategoricalCrossentropy(
                    from_logits=True, name="masked_lm_cross_entropy"
                ),
            ]
        }

    def dataset(self, data, *, split="train", **options):
        """Returns the batches of a `DataFolder` (see `keras_bert.input_pipeline.pretraining`)."""
        from keras_bert.input_pipeline.pretraining import pretraining_dataset

        vocabulary = self.tokenizer.vocabulary
        return pretraining_dataset(data, split=split, vocabulary=vocabulary, **options)

    def fill(self, text, *, top=5):
        """The candidates at each [MASK] of a text (see `keras_bert.train.fill_mask`)."""
        from keras_bert.train.fill_mask import fill_mask

        return fill_mask(model=self, text=text, top=top)
