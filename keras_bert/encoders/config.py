"""The contract of an encoder's config: `config.json` under Hugging Face's names, and sizes."""

import dataclasses
import sys
import types
import typing
import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar, Self

from keras_bert.base.errors import InputError, InputWarning
from keras_bert.base.files import check_object, read_json
from keras_bert.base.formatting import html_table, listed

# Keys of other people's config.json that say nothing about the encoder's computation: bookkeeping,
# generation settings, and what belongs to a task's head or to the tokenizer. They are not kept: a
# folder that is saved says these things itself.
_UNUSED_KEYS = frozenset(
    """
    architectures auto_map bos_token_id cls_token_id dtype eos_token_id finetuning_task
    gradient_checkpointing id2label keras_bert label2id language mask_token_id name
    num_labels _num_labels output_past problem_type sep_token_id tokenizer_class torch_dtype
    transformers_version unk_token_id use_cache _name_or_path _attn_implementation
    attn_implementation _attn_implementation_autoset
    bad_words_ids begin_suppress_tokens decoder_start_token_id diversity_penalty do_sample
    early_stopping encoder_no_repeat_ngram_size exponential_decay_length_penalty forced_bos_token_id
    forced_eos_token_id length_penalty max_length min_length no_repeat_ngram_size num_beam_groups
    num_beams num_return_sequences output_attentions output_hidden_states output_scores prefix
    remove_invalid_values repetition_penalty return_dict return_dict_in_generate suppress_tokens
    task_specific_params temperature tf_legacy_loss tie_encoder_decoder top_k top_p torchscript
    typical_p use_bfloat16 chunk_size_feed_forward sep_token classifier_activation
    summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj
    """.split()
)
# Levels of lists and objects in a key that is kept: Python could read more than it can write.
_DEEPEST = 50


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class EncoderConfig:
    """What the configs of all encoders share: how a `config.json` becomes one, and back.

    A subclass is a frozen dataclass whose fields have Hugging Face's names where `transformers` has
    the model, `model_type`, `vocab_size` and `hidden_size` among them. It says in class attributes
    what else a file may hold, and in the properties below what tasks, training and exports need to
    know of the encoder. Config modules import no Keras. Keys that it does not know are kept in
    `extra_keys`, so that they are in `to_dict` and in the folders that are saved, also after
    `dataclasses.replace`.

    Attributes:
        MODEL_TYPES: the values of `model_type` that the class reads; the first is the one meant by
            a file without any.
        PRESETS: fields of the published models, by name, for `--architecture`.
        UNUSED_KEYS: known keys that change nothing in the encoder, and are left out.
        SUPPORTED_VALUES: keys that change the computation and are no fields, with the values that
            the encoder computes.
        extra_keys: keys of a `config.json` that are not known, with their values.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]]
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    UNUSED_KEYS: ClassVar[frozenset[str]] = _UNUSED_KEYS
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {}

    # Not hashed, since JSON's values need not be hashable.
    extra_keys: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self):
        if self.model_type not in self.MODEL_TYPES:
            raise ValueError(
                f"`model_type` must be one of {', '.join(self.MODEL_TYPES)}. "
                f"Received: model_type={self.model_type!r}"
            )
        for name, field in self._own_fields().items():
            _check_type(name, field.type, getattr(self, name))
        known = [key for key in self.extra_keys if key in self._own_fields()]
        if known:
            raise ValueError(
                "`extra_keys` must not contain fields of the config. "
                f"Received: extra_keys with {known[0]!r}"
            )

    @classmethod
    def _own_fields(cls):
        """The fields that are keys of a config.json, by name."""
        return {f.name: f for f in dataclasses.fields(cls) if f.name != "extra_keys"}

    @classmethod
    def from_dict(cls, values: dict[str, Any], *, source: str = "the config") -> Self:
        """Reads the dictionary of a `config.json`.

        Args:
            values: a dictionary under Hugging Face's names.
            source: where it came from, for messages.

        Raises:
            InputError: another model type, a field that asks for a computation that this encoder
                does not have, a size that is missing, or a value that cannot be.
        """
        check_object(values, source=source)
        model_type = values.get("model_type", cls.MODEL_TYPES[0])
        if model_type not in cls.MODEL_TYPES:
            raise InputError(
                f"{source} describes a {model_type!r} model; this encoder reads the model types "
                f"{' and '.join(cls.MODEL_TYPES)}."
            )
        fields = cls._own_fields()
        extra_keys = {}
        for name, value in values.items():
            if name in fields or name in cls.UNUSED_KEYS:
                continue
            if name not in cls.SUPPORTED_VALUES:
                extra_keys[name] = value
            elif value not in cls.SUPPORTED_VALUES[name]:
                known = " or ".join(repr(v) for v in cls.SUPPORTED_VALUES[name] if v is not None)
                raise InputError(
                    f"{source} has {name} = {value!r}, which this encoder cannot compute. "
                    f"Supported: {known or 'no value'}."
                )
        missing = [
            name
            for name, field in fields.items()
            if field.default is dataclasses.MISSING and name not in values
        ]
        if missing:
            raise InputError(f"{source} lacks the field {missing[0]!r}.")
        deep = [name for name, value in extra_keys.items() if _is_deeper(value, _DEEPEST)]
        if deep:
            raise InputError(
                f"{source}: the value of {deep[0]!r} is nested more than {_DEEPEST} levels deep."
            )
        own = {name: values[name] for name in fields if name in values}
        try:
            return cls(**own, extra_keys=extra_keys)
        except ValueError as error:
            raise InputError(f"Invalid value in {source}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """The dictionary of a `config.json`: every field, then the keys that were not known."""
        return {name: getattr(self, name) for name in self._own_fields()} | self.extra_keys

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Self:
        """Reads a `config.json` or Google's `bert_config.json`.

        Raises:
            InputError: as `from_dict`, or the file is missing or is not JSON.
        """
        return cls.from_dict(read_json(path), source=str(path))

    def report_extra_keys(self, *, source):
        """Warns in one line of the keys that were not known, where there are any."""
        if self.extra_keys:
            warnings.warn(
                f"{source}: unknown keys are kept, but not used: "
                f"{listed(map(repr, self.extra_keys), most=5)}.",
                InputWarning,
                stacklevel=3,
            )

    @classmethod
    def preset(cls, name: str, *, vocab_size: int, **changes: Any) -> Self:
        """A published model's sizes by name.

        Args:
            name: one of `PRESETS`.
            vocab_size: number of tokens in the vocabulary.
            **changes: any other field, in place of the preset's value.

        Raises:
            InputError: there is no preset of that name.
        """
        if name not in cls.PRESETS:
            raise InputError(
                f"There is no architecture {name!r}: it is one of {', '.join(cls.PRESETS)}."
            )
        return cls(**{**cls.PRESETS[name], "vocab_size": vocab_size, **changes})

    # What others need to know of the encoder.

    @property
    def max_length(self) -> int | None:
        """The longest sequence, in tokens, that the encoder takes; None is any length."""
        return None

    @property
    def num_segments(self) -> int:
        """Number of segments that `segment_ids` may name; 0 where the encoder takes none."""
        return 0

    @property
    def is_causal(self) -> bool:
        """Whether each token sees only itself and the tokens before it."""
        return False

    @property
    def num_hidden_states(self) -> int:
        """Number of the encoder's `hidden_states`: the embeddings, and one per layer applied."""
        raise NotImplementedError

    @property
    def head_dropout(self) -> float:
        """Dropout of what a task's head reads, where the task's settings give none."""
        return 0.1

    @property
    def head_initializer_range(self) -> float:
        """Standard deviation of the truncated normal for a head's new weights."""
        return 0.02

    @property
    def head_activation(self) -> str:
        """Activation of a pre-training head's own layers, by Hugging Face's name."""
        return "gelu"

    @property
    def head_layer_norm_eps(self) -> float:
        """Epsilon of a head's own LayerNorms."""
        return 1e-12

    def for_pretraining(self, kind: str, *, new: bool) -> Self:
        """The config of an encoder that is pre-trained as a kind of task.

        Args:
            kind: such as "fill-mask" or "causal-lm".
            new: the encoder has random weights: layers that the kind does not train are left out.

        Raises:
            InputError: the encoder cannot be pre-trained so.
        """
        causal = kind == "causal-lm"
        if causal != self.is_causal:
            reads = "only the tokens before it" if self.is_causal else "all tokens"
            raise InputError(
                f"A {self.model_type} encoder cannot be pre-trained as {kind}: each token sees "
                f"{reads}."
            )
        return self

    def parameter_count(self) -> int:
        """Number of the encoder's weights, computed without making any."""
        raise NotImplementedError

    def forward_flops(self, length: Any) -> Any:
        """Floating-point operations of a forward pass over a sequence of `length` tokens.

        Counted are the matrix products, a multiplication and an addition apiece. `length` is an int
        or a numpy array, and the result has its shape. Heads count their own.
        """
        raise NotImplementedError

    # As a person reads it.

    @property
    def described(self) -> str:
        """The sizes in a line."""
        size = f"hidden size {self.hidden_size}, {self.vocab_size:,} tokens in the vocabulary"
        return f"{self.model_type}, {size}, {self.parameter_count():,} parameters"

    def __repr__(self):
        return f"{type(self).__name__}({self.described})"

    def _repr_html_(self):
        rows = [(name, "" if value is None else value) for name, value in self.to_dict().items()]
        return html_table(rows, caption=self.described)


def _is_deeper(value, levels):
    """Whether a JSON value has more than so many levels of lists and objects in each other."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deeper(item, levels - 1) for item in inner)


def _check_type(name, annotation, value):
    """JSON has no types of its own: `"12"` and `true` must not pass as numbers."""
    allowed = typing.get_args(annotation) or (annotation,)
    if value is None and types.NoneType in allowed:
        return
    expected = next(kind for kind in allowed if kind is not types.NoneType)
    if expected not in (bool, str, int, float):
        return  # the class checks it itself
    accepted = int | float if expected is float else expected
    is_bool = isinstance(value, bool)
    if not isinstance(value, accepted) or (is_bool and expected is not bool):
        kinds = {bool: "true or false", str: "a string", int: "a whole number", float: "a number"}
        raise ValueError(f"`{name}` must be {kinds[expected]}. Received: {name}={value!r}")
    if expected is float and not abs(value) <= sys.float_info.max:  # nor NaN
        raise ValueError(f"`{name}` must be a finite number.")
