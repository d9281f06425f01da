"""Replaced-token detection (ELECTRA, Clark et al. 2020): a generator and a discriminator."""

from collections.abc import Callable, Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.encoders.encoder import Encoder
from keras_bert.layers import Layer, Tensor
from keras_bert.layers.dense import activation, dense
from keras_bert.tasks.pretraining import ReplacedTokenSettings
from keras_bert.tasks.pretraining.metrics import CrossEntropy, Metrics
from keras_bert.tasks.pretraining.pretrainer import FillMask, PretrainingTask

# Bits of a draw: an int32 that float32 has exactly.
DRAW_BITS = 24
# Tokens whose probabilities are added up first: a token is looked for in one such part alone.
_PART = 128


@keras.saving.register_keras_serializable(package="keras_bert")
class ReplaceTokens(Layer):
    """Puts tokens that a generator samples in the places of masked ones.

    A token is the one at which the sum of the probabilities passes a given number: no random
    numbers are made here.

    Shapes: logits (B, P, V), draws int (B, P) from 0 to 2**DRAW_BITS - 1, index int (B, S), the
    number of each token's prediction from 1 and 0 if it has none, ids int (B, S) -> int32 (B, S):
    the ids with sampled ones where there is a prediction. No gradient passes.

    Args:
        temperature: the logits are divided by it.
    """

    def __init__(self, *, temperature: float, **kwargs: Any):
        super().__init__(**kwargs)
        self.temperature = temperature

    def call(self, logits: Tensor, draws: Tensor, index: Tensor, ids: Tensor) -> Tensor:
        sampled = sampled_tokens(logits, draws, temperature=self.temperature)  # (B, P)
        sampled = ops.pad(sampled, ((0, 0), (1, 0)))  # (B, 1 + P)
        index = ops.cast(index, "int32")
        at_each = ops.take_along_axis(sampled, index, axis=1)  # (B, S)
        return ops.where(index > 0, at_each, ops.cast(ids, "int32"))

    def compute_output_spec(
        self, logits: Tensor, draws: Tensor, index: Tensor, ids: Tensor
    ) -> keras.KerasTensor:
        return keras.KerasTensor(ids.shape, dtype="int32")


