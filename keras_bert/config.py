"""The sizes and settings of an encoder, under Hugging Face's names."""

import dataclasses
import re
import sys
import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar, Self

from keras_bert.errors import InputError, InputWarning
from keras_bert.files import NotJson, parse_json, read_small
from keras_bert.html_table import html_table
from keras_bert.wording import counted, listed

ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
MODEL_TYPES = ("bert", "roberta")

# Width, layers and heads of the published models (Turc et al. 2019 for the small ones, Devlin et
# al. 2018 for base and large). The feed-forward layer is four times as wide as the model.
_PRESETS = {
    "tiny": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2},
    "mini": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4},
    "small": {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8},
    "medium": {"hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8},
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12},
    "large": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16},
}

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
_BERT_UNUSED_KEYS = frozenset(
    """
    directionality do_lower_case pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
    pooler_size_per_head pooler_type
    """.split()
)

# Keys that change the computation, with the only values that a BERT encoder computes. Most belong
# to relatives of BERT, some of which call themselves "bert" all the same. Where such a key changes
# the names or shapes of the weights as well, these would be refused anyhow.
_OFF = (False, None)
_BERT_SUPPORTED_VALUES = {
    "add_cross_attention": _OFF,
    "alibi_starting_size": (None,),
    "attention_type": ("original_full", "full", None),
    "attention_window": (None,),
    "attn_logit_softcapping": (None,),
    "cross_attention_hidden_size": (None,),
    "embedding_size": (),
    "feed_forward_type": ("original", None),
    "final_logit_softcapping": (None,),
    "global_attn_every_n_layers": (None,),
    "inner_group_num": (1, None),
    "is_encoder_decoder": _OFF,
    "local_attention": (None,),
    "norm_type": ("layer_norm", None),
    "num_experts": (0, 1, None),
    "parallel_attn": _OFF,
    "position_embedding_type": ("absolute", None),
    "pre_norm": _OFF,
    "prenorm": _OFF,
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
    "relative_attention": _OFF,
    "rope_parameters": (None,),
    "rope_scaling": (None,),
    "rope_theta": (None,),
    "rotary": _OFF,
    "rotary_emb_base": (None,),
    "rotary_emb_fraction": (0, None),
    "rotary_value": _OFF,
    "sliding_window": _OFF,
    "tie_word_embeddings": (True, False, None),  # of a head: see `OpenedFolder.settle_decoder`
    "use_parallel_residual": _OFF,
    "use_rms_norm": _OFF,
    "use_rope": _OFF,
    "use_sliding_window": _OFF,
}

# Levels of lists and objects in a key that is kept: Python could read more than it can write.
_DEEPEST = 50

_LARGEST_SIZE = 2**63 - 1

# The escapes of a JSON text: a pair of surrogates, half of one (which is the group), any other.
_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u([dD][89a-fA-F]\w\w)|.)", re.DOTALL
)

