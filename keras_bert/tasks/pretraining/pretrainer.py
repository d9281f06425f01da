"""Pre-training with masked tokens and a second objective: next sentences (Devlin et al. 2018,
section 3.1), the order of sentences (ALBERT), or spans and their boundaries (SpanBERT).
"""

import dataclasses

import keras

from keras_bert.base.settings import Settings, setting
from keras_bert.heads.lm_head import masked_lm_inputs
from keras_bert.heads.next_sentence import NextSentenceHead
from keras_bert.heads.span_boundary import span_boundary_head, span_boundary_inputs
from keras_bert.tasks.pretraining.fill_mask import FillMask
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
        self.set_encoder(encoder, **between)
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
        super().__init__(tokenizer, name=name)

    @staticmethod
    def head_inputs():
        return masked_lm_inputs()

    def build_head(self, encoded, inputs):
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanSettings(Settings):
    """What a span pre-trainer is made with; a model folder keeps it."""

    max_span_length: int = setting(
        20, help="tokens of a span, at most, that are predicted from its boundaries", at_least=1
    )
    span_boundary_weight: float = setting(
        1.0, help="what the span-boundary loss counts beside the masked-token loss", above=0
    )


@keras.saving.register_keras_serializable(package="keras_bert")
class SpanPretrainer(FillMask):
    """A `FillMask` that also predicts each masked token from the boundaries of its span.

    Takes what a `FillMask` takes and, for each masked position, `span_left` and `span_right` (the
    positions of the tokens just outside its span) and `span_offset` (its place in the span, from
    1), (B, P) int32 each. Gives the logits `masked_lm` and `span_boundary`, both (B, P, V), of the
    same tokens. The loss is the sum of both cross-entropies, each the mean over what counts, the
    second one times a weight.

    In a model folder the span-boundary head lies beside the BertForMaskedLM, under
    `keras_bert.span_boundary.`.

    Args:
        encoder: an `Encoder`, such as a `BertEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None.
        max_span_length: the largest offset that has an embedding. Tokens that stand further in are
            not predicted from the boundaries, as in the paper's program, whose limit is 20, too.
        span_boundary_weight: what the second loss counts in the sum.
    """

    KIND = "span-pretrainer"
    HEADS = ("lm_head", "span_boundary")
    TOKEN_OUTPUTS = MASKED_OUTPUTS = ("masked_lm", "span_boundary")
    SHOWN = {
        **FillMask.SHOWN,
        "span_boundary_loss": "span-boundary loss",
        "span_boundary_accuracy": "accuracy",
    }

    def __init__(
        self,
        encoder,
        tokenizer=None,
        *,
        max_span_length=SpanSettings.max_span_length,
        span_boundary_weight=SpanSettings.span_boundary_weight,
        name="span_pretrainer",
        **between,
    ):
        self.encoder = encoder
        self.max_span_length = max_span_length
        self.span_boundary_weight = span_boundary_weight
        self.span_boundary = span_boundary_head(encoder, max_span_length=max_span_length)
        super().__init__(encoder, tokenizer, name=name, **between)

    @staticmethod
    def head_inputs():
        return {**masked_lm_inputs(), **span_boundary_inputs()}

    def build_head(self, encoded, inputs):
        boundaries = self.span_boundary(
            encoded["sequence_output"],
            inputs["span_left"],
            inputs["span_right"],
            inputs["span_offset"],
        )
        return {**super().build_head(encoded, inputs), "span_boundary": boundaries}

    def default_loss_weights(self):
        return {"masked_lm": 1.0, "span_boundary": self.span_boundary_weight}

    @classmethod
    def stored_settings(cls):
        return {field.name: field for field in dataclasses.fields(SpanSettings)}
