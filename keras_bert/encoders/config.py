"""The contract of an encoder's config: the fields of a `config.json`, and sizes."""

import dataclasses
import reprlib
import warnings
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

from keras_bert.base.errors import InputError, InputWarning
from keras_bert.base.files import check_object, read_json
from keras_bert.base.formatting import html_table, listed
from keras_bert.base.settings import mismatch, value_type

# Keys of a config.json that do not affect the encoder's computation: bookkeeping, generation
# settings, and those of a task's head or the tokenizer. They are not kept: saving writes its own.
_UNUSED_KEYS = frozenset(
    """
    architectures auto_map dtype finetuning_task
    gradient_checkpointing id2label keras_bert label2id language mask_token_id name
    num_labels _num_labels output_past problem_type tokenizer_class torch_dtype
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
# Other programs begin and end a text with these. They are kept; `extra_keys` does not have them.
_GENERATION_KEYS = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
# Keys of sentence-transformers, which are kept and read by tasks.
_TASK_KEYS = ("sentence_transformers", "sbert_ce_default_activation_function")
# `alpha` of LoRA, as in `peft`.
LORA_ALPHA = 8.0
# Nesting of the values that are kept: Python's json reads deeper ones than it can write.
_MAX_DEPTH = 50
_MOST_LAYERS = 1000  # each takes 50 ms and 1 MB in Keras, whatever the size of its weights


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class EncoderConfig:
    """The base of all configs of encoders: it reads a `config.json` and writes it.

    A subclass is a frozen dataclass with the fields `model_type`, `vocab_size`, `hidden_size` and
    others, under Hugging Face's names if `transformers` has the model. Its class attributes are
    what else a file may contain, and its properties are what tasks, training and exports need.
    Config modules import no Keras.

    Attributes:
        MODEL_TYPES: the values of `model_type` that the class reads; the first is the default.
        PRESETS: fields of the published models, by name, for `--architecture`.
        KEYS: the keys of a `config.json` that are not named as our fields: field -> key.
        UNUSED_KEYS: known keys that do not affect the encoder; they are dropped.
        REQUIRES_TOKENIZER: whether every model folder has a tokenizer.
        SUPPORTED_VALUES: keys that change the computation but are not fields, with the values that
            the encoder supports.
        extra_keys: unknown keys of a `config.json`, with their values. They are kept in `to_dict`
            and in saved folders.
        generation_keys: `bos_token_id`, `eos_token_id`, `cls_token_id` and `sep_token_id` of a
            `config.json`, as far as it has them. They do not affect the encoder, and are kept in
            saved folders.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]]
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    KEYS: ClassVar[Mapping[str, str]] = {}
    UNUSED_KEYS: ClassVar[frozenset[str]] = _UNUSED_KEYS
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {}
    REQUIRES_TOKENIZER: ClassVar[bool] = False

    if TYPE_CHECKING:  # the fields of every subclass
        model_type: str
        vocab_size: int
        hidden_size: int
        num_hidden_layers: int

    # Not hashed, since JSON's values need not be hashable.
    extra_keys: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    generation_keys: dict[str, Any] = dataclasses.field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.model_type not in self.MODEL_TYPES:
            raise ValueError(
                f"`model_type` must be one of {', '.join(self.MODEL_TYPES)}. "
                f"Received: model_type={self.model_type!r}."
            )
        for name, field in self._own_fields().items():
            value, (kind, optional) = getattr(self, name), value_type(field)
            if not (value is None and optional) and (expected := mismatch(kind, value)):
                expected = expected.replace("a text", "a string")
                if "finite" in expected:
                    raise ValueError(f"`{name}` must be {expected}.")
                raise ValueError(f"`{name}` must be {expected}. Received: {name}={value!r}.")
        layers = [n for n in self._own_fields() if n.startswith("num_") and n.endswith("_layers")]
        self._check(" ".join(layers), lambda n: n <= _MOST_LAYERS, f"at most {_MOST_LAYERS:,}")
        misplaced = self.extra_keys.keys() & self.fields_by_key().keys()
        if misplaced:
            raise ValueError(
                "`extra_keys` must not contain fields of the config. "
                f"Received: extra_keys with {min(misplaced)!r}."
            )

    def _check(self, names, is_valid, expected):
        """Raises ValueError for a field, of several names, whose value is not valid."""
        for name in names.split():
            value = getattr(self, name)
            if not is_valid(value):
                raise ValueError(
                    f"{self._called(name)} must be {expected}. "
                    f"Received: {name}={reprlib.repr(value)}."
                )

    def _called(self, name):
        """A field in a message, with its key in a config.json if that is another."""
        key = self.KEYS.get(name, name)
        return f"`{name}`" if key == name else f"`{name}` (`{key}` in config.json)"

    @classmethod
    def _own_fields(cls):
        """The fields that are keys of a config.json, by name."""
        others = ("extra_keys", "generation_keys")
        return {f.name: f for f in dataclasses.fields(cls) if f.name not in others}

    @classmethod
    def fields_by_key(cls) -> dict[str, str]:
        """The name of each field by its key in a config.json."""
        return {cls.KEYS.get(name, name): name for name in cls._own_fields()}

    @classmethod
    def from_dict(cls, values: dict[str, Any], *, source: str = "the config") -> Self:
        """Reads the dictionary of a `config.json`.

        Args:
            values: a dictionary under Hugging Face's names.
            source: the path of the file, for messages.

        Raises:
            InputError: another model type, a value that this encoder does not support, a missing
                size, or an invalid value.
        """
        check_object(values, source=source)
        values = cls.translated(values, source=source)
        model_type = values.get("model_type", cls.MODEL_TYPES[0])
        if model_type not in cls.MODEL_TYPES:
            raise InputError(
                f"{source} describes a {model_type!r} model. This encoder reads the model types "
                f"{' and '.join(cls.MODEL_TYPES)}."
            )
        fields, names = cls._own_fields(), cls.fields_by_key()
        extra_keys = {}
        for name, value in values.items():
            if name in names or name in cls.UNUSED_KEYS or name in _GENERATION_KEYS:
                continue
            if name not in cls.SUPPORTED_VALUES:
                extra_keys[name] = value
            elif value not in cls.SUPPORTED_VALUES[name]:
                supported = " or ".join(
                    repr(v) for v in cls.SUPPORTED_VALUES[name] if v is not None
                )
                raise InputError(
                    f"{source} has {name} = {value!r}, which this encoder cannot compute. "
                    f"Supported: {supported or 'no value'}."
                )
        for key, name in names.items():
            if fields[name].default is dataclasses.MISSING and key not in values:
                raise InputError(f"{source} lacks the field {key!r}.")
        for name, value in extra_keys.items():
            if _is_deeper(value, _MAX_DEPTH):
                raise InputError(
                    f"{source}: the value of {name!r} is nested more than {_MAX_DEPTH} levels deep."
                )
        given = {name: values[key] for key, name in names.items() if key in values}
        generation_keys = {name: values[name] for name in _GENERATION_KEYS if name in values}
        try:
            return cls(**given, extra_keys=extra_keys, generation_keys=generation_keys)
        except ValueError as error:
            raise InputError(f"Invalid value in {source}: {error}") from error

    @classmethod
    def translated(cls, values: dict[str, Any], *, source: str) -> dict[str, Any]:
        """The dictionary of a `config.json` of another generation, as `from_dict` reads it."""
        return values

    def to_dict(self) -> dict[str, Any]:
        """The dictionary of a `config.json`: every field, then `extra_keys`."""
        own_keys = {key: getattr(self, name) for key, name in self.fields_by_key().items()}
        return own_keys | self.extra_keys

    def identity(self) -> dict[str, Any]:
        """`to_dict` as an interrupted run has stored its hash, perhaps by an earlier version."""
        return self.to_dict()

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Self:
        """Reads a `config.json` or Google's `bert_config.json`.

        Raises:
            InputError: as `from_dict`, or the file is missing or is not JSON.
        """
        return cls.from_dict(read_json(path), source=str(path))

    def report_extra_keys(self, *, source: str) -> None:
        """Warns of unknown keys in one line."""
        unknown = [repr(key) for key in self.extra_keys if key not in _TASK_KEYS]
        if unknown:
            warnings.warn(
                f"{source}: unknown keys are kept, but not used: {listed(unknown, most=5)}.",
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
                f"Invalid architecture {name!r}. Choose from: {', '.join(cls.PRESETS)}."
            )
        return cls(**{**cls.PRESETS[name], "vocab_size": vocab_size, **changes})

    # What tasks, training and exports need.

    @property
    def max_length(self) -> int | None:
        """Maximum length of a sequence in tokens; None is any length."""
        return None

    @property
    def num_segments(self) -> int:
        """Number of segments; 0 if the encoder takes no `segment_ids`."""
        return 0

    @property
    def is_causal(self) -> bool:
        """Whether each token sees only itself and the tokens before it."""
        return False

    @property
    def num_hidden_states(self) -> int:
        """Number of the encoder's `hidden_states`: the embeddings, and one per layer applied."""
        return self.num_hidden_layers + 1

    def head_dropout(self, task_type: str) -> float:
        """Default dropout before the last layer of a task type, as `transformers` has it.

        It is `classifier_dropout`, or else `hidden_dropout_prob`; 0 for question answering.
        """
        if task_type == "question-answering":
            return 0.0
        rate = getattr(self, "classifier_dropout", None)
        return getattr(self, "hidden_dropout_prob", 0.1) if rate is None else rate

    @property
    def head_initializer_range(self) -> float:
        """Standard deviation of the truncated normal for a head's new weights."""
        return getattr(self, "initializer_range", 0.02)

    @property
    def head_activation(self) -> str:
        """Activation of a pre-training head's own layers, by Hugging Face's name."""
        return getattr(self, "hidden_act", "gelu")

    @property
    def head_layer_norm_eps(self) -> float:
        """Epsilon of a head's own LayerNorms."""
        return getattr(self, "layer_norm_eps", 1e-12)

    def for_pretraining(self, task_type: str) -> Self:
        """The config of an encoder that is pre-trained as a task type.

        Args:
            task_type: such as "fill-mask" or "causal-lm".

        Raises:
            InputError: the encoder cannot be pre-trained as that task type.
        """
        causal = task_type == "causal-lm"
        if causal != self.is_causal:
            reads = "only the tokens before it" if self.is_causal else "all tokens"
            raise InputError(
                f"A {self.model_type} encoder cannot be pre-trained as {task_type}: each token "
                f"sees {reads}."
            )
        return self

    def parameter_count(self) -> int:
        """Number of the encoder's weights, computed without creating them."""
        raise NotImplementedError

    def forward_flops(self, length: Any) -> Any:
        """Floating-point operations of a forward pass over a sequence of `length` tokens.

        A multiplication and an addition in a matrix product count as two; nothing else is counted.
        `length` is an int or a numpy array, and the result has its shape. Heads count their own.
        """
        raise NotImplementedError

    @property
    def described(self) -> str:
        """The sizes in one line."""
        parts = [self.model_type, self._described_layers]
        parts.append(f"{self.vocab_size:,} tokens in the vocabulary")
        if self.max_length is not None:
            parts.append(f"sequences of up to {self.max_length} tokens")
        return ", ".join([*parts, f"{self.parameter_count():,} parameters"])

    @property
    def _described_layers(self):
        return f"hidden size {self.hidden_size}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.described})"

    def _repr_html_(self):
        rows = [(name, "" if value is None else value) for name, value in self.to_dict().items()]
        return html_table(rows, caption=self.described)


def _is_deeper(value, levels):
    """Whether a JSON value has more than so many levels of nested lists and objects."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deeper(item, levels - 1) for item in inner)


def check_max_length(max_length, config, tokenizer):
    """Raises InputError for sequences longer than the model's positions or without room for text.

    `tokenizer` decides how many special tokens a sequence has; None means that it has none.
    """
    if config.max_length is not None and max_length > config.max_length:
        raise InputError.naming(
            "{max_length} must be at most {}, the positions of the model. Received: {}.",
            config.max_length,
            max_length,
        )
    least = 1 + (0 if tokenizer is None else tokenizer.template.num_special(1))
    if max_length < least:
        raise InputError.naming(
            "{max_length} must be at least {} to leave room for text. Received: {}.",
            least,
            max_length,
        )
