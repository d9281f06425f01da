"""The sizes and settings of an encoder, under Hugging Face's names."""

import dataclasses
import sys
from os import PathLike
from typing import Any, Self

from keras_bert.errors import InputError
from keras_bert.files import NotJson, parse_json, read_small
from keras_bert.html_table import html_table
from keras_bert.wording import counted

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

# Keys of other people's config.json that say nothing about the encoder's arithmetic: bookkeeping,
# generation settings, and what belongs to a task's head or to the tokenizer.
_HARMLESS = frozenset(
    """
    architectures auto_map bos_token_id cls_token_id dtype eos_token_id finetuning_task
    gradient_checkpointing id2label keras_bert label2id language mask_token_id name
    num_labels _num_labels output_past problem_type sep_token_id tokenizer_class torch_dtype
    transformers_version unk_token_id use_cache _name_or_path _attn_implementation
    attn_implementation _attn_implementation_autoset
    directionality do_lower_case pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
    pooler_size_per_head pooler_type
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

# Keys that change the arithmetic, with the only values that this encoder computes.
_ONLY_VALUE = {
    "add_cross_attention": (False, None),
    "cross_attention_hidden_size": (None,),
    "embedding_size": (),
    "is_encoder_decoder": (False, None),
    "position_embedding_type": ("absolute", None),
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
    "tie_word_embeddings": (True, False, None),  # of a head: see `OpenedFolder.settle_decoder`
}

_LARGEST_SIZE = 2**63 - 1

# What a JSON value is called, by its type here.
_KINDS = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class BertConfig:
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

    Raises:
        ValueError: a value that no such encoder can have. `Received: …` shows it.
    """

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
        if self.model_type not in MODEL_TYPES:
            raise ValueError(
                "`model_type` must be one of " + ", ".join(MODEL_TYPES) + ". "
                f"Received: model_type={self.model_type!r}"
            )
        if self.pad_token_id is None:
            object.__setattr__(self, "pad_token_id", 1 if self.model_type == "roberta" else 0)
        for field in dataclasses.fields(self):
            _check_type(field.name, field.type, getattr(self, field.name))
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

    @classmethod
    def from_dict(cls, values: dict[str, Any], *, source: str = "the config") -> Self:
        """Reads the dictionary of a `config.json` (or of Google's `bert_config.json`).

        Args:
            values: a dictionary under Hugging Face's names.
            source: where it came from, for messages.

        Raises:
            InputError: a field that is not known, one that asks for arithmetic that this encoder
                does not have, a size that is missing, or a value that cannot be.
        """
        _check_object(values, source=source)
        model_type = values.get("model_type", "bert")
        if model_type not in MODEL_TYPES:
            raise InputError(
                f"{source} describes a {model_type!r} model; this encoder reads the model types "
                f"{' and '.join(MODEL_TYPES)}."
            )
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for name, value in values.items():
            if name in fields or name in _HARMLESS:
                continue
            if name not in _ONLY_VALUE:
                raise InputError(
                    f"{source} has the field {name!r}, which this encoder does not know."
                )
            if value not in _ONLY_VALUE[name]:
                known = " or ".join(repr(v) for v in _ONLY_VALUE[name]) or "leaving it out"
                raise InputError(
                    f"{source} has {name} = {value!r}, which this encoder cannot compute; "
                    f"it knows {known}."
                )
        missing = [
            name
            for name, field in fields.items()
            if field.default is dataclasses.MISSING and name not in values
        ]
        if missing:
            raise InputError(f"{source} lacks the field {missing[0]!r}.")
        try:
            return cls(**{name: values[name] for name in fields if name in values})
        except ValueError as error:
            raise InputError(f"{source} has a value that cannot be: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """The dictionary of a `config.json`: every field, under Hugging Face's names."""
        return dataclasses.asdict(self)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Self:
        """Reads a `config.json` or Google's `bert_config.json`.

        Raises:
            InputError: as `from_dict`, or the file is missing or is not JSON.
        """
        return cls.from_dict(read_json(path), source=str(path))


def read_json(path):
    """The object in a JSON file.

    Raises:
        InputError: the file is missing or cannot be read, is not UTF-8, or is not JSON (with the
            line) or no object.
    """
    try:
        values = parse_json(read_small(path).decode("utf-8"))
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
    return values


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
