"""What an encoder's weights are called in a model folder, and the classes of `transformers`."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from keras_bert.base import rename
from keras_bert.base.rename import Rename

# Before the names of tensors that `transformers` has no name for.
KEPT = "keras_bert."


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassNames:
    """A class of `transformers` for some kinds of task.

    Attributes:
        kinds: the kinds of task that are saved as it. The first is what a folder of it holds that
            does not say its kind: one of another program's.
        heads: the heads that the class has, by the attribute of the task: lines of a rename table.
        pooling: what the class reads, for a kind of task that reads one vector per text.
        transform: where the class has the encoder's `head_transform` layer: "pooler" is its own
            place in the base model, None is nowhere (it is kept under `keras_bert.`), any other
            name is a part of the head.
    """

    kinds: tuple[str, ...]
    heads: Mapping[str, Sequence[Rename]]
    pooling: str | None = None
    transform: str | None = "pooler"


def _same(name):
    return name


@dataclasses.dataclass(frozen=True, kw_only=True)
class TensorNames:
    """The tensors of an encoder of one config, by the names of its base model in `transformers`.

    Attributes:
        base_class: the name of that base model, which `architectures` has for a bare encoder.
        encoder: the lines of the encoder's weights; `{i}` is the number of a layer.
        layers: how many layers there are.
        sizes: what the letters of the lines' shapes are.
        transform: the lines of the `head_transform` layer, as they are under its name; none where
            the encoder has no such layer.
        prefix: what a class with a head puts before the names of the encoder.
        classes: the classes with a head, by name.
        foreign_classes: names of classes of other model types with the same tensors: their type.
        head_prefixes: what the names of the heads' tensors begin with.
        copies: names of tensors that some writers store in addition -> the tensor that they equal.
        output_embedding: those of the copies that are an output embedding.
        plain: a name in a file -> the name in these tables; None for what is not a weight.
    """

    base_class: str
    encoder: Sequence[Rename]
    sizes: Mapping[str, int]
    layers: int = 0
    transform: Sequence[Rename] = ()
    prefix: str = ""
    classes: Mapping[str, ClassNames] = dataclasses.field(default_factory=dict)
    foreign_classes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    head_prefixes: tuple[str, ...] = (KEPT,)
    copies: Mapping[str, str] = dataclasses.field(default_factory=dict)
    output_embedding: tuple[str, ...] = ()
    plain: Callable[[str], str | None] = _same

    @classmethod
    def of_variables(cls, encoder_class, config):
        """Names for an encoder that `transformers` does not have: the paths of its variables."""
        lines = [
            Rename(weight.path, weight.path.replace("/", "."), " ".join(map(str, weight.shape)))
            for weight in encoder_class(config).weights
        ]
        return cls(base_class=encoder_class.__name__, encoder=lines, sizes={})

    def class_of(self, kind):
        """The name of the class for a kind of task; the base class where there is none."""
        found = (name for name, of in self.classes.items() if kind in of.kinds)
        return next(found, self.base_class)

    def names(self, class_name):
        """The `ClassNames` of a class; those of the base class where it is another."""
        return self.classes.get(class_name, ClassNames(kinds=(), heads={}))

    def table(self, class_name=None):
        """The lines of the encoder in a folder of a class; None is under their plain names."""
        encoder = rename.expand(self.encoder, self.layers)
        if class_name is None:
            return [*encoder, *rename.under(self.transform, theirs="pooler.")]
        prefix = self.prefix if class_name in self.classes else ""
        place = self.names(class_name).transform
        place = {"pooler": f"{prefix}pooler", None: f"{KEPT}pooler"}.get(place, place)
        return [
            *rename.under(encoder, theirs=prefix),
            *rename.under(self.transform, theirs=f"{place}."),
        ]