def sampled_tokens(logits: Tensor, draws: Tensor, *, temperature: float = 1.0) -> Tensor:
    """The tokens at which the sums of the probabilities pass the draws.

    Shapes: logits (B, P, V), draws (B, P) -> int32 (B, P). The sums are those of parts of the
    vocabulary, and then of the tokens of one part: exact to some 1e-6 in float32, and few passes.
    """
    shape, vocabulary_size = ops.shape(draws), logits.shape[-1]
    logits = ops.cast(ops.stop_gradient(logits), "float32") / temperature
    weights = ops.exp(logits - ops.max(logits, axis=-1, keepdims=True))
    parts = -(-vocabulary_size // _PART)
    weights = ops.reshape(weights, (-1, vocabulary_size))
    weights = ops.pad(weights, ((0, 0), (0, parts * _PART - vocabulary_size)))
    weights = ops.reshape(weights, (-1, parts, _PART))  # (N, K, part)
    sums = ops.cumsum(ops.sum(weights, axis=-1), axis=-1)  # (N, K)
    draws = ops.cast(ops.reshape(draws, (-1, 1)), "float32") / 2**DRAW_BITS  # (N, 1)
    target = draws * sums[:, -1:]
    part = _first_above(sums, target)  # (N, 1)
    before = ops.take_along_axis(ops.pad(sums, ((0, 0), (1, 0))), part, axis=1)  # (N, 1)
    weights = ops.take_along_axis(weights, part[..., None], axis=1)[:, 0]  # (N, part)
    token = _first_above(ops.cumsum(weights, axis=-1), target - before)
    token = ops.minimum(part * _PART + token, vocabulary_size - 1)
    return ops.reshape(token, shape)


def _first_above(sums, target):
    """The first column whose sum is above the target, or the last: (N, K), (N, 1) -> (N, 1)."""
    passed = ops.sum(ops.cast(sums <= target, "int32"), axis=-1, keepdims=True)
    return ops.minimum(passed, sums.shape[-1] - 1)


@keras.saving.register_keras_serializable(package="keras_bert")
class Discriminator(Layer):
    """The logit that each token was replaced: a dense layer, the activation, a linear layer.

    Shapes: hidden (B, S, D) -> float32 (B, S).

    Args:
        hidden_size: D.
        hidden_act: activation, by Hugging Face's name.
        initializer_range: standard deviation of new weights.
    """

    def __init__(
        self, *, hidden_size: int, hidden_act: str, initializer_range: float, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.activation = activation(hidden_act)
        options = {"initializer_range": initializer_range, "dtype": self.dtype_policy}
        self.dense = dense(hidden_size, name="dense", **options)
        self.output_layer = dense(1, name="output_layer", **options)

    def build(self, hidden_shape: tuple[int | None, ...]) -> None:
        for layer in (self.dense, self.output_layer):
            layer.build((None, None, self.settings["hidden_size"]))
        self.built = True

    def call(self, hidden: Tensor, training: bool | None = None) -> Tensor:
        x = self.activation(self.dense(hidden), training=training)
        return ops.cast(self.output_layer(x)[..., 0], "float32")

    def compute_output_spec(
        self, hidden: Tensor, training: bool | None = None
    ) -> keras.KerasTensor:
        return keras.KerasTensor(hidden.shape[:-1], dtype="float32")

    def forward_flops(self, length: Any) -> Any:
        """Floating-point operations for a number of tokens, an int or an array of them."""
        size = self.settings["hidden_size"]
        return 2 * length * (size**2 + size)


@keras.saving.register_keras_serializable(package="keras_bert")
class ReplacedCrossEntropy(CrossEntropy):
    """Cross-entropy in nats of whether tokens were replaced, the mean over what counts.

    Takes any labels (B, S) and the output `replaced_tokens` (B, S, 2), or the nats themselves.
    """

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return y_pred if len(y_pred.shape) == len(y_true.shape) else replaced_nats(y_pred)


def replaced_nats(output: Tensor) -> Tensor:
    """The nats of the output `replaced_tokens`: (B, S, 2) -> (B, S)."""
    logits, is_replaced = output[..., 0], output[..., 1]
    return ops.softplus(logits) - is_replaced * logits


class ReplacedTokens(keras.metrics.Metric):
    """Loss, accuracy and area under the ROC curve of a discriminator.

    `result` is a dictionary of `replaced_tokens_` with `cross_entropy` (nats), `accuracy`,
    `fraction` (of tokens that are replaced) and `auc`: the probability that a replaced token has
    a higher logit than another one. All are over all tokens, however they are batched; the curve
    has a point at each of THRESHOLDS. Without tokens of either kind the area is NaN.
    """

    THRESHOLDS = np.linspace(-12, 12, 193, dtype=np.float32)

    def __init__(self):
        super().__init__(name="replaced_tokens_metrics")
        # Of other tokens and of replaced ones: the number above each threshold, and the number.
        shape = (2, len(self.THRESHOLDS) + 1)
        self.above = self.add_variable(shape, initializer="zeros", name="above")
        self.sums = self.add_variable((2,), initializer="zeros", name="sums")  # nats, correct

    def update_state(
        self, nats: Tensor, logits: Tensor, is_replaced: Tensor, weights: Tensor
    ) -> None:
        """Adds tokens, (N,) each."""
        kinds = ops.stack([weights * (1 - is_replaced), weights * is_replaced])  # (2, N)
        is_above = ops.cast(logits[:, None] > self.THRESHOLDS, weights.dtype)  # (N, T)
        is_above = ops.pad(is_above, ((0, 0), (0, 1)), constant_values=1)
        self.above.assign_add(ops.matmul(kinds, is_above))
        is_correct = ops.cast((logits > 0) == (is_replaced > 0), weights.dtype)
        self.sums.assign_add(ops.stack([ops.sum(nats * weights), ops.sum(is_correct * weights)]))

    def result(self) -> dict[str, Tensor]:
        counts = self.above[:, -1]
        nats, correct = ops.unstack(ops.divide_no_nan(self.sums.value, ops.sum(counts)))
        # The points of the curve, from (1, 1) to (0, 0): rates of false and of true alarms.
        rates = self.above[:, :-1] / counts[:, None]
        rates = ops.concatenate([ops.ones((2, 1)), rates, ops.zeros((2, 1))], axis=1)
        false, true = rates[0], rates[1]
        area = ops.sum((false[:-1] - false[1:]) * (true[:-1] + true[1:])) / 2
        return {
            "replaced_tokens_cross_entropy": nats,
            "replaced_tokens_accuracy": correct,
            "replaced_tokens_fraction": ops.divide_no_nan(counts[1], ops.sum(counts)),
            "replaced_tokens_auc": area,
        }


class ReplacedTokenMetrics(Metrics):
    """The metrics of the generator's output, and those of the discriminator's."""

    def __init__(self, outputs: Iterable[str], **options: Any):
        super().__init__([name for name in outputs if name != "replaced_tokens"], **options)
        self._replaced = ReplacedTokens()

    @property
    def metrics(self) -> list:
        return [*super().metrics, self._replaced]

    def measure(
        self,
        x: dict[str, Tensor],
        labels: dict[str, Tensor],
        outputs: dict[str, Any],
        weights: dict[str, Tensor] | None,
        *,
        head_of: Callable[[str], keras.layers.Layer],
    ) -> dict[str, Tensor]:
        outputs = dict(outputs)
        replaced = outputs.pop("replaced_tokens")  # (B, S, 2)
        nats = super().measure(x, labels, outputs, weights, head_of=head_of)
        nats["replaced_tokens"] = token_nats = replaced_nats(replaced)  # (B, S)
        counts = ops.ones_like(token_nats) if weights is None else weights["replaced_tokens"]
        columns = (token_nats, replaced[..., 0], replaced[..., 1], counts)
        self._replaced.update_state(*(ops.reshape(column, (-1,)) for column in columns))
        return nats


@keras.saving.register_keras_serializable(package="keras_bert")
class ReplacedTokenPretrainer(PretrainingTask):
    """A generator, which replaces masked tokens, and the encoder, which tells what was replaced.

    The generator is a `FillMask` of a narrower ELECTRA encoder with the embedding tables of this
    one, and is trained with it (Clark et al. 2020). For each masked token it samples one by its
    probabilities; the discriminator, the encoder with a head, tells of every token whether it is
    another one than in the text.

    Takes the encoder's dictionary, of which `input_ids` are masked, and, int32,

    - `masked_lm_positions` (B, P)
    - `masked_lm_index` (B, S): the number of each token's prediction from 1, 0 if it has none
    - `original_ids` (B, S): the ids before masking
    - `sampling_draws` (B, P): random numbers from 0 to 2**24 - 1, by which tokens are sampled

    and returns (B batch, P predictions, S sequence, V vocabulary)

    - `masked_lm` (B, P, V), the generator's logits
    - `replaced_tokens` (B, S, 2): the discriminator's logit that a token was replaced, and 1 if it
      was, else 0

    Labels are `masked_lm` (B, P) ids and `replaced_tokens` (B, S), the original ids; sample weights
    of the same names and shapes are 1 at predictions and tokens that count. The loss is the sum of
    both cross-entropies, each the mean over what counts, the second one multiplied by a weight.

    A model folder has the encoder and the discriminator's head, an ElectraForPreTraining if the
    encoder is an ELECTRA's, and the generator in its folder `generator`, an ElectraForMaskedLM.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        **settings: see `ReplacedTokenSettings`.

    Attributes, in addition to those of `Task`: `generator`, the `FillMask`.

    Raises:
        InputError: an encoder without this objective, such as a causal one.
    """

    TASK_TYPE = "replaced-token-pretrainer"
    HEAD_INPUTS = dict.fromkeys(
        ("masked_lm_positions", "masked_lm_index", "original_ids", "sampling_draws"), (None,)
    )
    HEADS = ("discriminator",)
    PARTNERS = ("generator",)
    SETTINGS = ReplacedTokenSettings
    SHOWN = {
        "masked_lm_loss": "generator loss",
        "replaced_tokens_loss": "discriminator loss",
        "replaced_tokens_auc": "AUC",
    }

    def check_encoder(self) -> None:
        if "rtd" not in self.encoder.OBJECTIVES or self.encoder.config.is_causal:
            raise InputError(
                "Replaced-token detection needs an encoder that sees all tokens, such as an "
                f"ELECTRA or a BERT. Received: a {self.encoder.config.model_type} encoder"
                f"{' that is causal' * self.encoder.config.is_causal}."
            )

    def make_head(self) -> None:
        encoder, settings = self.encoder, self.settings
        self.discriminator = Discriminator(
            hidden_size=encoder.config.hidden_size,
            hidden_act=encoder.config.head_activation,
            initializer_range=encoder.config.head_initializer_range,
            dtype=encoder.layer_policy,
            name="discriminator",
        )
        self.replace = ReplaceTokens(temperature=settings.temperature, name="replace")
        generator = encoder.new_generator(settings.generator_size)
        with keras.name_scope("generator"):
            self.generator = FillMask(generator, name="generator")

    def _set_tokenizer(self, tokenizer):
        super()._set_tokenizer(tokenizer)
        self.generator.tokenizer = tokenizer

    def build_head(
        self, encoded: dict[str, Tensor], inputs: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        # What is encoded is what the generator has written, and not `encoded`, which Keras leaves
        # out of the model: nothing reads it.
        names = (*self.encoder.input_names, "masked_lm_positions")
        logits = self.generator({name: inputs[name] for name in names})["masked_lm"]
        original = inputs["original_ids"]
        replaced = self.replace(
            logits, inputs["sampling_draws"], inputs["masked_lm_index"], original
        )  # (B, S)
        given = {name: inputs[name] for name in self.encoder.input_names}
        hidden = self.encoded({**given, "input_ids": replaced})["sequence_output"]
        is_replaced = ops.cast(replaced != original, "float32")
        output = ops.stack([self.discriminator(hidden), is_replaced], axis=-1)
        return {"masked_lm": logits, "replaced_tokens": output}

    @property
    def lm_head(self) -> keras.layers.Layer:
        """The generator's."""
        return self.generator.lm_head

    def masked_lm(self) -> FillMask:
        return self.generator

    def encoders(self) -> tuple[Encoder, ...]:
        return (self.encoder, self.generator.encoder)

    def default_losses(self) -> dict[str, Any]:
        return {"masked_lm": CrossEntropy(), "replaced_tokens": ReplacedCrossEntropy()}

    def default_loss_weights(self) -> dict[str, float]:
        return {"masked_lm": 1.0, "replaced_tokens": self.settings.discriminator_weight}

    def output_metrics(self, *, counts_finite: bool) -> Metrics:
        return ReplacedTokenMetrics(
            self.output,
            masked_outputs=self.MASKED_OUTPUTS,
            mask_id=None if self.tokenizer is None else self.tokenizer.vocabulary.mask_id,
            counts_finite=counts_finite,
        )

    def _loss_is_by_blocks(self, inputs):
        return False  # tokens are sampled by all logits

    def signatures(self, *, max_length: int | None = None, top_k: int = 5) -> dict[str, Any]:
        """Raises `InputError`: a discriminator predicts no tokens."""
        raise InputError.naming(
            "A discriminator of replaced tokens is exported as its vectors ({encoder=True}), and "
            "its generator, a masked LM, from the folder `generator` in the model's."
        )
