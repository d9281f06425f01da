"""The names of an encoder's weights in a model folder, and the classes of `transformers`."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_bert.base import rename
from keras_bert.base.rename import Rename

# Prefix of the tensors that `transformers` has no name for.
KEPT = "keras_bert."
# The token embedding of a Transformer.
TOKEN_EMBEDDING = "embeddings.token_embedding.embeddings"


def dense(ours, theirs, shape, *, ends=(".weight", ".bias"), transposed=True, **options):
    """The lines of a dense layer, whose two weights end so in the other format.

    By default they are those of `torch.nn.Linear`.
    """
    kernel, bias = ends
    return [
        Rename(f"{ours}.kernel", theirs + kernel, shape, transposed=transposed, **options),
        Rename(f"{ours}.bias", theirs + bias, shape.split()[-1], **options),
    ]


def layer_norm(ours, theirs, *, ends=(".weight", ".bias"), size="D"):
    """The lines of a LayerNorm over vectors of that size, likewise."""
    gamma, beta = ends
    return [
        Rename(f"{ours}.gamma", theirs + gamma, size),
        Rename(f"{ours}.beta", theirs + beta, size),
    ]


def embeddings(
    tokens, *, positions=None, segments=None, norm=None, size="D", layer_norm=layer_norm
):
    """The lines of `Embeddings`, as far as the other format has its tables of that size."""
    tables = {"token": (tokens, "V"), "position": (positions, "P"), "segment": (segments, "T")}
    return [
        *(
            Rename(f"embeddings.{name}_embedding.embeddings", theirs, f"{rows} {size}")
            for name, (theirs, rows) in tables.items()
            if theirs is not None
        ),
        *(layer_norm("embeddings.layer_norm", norm, size=size) if norm is not None else ()),
    ]


def transformer_layer(
    *,
    query_key_value,
    projection,
    attention_norm,
    dense_in,
    dense_out,
    feed_forward_norm,
    inner="I",
    dense=dense,
    layer_norm=layer_norm,
):
    """The lines of every `TransformerBlock` of `blocks`, from the other names of its parts.

    `query_key_value` is the name of one layer (D, E), or those of the three that are one here.
    `inner` is the size of what the first feed-forward layer computes.
    """
    ours = "blocks.{i}"
    attention = f"{ours}.attention.query_key_value"
    if isinstance(query_key_value, str):
        lines = dense(attention, query_key_value, "D E")
    else:
        layers = enumerate(query_key_value)
        lines = [x for n, theirs in layers for x in dense(attention, theirs, "D D", part=(n, 3))]
    return [
        *lines,
        *dense(f"{ours}.attention.projection", projection, "D D"),
        *layer_norm(f"{ours}.attention_norm", attention_norm),
        *dense(f"{ours}.feed_forward.dense_in", dense_in, f"D {inner}"),
        *dense(f"{ours}.feed_forward.dense_out", dense_out, "I D"),
        *layer_norm(f"{ours}.feed_forward_norm", feed_forward_norm),
    ]


def lm_head(transform, norm, bias, *, size="D", dense=dense, layer_norm=layer_norm):
    """The lines of an `LMHead` with an `LMTransform` to vectors of that size."""
    return [
        *dense("lm_head.transform.dense", transform, f"D {size}"),
        *layer_norm("lm_head.transform.layer_norm", norm, size=size),
        Rename("lm_head.bias", bias, "V"),
    ]


def sizes_of(config):
    """Returns the sizes of the letters of a Transformer's shapes, but for C, a task's labels."""
    return {
        "V": config.vocab_size,
        "D": config.hidden_size,
        "E": 3 * config.hidden_size,
        "I": config.intermediate_size,
        "J": 2 * config.intermediate_size,
        "N": config.num_attention_heads,
        "H": config.hidden_size // config.num_attention_heads,
        "P": config.max_position_embeddings,
        "T": getattr(config, "type_vocab_size", 0),
    }


# The lines of `Encoder.pooler`, relative to that layer, after the name of it in a file.
POOLER = dense("dense", "", "D D")
# That name in these tables, wherever a file has the layer.
PLAIN_POOLER = "pooler.dense"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassNames:
    """A class of `transformers` for some task types.

    Attributes:
        task_types: the task types that are saved as it. The first is that of a folder of another
            program, which does not name a task type.
        heads: the heads of the class, by the attribute of the task: lines of a rename table.
        pooling: the pooling of the class, for a task type that reads one vector per text.
        transform: the name of the dense layer between the first token's vector and the last linear
            layer: PLAIN_POOLER is in the base model, any other name is a part of the head, None
            means that the class has no such layer.
        drops_before_transform: whether the class has its dropout before that layer, too, and not
            only after it.
        transforms_any_pooling: whether that layer is over the vector of any pooling, and not over
            that of the first token alone. (Of a class for tokens it is over every token.)
    """

    task_types: tuple[str, ...]
    heads: Mapping[str, Sequence[Rename]]
    pooling: str | None = None
    transform: str | None = None
    drops_before_transform: bool = False
    transforms_any_pooling: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class TensorNames:
    """The tensors of an encoder of one config, by the names of its base model in `transformers`.

    Attributes:
        base_class: the name of that base model, the `architectures` of an encoder without a head.
        encoder: the lines of the encoder's weights; `{i}` is the number of a layer.
        layers: the number of layers.
        sizes: the sizes that the letters of the lines' shapes stand for.
        transform: PLAIN_POOLER if the base model has a pooler, else None.
        base_pooler: the name of that pooler in the base model.
        pooler: the lines of the layer that `transform` names, relative to it.
        prefix: the prefix of the encoder's names in a class with a head.
        classes: the classes with a head, by name.
        head_prefixes: the prefixes of the heads' tensors.
        copies: names of tensors that some writers store in addition -> the tensor that they equal.
        plain: a name in a file -> the name in these tables; None if it is not a weight.
        is_static_embedding: whether the encoder is a `StaticEmbedding` of sentence-transformers
            but for the pooling.
    """

    base_class: str
    encoder: Sequence[Rename]
    sizes: Mapping[str, int]
    layers: int = 0
    transform: str | None = None
    base_pooler: str = PLAIN_POOLER
    pooler: Sequence[Rename] = tuple(POOLER)
    prefix: str = ""
    classes: Mapping[str, ClassNames] = dataclasses.field(default_factory=dict)
    head_prefixes: tuple[str, ...] = (KEPT,)
    copies: Mapping[str, str] = dataclasses.field(default_factory=dict)
    plain: Callable[[str], str | None] = str
    is_static_embedding: bool = False

    @classmethod
    def from_variables(cls, encoder_class, config):
        """Names for an encoder that `transformers` lacks: the paths of its variables."""
        lines = [
            Rename(weight.path, weight.path.replace("/", "."), " ".join(map(str, weight.shape)))
            for weight in encoder_class(config).weights
        ]
        return cls(base_class=encoder_class.__name__, encoder=lines, sizes={})

    @property
    def is_of_transformers(self) -> bool:
        """Whether the base model is a class of `transformers`."""
        return self.base_class.endswith("Model")

    @property
    def output_embedding(self) -> list[str]:
        """Names of the tensors that repeat the token embedding as an output embedding."""
        tokens = {line.theirs for line in self.encoder if line.ours == TOKEN_EMBEDDING}
        return [name for name, copied in self.copies.items() if copied in tokens]

    def parameter_count(self) -> int:
        """Number of the encoder's weights."""
        return sum(map(self._count, self.encoder))

    def kernel_count(self) -> int:
        """Number of the weights of all layers' kernels: products with each token's vector."""
        return sum(self._count(line) for line in self.encoder if line.ours.endswith(".kernel"))

    def _count(self, line):
        """Number of the weights of a line, in all layers that have them."""
        layers = self.layers - len(line.not_in) if "{i}" in line.theirs else 1
        return layers * math.prod(line.own_shape(self.sizes))

    def class_of(self, task_type):
        """The name of the class for a task type; the base class if there is none."""
        names = (name for name, one in self.classes.items() if task_type in one.task_types)
        return next(names, self.base_class)

    def names(self, class_name):
        """The `ClassNames` of a class; those of the base class for any other name."""
        base = ClassNames(task_types=(), heads={}, transform=self.transform)
        return self.classes.get(class_name, base)

    def names_for(self, task_type):
        """The `ClassNames` of the class for a task type."""
        return self.names(self.class_of(task_type))

    def table(self, class_name=None):
        """The lines of the encoder in a folder of a class; None gives their plain names."""
        encoder = rename.expand(self.encoder, self.layers)
        return rename.under(encoder, theirs=self.prefix if class_name in self.classes else "")

    def pooler_table(self, class_name=None):
        """The lines of `Encoder.pooler`, likewise; it is kept if the class has none."""
        name = PLAIN_POOLER
        if class_name is not None:
            name = self.names(class_name).transform or KEPT + PLAIN_POOLER
            if name == PLAIN_POOLER == self.transform:
                name = (self.prefix if class_name in self.classes else "") + self.base_pooler
        return rename.under(self.pooler, theirs=name)


