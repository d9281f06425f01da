"""Language models: causal, masked and causal (GPT-BERT), and bidirectional (ELMo)."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import keras
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.encoders.encoder import Encoder
from keras_bert.heads.lm_head import NextTokenPositions
from keras_bert.layers import Tensor
from keras_bert.layers.elementwise import Dropout
from keras_bert.tasks.pretraining import MaskedCausalSettings
from keras_bert.tasks.pretraining.pretrainer import FillMask, PretrainingTask, shown

if TYPE_CHECKING:
    from keras_bert.text.tokenizer import Tokenizer


@keras.saving.register_keras_serializable(package="keras_bert")
class CausalLM(PretrainingTask):
    """A causal encoder with its language-model head, which predicts the token after each token.

    Takes the encoder's dictionary, and returns the logits `causal_lm` (B, S - 1, V): column i
    predicts the token at position i + 1 from positions 0 to i (B batch, S length, V vocabulary).
    Labels are `causal_lm` (B, S - 1) ids; sample weights of the same name and shape are 1 at tokens
    and 0 at padding.

    The head is a `FillMask`'s, so a run can start from the folder of either.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`; a causal encoder, such as
            a `BertEncoder` whose config has `is_decoder`.

    Raises:
        InputError: the encoder is not causal.
    """

    TASK_TYPE = "causal-lm"
    OFFERS = (*PretrainingTask.OFFERS, "generate")
    HEADS = ("lm_head",)
    TOKEN_OUTPUTS = ("causal_lm",)
    MASKED_OUTPUTS = ()
    SHOWN = shown(causal_lm="next-token")
    SIGNATURES = "keras_bert.tasks.pretraining.signatures:language_model_signatures"

    def check_encoder(self) -> None:
        if not self.encoder.config.is_causal:
            raise InputError(
                "A causal LM needs a causal encoder, in which each token sees only the tokens "
                "before it. Received: an encoder that is not causal (in a BERT's config, "
                "is_decoder is not true)."
            )

    def make_head(self) -> None:
        self.lm_head = self.encoder.lm_head()
        self.positions = NextTokenPositions(name="positions")

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        positions = self.positions(inputs["input_ids"])  # (B, S - 1)
        return {"causal_lm": self.lm_head(encoded["sequence_output"], positions)}

    @functools.cached_property
    def generator(self) -> Any:
        """The functions that generate text, traced when they are first used."""
        from keras_bert.tasks.pretraining.generation import Generator

        return Generator(self)

    def generate(self, prompt: str | Sequence[str], **settings: Any) -> Any:
        """The texts that continue prompts (see `keras_bert.generate`)."""
        from keras_bert.inference.generate import generate

        return generate(model=self, prompt=prompt, **settings)

    @property
    def exported_length(self) -> int:
        return self.encoder.default_max_length(512)


@keras.saving.register_keras_serializable(package="keras_bert")
class MaskedCausalLM(FillMask):
    """A `FillMask` that also reads other examples from left to right.

    Takes what a `FillMask` takes and `causal_input_ids`, `causal_input_mask` (C, S): examples
    without masks and with one segment; C may differ from B. Returns the logits `masked_lm`
    (B, P, V) and, from the same head, `causal_lm` (C, S - 1, V), of the token after each position.
    The loss is the mean of both, weighted by the fraction of the examples that are causal.

    In the paper a masked token is predicted from the position before it, as the next token is. Here
    it is predicted from its own position, so that the folder is a plain BertForMaskedLM.

    Args:
        encoder: an `Encoder` that can be bidirectional and causal, such as a `BertEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None.
        causal_fraction: the fraction of a batch's examples that are causal.
    """

    TASK_TYPE = "masked-causal-lm"
    HEAD_INPUTS = {
        **FillMask.HEAD_INPUTS,
        "causal_input_ids": (None,),
        "causal_input_mask": (None,),
    }
    TOKEN_OUTPUTS = ("masked_lm", "causal_lm")
    SETTINGS = MaskedCausalSettings
    SHOWN = shown(masked_lm="masked-token", causal_lm="next-token")

    def make_head(self) -> None:
        self.positions = NextTokenPositions(name="positions")
        super().make_head()

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        ids = inputs["causal_input_ids"]  # (C, S)
        causal = {"input_ids": ids, "input_mask": inputs["causal_input_mask"]}
        if "segment_ids" in self.encoder.input_names:
            causal["segment_ids"] = ops.zeros_like(ids)
        hidden = self.encoded(causal, causal=True)["sequence_output"]
        following = self.lm_head(hidden, self.positions(ids))
        return {**super().build_head(encoded, inputs), "causal_lm": following}

    def default_loss_weights(self) -> dict[str, float]:
        causal = self.settings.causal_fraction
        return {"masked_lm": 1.0 - causal, "causal_lm": causal}


@keras.saving.register_keras_serializable(package="keras_bert")
class BidirectionalLM(PretrainingTask):
    """A forward and a backward language model, which share tokens and softmax (Peters et al. 2018,
    section 3.1).

    Takes the encoder's dictionary, and returns the logits `forward_lm` and `backward_lm`, both
    (B, S - 1, V) (B batch, S length, V vocabulary). Column i of `forward_lm` predicts the token at
    position i + 1 from positions 0 to i, and column i of `backward_lm` the token at position i from
    positions i + 1 to the last. Labels are ids of the same names (B, S - 1); sample weights are 1
    where both positions are tokens and 0 elsewhere.

    The loss is the mean of the two cross-entropies. Metrics have the perplexity of each direction.

    Args:
        encoder: an encoder of two separate directions, such as a `BilmEncoder`.
        tokenizer: the `Tokenizer` of its vocabulary, or None.

    Raises:
        InputError: a token's vector has seen both sides in every part, as in a BERT.
    """

    TASK_TYPE = "bidirectional-lm"
    HEADS = ("lm_head",)
    TOKEN_OUTPUTS = PERPLEXITIES = ("forward_lm", "backward_lm")
    MASKED_OUTPUTS = ()
    SHOWN = shown(forward_lm="next-token", backward_lm="previous-token")

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: "Tokenizer | None" = None,
        *,
        name: str | None = None,
    ):
        # No layers between encoder and head, which would see both directions.
        super().__init__(encoder, tokenizer, name=name)

    def check_encoder(self) -> None:
        if self.TASK_TYPE not in self.encoder.OBJECTIVES:
            raise InputError(
                "A bidirectional LM needs an encoder with a forward and a backward direction, such "
                f"as elmo. Received: a {self.encoder.config.model_type} encoder."
            )

    def make_head(self) -> None:
        encoder = self.encoder
        self.lm_head = encoder.lm_head()
        self.positions = NextTokenPositions(name="positions")
        self.output_dropout = Dropout(
            rate=encoder.config.hidden_dropout_prob,
            name="output_dropout",
            dtype=encoder.layer_policy,
        )

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        hidden = self.output_dropout(encoded["sequence_output"])
        forward, backward = ops.split(hidden, 2, axis=-1)  # (B, S, D / 2) each
        positions = self.positions(inputs["input_ids"])  # (B, S - 1)
        return {
            "forward_lm": self.lm_head(forward, positions),
            "backward_lm": self.lm_head(backward, positions + 1),
        }

    def default_loss_weights(self) -> dict[str, float]:
        return dict.fromkeys(self.output, 0.5)

    def signatures(self, *, max_length: int | None = None, top_k: int = 5) -> NoReturn:
        """Raises `InputError`: at a [MASK] the head predicts its neighbours."""
        raise InputError(
            "A bidirectional LM cannot be exported: an exported pre-trained model fills [MASK], "
            "and this one predicts the next and the previous token. Fine-tune it first."
        )
