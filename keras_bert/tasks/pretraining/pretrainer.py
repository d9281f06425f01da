"""Pre-training with masked tokens and next sentences (Devlin et al. 2019, section 3.1)."""

import keras

from keras_bert.heads.lm_head import masked_lm_inputs
from keras_bert.heads.next_sentence import NextSentenceHead
from keras_bert.tasks.pretraining.pretraining_task import PretrainingTask


@keras.saving.register_keras_serializable(package="keras_bert")
class Pretrainer(PretrainingTask):
    """An encoder with the masked-LM head, tied to its token embedding, and the next-sentence head.

    Takes the encoder's dictionary and `masked_lm_positions` (B, P) int32, and gives (B batch,
    P predictions, V vocabulary) the logits

    - `masked_lm` (B, P, V)
    - `next_sentence` (B, 2): column 0 is "follows", 1 is "random"

    Labels are `masked_lm` (B, P) ids and `next_sentence` (B,); sample weights of the same names and
    shapes are 1 at predictions and rows that count and 0 at padding. The loss is the sum of both
    outputs' cross-entropies, each the mean over what counts, as in google-research/bert.

    Args:
        encoder: an `Encoder`, such as a `BertEncoder` with a pooler.
        tokenizer: the `Tokenizer` of its vocabulary, or None (needed only to save a model folder).

    Class attributes, beside those of `PretrainingTask`:
        SENTENCES: the name of the output that tells what the second segment is to the first.

    Raises:
        ValueError: the encoder has no pooler.
    """

    KIND = "pretrainer"
    ENCODER_OUTPUTS = ("sequence_output", "first_output")
    HEADS = ("lm_head", "next_sentence_head")
    SENTENCES = "next_sentence"
    SHOWN = {
        "masked_lm_loss": "masked-token loss",
        "masked_lm_accuracy": "accuracy",
        "next_sentence_loss": "next-sentence loss",
        "next_sentence_accuracy": "accuracy",
    }

    def __init__(self, encoder, tokenizer=None, *, name="pretrainer", **between):
        self.encoder = encoder
        if encoder.lacks_head_transform(self.KIND):
            raise ValueError(
                f"`{type(self).__name__}` needs an encoder with a pooler. "
                "Received: an encoder whose weights came without one"
            )
        self.transform = encoder.head_transform(self.KIND)
        self.lm_head = encoder.lm_head()
        self.next_sentence_head = NextSentenceHead(
            initializer_range=encoder.config.head_initializer_range,
            dtype=encoder.layer_policy,
            name="next_sentence_head",
        )
        super().__init__(tokenizer, name=name, **between)

    @staticmethod
    def head_inputs():
        return masked_lm_inputs()

    def connect(self, encoded, inputs):
        positions = inputs["masked_lm_positions"]  # (B, P)
        first = encoded["first_output"]  # (B, D)
        if self.transform is not None:
            first = self.transform(first)
        return {
            "masked_lm": self.lm_head(encoded["sequence_output"], positions),
            self.SENTENCES: self.next_sentence_head(first),
        }


@keras.saving.register_keras_serializable(package="keras_bert")
class SentenceOrderPretrainer(Pretrainer):
    """A `Pretrainer` whose second question is whether two consecutive segments were swapped.

    The head is the next-sentence head, and a model folder keeps it under that head's names; its
    output and label are `sentence_order`: (B, 2) logits, column 0 is "in order", 1 is "swapped".
    """

    KIND = "sentence-order-pretrainer"
    SENTENCES = "sentence_order"
    SHOWN = {
        "masked_lm_loss": "masked-token loss",
        "masked_lm_accuracy": "accuracy",
        "sentence_order_loss": "sentence-order loss",
        "sentence_order_accuracy": "accuracy",
    }

    def __init__(self, encoder, tokenizer=None, *, name="sentence_order_pretrainer", **between):
        super().__init__(encoder, tokenizer, name=name, **between)
