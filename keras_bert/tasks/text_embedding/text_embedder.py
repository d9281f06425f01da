"""One vector per text (Reimers and Gurevych 2019), trained on texts that belong together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import listed
from keras_bert.base.settings import as_list
from keras_bert.encoders.encoder import Encoder
from keras_bert.heads.classification import GroupChoices
from keras_bert.heads.pooling import encoder_outputs, parts_of, pooled, unit_vectors
from keras_bert.heads.projection import Projection
from keras_bert.layers import Tensor
from keras_bert.layers.recomputing import in_chunks
from keras_bert.programs import COMPILES_EACH_SHAPE, replica_count
from keras_bert.readers.retrieval_folder import RETRIEVAL
from keras_bert.readers.text_groups import FORM_NAMES
from keras_bert.tasks.fitting import dataset_info
from keras_bert.tasks.losses import LossOfWholeBatch
from keras_bert.tasks.text_embedding import (
    ANGLE,
    DOCUMENT,
    FORMS,
    LONGEST_STATIC,
    LOSSES_OF,
    PAIRS,
    QUERY,
    STATIC_EMBEDDING,
    TEXTS,
    TRANSFORMER,
    TextEmbeddingSettings,
)
from keras_bert.tasks.text_embedding.evaluation import METRIC_OF, metrics_of
from keras_bert.tasks.text_embedding.group_task import GroupTask
from keras_bert.tasks.text_embedding.losses import ROW_LOSSES, GroupLoss
from keras_bert.tasks.text_embedding.metrics import similarities
from keras_bert.text.template import PLAIN_TEMPLATE

if TYPE_CHECKING:
    from keras_bert.text.tokenizer import Tokenizer


@keras.saving.register_keras_serializable(package="keras_bert")
class TextEmbedder(GroupTask):
    """An encoder with a pooling, dense layers and a norm: one vector for each text.

    Takes the encoder's dictionary with an axis of texts that belong together, each input (B, n, S),
    and gives `embedding` (B, n, D): B batch, n texts, S tokens, D numbers, float32. A folder of
    sentence-transformers is one, and what `save` writes opens there, too.

        embedder = kb.load_task("hf://owner/name")
        vectors = embedder.encode(["A text.", "Another one."])  # float32 (2, D)
        embedder.similarity(vectors, vectors)  # float32 (2, 2)

    Args:
        encoder, tokenizer, layers, layer_mix, static_vectors: see `Task`.
        form: what it is trained on: "pairs" (of an anchor and its positive, and negatives),
            "scores" (pairs of texts with a score), "binary" (with 0 or 1), "labels" (texts with a
            label) or "texts" (plain ones). None is by the loss, else "pairs".
        **settings: see `TextEmbeddingSettings`.

    Attributes: `form`, `width` (D), `projections` (the dense layers), `dropout`.

    Raises:
        InputError: the loss is for another form, a size is larger than D, D is odd for the loss
            "angle", or the first token of a causal encoder is read.
    """

    TASK_TYPE = "text-embedding"
    OFFERS = ("text-vectors",)
    TEACHES = "embedding"
    SEQUENCE_AXES = (None,)
    SETTINGS = TextEmbeddingSettings
    # A third of a classifier's: MiniLM in one epoch of 2,400 pairs of STS, Spearman on 600 others
    # before 0.783; at 3e-5 0.830, at 1e-4 0.851, at 3e-4 0.835 (seed 0).
    RATE_FACTOR = 1 / 3
    FEATURES = "keras_bert.tasks.text_embedding.features:group_sequences"
    SIGNATURES = "keras_bert.tasks.text_embedding.signatures:embedding_signatures"

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: "Tokenizer | None" = None,
        *,
        form: str | None = None,
        **settings: Any,
    ):
        loss = settings.get("loss")
        self.form = form or next((f for f, losses in LOSSES_OF.items() if loss in losses), PAIRS)
        if self.form not in FORMS:
            raise InputError.naming("{form} is {!r}. Choose from: {}.", form, listed(FORMS))
        if loss is not None and loss not in LOSSES_OF[self.form]:
            raise InputError.naming(
                "The training examples are {}, and {loss} {} is for others. Choose from: {}.",
                FORM_NAMES[self.form],
                loss,
                ", ".join(LOSSES_OF[self.form]),
            )
        super().__init__(encoder, tokenizer, **settings)
        # TensorFlow's chunks are of any size, which XLA does not compile.
        self.supports_jit = self.settings.chunk_size is None or COMPILES_EACH_SHAPE

    def defaults_for(self, settings: Any) -> dict[str, Any]:
        encoder = self.encoder
        usual = "last" if encoder.config.is_causal else "mean"
        return {
            **super().defaults_for(settings),
            "pooling": settings.pooling or encoder.came_with_pooling or usual,
            "loss": settings.loss or LOSSES_OF[self.form][0],
        }

    def make_head(self) -> None:
        settings, encoder = self.settings, self.encoder
        if "cls" in parts_of(settings.pooling) and encoder.config.is_causal:
            raise InputError.naming(
                "{pooling} cannot be {} for a causal encoder, whose first token sees no other "
                "token and is the same for every text. Use last or mean.",
                settings.pooling,
            )
        self.ENCODER_OUTPUTS = encoder_outputs(settings.pooling)
        if not settings.include_prompt:
            self.ENCODER_OUTPUTS = ("sequence_output",)
            self.HEAD_INPUTS = {"prompt_tokens": (None,)}
        self.HEAD_READS = ("input_mask",)
        policy, self.projections = encoder.layer_policy, []
        for number, projected in enumerate(settings.projections):
            layer = Projection(**projected._asdict(), dtype=policy, name=f"dense_{number}")
            setattr(self, f"dense_{number}", layer)
            self.projections.append(layer)
        self.HEADS = tuple(layer.name for layer in self.projections)
        self.dropout = keras.layers.Dropout(self.head_dropout, dtype=policy, name="dropout")
        self.width = len(parts_of(settings.pooling)) * self.reader.size
        if self.projections:
            self.width = self.projections[-1].units
        for name in ("size", "matryoshka"):
            largest = max(as_list(getattr(settings, name)), default=0)
            if largest > self.width:
                raise InputError.naming(
                    "{" + name + "} is {}, but a vector has {} numbers.", largest, self.width
                )
        odd = [size for size in (*settings.sizes, self.width) if size % 2]
        if settings.loss == ANGLE and odd:
            raise InputError.naming(
                "{loss} angle is for vectors of an even size. Received: {}.", odd[0]
            )
        self.METRIC = settings.metric or METRIC_OF.get(self.form)
        self.SHOWN = {"loss": "loss", **dict.fromkeys(filter(None, [self.METRIC]), self.METRIC)}

    @property
    def head_dropout(self) -> float:
        """The rate of `dropout`, 0 unless it is set: vectors are compared as they are."""
        return self.settings.dropout or 0.0

    def build_head(self, encoded: dict[str, Any], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        mask, skipped = inputs["input_mask"], None  # (B, n, S)
        if self.HEAD_INPUTS:
            skipped = ops.reshape(inputs["prompt_tokens"], (-1,))  # (B n,)
        vector = pooled(
            encoded,
            self.to_sequences(mask),
            pooling=self.settings.pooling,
            transform=None,
            skipped=skipped,
        )
        vector = self.dropout(vector)  # (B n, D)
        for projection in self.projections:
            vector = projection(vector)
        vector = ops.cast(vector, "float32")
        if self.settings.normalize:
            vector = unit_vectors(vector)
        return {"embedding": GroupChoices()(vector, mask)}

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        size = self.settings.chunk_size
        if size is None or not training:
            return super().call(inputs, training=training, mask=mask)
        whole = super().call
        return in_chunks(self, lambda part: whole(part, training=True), inputs, size=size)

    @property
    def inferred_arguments(self) -> dict[str, Any]:
        return {"form": self.form}

    def is_standard(self) -> bool:
        """Whether sentence-transformers computes the same."""
        return self.first_module is not None

    @property
    def first_module(self) -> str | None:
        """The module of sentence-transformers that begins with the text: TRANSFORMER …, or None.

        It is None if `transformers` lacks the encoder, or if a layer is between both. Static
        vectors are a STATIC_EMBEDDING if the vector is the mean of all tokens but special ones.
        """
        names, settings = self.encoder.tensor_names(self.config), self.settings
        if not super().is_standard():
            return None
        if names.is_of_transformers:
            return TRANSFORMER
        is_plain = self.tokenizer is not None and self.tokenizer.template == PLAIN_TEMPLATE
        is_mean = settings.pooling == "mean" and settings.include_prompt
        is_whole = settings.max_length >= LONGEST_STATIC and not settings.lowercase
        is_static = names.is_static_embedding and is_plain and is_mean and is_whole
        return STATIC_EMBEDDING if is_static else None

    @property
    def heads_in_files(self) -> tuple[str, ...]:
        return self.HEADS if self.is_standard() else ()

    # Vectors of texts.

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        prompt: str | None = None,
        prompt_text: str | None = None,
        size: int | None = None,
        batch_size: int = 32,
        progress: bool = False,
    ) -> np.ndarray:
        """The vectors of texts, float32 (N, D); of a single string (D,).

        A text that is longer than `max_length` is cut; `keras_bert.InputWarning` says how many.

        Args:
            texts: a text, or several.
            prompt: the name of a prompt that is put in front of each; None is `default_prompt`.
            prompt_text: the text of a prompt, in place of its name; "" is no prompt.
            size: the first numbers of each vector; None is the setting `size`, or all.
            batch_size: texts per batch.
            progress: show a progress bar on the standard error stream.

        Raises InputError: there is no such prompt, or a vector has fewer numbers than `size`.
        """
        from keras_bert.inference.encode import encode

        return encode(
            self,
            texts,
            prompt=self.prompt_named(prompt) if prompt_text is None else prompt_text,
            size=size,
            batch_size=batch_size,
            progress=progress,
        )

    def encode_query(self, texts: str | Sequence[str], **options: Any) -> np.ndarray:
        """`encode` with the prompt named "query", if there is one."""
        return self._encode_as(QUERY, texts, options)

    def encode_document(self, texts: str | Sequence[str], **options: Any) -> np.ndarray:
        """`encode` with the first prompt of "document", "passage" and "corpus" that is not empty.

        sentence-transformers 6 takes the first that exists. As its folders always have an empty
        "document", it takes no "passage".
        """
        return self._encode_as(DOCUMENT, texts, options)

    def _encode_as(self, role, texts, options):
        if options.get("prompt") is None and options.get("prompt_text") is None:
            options = {**options, "prompt_text": self.settings.prompt_of(role)}
        return self.encode(texts, **options)

    def similarity(self, first: Any, second: Any) -> np.ndarray:
        """The similarity of each vector of one array with each of another: (N, M).

        By the setting `similarity`. Vectors are (N, D) and (M, D); one may be (D,), as 1 of them.
        """
        first, second = (np.atleast_2d(np.asarray(x, np.float32)) for x in (first, second))
        return similarities(first, second, by=self.settings.similarity)

    def prompt_named(self, name: str | None) -> str:
        """The text of the prompt of that name; of None that of `default_prompt`.

        Raises InputError if there is no such prompt.
        """
        prompts = self.settings.prompt_texts
        if name is None:
            return self.settings.prompt_of(None)
        if name not in prompts:
            raise InputError.naming(
                "There is no {prompt} {!r}. {} For the text of a prompt, pass {prompt_text}.",
                name,
                f"Choose from: {listed(prompts)}." if prompts else "The model has none.",
            )
        return prompts[name]

    def size_of(self, size: int | None) -> int:
        """The numbers of a vector that is cut to `size`; of None to the setting of that name."""
        size = size or self.settings.size or self.width
        if not 0 < size <= self.width:
            raise InputError.naming(
                "{size} must be from 1 to {}, the numbers of a vector. Received: {}.",
                self.width,
                size,
            )
        return size

    def prompts_of(self, example: Any) -> list[str]:
        """The prompt of each text of an example."""
        settings = self.settings
        if example.form == PAIRS:
            document = settings.prompt_of(DOCUMENT)
            return [settings.prompt_of(QUERY), *[document] * (len(example.texts) - 1)]
        if example.form == RETRIEVAL:
            return [settings.prompt_of(DOCUMENT if example.relevant is None else QUERY)]
        return [settings.prompt_of(None)] * len(example.texts)

    # Training.

    def taught_answers(self, outputs: dict[str, Any], sequences: Any) -> np.ndarray:
        """The vectors of single texts: (N, D)."""
        return np.stack([np.asarray(vectors)[0] for vectors in outputs["embedding"]])

    def default_losses(self) -> dict[str, Any]:
        """The `GroupLoss` of the setting `loss`, the mean over the rows of a batch."""
        settings = self.settings
        sizes = as_list(settings.matryoshka)
        loss = GroupLoss(
            settings.loss,
            scale=settings.scale,
            symmetric=settings.symmetric,
            margin=settings.margin,
            guided=settings.guide is not None,
            guide_margin=settings.guide_margin,
            guide_relative_margin=settings.guide_relative_margin,
            sizes=sizes,
            weights=as_list(settings.matryoshka_weights) or [1.0] * len(sizes),
        )
        return {"embedding": loss}

    def compiled_losses(self) -> dict[str, Any]:
        losses = self.default_losses()
        if replica_count() == 1:
            return losses
        return {name: LossOfWholeBatch(loss) for name, loss in losses.items()}

    def check_sample_weight(self) -> None:
        if self.settings.loss not in ROW_LOSSES:
            raise InputError.naming(
                "{sample_weight} is for losses with a value for each row, and {loss} {} is one "
                "value for a batch. Leave it out.",
                self.settings.loss,
            )

    def _in_order(self, x, y=None, sample_weight=None, *, batch_size=None):
        batches = super()._in_order(x, y, sample_weight, batch_size=batch_size)
        sequences = dataset_info(batches).sequences
        if not sequences.has_labels:
            form = FORM_NAMES.get(sequences.examples[0].form, "a retrieval folder")
            raise InputError.naming(
                "The loss is for {}, and the data have {}. Evaluate on them with "
                "`keras_bert.evaluate`, or train with `keras_bert.finetune`, which takes them as "
                "{dev}.",
                FORM_NAMES[self.form],
                form,
            )
        return batches

    def evaluate_on(self, examples: Sequence[Any]) -> None:
        """Sets METRIC by the form of the dev examples.

        Raises InputError for the `metric` of another form, and for plain texts.
        """
        form = examples[0].form
        if form == TEXTS:
            raise InputError.naming(
                "{} has plain texts, which have no metric. Give {dev} with anchors and "
                "positives, with pairs and their scores, or a retrieval folder.",
                examples[0].source.name,
            )
        metric = self.settings.metric or METRIC_OF[form]
        if metric not in (names := metrics_of(form, examples)):
            raise InputError.naming(
                "{metric} is {}, which the dev data have not: {}. Choose from: {}.",
                metric,
                FORM_NAMES.get(form, "a retrieval folder"),
                ", ".join(names),
            )
        self.METRIC = metric
        self.SHOWN = {"loss": "loss", metric: metric}