def task_classes(
    model: str,
    *,
    lm_head: Sequence[Rename],
    causal: str | None = None,
    labels: str = "classifier",
    answers: str = "qa_outputs",
    transform: str | None = PLAIN_POOLER,
    choices_transform: str | None = PLAIN_POOLER,
    tokens_transform: str | None = None,
    pooling: str = "cls",
) -> dict[str, ClassNames]:
    """The usual classes of `transformers` for a bidirectional encoder, by name.

    Args:
        model: the beginning of their names, such as "Bert".
        lm_head: the lines of the masked-LM head.
        causal: the name of the class of a causal LM with the same head; None if there is none.
        labels: the name of the linear layer over a whole text: a logit per label, or the score of a
            regression.
        answers: the name of the linear layer of question answering.
        transform, choices_transform: see `ClassNames`, of the class for labelled texts, which has
            its dropout before a transform of its own, too, and of the class for choices.
        tokens_transform: the same of the classes for tokens, the masked LM's among them. If they
            have one, that of texts is over any pooling.
        pooling: what the classes for texts read.
    """
    masked = ("fill-mask", "span-pretrainer", "masked-causal-lm")
    head = {"lm_head": lm_head}
    label = {
        "classifier": dense("classifier", labels, "D C"),
        "scorer": dense("scorer", labels, "D 1"),
    }
    choice = {"classifier": dense("classifier", "classifier", "D 1")}
    tags = {"classifier": dense("classifier", "classifier", "D C")}
    answer = {"qa_outputs": dense("qa_outputs", answers, "D 2")}
    text_options: dict[str, Any] = {
        "pooling": pooling,
        "transforms_any_pooling": tokens_transform is not None,
    }
    classes = {
        f"{model}ForMaskedLM": ClassNames(
            task_types=masked, heads=head, transform=tokens_transform
        ),
        f"{model}ForSequenceClassification": ClassNames(
            task_types=("classifier", "pair-classifier", "regression"),
            heads=label,
            transform=transform,
            drops_before_transform=transform == f"{labels.split('.')[0]}.dense",
            **text_options,
        ),
        f"{model}ForMultipleChoice": ClassNames(
            task_types=("multiple-choice",),
            heads=choice,
            transform=choices_transform,
            **text_options,
        ),
        f"{model}ForTokenClassification": ClassNames(
            task_types=("tagger",), heads=tags, transform=tokens_transform
        ),
        f"{model}ForQuestionAnswering": ClassNames(
            task_types=("question-answering",), heads=answer, transform=tokens_transform
        ),
    }
    if causal is not None:
        classes[causal] = ClassNames(task_types=("causal-lm",), heads=head)
    return classes
