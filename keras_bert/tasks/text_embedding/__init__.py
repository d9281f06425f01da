"""One vector per text, for search, duplicates and clusters; the settings of the task."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from keras_bert.base.errors import InputError, argument, arguments
from keras_bert.base.formatting import listed
from keras_bert.base.settings import (
    PathText,
    as_list,
    data_setting,
    hardware_setting,
    model_setting,
    setting,
)
from keras_bert.heads import MIXES, PARTS, parts_of
from keras_bert.readers import TextFileSettings, fields_setting
from keras_bert.readers.text_groups import BINARY, LABELS, PAIRS, SCORES, TEXTS
from keras_bert.tasks import TaskSettings

# The names in `keras_bert.heads.projection.ACTIVATIONS`, whose import would load Keras.
ACTIVATIONS = ("identity", "tanh", "relu", "gelu", "sigmoid", "silu")
COSINE, DOT, EUCLIDEAN, MANHATTAN = SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")

FORMS = (PAIRS, SCORES, BINARY, LABELS, TEXTS)
IN_BATCH, TRIPLET, COSENT, ANGLE, COSINE_ERROR, CONTRASTIVE, BATCH_TRIPLETS, SIMCSE = LOSSES = (
    *("in-batch-negatives", "triplet", "cosent", "angle", "cosine-error", "contrastive"),
    *("batch-triplets", "simcse"),
)
# The losses of each form; the first is the default.
LOSSES_OF = {
    PAIRS: (IN_BATCH, TRIPLET),
    SCORES: (COSENT, ANGLE, COSINE_ERROR),
    BINARY: (CONTRASTIVE,),
    LABELS: (BATCH_TRIPLETS,),
    TEXTS: (SIMCSE,),
}
SCALE = 20.0
# The default of `margin`, in Euclidean distances, and in 1 - cosine of the others.
MARGINS = {TRIPLET: 5.0, CONTRASTIVE: 0.5, BATCH_TRIPLETS: 0.2}
# Metrics on the dev data that may select the best epoch; which ones there are depends on its form.
METRICS = (
    *("spearman", "pearson", "average_precision", "f1", "accuracy", "triplet_accuracy"),
    *("ndcg@10", "mrr@10", "map@100", "recall@10", "accuracy@1"),
)
QUERY, DOCUMENT = "query", "document"
# Modules of sentence-transformers that turn a text into vectors.
TRANSFORMER, STATIC_EMBEDDING = "Transformer", "StaticEmbedding"
# The `max_length` of a `StaticEmbedding`, which cuts nothing there.
LONGEST_STATIC = 8192
# The names of prompts for documents, of which the first that is not empty counts.
DOCUMENTS = (DOCUMENT, "passage", "corpus")


class Projected(NamedTuple):
    """A dense layer over the vector, as the setting `dense` has it: "256", "512:tanh:no-bias"."""

    units: int
    activation: str = "identity"
    use_bias: bool = True
    use_residual: bool = False

    @classmethod
    def parse(cls, text):
        """Raises InputError if the text does not describe a layer."""
        units, *options = str(text).split(":")
        given, is_known = {}, True
        for option in options:
            name, value = {
                "no-bias": ("use_bias", False),
                "residual": ("use_residual", True),
            }.get(option, ("activation", option))
            is_known &= name not in given and (name != "activation" or option in ACTIVATIONS)
            given[name] = value
        if not (is_known and units.isascii() and units.isdecimal() and 0 < int(units) < 2**31):
            raise InputError.naming(
                "{dense} is {!r}. Expected the size of a layer, and after colons its activation "
                "({}), no-bias or residual, such as 256 or 512:tanh.",
                text,
                ", ".join(ACTIVATIONS),
            )
        return cls(int(units), **given)

    def __str__(self):
        parts = [str(self.units), self.activation if self.activation != ACTIVATIONS[0] else ""]
        parts += ["" if self.use_bias else "no-bias", "residual" if self.use_residual else ""]
        return ":".join(filter(None, parts))


class TextEmbeddingSettings(TextFileSettings, TaskSettings):
    EXAMPLE_FIELDS: ClassVar[tuple] = ("text",)
    MAX_LENGTH: ClassVar[int] = 256

    pooling: str | None = setting(
        None,
        help="how the tokens' vectors become one: cls (the first token's), mean, max, last, "
        "mean-sqrt-length, weighted-mean, or some of these side by side, such as cls+mean",
        unit="POOLING",
        default_help="what the model's 1_Pooling/config.json says; else the mean, or last for a "
        "causal model",
        stored=True,
        common=True,
    )
    include_prompt: bool = setting(
        True, help="whether the pooling counts the tokens of the prompt", stored=True
    )
    dense: str | Sequence[str] | None = setting(
        None,
        help="a dense layer over the vector: its size, and after colons its activation "
        f"({', '.join(ACTIVATIONS)}), no-bias or residual, such as 256 or 512:tanh; or several",
        unit="SIZE",
        default_help="none",
        several=True,
        stored=True,
    )
    normalize: bool = setting(
        False, help="divide the vector by its Euclidean norm", stored=True, common=True
    )
    prompts: str | Sequence[str] | Mapping[str, str] | None = setting(
        None,
        help="a text in front of each text, by name, such as 'query=query: '; or several. "
        "Anchors have the prompt query, positives and negatives the prompt document",
        unit="NAME=TEXT",
        default_help="none",
        several=True,
        stored=True,
    )
    default_prompt: str | None = setting(
        None,
        help="the name of the prompt of texts that are neither a query nor a document",
        unit="NAME",
        default_help="none",
        stored=True,
    )
    lowercase: bool = setting(False, help="lower-case texts before they are tokenized", stored=True)
    similarity: str = setting(
        COSINE, help="how two vectors are compared", choices=SIMILARITIES, stored=True, common=True
    )
    size: int | None = setting(
        None,
        help="keep this many numbers of each vector, the first ones",
        unit="NUMBERS",
        default_help="all",
        at_least=1,
        stored=True,
    )
    matryoshka: int | Sequence[int] | None = setting(
        None,
        help="train vectors that are also good when they are cut to these sizes; metrics are given "
        "for each",
        unit="SIZE",
        default_help="the whole vector alone",
        several=True,
        at_least=1,
        stored=True,
        common=True,
    )
    matryoshka_weights: float | Sequence[float] | None = model_setting(
        None,
        help="the weight of the loss at each size, in their order",
        unit="WEIGHT",
        default_help="1 each",
        several=True,
        above=0,
    )
    loss: str | None = model_setting(
        None,
        help="the training loss",
        default_help="by the columns: in-batch-negatives for anchors and positives, cosent for "
        "scores, contrastive for 0 and 1, batch-triplets for texts with labels, simcse for plain "
        "texts",
        choices=LOSSES,
        common=True,
    )
    scale: float = model_setting(
        SCALE,
        help="what similarities are multiplied by in in-batch-negatives, simcse, cosent and angle, "
        "the inverse of a temperature",
        above=0,
    )
    symmetric: bool = model_setting(
        False,
        help="with in-batch-negatives, also find the anchor of each positive; the mean of both",
    )
    margin: float | None = model_setting(
        None,
        help="the margin of the triplet, contrastive and batch-triplets loss",
        default_help=f"{MARGINS[TRIPLET]:g} in Euclidean distances for triplet; in 1 - cosine "
        f"{MARGINS[CONTRASTIVE]:g} for contrastive and {MARGINS[BATCH_TRIPLETS]:g} for "
        "batch-triplets",
        above=0,
    )
    guide: PathText | None = model_setting(
        None,
        help="with in-batch-negatives, a model whose vectors say which texts of a batch do not "
        "count as negatives of an anchor: those that it finds nearer than the positive",
        unit="FOLDER",
        default_help="all texts of other rows are negatives",
        common=True,
    )
    guide_margin: float = model_setting(
        0.0,
        help="leave out texts whose similarity to the anchor, by the guide, is above that of the "
        "positive minus this",
        at_least=0,
    )
    guide_relative_margin: float = model_setting(
        0.0, help="likewise, minus this fraction of the positive's similarity", at_least=0
    )
    chunk_size: int | None = hardware_setting(
        None,
        help="compute so many examples of a batch at a time, and their activations again for the "
        "gradients: a batch of any size in the memory of this one, with the loss of the whole "
        "batch, for about a third more time",
        unit="EXAMPLES",
        default_help="the whole batch at once",
        at_least=1,
        common=True,
    )
    file_weights: float | Sequence[float] | None = data_setting(
        None,
        help="with several files to train on, a weight for each: every batch is of one file, and "
        "the numbers of batches are in these proportions",
        unit="WEIGHT",
        default_help="a batch has examples of all files",
        several=True,
        above=0,
        common=True,
    )
    score_range: Sequence[float] | None = setting(
        None,
        help="the lowest and the highest score there can be, which become 0 and 1",
        unit="NUMBER",
        default_help="scores are taken as they are",
        reads=True,
    )
    metric: str | None = model_setting(
        None,
        help="the dev metric that selects the best epoch",
        default_help="ndcg@10 for anchors and positives, spearman for scores, average_precision "
        "for 0 and 1",
        choices=METRICS,
        common=True,
    )
    fields: str | None = fields_setting("anchor=question,positive=answer,negatives=no1|no2")
    qrels: str | None = setting(
        None,
        help="of a retrieval folder (corpus.jsonl, queries.jsonl, qrels/) the file in qrels",
        unit="NAME",
        default_help="the only one",
        reads=True,
    )

    def __post_init__(self, *given):
        if isinstance(self.prompts, Mapping):
            prompts = [f"{name}={text}" for name, text in self.prompts.items()]
            object.__setattr__(self, "prompts", prompts or None)
        super().__post_init__(*given)

    def check(self):
        super().check()
        parts = parts_of(self.pooling or PARTS[0])
        if not {*parts} <= {*PARTS} or len({*parts}) < len(parts):
            raise InputError.naming(
                "{pooling} is {!r}. Expected one of {}, or several, such as cls+mean.",
                self.pooling,
                ", ".join(PARTS),
            )
        for layer in as_list(self.dense):
            Projected.parse(layer)
        prompts = self.prompt_texts
        if self.default_prompt is not None and self.default_prompt not in prompts:
            raise InputError.naming(
                "{default_prompt} is {!r}. {prompts} has {}.",
                self.default_prompt,
                listed(prompts) if prompts else "no prompts",
            )
        sizes, weights = as_list(self.matryoshka), as_list(self.matryoshka_weights)
        if len({*sizes}) < len(sizes):
            raise InputError.naming("{matryoshka} has a size twice: {}.", listed(map(str, sizes)))
        if weights and len(weights) != len(sizes):
            raise InputError.naming(
                "{matryoshka} and {matryoshka_weights} must have the same length. Received: {} and "
                "{}.",
                len(sizes),
                len(weights),
            )
        if self.score_range is not None and not (
            len(self.score_range) == 2 and self.score_range[0] < self.score_range[1]
        ):
            raise InputError.naming(
                "{score_range} must be two numbers, the lower one first. Received: {}.",
                listed(f"{number:g}" for number in self.score_range),
            )
        self._check_options_of_losses()
        # Settings of a run have these, too.
        has_weights = self.dense is not None or self.bilstm is not None
        mixes = getattr(self, "layers", None) in MIXES or getattr(self, "static_vectors", None)
        if getattr(self, "freeze_encoder", False) and not (has_weights or mixes):
            raise InputError.naming(
                "{freeze_encoder} leaves nothing to train: the vector is the pooling of the "
                "encoder's. Give {dense} a layer over it, or leave it out."
            )
        if self.chunk_size is not None and getattr(self, "freeze_encoder", False):
            raise InputError.naming(
                "{chunk_size} is for the gradients of the encoder, and {freeze_encoder} needs "
                "none. Leave one of them out."
            )
        if self.chunk_size is not None and self.lm_loss_weight:
            raise InputError.naming(
                "{chunk_size} computes the loss of vectors alone. Leave {lm_loss_weight} out."
            )

    def _check_options_of_losses(self):
        """Raises InputError for an option that the given loss has not."""
        if self.guide is None:
            for name in ("guide_margin", "guide_relative_margin"):
                if getattr(self, name):
                    raise InputError.naming("{} is for a {guide}. Leave it out.", argument(name))
        elif self.symmetric:
            raise InputError.naming(
                "With a {guide}, positives are told from each other already. Leave {symmetric} out."
            )
        if self.loss is None:
            return
        has_scale = self.loss in (IN_BATCH, SIMCSE, COSENT, ANGLE)
        unused = {
            "margin": self.margin is not None and self.loss not in MARGINS,
            "symmetric": self.symmetric and self.loss != IN_BATCH,
            "scale": self.scale != SCALE and not has_scale,
            "guide": self.guide is not None and self.loss != IN_BATCH,
        }
        names = [name for name, is_unused in unused.items() if is_unused]
        if names:
            raise InputError.naming(
                "{} has no effect with {loss} {}. Leave it out.", arguments(names), self.loss
            )

    @property
    def prompt_texts(self):
        """{name: text} of the prompts."""
        prompts = {}
        for prompt in as_list(self.prompts):
            name, equals, text = prompt.partition("=")
            if not (equals and name.strip()):
                raise InputError.naming(
                    "{prompts} is {!r}. Expected NAME=TEXT, such as {}.",
                    prompt,
                    argument("prompts", '"query=query: "'),
                )
            if name.strip() in prompts:
                raise InputError.naming("{prompts} has the name {!r} twice.", name.strip())
            prompts[name.strip()] = text
        return prompts

    @property
    def projections(self):
        """The dense layers over the vector, a list of `Projected`."""
        return [Projected.parse(layer) for layer in as_list(self.dense)]

    @property
    def sizes(self):
        """The sizes of `matryoshka`, the largest first."""
        return sorted(as_list(self.matryoshka), reverse=True)

    def prompt_of(self, role):
        """The text in front of a text, "" without one.

        Args:
            role: "query", "document", or None for a text that is neither.
        """
        prompts = self.prompt_texts
        if role is None:
            return prompts.get(self.default_prompt, "")
        names = DOCUMENTS if role == DOCUMENT else (role,)
        return next(filter(None, (prompts.get(name) for name in names)), "")
