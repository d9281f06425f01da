"""Pre-training with masked tokens and next sentences (Devlin et al. 2019, section 3.1)."""

import keras

from keras_bert.heads.masked_lm import MaskedLMHead
from keras_bert.heads.next_sentence import NextSentenceHead
from keras_bert.tasks.task import Task


@keras.saving.register_keras_serializable(package="keras_bert")
class Pretrainer(Task):
    """An encoder with the masked-LM head, tied to its token embedding, and the next-sentence head.

    Takes the encoder's dictionary and `masked_lm_positions` (B, P) int32, and gives (B batch,
    P predictions, V vocabulary) the logits

    - `masked_lm` (B, P, V)
    - `next_sentence` (B, 2): column 0 is "follows", 1 is "random"

    Labels are `masked_lm` (B, P) ids and `next_sentence` (B,); sample weights of the same names and
    shapes are 1 at predictions and rows that count and 0 at padding. The loss is the sum of both
    outputs' cross-entropies, each the mean over what counts, as in google-research/bert.

    Args:
        encoder: a `BertEncoder` with a pooler.
        tokenizer: the `Tokenizer` of its vocabulary, or None (needed only to save a model folder).

    Raises:
        ValueError: the encoder has no pooler.
    """

    ARCHITECTURE = "BertForPreTraining"

    def __init__(self, encoder, tokenizer=None, *, name="pretrainer"):
        config = encoder.config
        if not config.add_pooling_layer:
            raise ValueError(
                "`Pretrainer` needs an encoder with a pooler for its next-sentence head. "
                f"Received: add_pooling_layer={config.add_pooling_layer}"
            )
        dtype = encoder.token_embedding.dtype_policy
        masked_lm_head = MaskedLMHead(
            token_embedding=encoder.token_embedding,
            hidden_act=config.hidden_act,
            layer_norm_eps=config.layer_norm_eps,
            initializer_range=config.initializer_range,
            dtype=dtype,
            name="masked_lm_head",
        )
        next_sentence_head = NextSentenceHead(
            initializer_range=config.initializer_range, dtype=dtype, name="next_sentence_head"
        )
        inputs = self.feature_inputs()
        features = encoder(inputs)
        positions = keras.Input((None,), dtype="int32", name="masked_lm_positions")  # (B, P)
        super().__init__(
            inputs={**inputs, "masked_lm_positions": positions},
            outputs={
                "masked_lm": masked_lm_head(features["sequence_output"], positions),
                "next_sentence": next_sentence_head(features["pooled_output"]),
            },
            encoder=encoder,
            tokenizer=tokenizer,
            name=name,
        )
        self.masked_lm_head = masked_lm_head
        self.next_sentence_head = next_sentence_head

    def default_losses(self):
        """Cross-entropy in nats; the mean over predictions and rows that count."""
        return {name: _cross_entropy() for name in ("masked_lm", "next_sentence")}

    def default_metrics(self):
        """For both outputs `accuracy`, and `cross_entropy` in nats.

        The loss that Keras reports is the mean of the batches' means; this cross-entropy is the
        mean over all predictions, also where batches differ in how many they have.
        """
        return {
            name: [
                keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
                keras.metrics.SparseCategoricalCrossentropy(from_logits=True, name="cross_entropy"),
            ]
            for name in ("masked_lm", "next_sentence")
        }

    def dataset(self, data, *, split="train", **options):
        """Returns the batches of a `DataFolder` (see `keras_bert.input_pipeline.pretraining`)."""
        from keras_bert.input_pipeline.pretraining import pretraining_dataset

        vocabulary = self.tokenizer.vocabulary
        return pretraining_dataset(data, split=split, vocabulary=vocabulary, **options)


def _cross_entropy():
    return keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )
