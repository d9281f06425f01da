"""The encoder of a bidirectional language model (ELMo, Peters et al. 2018)."""

from collections.abc import Collection
from typing import Any, Self

import keras
import numpy as np
from keras import ops

from keras_bert.base.rename import Rename
from keras_bert.encoders.bilm import NUM_CHARACTERS, BilmConfig
from keras_bert.encoders.encoder import Encoder
from keras_bert.encoders.tensor_names import TensorNames, dense
from keras_bert.heads.lm_head import LMHead
from keras_bert.layers import Tensor
from keras_bert.layers.character_cnn import CharacterCnn
from keras_bert.layers.elementwise import Dropout
from keras_bert.layers.embeddings import embedded
from keras_bert.layers.kernels.gathering import at_distinct
from keras_bert.layers.lstm import Lstm
from keras_bert.text.vocabulary import Vocabulary


@keras.saving.register_keras_serializable(package="keras_bert")
class BilmEncoder(Encoder):
    """Two language models, forward and backward, over one representation of each token.

    It takes `input_ids` and `input_mask`. Each direction is a stack of LSTMs whose outputs are
    projected to P = D / 2 units; each layer above the first adds its input to its output. In the
    forward direction a state has seen the tokens up to its own, in the backward direction those
    from its own on. `hidden_states` are the token representations (twice, to be of size D) and for
    each layer [forward; backward], what ELMo mixes; `sequence_output` is the last of them.

    The representation of a token comes from the bytes of its UTF-8 by a character CNN, or from a
    token embedding. States are zero where a sequence begins. AllenNLP carries them from one batch
    to the next, in which its representations of the same sentence differ by what came before.

    Args:
        config: a `BilmConfig`.
        spelling: what the characters of the tokens follow from, as `spelling_of` gives
            it; None until `set_vocabulary`, which a task with a tokenizer calls.
        dtype: a dtype or policy for all layers; None is Keras's own setting.

    Attributes: `characters` (a `CharacterCnn`, or None), `forward_lstms`, `backward_lstms`.
    """

    CONFIG = BilmConfig
    OBJECTIVES = ("bidirectional-lm",)
    LIMITS = {
        "attention-probabilities": "A bilm encoder has no attention to show.",
        "generate": "A bilm encoder cannot generate text: half of each vector has seen the tokens "
        "after it.",
    }

    def __init__(
        self,
        config: BilmConfig,
        *,
        spelling: dict[str, Any] | None = None,
        dtype: Any = None,
        name: str | None = "bilm_encoder",
        **kwargs: Any,
    ):
        super().__init__(config, dtype=dtype, name=name, **kwargs)
        policy, size = self.dtype_policy, config.direction_size
        self.characters = self._token_embedding = None
        if config.character_filters is None:
            self._token_embedding = keras.layers.Embedding(
                config.vocab_size, size, name="token_embedding", dtype=policy
            )
            self._token_embedding.build()
        else:
            self.characters = CharacterCnn(
                num_characters=NUM_CHARACTERS,
                embedding_size=config.character_embedding_size,
                filters=config.character_filters,
                activation=config.character_activation,
                num_highway_layers=config.num_highway_layers,
                output_size=size,
                name="characters",
                dtype=policy,
            )
            self.characters.build()
        layers = range(config.num_hidden_layers)
        self.forward_lstms = [self._lstm(f"forward_{i}", backward=False) for i in layers]
        self.backward_lstms = [self._lstm(f"backward_{i}", backward=True) for i in layers]
        self.dropout = Dropout(rate=config.hidden_dropout_prob, name="dropout", dtype=policy)
        self.spelling = self._table = None
        if spelling is not None:
            self._set_spelling(spelling)
        self.built = True

    def _lstm(self, name, *, backward):
        config = self.config
        lstm = Lstm(
            units=config.lstm_size,
            projection_size=config.direction_size,
            cell_clip=config.cell_clip,
            projection_clip=config.projection_clip,
            backward=backward,
            name=name,
            dtype=self.dtype_policy,
        )
        lstm.build((None, None, config.direction_size))
        return lstm

    def set_vocabulary(self, vocabulary: Vocabulary) -> None:
        self._set_spelling(spelling_of(vocabulary))

    def _set_spelling(self, spelling):
        if self.characters is None or spelling == self.spelling:
            return
        config = self.config
        # Lists of Keras would be slow to compare and to copy.
        object.__setattr__(self, "spelling", spelling)
        self._table = character_table(
            spelling,
            rows=config.vocab_size,
            length=config.max_characters,
            widest=max(width for width, _ in config.character_filters),
        )  # (V, C)

    def call(
        self,
        inputs: dict[str, Tensor],
        outputs: Collection[str] = ("sequence_output",),
        causal: bool | None = None,
        training: bool | None = None,
    ) -> dict[str, Tensor]:
        inputs, outputs = self.checked_inputs(inputs), self.checked_outputs(outputs)
        if causal:
            raise ValueError("A bilm encoder reads in both directions. Received: causal=True.")
        x = self._represented(inputs["input_ids"])  # (B, S, P)
        forward = backward = x
        states = [ops.concatenate([x, x], axis=-1)]
        lstms = zip(self.forward_lstms, self.backward_lstms, strict=True)
        for number, (forward_lstm, backward_lstm) in enumerate(lstms):
            options = {
                "mask": inputs["input_mask"],
                "residual": number > 0 and self.config.use_residuals,
                "training": training,
            }
            forward = self._layer(forward_lstm, forward, **options)
            backward = self._layer(backward_lstm, backward, **options)
            states.append(ops.concatenate([forward, backward], axis=-1))  # (B, S, D)
        last = states[-1]
        results = {"sequence_output": last, "first_output": last[:, 0], "hidden_states": (*states,)}
        return {name: results[name] for name in outputs}

    def _layer(self, lstm, x, *, mask, residual, training):
        x = self.dropout(x, training=training)
        y = lstm(x, mask, training=training)
        return x + y if residual else y

    def _represented(self, ids):
        """Ids (B, S) -> (B, S, P)."""
        if self.characters is None:
            return embedded(self._token_embedding, ids, dtype=self.compute_dtype)
        if self._table is None:
            raise ValueError(
                "The encoder reads the characters of tokens, and has no vocabulary. Call "
                "`set_vocabulary`, or give a task its tokenizer."
            )

        def represent(ids):  # (N,) -> (N, P)
            return self.characters(ops.take(self._table, ids, axis=0))

        return at_distinct(represent, ids)

    @property
    def layer_groups(self) -> list[list[keras.layers.Layer]]:
        first = self._token_embedding if self.characters is None else self.characters
        layers = zip(self.forward_lstms, self.backward_lstms, strict=True)
        return [[first], *map(list, layers)]

    @property
    def token_embedding(self) -> keras.layers.Embedding | None:
        return self._token_embedding

    def lm_head(self, *, name: str = "lm_head") -> LMHead:
        """The softmax of both directions, from P units: not tied to the token representation."""
        output_embedding = keras.layers.Embedding(
            self.config.vocab_size,
            self.config.direction_size,
            name="output_embedding",
            dtype=self.dtype_policy,
        )
        return self._lm_head(name, token_embedding=output_embedding)

    def rebuilt(self, **options: Any) -> Self:
        copy = super().rebuilt(**options)
        if self.spelling is not None:
            copy._set_spelling(self.spelling)
        return copy

    @classmethod
    def tensor_names(cls, config: BilmConfig) -> TensorNames:
        return _names(config)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "spelling": self.spelling}


# The characters of tokens, as ELMo reads them: bytes of UTF-8 between marks.

# After the 256 bytes. Every id is one more: 0 is left for the padding of sequences.
BEGIN_SEQUENCE, END_SEQUENCE, BEGIN_WORD, END_WORD, PADDING = range(256, 261)


def character_ids(words, *, length):
    """The characters of words: strings, or ids of marks -> int32 (W, length).

    A word is `BEGIN_WORD`, its bytes, as many as there is room for, `END_WORD`, and padding; a mark
    such as `BEGIN_SEQUENCE` is one byte. All are one more than their number; None is a row of 0.
    """
    ids = np.zeros((len(words), length), np.int32)
    for row, word in zip(ids, words, strict=True):
        if word is None:
            continue
        content = [word] if isinstance(word, int) else word.encode("utf-8")[: length - 2]
        characters = [BEGIN_WORD, *content, END_WORD]
        row[:] = PADDING + 1
        row[: len(characters)] = np.array(characters) + 1
    return ids


def spelling_of(vocabulary):
    """Returns the JSON values that the characters of a vocabulary's tokens follow from.

    They are `tokens`, and the roles `begin` (such as [CLS]), `end` ([SEP]) and `padding` ([PAD]),
    each a token or None.
    """
    roles = vocabulary.special_tokens
    return {
        "tokens": list(vocabulary.tokens),
        "begin": roles.cls,
        "end": roles.sep,
        "padding": roles.pad,
    }


