"""One vector per text (Reimers and Gurevych 2019), trained on texts that belong together."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from keras_bert.base.errors import InputError
from keras_bert.base.formatting import counted, in_one_line, listed
from keras_bert.encoders.encoder import Encoder
from keras_bert.heads.classification import GroupChoices
from keras_bert.heads.pooling import encoder_outputs, parts_of, pooled, unit_vectors
from keras_bert.heads.projection import Projection
from keras_bert.readers.retrieval_folder import (
    RETRIEVAL,
    RetrievalSource,
    is_retrieval_folder,
)
from keras_bert.readers.text_groups import FORM_NAMES, TextGroupSource
from keras_bert.readers.text_notes import contradictions
from keras_bert.tasks.fitting import dataset_info
from keras_bert.tasks.losses import replica_count
from keras_bert.tasks.metrics import worst_first
from keras_bert.tasks.task import Task
from keras_bert.tasks.text_embedding import (
    BINARY,
    DOCUMENT,
    FORMS,
    LOSSES_OF,
    PAIRS,
    QUERY,
    SCORES,
    TEXTS,
    TextEmbeddingSettings,
    as_list,
)
from keras_bert.tasks.text_embedding.evaluation import (
    METRIC_OF,
    metrics_of,
    metrics_with,
    pair_errors,
)
from keras_bert.tasks.text_embedding.losses import OF_ROWS, GroupLoss
from keras_bert.tasks.text_embedding.metrics import pair_similarities, similarities

if TYPE_CHECKING:
    from keras_bert.text.tokenizer import Tokenizer


class GroupPrediction(dict):
    """The prediction for an example, with `vectors`, float32 (n, D) of its n texts."""

    vectors: np.ndarray


@keras.saving.register_keras_serializable(package="keras_bert")
class TextEmbedder(Task):
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
            "scores" (pairs of texts with a score), "binary" (with 0 or 1) or "texts" (plain ones).
            None is by the loss, else "pairs".
        **settings: see `TextEmbeddingSettings`.

    Attributes: `form`, `width` (D), `projections` (the dense layers), `dropout`.

    Raises:
        InputError: the loss is for another form, a size is larger than D, or the first token of a
            causal encoder is read.
    """

    TASK_TYPE = "text-embedding"
    OFFERS = ("text-vectors",)
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

    def defaults_for(self, settings):
        encoder = self.encoder
        usual = "last" if encoder.config.is_causal else "mean"
        return {
            **super().defaults_for(settings),
            "pooling": settings.pooling or encoder.came_with_pooling or usual,
            "loss": settings.loss or LOSSES_OF[self.form][0],
        }

    def make_head(self):
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
        self.METRIC = settings.metric or METRIC_OF.get(self.form)
        self.SHOWN = {"loss": "loss", **dict.fromkeys(filter(None, [self.METRIC]), self.METRIC)}

    @property
    def head_dropout(self):
        """The rate of `dropout`, 0 unless it is set: vectors are compared as they are."""
        return self.settings.dropout or 0.0

    def build_head(self, encoded, inputs):
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

    @property
    def inferred_arguments(self):
        return {"form": self.form}

    def is_standard(self):
        """Whether sentence-transformers computes the same.

        It does not if `transformers` lacks the encoder, or if a layer is between both.
        """
        return super().is_standard() and self.encoder.tensor_names(self.config).is_of_transformers

    @property
    def heads_in_files(self):
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

    def prompts_of(self, example) -> list[str]:
        """The prompt of each text of an example."""
        settings = self.settings
        if example.form == PAIRS:
            document = settings.prompt_of(DOCUMENT)
            return [settings.prompt_of(QUERY), *[document] * (len(example.texts) - 1)]
        if example.form == RETRIEVAL:
            return [settings.prompt_of(DOCUMENT if example.relevant is None else QUERY)]
        return [settings.prompt_of(None)] * len(example.texts)

    # Training.

    def default_losses(self):
        """The `GroupLoss` of the setting `loss`, the mean over the rows of a batch."""
        settings = self.settings
        sizes = as_list(settings.matryoshka)
        loss = GroupLoss(
            settings.loss,
            scale=settings.scale,
            symmetric=settings.symmetric,
            margin=settings.margin,
            sizes=sizes,
            weights=as_list(settings.matryoshka_weights) or [1.0] * len(sizes),
        )
        return {"embedding": loss}

    def compiled_losses(self):
        if replica_count() > 1:
            raise InputError.naming(
                "The loss of {task} text-embedding compares the texts of a whole batch, of which "
                "each device has a part. Train it on one device."
            )
        return super().compiled_losses()

    def check_sample_weight(self):
        if self.settings.loss not in OF_ROWS:
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

    def evaluate_on(self, examples):
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

    # Labelled files.

    @classmethod
    def read(
        cls,
        data,
        *,
        inferred_arguments=None,
        schema=None,
        labelled=True,
        qrels=None,
        **columns,
    ):
        """`TextGroup`s of a table or a sequence, or the texts of a retrieval folder."""
        common = {"need_labels": labelled, "missing": columns.get("missing", "skip")}
        if is_retrieval_folder(data):
            return RetrievalSource(data, qrels=qrels, **common)
        if qrels is not None:
            raise InputError.naming("{qrels} is for a retrieval folder. Leave it out.")
        return TextGroupSource(data, schema=schema, **{**columns, **common})

    @classmethod
    def infer_arguments(cls, examples):
        """The form of the examples."""
        first = examples[0]
        if first.form != SCORES and getattr(first.source, "score_range", None) is not None:
            raise InputError.naming(
                "{score_range} is for pairs with scores, and {} has {}. Leave it out.",
                first.source.name,
                FORM_NAMES.get(first.form, "documents and queries"),
            )
        if first.form == RETRIEVAL:
            raise InputError(
                f"{first.source.name} is a retrieval folder, on which a model is evaluated. Train "
                "on a table of anchors and positives."
            )
        if len(examples) < 2:
            raise InputError(
                f"{first.source.name} has a single example. A text is told from those of others, "
                "so that training needs several."
            )
        if len({example.label for example in examples}) == 1 and first.label is not None:
            raise InputError(
                f"{first.source.name} has a single score or label ({first.label:g}). Training "
                "needs examples with different ones."
            )
        return {"form": first.form}

    @classmethod
    def notes(cls, examples):
        """Lines on texts that several rows have, and on scores that contradict each other."""
        source, lines = examples[0].source, []
        if examples[0].form == PAIRS:
            rows = Counter(text for example in examples for text in {*example.texts})
            repeated = sum(any(rows[text] > 1 for text in e.texts) for e in examples)
            if repeated:
                lines.append(
                    f"{source.name}: {repeated:,} of the {counted(len(examples), 'row')} share a "
                    "text with another row. In training no text is twice in a batch."
                )
        elif examples[0].label is not None:
            lines += contradictions(examples)
        return [*lines, *source.notes()]

    @classmethod
    def describe_examples(cls, train, dev, inferred_arguments):
        form = train[0].form
        line = f"{counted(len(train), 'training example')}: {FORM_NAMES[form]}"
        if form == PAIRS:
            negatives = [len(example.texts) - 2 for example in train]
            if max(negatives):
                low, high = min(negatives), max(negatives)
                count = counted(high, "negative")
                line += f", with {count}" if low == high else f", with {low} to {count}"
        if form == SCORES:
            scores = [example.label for example in train]
            line += f" from {min(scores):g} to {max(scores):g}"
        if form == BINARY:
            ones = sum(example.label > 0 for example in train)
            line += f" ({ones:,} with 1)"
        other = dev[0].form
        of_dev = "" if other == form else f": {FORM_NAMES.get(other, 'a retrieval folder')}"
        return f"{line}. {counted(len(dev), 'dev example')}{of_dev}."

    def decode(self, outputs, sequences):
        """Gives `text` and `embedding` of a text; of several texts the first two's `similarity`.

        `embedding` is float32 (D,). The texts are `anchor` and `positive`, and maybe `negatives`,
        or `text_a` and `text_b`, with `expected` if known.
        """
        size = self.size_of(None)
        return [
            self._prediction(example, np.asarray(vectors)[: len(example.texts)], size)
            for example, vectors in zip(sequences.examples, outputs["embedding"], strict=True)
        ]

    def _prediction(self, example, vectors, size):
        if len(example.texts) == 1:
            prediction = GroupPrediction(text=example.text, embedding=vectors[0, :size])
        else:
            names = ("anchor", "positive") if example.form == PAIRS else ("text_a", "text_b")
            prediction = GroupPrediction(zip(names, example.texts, strict=False))
            if example.texts[2:]:
                prediction["negatives"] = list(example.texts[2:])
            by, first = self.settings.similarity, vectors[:, :size]
            prediction["similarity"] = float(pair_similarities(first[:1], first[1:2], by=by)[0])
            if example.label is not None:
                prediction["expected"] = example.label
        prediction.vectors = vectors
        return prediction

    def official_metrics(self, predictions, examples):
        """Metrics by the form of the examples, and `sizes` with those at each other stored size.

        * Pairs with scores: `spearman` and `pearson` of similarities and scores.
        * Pairs with 0 or 1: see `binary_pair_metrics`.
        * Anchors and positives: of each anchor its positives are looked for among the positives
          and negatives of all (see `retrieval_metrics`), and with negatives `triplet_accuracy`.
        * A retrieval folder: see `retrieval_metrics`.

        The vectors are those of the setting `size`.
        """
        if examples[0].form == TEXTS:
            raise InputError(f"{examples[0].source.name} has plain texts, which have no metric.")
        vectors, by = [prediction.vectors for prediction in predictions], self.settings.similarity
        whole = self.size_of(None)
        metrics = metrics_with(vectors, examples, size=whole, by=by)
        others = [size for size in self.settings.sizes if size != whole]
        if others:
            metrics["sizes"] = {
                str(size): metrics_with(vectors, examples, size=size, by=by) for size in others
            }
        return metrics

    def summed_metrics(self, predictions, examples):
        """Raises InputError: ranks are no sums over examples."""
        raise InputError(
            "Text embedders have no intervals: how texts are ranked does not follow from sums over "
            "examples. Evaluate each model with `keras_bert.evaluate` (keras-bert evaluate)."
        )

    def errors(self, predictions, examples):
        """Gives all rated pairs, the first with its similarity farthest from its score's rank.

        Of pairs with 0 or 1 it gives those on the wrong side of `f1_threshold`, and of other
        examples nothing.
        """
        if examples[0].form not in (SCORES, BINARY):
            return []
        similarity = np.array([prediction["similarity"] for prediction in predictions])
        return worst_first(pair_errors(similarity, predictions, examples), by="error")

    @staticmethod
    def describe_error(error):
        texts = " / ".join(in_one_line(error[name]) for name in ("text_a", "text_b"))
        return (
            f"line {error['line']}, true: {error['expected']:g}, similarity: "
            f"{error['predicted']:.2f}: {texts}"
        )

    @staticmethod
    def describe_metrics(metrics):
        names = ("spearman", "pearson", "average_precision", "f1", "ndcg@10", "mrr@10")
        names = (*names, "recall@10", "triplet_accuracy")
        return ", ".join(
            f"{name} {metrics[name]:.3f}" for name in names if metrics.get(name) is not None
        )
