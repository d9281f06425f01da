"""Pre-training with masked tokens and the order of sentences (ALBERT, Lan et al. 2020, 3.1)."""

import keras

from keras_bert.tasks.pretraining.pretrainer import Pretrainer


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