# What a JSON value is called, by its type here.
_KINDS = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class EncoderConfig:
    """What the configs of all encoders share: how a `config.json` becomes one, and back.

    A subclass is a dataclass whose fields have Hugging Face's names, and says in class attributes
    what else a file may hold. Keys that it does not know are kept in `extra_keys`, so that they
    are in `to_dict` and in the folders that are saved, also after `dataclasses.replace`.

    Attributes:
        MODEL_TYPES: the values of `model_type` that the class reads; the first is the one meant by
            a file without any.
        UNUSED_KEYS: known keys that change nothing in the encoder, and are left out.
        SUPPORTED_VALUES: keys that change the computation and are no fields, with the values that
            the encoder computes.
        extra_keys: keys of a `config.json` that are not known, with their values.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]]
    UNUSED_KEYS: ClassVar[frozenset[str]] = _UNUSED_KEYS
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = {}

    # Not hashed, since JSON's values need not be hashable.
    extra_keys: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self):
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
        _check_object(values, source=source)
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
            raise InputError(f"{source} has a value that cannot be: {error}") from error

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


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class BertConfig(EncoderConfig):
    """What BERT, SpanBERT and RoBERTa encoders differ in; field names are Hugging Face's.

    Sizes have no default. The other defaults are those that `transformers` takes for a key that
    a `config.json` leaves out (they are BERT's published settings), so that a file means the same
    here and there.

    Attributes:
        vocab_size: rows of the token embedding.
        hidden_size: D, the width of the model; a multiple of `num_attention_heads`.
        num_hidden_layers: number of Transformer blocks.
        num_attention_heads: N; each head is `hidden_size / num_attention_heads` wide.
        intermediate_size: width of the feed-forward layer.
        hidden_act: "gelu" (by erf), "gelu_new" or "gelu_pytorch_tanh" (both the tanh form, which
            is what google-research/bert's own "gelu" computes), or "relu".
        hidden_dropout_prob: dropout after the embeddings and after each sub-layer.
        attention_probs_dropout_prob: dropout of the attention probabilities.
        max_position_embeddings: rows of the position embedding (RoBERTa's first
            `position_offset` rows are never used: see `max_length`).
        type_vocab_size: number of segments (2 in BERT, 1 in RoBERTa).
        initializer_range: standard deviation of the truncated normal for new weights.
        layer_norm_eps: epsilon of every LayerNorm (1e-12 in BERT, 1e-5 in RoBERTa).
        pad_token_id: id of the padding piece. Left out, it is the model type's own: 0 in BERT, 1
            in RoBERTa, as in `transformers`.
        model_type: "bert" or "roberta". It settles the position offset and the tensor names.
        is_decoder: causal mode, each position sees itself and what came before (Hugging Face's
            name for it).
        add_pooling_layer: whether there is a pooler (a dense layer with tanh over [CLS]).
        classifier_dropout: dropout before a task's classifier; None means `hidden_dropout_prob`.
        extra_keys: keys of a `config.json` that are not known here, with their values. They are
            kept and saved again.

    Raises:
        ValueError: a value that no such encoder can have. `Received: …` shows it.
    """

    MODEL_TYPES: ClassVar[tuple[str, ...]] = MODEL_TYPES
    UNUSED_KEYS: ClassVar[frozenset[str]] = _UNUSED_KEYS | _BERT_UNUSED_KEYS
    SUPPORTED_VALUES: ClassVar[Mapping[str, tuple]] = _BERT_SUPPORTED_VALUES

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = None
    model_type: str = "bert"
    is_decoder: bool = False
    add_pooling_layer: bool = True
    classifier_dropout: float | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.model_type not in MODEL_TYPES:
            raise ValueError(
                "`model_type` must be one of " + ", ".join(MODEL_TYPES) + ". "
                f"Received: model_type={self.model_type!r}"
            )
        if self.pad_token_id is None:
            object.__setattr__(self, "pad_token_id", 1 if self.model_type == "roberta" else 0)
        for name, field in self._own_fields().items():
            _check_type(name, field.type, getattr(self, name))
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
            "type_vocab_size",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1. Received: {getattr(self, name)}")
            if getattr(self, name) > _LARGEST_SIZE:
                raise ValueError(f"`{name}` must be at most {_LARGEST_SIZE}, as shapes can be.")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise ValueError(f"`{name}` must be in [0, 1). Received: {value}")
        for name in ("layer_norm_eps", "initializer_range"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` must be above 0. Received: {getattr(self, name)}")
        if self.hidden_act not in ACTIVATIONS:
            raise ValueError(
                "`hidden_act` must be one of " + ", ".join(ACTIVATIONS) + ". "
                f"Received: hidden_act={self.hidden_act!r}"
            )
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                "`hidden_size` must be a multiple of `num_attention_heads`. "
                f"Received: hidden_size={self.hidden_size}, "
                f"num_attention_heads={self.num_attention_heads}"
            )
        if not 0 <= self.pad_token_id < self.vocab_size:
            raise ValueError(
                "`pad_token_id` must be a row of the vocabulary. "
                f"Received: pad_token_id={self.pad_token_id}, vocab_size={self.vocab_size}"
            )
        if self.max_length < 1:
            raise ValueError(
                "`max_position_embeddings` must be above the position offset. Received: "
                f"max_position_embeddings={self.max_position_embeddings}, "
                f"position offset {self.position_offset}"
            )

    @property
    def described(self) -> str:
        """The sizes in a line, as a person reads them."""
        blocks = counted(self.num_hidden_layers, "block")
        return (
            f"{self.model_type}, {blocks}, width {self.hidden_size}, "
            f"{counted(self.num_attention_heads, 'head')}, {self.vocab_size:,} pieces, up to "
            f"{self.max_length} tokens, {self.parameters:,} parameters"
        )

    def __repr__(self):
        return f"BertConfig({self.described})"

    def _repr_html_(self):
        rows = [(name, "" if value is None else value) for name, value in self.to_dict().items()]
        return html_table(rows, caption=self.described)

    @property
    def position_offset(self) -> int:
        """Row of the position embedding that the first token takes.

        RoBERTa counts positions from `pad_token_id + 1` (fairseq kept a row for padding), BERT
        from 0.
        """
        return self.pad_token_id + 1 if self.model_type == "roberta" else 0

    @property
    def max_length(self) -> int:
        """The longest row, in tokens, that has positions."""
        return self.max_position_embeddings - self.position_offset

    @property
    def parameters(self) -> int:
        """The weights of a `BertEncoder` of these sizes, by arithmetic: nothing is made for it."""
        width, inner = self.hidden_size, self.intermediate_size
        rows = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        dense = width * (width + 1)  # a kernel and its bias
        block = 4 * dense + width * inner + inner + inner * width + width + 4 * width
        pooler = dense if self.add_pooling_layer else 0
        return rows * width + 2 * width + self.num_hidden_layers * block + pooler

    @classmethod
    def preset(cls, name: str, *, vocab_size: int, **changes: Any) -> Self:
        """The published sizes by name.

        Args:
            name: "tiny", "mini", "small", "medium", "base" or "large".
            vocab_size: number of pieces in the vocabulary.
            **changes: any other field, in place of the preset's value.

        Raises:
            InputError: there is no preset of that name.
        """
        if name not in _PRESETS:
            raise InputError(
                f"There is no architecture {name!r}: it is one of {', '.join(_PRESETS)}."
            )
        sizes = _PRESETS[name]
        values = {"intermediate_size": 4 * sizes["hidden_size"], **sizes, **changes}
        return cls(vocab_size=vocab_size, **values)


def read_json(path):
    """The object in a JSON file.

    Raises:
        InputError: the file is missing or cannot be read, is not UTF-8, is not JSON (with the
            line) or no object, or holds a text that is no Unicode.
    """
    try:
        text = read_small(path).decode("utf-8")
        values = parse_json(text)
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder; a JSON file was expected.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}).") from error
    except NotJson as error:
        place = f"{path}, line {error.line}" if error.line else str(path)
        raise InputError(f"{place}: this is not JSON ({error}).") from error
    _check_object(values, source=path)
    halves = (found[1] for found in _ESCAPES.finditer(text) if found[1])
    half = next(halves, None)  # which JSON can write, and UTF-8 cannot
    if half is not None:
        raise InputError(
            f"{path} contains half of a surrogate pair (\\u{half}), which is not a character."
        )
    return values


def _is_deeper(value, levels):
    """Whether a JSON value has more than so many levels of lists and objects in each other."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deeper(item, levels - 1) for item in inner)


def _check_object(values, *, source):
    if not isinstance(values, dict):
        kind = _KINDS.get(type(values), "null")
        raise InputError(f"{source} should hold a JSON object, not {kind}.")


def _check_type(name, annotation, value):
    """JSON has no types of its own: `"12"` and `true` must not pass as numbers."""
    if value is None and name == "classifier_dropout":
        return
    number = int | float if "float" in str(annotation) else int
    expected = annotation if annotation in (bool, str) else number
    is_bool = isinstance(value, bool)
    if not isinstance(value, expected) or (is_bool and expected is not bool):
        kind = {bool: "true or false", str: "a string", int: "a whole number"}.get(
            expected, "a number"
        )
        raise ValueError(f"`{name}` must be {kind}. Received: {name}={value!r}")
    if expected == int | float and not abs(value) <= sys.float_info.max:  # nor NaN
        raise ValueError(f"`{name}` must be a finite number.")
