"""Pre-training with masked spans and their boundaries (SpanBERT, Joshi et al. 2020)."""

import dataclasses

import keras

from keras_bert.base.settings import Settings, setting
from keras_bert.heads.lm_head import masked_lm_inputs
from keras_bert.heads.span_boundary import span_boundary_head, span_boundary_inputs
from keras_bert.tasks.pretraining.fill_mask import FillMask


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

    def connect(self, encoded, inputs):
        boundaries = self.span_boundary(
            encoded["sequence_output"],
            inputs["span_left"],
            inputs["span_right"],
            inputs["span_offset"],
        )
        return {**super().connect(encoded, inputs), "span_boundary": boundaries}

    def default_loss_weights(self):
        return {"masked_lm": 1.0, "span_boundary": self.span_boundary_weight}

    @classmethod
    def stored_settings(cls):
        return {field.name: field for field in dataclasses.fields(SpanSettings)}
