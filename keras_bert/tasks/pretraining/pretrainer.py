"""Pre-training with masked tokens and next sentences (Devlin et al. 2019, section 3.1)."""

import keras

from keras_bert.heads.masked_lm import masked_lm_head, masked_lm_inputs
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

    KIND = "pretrainer"
    ARCHITECTURE = "BertForPreTraining"
    READS = ("sequence_output", "pooled_output", "masked_lm_positions")
    HEADS = ("masked_lm_head", "next_sentence_head")
    SHOWN = {
        "masked_lm_loss": "masked-token loss",
        "masked_lm_accuracy": "accuracy",
        "next_sentence_loss": "next-sentence loss",
        "next_sentence_accuracy": "accuracy",
    }

    def __init__(self, encoder, tokenizer=None, *, name="pretrainer"):
        self.encoder = encoder
        self.masked_lm_head = masked_lm_head(encoder)
        self.next_sentence_head = NextSentenceHead(
            initializer_range=encoder.config.initializer_range,
            dtype=encoder.layer_policy,
            name="next_sentence_head",
        )
        super().__init__(tokenizer, name=name)

    @staticmethod
    def head_inputs():
        return masked_lm_inputs()

    def connect(self, encoded, inputs):
        positions = inputs["masked_lm_positions"]  # (B, P)
        return {
            "masked_lm": self.masked_lm_head(encoded["sequence_output"], positions),
            "next_sentence": self.next_sentence_head(encoded["pooled_output"]),
        }

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
        """Returns the batches of a `DataFolder` (see `keras_bert.tasks.pretraining.features`)."""
        from keras_bert.tasks.pretraining.features import pretraining_dataset

        vocabulary = self.tokenizer.vocabulary
        return pretraining_dataset(data, split=split, vocabulary=vocabulary, **options)


def _cross_entropy():
    return keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )
