"""Pre-training with masked tokens, alone or with a second objective: next sentences (Devlin et al.
2018, section 3.1), the order of sentences (ALBERT), or spans and their boundaries (SpanBERT).
"""

from typing import Any

import keras

from keras_bert.heads.classification import NextSentenceHead
from keras_bert.heads.lm_head import SpanBoundary, vectors_for_the_loss
from keras_bert.layers import Tensor
from keras_bert.records.folder import DatasetCard
from keras_bert.tasks import imported
from keras_bert.tasks.pretraining import SpanSettings
from keras_bert.tasks.pretraining.metrics import CrossEntropy, Metrics, Vectors, weighted_by_step
from keras_bert.tasks.task import Task
from keras_bert.text.vocabulary import Vocabulary

# Size of the embedding of an offset in a span, whatever the model's own, as in the authors' program
# (facebookresearch/SpanBERT).
_OFFSET_WIDTH = 200


def shown(**names):
    """`SHOWN` of a task, from a person's name for each output."""
    result = {}
    for output, name in names.items():
        result |= {f"{output}_loss": f"{name} loss", f"{output}_accuracy": "accuracy"}
    return result


class PretrainingTask(Task):
    """A task that is trained on a data folder; its outputs are logits.

    Its loss is the sum of the outputs' cross-entropies, each the mean over the predictions that
    count, as in google-research/bert. `compile_defaults` adds the metrics `cross_entropy` (nats)
    and `accuracy` of each output, and for tokens also of the masked, replaced and kept ones (see
    `keras_bert.tasks.pretraining.metrics`), in training and in `evaluate`. The loss that Keras
    reports is the mean of the batches' means; `cross_entropy` is the mean over all predictions,
    even if batches have different numbers of them.

    Class attributes, in addition to those of `Task`:
        TOKEN_OUTPUTS: the outputs that predict tokens.
        MASKED_OUTPUTS: those of them that predict one at each masked position.
        PERPLEXITIES: the outputs whose metrics include the perplexity.
        RUN_DEFAULTS: the settings of `keras_bert.pretrain` whose default depends on the task.
    """

    OFFERS: tuple[str, ...] = ("data-folders",)
    TOKEN_OUTPUTS: tuple[str, ...] = ("masked_lm",)
    MASKED_OUTPUTS: tuple[str, ...] = ("masked_lm",)
    PERPLEXITIES: tuple[str, ...] = ()
    FEATURES = "keras_bert.tasks.pretraining.features:pretraining_dataset"
    SIGNATURES = "keras_bert.tasks.pretraining.signatures:fill_mask_signatures"
    RUN_DEFAULTS: dict[str, Any] = {
        "optimizer": "adamw",
        "learning_rate": 5e-4,
        "weight_decay": 0.01,
    }

    _output_metrics = None
    _has_more_metrics = False  # which read the logits in training too

    def default_losses(self) -> dict[str, Any]:
        """Cross-entropy in nats, the mean over the predictions and examples that count."""
        return {name: CrossEntropy() for name in self.output}

    def compile(self, *arguments: Any, **options: Any) -> None:
        self._output_metrics = None  # with the losses of a caller nothing else is measured
        super().compile(*arguments, **options)

    def compile_defaults(
        self, optimizer: Any = None, *, counts_finite: bool = False, **options: Any
    ) -> None:
        """Compiles with the defaults; `counts_finite` adds the metric that finds a bad batch."""
        super().compile_defaults(optimizer, **options)
        more = (self.default_metrics(), options.get("metrics"))
        self._has_more_metrics = any(more)
        self._output_metrics = self.output_metrics(counts_finite=counts_finite)

    def output_metrics(self, *, counts_finite: bool) -> Any:
        """Returns the `Metrics` that compute the losses of the outputs and measure them."""
        return Metrics(
            self.output,
            masked_outputs=self.MASKED_OUTPUTS,
            perplexities=self.PERPLEXITIES,
            mask_id=None if self.tokenizer is None else self.tokenizer.vocabulary.mask_id,
            counts_finite=counts_finite,
        )

    def context_windows(self, card: DatasetCard, vocabulary: Vocabulary) -> Any:
        """The `ContextWindows` that make the batches of static vectors; None of other tasks."""
        return None

    @property
    def metrics(self) -> list:
        return [
            *super().metrics,
            *(() if self._output_metrics is None else self._output_metrics.metrics),
        ]

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        if not (training and self._loss_is_by_blocks(inputs)):
            return super().call(inputs, training=training, mask=mask)
        with vectors_for_the_loss():
            outputs = super().call(inputs, training=training, mask=mask)
        return {n: Vectors(x) if n in self.TOKEN_OUTPUTS else x for n, x in outputs.items()}

    def _loss_is_by_blocks(self, inputs):
        """Whether a step of training needs no logits of tokens: see `vectors_for_the_loss`."""
        if self._output_metrics is None or self._has_more_metrics:
            return False
        heads = map(self.token_head, self.TOKEN_OUTPUTS)
        return all(head.loss_is_by_blocks(*inputs.values()) for head in heads)

    def token_head(self, output: str) -> keras.layers.Layer:
        """The `TiedHead` whose logits an output is, one of TOKEN_OUTPUTS."""
        return self.lm_head

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        if self._output_metrics is not None:
            y_pred = self._output_metrics.measure(
                x, y, y_pred, sample_weight, head_of=self.token_head
            )  # nats
            y_pred = weighted_by_step(y_pred, sample_weight)
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if self._output_metrics is not None and self._output_metrics.finite is not None:
            self._output_metrics.finite.update_state(loss)
        return loss

    def dataset(  # type: ignore[override]
        self, data: Any, *, split: str = "train", batch_size: int = 32, **options: Any
    ) -> Any:
        """The batches of a data folder, given as a `DataFolder` or by its path.

        `options` are those of `keras_bert.tasks.pretraining.features`: for the split "train" `seed`
        (0) and `first_step`, for "eval" `batches`. Raises `InputError` if there is no such folder.
        """
        vocabulary = self.tokenizer.vocabulary
        options |= {"batch_size": batch_size, "vocabulary": vocabulary, "task": self}
        return imported(self.FEATURES)(data, split=split, **options)

    def signatures(self, *, max_length: int | None = None, top_k: int = 5) -> dict[str, Any]:
        """The signatures of the language-model head, with `top_k` candidates for each token."""
        max_length = max_length or self.exported_length
        return imported(self.SIGNATURES)(self, max_length=max_length, top_k=top_k)

    @property
    def exported_length(self) -> int | None:
        """The default `max_length` of an export, in tokens."""
        return self.config.max_length


@keras.saving.register_keras_serializable(package="keras_bert")
class FillMask(PretrainingTask):
    """An encoder with the masked-LM head, tied to its token embedding.

    Takes the encoder's dictionary and `masked_lm_positions` (B, P) int32, and returns the logits
    `masked_lm` (B, P, V) of the token at each position (B batch, P predictions, V vocabulary).
    Labels are `masked_lm` (B, P) ids; sample weights of the same name and shape are 1 at
    predictions that count and 0 at padding. A pooler is not used; a model folder keeps it under
    `keras_bert.`, because Hugging Face's BertForMaskedLM has none.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
    """

    TASK_TYPE = "fill-mask"
    OFFERS = (*PretrainingTask.OFFERS, "fill-mask")
    HEAD_INPUTS = {"masked_lm_positions": (None,)}
    HEADS: tuple[str, ...] = ("lm_head",)
    SHOWN = shown(masked_lm="masked-token")

    def make_head(self) -> None:
        self.lm_head = self.encoder.lm_head()

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        positions = inputs["masked_lm_positions"]  # (B, P)
        return {"masked_lm": self.lm_head(encoded["sequence_output"], positions)}

    def fill(self, text: str, *, top_k: int = 5) -> Any:
        """The candidates at each [MASK] of a text (see `keras_bert.fill_mask`)."""
        from keras_bert.inference.fill_mask import fill_mask

        return fill_mask(model=self, text=text, top_k=top_k)