def character_table(spelling, *, rows, length, widest):
    """The characters of each token of a vocabulary: int32 (rows, C).

    A token is read as the vocabulary writes it ("##ing"). The tokens that begin and end a sequence
    are marks, and padding is 0, as is a row without a token.

    Args:
        spelling: of `spelling_of`.
        rows: the number of rows, at least that of the tokens.
        length: the characters of a token.
        widest: the width of the widest filter. C is the longest token and this, if that is less
            than `length`: windows of padding alone, which are left out, are all alike.
    """
    marks = {
        spelling["begin"]: BEGIN_SEQUENCE,
        spelling["end"]: END_SEQUENCE,
        spelling["padding"]: None,
    }
    words = [marks.get(token, token) for token in spelling["tokens"]]
    words += [None] * (rows - len(words))
    table = character_ids(words, length=length)
    longest = np.max(np.sum((table > 0) & (table <= PADDING), axis=1))
    return table[:, : min(length, longest + widest)]


# The names of the weights in a model folder.

_LSTMS = [
    Rename(f"{way}_lstms.{{i}}.{weight}", f"{way}.{{i}}.{weight}", shape)
    for way in ("forward", "backward")
    for weight, shape in (
        ("kernel", "P G"),
        ("recurrent_kernel", "P G"),
        ("bias", "G"),
        ("projection", "U P"),
    )
]


def _names(config):
    """The `TensorNames` of a `BilmConfig`; `transformers` has no such model."""
    return TensorNames(
        base_class="BilmEncoder",
        encoder=[*_representation(config), *_LSTMS],
        layers=config.num_hidden_layers,
        sizes={
            "V": config.vocab_size,
            "P": config.direction_size,
            "U": config.lstm_size,
            "G": 4 * config.lstm_size,
            "N": NUM_CHARACTERS,
            "E": config.character_embedding_size,
            "F": config.num_filters,
        },
    )


def _representation(config):
    """The lines of the token representation."""
    if config.character_filters is None:
        return [Rename("token_embedding.embeddings", "token_embedding.weight", "V P")]
    lines = [Rename("characters.embedding.embeddings", "characters.embedding.weight", "N E")]
    for i, (width, number) in enumerate(config.character_filters):
        lines += _as_here(f"characters.convolutions.{i}", f"{width} E {number}")
    for i in range(config.num_highway_layers):
        for part in ("transform", "gate"):
            lines += _as_here(f"characters.highways.{i}.{part}", "F F")
    return [*lines, *_as_here("characters.projection", "F P")]


def _as_here(layer, shape):
    return dense(layer, layer, shape, ends=(".kernel", ".bias"), transposed=False)