@keras.saving.register_keras_serializable(package="keras_bert")
class Pretrainer(PretrainingTask):
    """An encoder with the masked-LM head, tied to its token embedding, and the next-sentence head.

    Takes the encoder's dictionary and `masked_lm_positions` (B, P) int32, and returns (B batch,
    P predictions, V vocabulary) the logits

    - `masked_lm` (B, P, V)
    - `next_sentence` (B, 2): column 0 is "follows", 1 is "random"

    Labels are `masked_lm` (B, P) ids and `next_sentence` (B,); sample weights of the same names and
    shapes are 1 at predictions and examples that count and 0 at padding. The loss is the sum of
    both outputs' cross-entropies, each the mean over what counts, as in google-research/bert.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.

    Class attributes, in addition to those of `PretrainingTask`:
        SENTENCES: the name of the output on how the second segment relates to the first.
    """

    TASK_TYPE = "pretrainer"
    OFFERS = (*FillMask.OFFERS, "next-sentence")
    ENCODER_OUTPUTS = ("sequence_output", "first_output")
    HEAD_INPUTS = {"masked_lm_positions": (None,)}
    HEADS = ("lm_head", "next_sentence_head")
    SENTENCES = "next_sentence"
    SENTENCE_SIGNATURE = "keras_bert.tasks.pretraining.signatures:sentence_signature"
    SHOWN = shown(masked_lm="masked-token", next_sentence="next-sentence")

    def make_head(self) -> None:
        encoder = self.encoder
        self.transform = self.new_transform()
        self.lm_head = encoder.lm_head()
        self.next_sentence_head = NextSentenceHead(
            initializer_range=encoder.config.head_initializer_range,
            dtype=encoder.layer_policy,
            name="next_sentence_head",
        )

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        positions = inputs["masked_lm_positions"]  # (B, P)
        first = encoded["first_output"]  # (B, D)
        if self.transform is not None:
            first = self.transform(first)
        return {
            "masked_lm": self.lm_head(encoded["sequence_output"], positions),
            self.SENTENCES: self.next_sentence_head(first),
        }

    def signatures(self, *, max_length: int | None = None, top_k: int = 5) -> dict[str, Any]:
        """The signatures of the masked-LM head; also `SENTENCES` if two texts have room."""
        signatures = super().signatures(max_length=max_length, top_k=top_k)
        max_length = max_length or self.exported_length
        if self.tokenizer.template.room(max_length, texts=2) >= 2:
            signatures[self.SENTENCES] = imported(self.SENTENCE_SIGNATURE)(
                self, max_length=max_length
            )
        return signatures


@keras.saving.register_keras_serializable(package="keras_bert")
class SentenceOrderPretrainer(Pretrainer):
    """A `Pretrainer` whose second objective is whether two consecutive segments were swapped.

    Its output and label are `sentence_order`: (B, 2) logits, column 0 is "in order", 1 is
    "swapped". A model folder stores the head under the names of the next-sentence head.
    """

    TASK_TYPE = "sentence-order-pretrainer"
    SENTENCES = "sentence_order"
    SHOWN = shown(masked_lm="masked-token", sentence_order="sentence-order")


@keras.saving.register_keras_serializable(package="keras_bert")
class SpanPretrainer(FillMask):
    """A `FillMask` that also predicts each masked token from the boundaries of its span.

    Takes what a `FillMask` takes and, for each masked position, `span_left` and `span_right` (the
    positions of the tokens just outside its span) and `span_offset` (its position in the span, from
    1), (B, P) int32 each. Returns the logits `masked_lm` and `span_boundary`, both (B, P, V), of
    the same tokens. The loss is the sum of both cross-entropies, each the mean over what counts,
    the second one multiplied by a weight.

    A model folder stores the span-boundary head with a BertForMaskedLM, under
    `keras_bert.span_boundary.`.

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        **settings: see `SpanSettings`. Tokens at a larger offset than `max_span_length` are not
            predicted from the boundaries, as in the paper's program.
    """

    TASK_TYPE = "span-pretrainer"
    OFFERS = (*FillMask.OFFERS, "span-boundary")
    HEAD_INPUTS = dict.fromkeys(
        ("masked_lm_positions", "span_left", "span_right", "span_offset"), (None,)
    )
    HEADS = ("lm_head", "span_boundary")
    TOKEN_OUTPUTS = MASKED_OUTPUTS = ("masked_lm", "span_boundary")
    SETTINGS = SpanSettings
    SHOWN = shown(masked_lm="masked-token", span_boundary="span-boundary")

    def make_head(self) -> None:
        encoder = self.encoder
        self.span_boundary = SpanBoundary(
            token_embedding=encoder.token_embedding,
            hidden_size=encoder.config.hidden_size,
            max_span_length=self.settings.max_span_length,
            offset_width=_OFFSET_WIDTH,
            hidden_act=encoder.config.head_activation,
            layer_norm_eps=encoder.config.head_layer_norm_eps,
            initializer_range=encoder.config.head_initializer_range,
            dtype=encoder.layer_policy,
            name="span_boundary",
        )
        super().make_head()

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        spans = (inputs[name] for name in ("span_left", "span_right", "span_offset"))
        boundaries = self.span_boundary(encoded["sequence_output"], *spans)
        return {**super().build_head(encoded, inputs), "span_boundary": boundaries}

    def token_head(self, output: str) -> keras.layers.Layer:
        return self.span_boundary if output == "span_boundary" else self.lm_head

    def default_loss_weights(self) -> dict[str, float]:
        return {"masked_lm": 1.0, "span_boundary": self.settings.span_boundary_weight}
